"""Parsing a JSON body (requests.md#bodies): one value, no duplicate keys, no NaN, limited depth and size.

LARGEST_BODY is also the limit of the web server (`web/wire.py`) and of the control interface. It stands in
requests.md#bodies, consents.md#all-limits and `tests/hostile/bodies.py`, and as bytes in
`tests/e2e/test_wire_refusals.py` and `tests/api/test_control_commands.py`. Files in YAML
(`bank/fixtures/strict_yaml.py`), the proxy (`client/proxy.py`) and the way between processes (`assemble/forwarding.py`)
have limits of their own.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from functools import partial
from itertools import islice
from typing import Any, NoReturn

from emulator.api.headers import Headers, charset_of
from emulator.bank.errors import MOST_MESSAGES, BankError, Message
from emulator.bank.formats import UNPROCESSABLE, composed, is_plain, kind_of
from emulator.bank.problems import member_path

LARGEST_BODY = 1024 * 1024  # bytes
DEEPEST = 32  # objects and lists inside one another
# Far above what any body needs: reading more, and telling what is wrong with each, would hold up other requests.
MOST_VALUES = 100_000
MOST_MEMBERS = 1000

# Possessive; an unterminated string matches the whole rest, because retrying at each of its quotes would be quadratic.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BRACKET = re.compile(r"[][{}]")
_LONGEST_NUMBER = 400  # characters


class _ObjectWithDuplicates(dict[str, Any]):
    """An object, and the names that appear in it more than once."""

    duplicates: tuple[str, ...] = ()


def _object(marked: list[_ObjectWithDuplicates], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object with these members, added to `marked` if one of them appears more than once."""
    if len(pairs) > MOST_MEMBERS:
        raise BankError("FORMAT_ERROR", f"An object has at most {MOST_MEMBERS} members.")
    if len(value := dict(pairs)) == len(pairs):
        return value
    value = _ObjectWithDuplicates(value)
    value.duplicates = tuple(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
    marked.append(value)
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise _malformed(f"{text} is not a number")


def _refuse_number(text: str) -> NoReturn:
    shown = text if len(text) <= 20 else f"{text[:20]}..."
    raise _malformed(f"the number {shown} is too long or out of range")


def _decimal(text: str) -> Decimal:
    # A Decimal is exact, a float is not. The limit prevents an exponent from becoming a huge number of digits later.
    number: Decimal | None
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent that is itself out of range
        number = None
    if number is None or len(text) > _LONGEST_NUMBER or abs(number.adjusted()) > _LONGEST_NUMBER:
        _refuse_number(text)
    return number


def _integer(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        _refuse_number(text)
    return int(text)


def read_json(body: bytes, headers: Headers) -> Any:
    """The value of the body, numbers with a fraction or exponent as Decimal, texts in NFC.

    BankError: 415 for another content type, charset or a Content-Encoding, 413 for over 1 MiB, else FORMAT_ERROR.
    A missing Content-Type counts as application/json (assumed: all payloads are JSON).
    """
    value, duplicates = read_with_duplicates(body, headers)
    if duplicates:
        raise BankError.several(duplicates)
    return value


def read_with_duplicates(body: bytes, headers: Headers) -> tuple[Any, list[Message]]:
    """As `read_json`, but returns a FORMAT_ERROR for each duplicate member with the value, which has the last of them.

    So the other problems of the body can be reported together with them.
    """
    charset = charset_of(headers)
    if len(body) > LARGEST_BODY:
        text = f"A body has at most {LARGEST_BODY} bytes; received {len(body)}."
        raise BankError("BAD_REQUEST", text, status=413)
    try:
        text = body.decode(charset)
    except UnicodeDecodeError as error:
        raise _malformed(f"byte {error.start + 1} is not {charset.upper()}") from None
    if not text.strip(" \t\r\n"):
        raise BankError("FORMAT_ERROR", "A JSON body is required.")
    if text[0] == "\ufeff":
        raise _malformed("it begins with a byte order mark")
    if text.count(",") > MOST_VALUES:
        raise BankError("FORMAT_ERROR", f"A body has at most {MOST_VALUES} members and entries.")
    if text.count("{") + text.count("[") > DEEPEST and too_deep(text):
        raise BankError("FORMAT_ERROR", f"The body is nested more than {DEEPEST} levels deep.")
    marked: list[_ObjectWithDuplicates] = []
    value = _decoded(text, marked)
    duplicates = list(islice(_duplicate_members(value), MOST_MESSAGES)) if marked else []
    return (value if is_plain(body) else composed(value)), duplicates


def _decoded(text: str, marked: list[_ObjectWithDuplicates]) -> Any:
    decoder = json.JSONDecoder(
        object_pairs_hook=partial(_object, marked),
        parse_float=_decimal,
        parse_int=_integer,
        parse_constant=_refuse_constant,
    )
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        problem = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        raise _malformed(f"{problem} at line {error.lineno}, column {error.colno}") from None


def _malformed(reason: str) -> BankError:
    return BankError("FORMAT_ERROR", f"The body is not well-formed JSON: {reason}.")


def too_deep(text: str) -> bool:
    """Whether objects and lists are nested more than DEEPEST levels deep."""
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub("", text)):
        depth += 1 if bracket.group() in "{[" else -1
        if depth > DEEPEST:
            return True
    return False


def _duplicate_members(body: Any) -> Iterator[Message]:
    """A message for each member that appears more than once."""
    for path, _, value in _parts(body):
        if isinstance(value, _ObjectWithDuplicates):
            for name in value.duplicates:
                yield Message("FORMAT_ERROR", "This member appears more than once.", member_path(path, name))


def _parts(value: Any, path: str = "", name: str = "") -> Iterator[tuple[str, str, Any]]:
    """Path, name and value of a body and of everything in it; an item of a list has no name."""
    yield path, name, value
    if isinstance(value, dict):
        for member, inner in value.items():
            yield from _parts(inner, member_path(path, member), member)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _parts(inner, f"{path}[{index}]")


def check_strings(value: Any) -> list[Message]:
    """FORMAT_ERROR for every string (also member names) with characters that the bank cannot process."""
    return [] if _all_processable(value) else list(islice(_refused_strings(value), MOST_MESSAGES))


def _all_processable(value: Any) -> bool:
    if isinstance(value, str):
        return (value.isascii() and value.isprintable()) or not UNPROCESSABLE.search(value)
    if isinstance(value, dict):
        return all(map(_all_processable, value)) and all(map(_all_processable, value.values()))
    return not isinstance(value, list) or all(map(_all_processable, value))


def _refused_strings(body: Any) -> Iterator[Message]:
    for path, name, value in _parts(body):
        for text in (name, value):
            if isinstance(text, str) and (match := UNPROCESSABLE.search(text)):
                reason = f"The bank's systems cannot process {kind_of(match.group())}."
                yield Message("FORMAT_ERROR", reason, path or None)
