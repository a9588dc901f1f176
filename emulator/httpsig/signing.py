"""Signing strings, dates, digests, signatures and the header Signature (draft-cavage-http-signatures-10; RFC 3230).

The signing string has one line `name: value` for each header that the signature covers. Date has the form of RFC 7231.
The Digest, `SHA-256=<base64>` over the raw bytes, represents the body. The header Signature has parameters
`key="value"`, joined with commas; one with values beyond ASCII is wrapped as one encoded word of RFC 2047. TPPs sign
requests this way, and the bank its answers.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256, SHA512

REQUEST_TARGET = "(request-target)"

# Each of these that is in the request must be signed (signature.md#headers-that-must-be-signed).
CANDIDATES = ("date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri")

# How the header matrix spells them, for messages to people.
_SPELT = "Date Digest X-Request-ID PSU-ID PSU-Corporate-ID TPP-Redirect-URI Signature TPP-Signature-Certificate"
SPELLING = {name.lower(): name for name in _SPELT.split()}


def request_target(method: str, target: str) -> str:
    """The value of `(request-target)`: lower-case method, one blank, path and query exactly as sent."""
    return f"{method.lower()} {target}"


def signing_string(lines: Iterable[tuple[str, str]]) -> str:
    """One line `name: value` for each pair, in order, joined by a newline and without one at the end."""
    return "\n".join([f"{name}: {value}" for name, value in lines])


HASHES: dict[str, Any] = {"SHA-256": hashlib.sha256, "SHA-512": hashlib.sha512}


def digest_value(body: bytes, algorithm: str = "SHA-256") -> str:
    """The header value for `body`, e.g. `SHA-256=47DEQpj8...`; `algorithm` is a name of HASHES."""
    return f"{algorithm}={b64encode(HASHES[algorithm](body).digest()).decode()}"


def parse_digest(text: str) -> list[tuple[str, str]]:
    """Pairs of upper-case algorithm name and encoded value; a part without `=` has the name ``""``."""
    pairs = []
    for part in text.split(","):
        name, equals, value = part.strip(" \t").partition("=")
        if equals:
            pairs.append((name.strip(" \t").upper(), value.strip(" \t")))
        elif name:
            pairs.append(("", name))
    return pairs


# Dates

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LONG_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DAYS = tuple(day[:3] for day in _LONG_DAYS)

_NAME, _MONTH = "(?P<name>[A-Z][a-z]{2})", "(?P<month>[A-Z][a-z]{2})"
_LONG_NAME = "(?P<name>[A-Z][a-z]{5,8})"
_TIME = "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_YEAR, _ZONE = "(?P<year>[0-9]{4})", "(?P<zone>GMT|[+-][0-9]{4})"
# The forms of a date, each with the note for a request that has it.
_FORMS = (
    (re.compile(f"{_NAME}, (?P<day>[0-9]{{1,2}}) {_MONTH} {_YEAR} {_TIME} {_ZONE}"), None),
    (
        re.compile(f"{_LONG_NAME}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT"),
        "Date: the obsolete RFC 850 form",
    ),
    (re.compile(f"{_NAME} {_MONTH} (?P<day>[0-9 ][0-9]) {_TIME} {_YEAR}"), "Date: the obsolete asctime form"),
)


class DateUnreadable(ValueError):
    """The text is not an RFC 7231 date; the argument says why."""


def format_date(moment: datetime) -> str:
    """`moment` (aware) as RFC 7231 IMF-fixdate, e.g. `Mon, 02 Mar 2026 08:00:00 GMT`."""
    return format_datetime(moment.astimezone(UTC), usegmt=True)


@lru_cache(maxsize=256)
def parse_date(text: str) -> tuple[float, str | None]:
    """Seconds since 1970 and a note when the form is readable but not IMF-fixdate; raise DateUnreadable.

    Cached, since requests of one second share a date.
    """
    if len(text) > 64:
        raise DateUnreadable("it is too long for a date")
    readable = next(((match, note) for form, note in _FORMS if (match := form.fullmatch(text))), None)
    if readable is None:
        raise DateUnreadable("it is not of the RFC 7231 form `Mon, 02 Mar 2026 08:00:00 GMT`")
    match, note = readable
    parts = match.groupdict()
    zone, offset = parts.get("zone", "GMT"), timedelta(0)
    if zone != "GMT":
        note = "Date: a numeric zone in place of GMT"
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:5])) * (-1 if zone[0] == "-" else 1)
    elif len(parts["day"]) == 1:
        note = "Date: the day has one digit, RFC 7231 requires two"
    if parts["month"] not in _MONTHS or parts["name"] not in (*_DAYS, *_LONG_DAYS):
        raise DateUnreadable("its day or month name is not one of RFC 7231")
    year, day, hour, minute, second = (int(parts[name]) for name in ("year", "day", "hour", "minute", "second"))
    try:
        local = datetime(
            year if len(parts["year"]) == 4 else 2000 + year,  # no request to this bank comes from another century
            _MONTHS.index(parts["month"]) + 1,
            day,
            hour,
            minute,
            59 if second == 60 else second,  # RFC 7231 allows second 60 for a leap second, datetime does not
            tzinfo=timezone(offset),
        )
        seconds = local.timestamp()
    except (ValueError, OverflowError):
        raise DateUnreadable("there is no such day or time") from None
    stated = _DAYS.index(parts["name"][:3])
    if local.weekday() != stated:
        raise DateUnreadable(f"that day is a {_LONG_DAYS[local.weekday()]}, not a {_LONG_DAYS[stated]}")
    return seconds, note


# The header Signature

# Possessive throughout: no input makes it backtrack. A backslash keeps the next character inside the string.
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_QUOTED = r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_PARAMETER = re.compile(rf"[ \t]*+({_TOKEN})[ \t]*+=[ \t]*+(?:{_QUOTED}|({_TOKEN}))[ \t]*+(?:,|$)", re.DOTALL)
_LEADING_WORD = re.compile(r"signature[ \t]++(?!=)", re.IGNORECASE)
_EMPTY = re.compile(r"[ \t]*+,")
_KNOWN = {"keyid": "keyId", "algorithm": "algorithm", "headers": "headers", "signature": "signature"}


class HeaderUnreadable(ValueError):
    """The Signature header does not have the required form, or is not wrapped right; the argument says where or why."""


@dataclass(slots=True)
class SignatureHeader:
    """The four parameters, each the raw text between its quotes; None for one that is absent."""

    key_id: str | None
    algorithm: str | None
    headers: str | None
    signature: str | None
    notes: tuple[str, ...] = ()


def parse(text: str) -> SignatureHeader:
    """Read the parameters of an unwrapped Signature header, in any order; raise HeaderUnreadable.

    Values are the raw text between the quotes: a backslash belongs to the value.
    """
    if _LEADING_WORD.match(text):
        raise HeaderUnreadable("it begins with the word Signature, as Authorization does; leave the word out")
    values: dict[str, str] = {}
    notes: list[str] = []
    at, end = 0, len(text)
    while at < end:
        match = _PARAMETER.match(text, at)
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
            raise HeaderUnreadable(f"the parameter {known} appears twice")
        else:
            values[known] = match[2]
            if name != known:
                notes.append(f"Signature: parameter {known} is spelt {name}")
        at = match.end()
    return SignatureHeader(
        values.get("keyId"), values.get("algorithm"), values.get("headers"), values.get("signature"), tuple(notes)
    )


def _trouble(text: str, at: int) -> str:
    """Describe the text at `at`, where a parameter was expected."""
    rest = text[at:].lstrip(" \t")
    name, equals, value = rest.partition("=")
    name, value = name.strip(" \t"), value.lstrip(" \t")
    where = f"at character {at + 1}"
    if not equals or not re.fullmatch(_TOKEN, name[:100]) or not value.strip("="):  # the end of base64
        return f'{where} key="value" was expected, found {rest[:30]!r}'
    if value.startswith(":"):
        return f"{name[:40]}=:...: is the form of RFC 9421; the bank reads draft-cavage-http-signatures-10"
    if not value.startswith('"'):
        return f'the value of {name[:40]} is not in double quotes (write {name[:40]}="...")'
    closed = re.match(_QUOTED, value, re.DOTALL)
    if closed is None:
        return f"the quoted value of {name[:40]} does not end"
    behind = value[closed.end() :]
    goes_on = behind[:1].isalnum() and not _PARAMETER.match(behind)
    hint = ' (inside it, write \\" for a double quote, \\, for a comma of a name)' if goes_on else ""
    return f"after the value of {name[:40]} a comma was expected, found {behind[:30]!r}{hint}"


_CHARSETS = {"utf-8": "utf-8", "utf8": "utf-8", "iso-8859-1": "iso-8859-1", "latin1": "iso-8859-1"}


def is_wrapped(text: str) -> bool:
    """Whether the header value is an RFC 2047 encoded word (or tries to be)."""
    return text.startswith("=?")


def unwrap(text: str) -> str:
    """The text inside one encoded word, or inside several that follow each other; raise HeaderUnreadable.

    Charsets utf-8 and iso-8859-1, encodings B and Q. Words may be longer than RFC 2047's 75
    characters, as the whole header is wrapped in one (signature.md#values-that-are-not-ascii).
    """
    from email.quoprimime import header_decode  # not needed to serve plain headers

    pieces: list[bytes] = []
    charset = ""
    rest = text.strip(" \t")
    while rest:
        if pieces and not is_wrapped(rest):
            raise HeaderUnreadable("after its encoded words it goes on in plain text; it is to be encoded whole")
        word_charset, encoding, payload, rest = _word(rest)
        if charset not in ("", word_charset):
            raise HeaderUnreadable("its encoded words name different charsets")
        charset = word_charset
        try:
            pieces.append(
                b64decode(payload, validate=True) if encoding == "B" else header_decode(payload).encode("latin-1")
            )
        except ValueError:
            raise HeaderUnreadable("its encoded word is not valid base64") from None
        rest = rest.lstrip(" \t")
    try:
        return b"".join(pieces).decode(charset or "ascii")
    except UnicodeDecodeError:
        raise HeaderUnreadable(f"its bytes are not {charset}, the charset that it names") from None


def _word(text: str) -> tuple[str, str, str, str]:
    """Charset, encoding and payload of the encoded word at the start of `text`, and what follows it."""
    parts = text.split("?", 4)
    if len(parts) < 5 or parts[0] != "=" or not parts[4].startswith("="):
        raise HeaderUnreadable("it is not of the RFC 2047 form =?charset?encoding?text?=")
    charset = _CHARSETS.get(parts[1].partition("*")[0].lower())
    if charset is None:
        raise HeaderUnreadable(f"its charset {parts[1][:30]!r} is neither utf-8 nor iso-8859-1")
    encoding = parts[2].upper()
    if encoding not in ("B", "Q"):
        raise HeaderUnreadable(f"its encoding {parts[2][:30]!r} is neither B nor Q")
    if not parts[3].isascii():
        raise HeaderUnreadable("its encoded word holds characters beyond ASCII")
    return charset, encoding, parts[3], parts[4][1:]


def wrap(text: str) -> str:
    """`text` as one encoded word, `=?utf-8?B?<base64 of the signature header>?=`."""
    return f"=?utf-8?B?{b64encode(text.encode()).decode()}?="


# Signing

ALGORITHMS = {"rsa-sha256": SHA256(), "rsa-sha512": SHA512()}


def signature_of(text: str, key: RSAPrivateKey, algorithm: str = "rsa-sha256") -> str:
    """The base64 signature over a signing string, by RSASSA-PKCS1-v1_5."""
    return b64encode(key.sign(text.encode(), PKCS1v15(), ALGORITHMS[algorithm])).decode()


def header_text(*, key_id: str, algorithm: str, names: Sequence[str], signature: str, ascii_only: bool = True) -> str:
    """The value of the header Signature, wrapped when it, or a signed value (`ascii_only` False), is not ASCII."""
    text = f'keyId="{key_id}",algorithm="{algorithm}",headers="{" ".join(names)}",signature="{signature}"'
    return text if ascii_only and text.isascii() else wrap(text)


def signature_header(lines: Sequence[tuple[str, str]], *, key_id: str, key: RSAPrivateKey) -> str:
    """The Signature value over `lines` (lower-case name, value), with rsa-sha256."""
    text = signing_string(lines)
    return header_text(
        key_id=key_id,
        algorithm="rsa-sha256",
        names=[name for name, _ in lines],
        signature=signature_of(text, key),
        ascii_only=text.isascii(),
    )
