"""The Signature header: parameters as `key="value"`, joined with commas (SPEC 5.2 rule 3; draft 10, 2.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

# Possessive throughout: no input makes it backtrack. A backslash keeps the next character inside the string.
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_QUOTED = r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_PARAMETER = re.compile(rf"[ \t]*+({_TOKEN})[ \t]*+=[ \t]*+(?:{_QUOTED}|({_TOKEN}))[ \t]*+(?:,|$)", re.DOTALL)
_LEADING_WORD = re.compile(r"signature[ \t]++(?!=)", re.IGNORECASE)
_EMPTY = re.compile(r"[ \t]*+,")
# What usually stands before a quoted value: looking it up takes a third of the time of the expression above.
_NAMES = ("keyId", "algorithm", "headers", "signature")
_FIRST = {f"{name}=": name for name in _NAMES}
_LATER = {f"{comma}{name}=": name for name in _NAMES for comma in (",", ", ")}
_KNOWN = {"keyid": "keyId", "algorithm": "algorithm", "headers": "headers", "signature": "signature"}


class HeaderUnreadable(ValueError):
    """The Signature header is not of its form; the argument is a sentence that says where."""


@dataclass(slots=True)
class SignatureHeader:
    """The four parameters as they stand between the quotes; None where one was left out."""

    key_id: str | None
    algorithm: str | None
    headers: str | None
    signature: str | None
    notes: tuple[str, ...] = ()


def parse(text: str) -> SignatureHeader:
    """Read the parameters of an unwrapped Signature header, in any order; raise HeaderUnreadable.

    Values are the raw text between the quotes: a backslash belongs to the value (CONTRACT 3.1 and 13).
    """
    usual = _usual(text)
    if usual is not None:
        return usual
    if _LEADING_WORD.match(text):
        raise HeaderUnreadable("it begins with the word Signature, as Authorization does; leave the word out")
    values: dict[str, str] = {}
    notes: list[str] = []
    at, end = 0, len(text)
    match_parameter = _PARAMETER.match
    while at < end:
        match = match_parameter(text, at)
        if match is None:
            empty = _EMPTY.match(text, at)
            if empty is None:
                if not text[at:].strip(" \t"):
                    break
                raise HeaderUnreadable(_trouble(text, at))
            at = empty.end()
            continue
        name = match[1]
        known = _KNOWN.get(name.lower())
        if known is None:
            notes.append(f"Signature: unknown parameter {name[:40]} ignored")
        elif match[2] is None:
            raise HeaderUnreadable(_trouble(text, at))
        elif known in values:
            raise HeaderUnreadable(f"the parameter {known} is there twice")
        else:
            values[known] = match[2]
            if name != known:
                notes.append(f"Signature: parameter {known} is spelt {name}")
        at = match.end()
    return SignatureHeader(
        values.get("keyId"), values.get("algorithm"), values.get("headers"), values.get("signature"), tuple(notes)
    )


def _usual(text: str) -> SignatureHeader | None:
    """The header when all four parameters are there, spelt as usual, and no quote is escaped."""
    parts = text.split('"', 9)
    if len(parts) != 9 or parts[8] or ("\\" in text and '\\"' in text):
        return None
    later = _LATER.get
    found = {
        _FIRST.get(parts[0]): parts[1],
        later(parts[2]): parts[3],
        later(parts[4]): parts[5],
        later(parts[6]): parts[7],
    }
    if len(found) < 4 or None in found:
        return None
    return SignatureHeader(found["keyId"], found["algorithm"], found["headers"], found["signature"])


def _trouble(text: str, at: int) -> str:
    """A sentence on what stands at `at` in place of a parameter."""
    rest = text[at:].lstrip(" \t")
    name, equals, value = rest.partition("=")
    name, value = name.strip(" \t"), value.lstrip(" \t")
    where = f"at character {at + 1}"
    if not equals or not re.fullmatch(_TOKEN, name[:100]) or not value.strip("="):  # the end of base64
        return f'{where} key="value" was expected, found {rest[:30]!r}'
    if value.startswith(":"):
        return f"{name[:40]}=:...: is the form of RFC 9421, the bank reads that of draft-cavage-http-signatures-10"
    if not value.startswith('"'):
        return f'the value of {name[:40]} is not in double quotes (write {name[:40]}="...")'
    closed = re.match(_QUOTED, value, re.DOTALL)
    if closed is None:
        return f"the quoted value of {name[:40]} does not end"
    behind = value[closed.end() :]
    goes_on = behind[:1].isalnum() and not _PARAMETER.match(behind)
    hint = ' (inside it, write \\" for a double quote, \\, for a comma of a name)' if goes_on else ""
    return f"after the value of {name[:40]} a comma was expected, found {behind[:30]!r}{hint}"


def render(*, key_id: str, algorithm: str, headers: Sequence[str], signature: str) -> str:
    """The header text of SPEC 5.2 rule 3, without wrapping."""
    return f'keyId="{key_id}",algorithm="{algorithm}",headers="{" ".join(headers)}",signature="{signature}"'
