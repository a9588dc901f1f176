"""Reading a JSON body (CONTRACT 3.2): one value, no duplicate keys, no NaN, not too deep, not too large."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from emulator.bank.errors import MOST_MESSAGES, BankError, Message

if TYPE_CHECKING:
    from emulator.api.headers import Headers

LARGEST_BODY = 1024 * 1024  # bytes
DEEPEST = 32  # objects and lists inside one another

UTF_8 = "utf-8"
# Content-Type charset -> Python's name for it.
_CHARSETS = {
    "utf-8": UTF_8,
    "utf8": UTF_8,
    "iso-8859-1": "latin-1",
    "iso8859-1": "latin-1",
    "latin1": "latin-1",
}
# Possessive, and for a string without an end the whole rest: trying again at each of its quotes would take for ever.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BRACKET = re.compile(r"[][{}]")
_LONGEST_NUMBER = 400  # characters

# What the bank's systems cannot process anywhere in a request (SPEC 1): control characters, halves of a
# surrogate pair, and what lies outside the basic multilingual plane (emoji).
UNPROCESSABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\U00010000-\U0010ffff]")


def kind_of(character: str) -> str:
    """What an unprocessable character is, with its number, for a sentence."""
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        kind = "half of a surrogate pair"
    elif code > 0xFFFF:
        kind = "a character outside the basic multilingual plane, such as an emoji"
    else:
        kind = "a control character"
    return f"{kind} (U+{code:04X})"


class _Doubled(Exception):
    """An object has a member twice."""


class _NoNumber(ValueError):
    """A number that JSON does not have, or of which nothing is left but its length."""


def _single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Doubled
    return value


def _no_number(text: str) -> NoReturn:
    raise _NoNumber(f"{text} is no number")


def _cut(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:20]}..."


def _decimal(text: str) -> Decimal:
    # Decimal keeps what was written; a float would not. An exponent of any size must not grow into digits later.
    number: Decimal | None
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent that is itself out of range
        number = None
    if number is None or len(text) > _LONGEST_NUMBER or abs(number.adjusted()) > _LONGEST_NUMBER:
        raise _NoNumber(f"the number {_cut(text)} is too long or out of range")
    return number


def _integer(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise _NoNumber(f"the number {_cut(text)} is too long or out of range")
    return int(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_single, parse_float=_decimal, parse_int=_integer, parse_constant=_no_number
)


def read_json(body: bytes, headers: Headers) -> Any:
    """The value that the body holds, numbers with a fraction or exponent as Decimal.

    BankError: 415 for another content type, charset or a Content-Encoding, 413 for over 1 MiB, else FORMAT_ERROR.
    A missing Content-Type counts as application/json (assumed: all payloads are JSON, SPEC 1).
    """
    value, doubled = read_doubled(body, headers)
    if doubled:
        raise BankError.several(doubled)
    return value


def read_doubled(body: bytes, headers: Headers) -> tuple[Any, list[Message]]:
    """As `read_json`, but a FORMAT_ERROR for each doubled member is given with the value, which has the last of them.

    So the other problems of the body can be reported with it.
    """
    charset = charset_of(headers)
    if len(body) > LARGEST_BODY:
        raise BankError("BAD_REQUEST", f"A body has at most {LARGEST_BODY} bytes; {len(body)} came.", status=413)
    try:
        text = body.decode(charset)
    except UnicodeDecodeError as error:
        raise _malformed(f"byte {error.start + 1} is not {charset.upper()}") from None
    if not text.strip(" \t\r\n"):
        raise BankError("FORMAT_ERROR", "A JSON body is required.")
    if text[0] == "\ufeff":
        raise _malformed("it begins with a byte order mark")
    if text.count("{") + text.count("[") > DEEPEST and too_deep(text):
        raise BankError("FORMAT_ERROR", f"The body is nested more than {DEEPEST} levels deep.")
    try:
        return _decoded(text, _DECODER), []
    except _Doubled:
        value = _decoded(text, _LOOSE_DECODER)
        return value, list(islice(_doubled_members(value), MOST_MESSAGES))


def _decoded(text: str, decoder: json.JSONDecoder) -> Any:
    try:
        return decoder.decode(text)
    except _NoNumber as error:
        raise _malformed(str(error)) from None
    except json.JSONDecodeError as error:
        problem = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        raise _malformed(f"{problem} at line {error.lineno}, column {error.colno}") from None


def _malformed(reason: str) -> BankError:
    return BankError("FORMAT_ERROR", f"The body is not well-formed JSON: {reason}.")


def charset_of(headers: Headers) -> str:
    """The Python codec of the body, from Content-Type (an empty one counts as missing); 415 where the bank has none."""
    encoding = headers.get("content-encoding")
    if encoding is not None and encoding.lower() not in ("", "identity"):
        text = "A body with a Content-Encoding is not read: send it as it is."
        raise BankError("BAD_REQUEST", text, "Content-Encoding", status=415)
    content_type = headers.get("content-type", "")
    if content_type == "application/json" and not headers.repeated:
        return UTF_8
    if not content_type and "content-type" not in headers.repeated:
        return UTF_8
    media_type, *parameters = (part.strip() for part in content_type.split(";"))
    if media_type.lower() != "application/json" or "content-type" in headers.repeated:
        raise BankError("BAD_REQUEST", "The bank reads application/json only.", "Content-Type", status=415)
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            codec = _CHARSETS.get(value.strip().strip('"').lower())
            if codec is None:
                text = "The bank reads JSON in UTF-8 or ISO-8859-1 only."
                raise BankError("BAD_REQUEST", text, "Content-Type", status=415)
            return codec
    return UTF_8


def too_deep(text: str) -> bool:
    """Whether objects and lists stand deeper inside one another than the bank reads."""
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub("", text)):
        depth += 1 if bracket.group() in "{[" else -1
        if depth > DEEPEST:
            return True
    return False


class _Loose(dict[str, Any]):
    """An object with the names that stand in it more than once."""

    doubled: tuple[str, ...] = ()


def _collected(pairs: list[tuple[str, Any]]) -> _Loose:
    value = _Loose(pairs)
    if len(value) != len(pairs):
        value.doubled = tuple(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
    return value


_LOOSE_DECODER = json.JSONDecoder(
    object_pairs_hook=_collected, parse_float=_decimal, parse_int=_integer, parse_constant=_no_number
)


def _doubled_members(value: Any) -> Iterator[Message]:
    """The members that stand more than once, with their paths."""
    for path, inner in _objects(value, ""):
        for name in inner.doubled:
            yield Message("FORMAT_ERROR", "This member appears more than once.", member_path(path, name))


def _objects(value: Any, path: str) -> Iterator[tuple[str, _Loose]]:
    if isinstance(value, _Loose):
        yield path, value
        for name, inner in value.items():
            yield from _objects(inner, member_path(path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _objects(inner, f"{path}[{index}]")


def member_path(path: str, name: str) -> str:
    """`path.name`, or `name` at the root; names that cannot be shown as they are are written with escapes."""
    shown = name if name.isprintable() and len(name) <= 100 else ascii(name[:100])[1:-1]
    return f"{path}.{shown}" if path else shown


_BACKSLASH, _DELETE = b"\\\x7f"  # numbers, which are found in bytes sooner than bytes are


def is_plain(body: bytes) -> bool:
    """Whether no string of a well-formed body can hold what `check_strings` looks for: ASCII without escapes.

    Asked of the bytes, since most bodies are plain, and looking at every string takes longer than all other checks.
    """
    return body.isascii() and _BACKSLASH not in body and _DELETE not in body


def check_strings(value: Any) -> list[Message]:
    """FORMAT_ERROR for every string (member names too) with characters the bank's systems cannot process (SPEC 1)."""
    return [] if _all_processable(value) else list(islice(_refused_strings(value, ""), MOST_MESSAGES))


def _all_processable(value: Any) -> bool:
    if isinstance(value, str):
        return (value.isascii() and value.isprintable()) or not UNPROCESSABLE.search(value)
    if isinstance(value, dict):
        return all(map(_all_processable, value)) and all(map(_all_processable, value.values()))
    return not isinstance(value, list) or all(map(_all_processable, value))


def _refused_strings(value: Any, path: str) -> Iterator[Message]:
    if isinstance(value, str):
        if match := UNPROCESSABLE.search(value):
            yield Message("FORMAT_ERROR", _cannot_process(match.group()), path or None)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if match := UNPROCESSABLE.search(name):
                yield Message("FORMAT_ERROR", _cannot_process(match.group()), member_path(path, name))
            yield from _refused_strings(inner, member_path(path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _refused_strings(inner, f"{path}[{index}]")


def _cannot_process(character: str) -> str:
    return f"The bank's systems cannot process {kind_of(character)}."
