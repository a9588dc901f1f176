"""The body of a request: parsed as JSON, and validated against its shape (requests.md#bodies).

Parsing takes one value, without duplicate keys, without NaN, of limited depth and size. Validation reports every
problem with its path and one sentence.

Two ways lead to the same result. The short one (`_valid`) is for a body about which there is nothing to report: decoded
by a fast parser, checked, and encoded again to see that nothing was lost. Anything else, a fault or only an unusual
spelling, takes the full way (`validate`), which collects the problems in this order: duplicate members, characters that
the bank cannot process, types and lengths, then the rules over several members, which do not repeat a member that was
reported. Unknown members are no problem: they are removed and named in a WARNING.

A body may be made to be slow. Therefore of very many problems those at the beginning of its lists are reported, and
rules over several members only see the beginning of the lists of a refused body.

LARGEST_BODY is also the limit of the web server (`web/wire.py`) and of the control interface. It stands in
requests.md#bodies, consents.md#all-limits and `tests/hostile/bodies.py`, and as bytes in
`tests/e2e/test_wire_refusals.py` and `tests/api/test_control_commands.py`. Files in YAML
(`bank/fixtures/strict_yaml.py`) and the way between processes (`assemble/forwarding.py`) have limits of their own; the
proxy has that of aiohttp.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache, partial
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, get_args

import orjson

from emulator.api.headers import UTF_8, Headers, charset_of
from emulator.bank.errors import MOST_MESSAGES, BankError, Message, quoted, shortened
from emulator.bank.formats import UNPROCESSABLE, composed, is_plain, kind_of
from emulator.bank.problems import beginning, member_path, written

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError
    from pydantic_core import ErrorDetails

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


def _number(text: str) -> int | Decimal:
    # A Decimal is exact, a float is not. The limit prevents an exponent from becoming a huge number of digits later.
    if len(text) <= _LONGEST_NUMBER:
        with suppress(InvalidOperation):  # of an exponent that is itself out of range
            number = Decimal(text)
            if abs(number.adjusted()) <= _LONGEST_NUMBER:
                return int(text) if text.removeprefix("-").isdigit() else number
    shown = text if len(text) <= 20 else f"{text[:20]}..."
    raise _malformed(f"the number {shown} is too long or out of range")


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
        parse_float=_number,
        parse_int=_number,
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


# Validation

_BLANKS = b" \t\r\n"  # of JSON
_USUAL = 16 * 1024  # bytes of a body that is worth a first try, see `_valid`
_UNKNOWN = "extra_forbidden"  # pydantic's name for a member that a shape does not have
_LOOKED_AT = 10_000  # items of each list of a refused body that rules over several members check


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape as a validator: its types and the rules over several members.

    `listed` is set for a body that may be one object or a list of objects; `invalid` is the exception of the types.
    """

    types: TypeAdapter[Any]
    invalid: type[ValidationError]
    rules: tuple[Callable[[Any], Iterable[Message]], ...] = ()
    listed: TypeAdapter[Any] | None = None

    def check(self, value: Any) -> Any:
        """The value in its types; raises `invalid`."""
        if self.listed is not None and isinstance(value, list):
            return self.listed.validator.validate_python(value)
        return self.types.validator.validate_python(value)


@lru_cache(maxsize=256)
def shape(path: str) -> Shape:
    """The shape named `module:Name`; its module, and pydantic, are imported only here."""
    from pydantic import TypeAdapter, ValidationError

    module_name, _, name = path.partition(":")
    module = import_module(module_name)
    types = getattr(module, name)
    rules = getattr(module, "RULES", {}).get(name, ())
    alternatives = get_args(types)
    if len(alternatives) == 2 and get_args(alternatives[1]) == (alternatives[0],):
        return Shape(TypeAdapter(alternatives[0]), ValidationError, rules, TypeAdapter(alternatives[1]))
    return Shape(TypeAdapter(types), ValidationError, rules)


def read_and_validate(path: str, body: bytes, headers: Headers) -> tuple[Any, list[Message]]:
    """Parse the body of a request and `validate` it; raises BankError as that and `read_with_duplicates` do."""
    clean = _valid(path, body, headers)
    if clean is not None:
        return clean, []
    return validate(path, *read_with_duplicates(body, headers), plain=is_plain(body))


def _valid(path: str, body: bytes, headers: Headers) -> Any:
    """The validated body if there is nothing to report about it, else None; the full way finds out what there is.

    orjson decodes faster than the standard library, but keeps the last of duplicate members and rounds numbers. A value
    that it encodes to the same text, blanks aside, has neither.
    """
    if len(body) > _USUAL or not is_plain(body) or charset_of(headers) is not UTF_8:
        return None
    expected_shape = shape(path)
    try:
        value = orjson.loads(body)
        clean = expected_shape.check(value)
        text = orjson.dumps(value)  # of no great depth: it has the shape
    except (ValueError, expected_shape.invalid):
        return None
    if text != body and text.translate(None, _BLANKS) != body.translate(None, _BLANKS):
        return None
    for rule in expected_shape.rules:
        if any(rule(value)):
            return None
    return clean


def validate(
    path: str, value: Any, duplicates: Sequence[Message] = (), *, plain: bool = False
) -> tuple[Any, list[Message]]:
    """The body without members that its shape does not have, and a WARNING for each of these.

    `path` names the shape (`module:Name`), `value` and `duplicates` are the result of `read_with_duplicates`, `plain`
    that of `is_plain`.
    BankError FORMAT_ERROR lists every problem, with paths like `instructedAmount.amount` and
    `payments[2].creditorName`; at the root there is none.
    """
    expected_shape = shape(path)
    wrong = [*duplicates] if plain else [*duplicates, *check_strings(value)]
    unknown: list[ErrorDetails] = []
    try:
        clean = expected_shape.check(value)
    except expected_shape.invalid as error:
        for detail in _details(expected_shape, value, error):
            if detail["type"] == _UNKNOWN:
                unknown.append(detail)
            elif detail["type"] != "string_unicode":  # half of a surrogate pair: `check_strings` has named it
                wrong.append(Message("FORMAT_ERROR", _sentence(detail), written(detail["loc"]) or None))
    reported = {message.path for message in wrong}
    looked_at = beginning(value, _LOOKED_AT) if wrong else value
    for rule in expected_shape.rules:
        # A member that has been reported is not reported again.
        wrong.extend(message for message in rule(looked_at) if message.path not in reported)
    if wrong:
        raise BankError.several(wrong)
    if unknown:
        clean = expected_shape.check(_without(value, unknown))
    text = "The bank does not know this member and has ignored it."
    places = (written(detail["loc"]) or None for detail in unknown[:MOST_MESSAGES])
    return clean, [Message("FORMAT_ERROR", text, place, "WARNING") for place in places]


def _details(expected_shape: Shape, value: Any, error: ValidationError) -> list[ErrorDetails]:
    """pydantic's errors; of more than an answer has, only those at the beginning of each list, if these are enough.

    To tell all of half a million takes seconds, in which no other request is answered.
    """
    if error.error_count() > MOST_MESSAGES:
        for entries in (MOST_MESSAGES, 10 * MOST_MESSAGES, 100 * MOST_MESSAGES):
            try:
                expected_shape.check(beginning(value, entries))
            except expected_shape.invalid as first:
                details = first.errors(include_url=False)
                if sum(detail["type"] != _UNKNOWN for detail in details) >= MOST_MESSAGES:
                    return details
                if len(details) == error.error_count():
                    return details
    return error.errors(include_url=False)


def _without(value: Any, unknown: Iterable[ErrorDetails]) -> Any:
    """A copy of the body without these members."""
    copy = deepcopy(value)
    for detail in unknown:
        *outer, name = detail["loc"]
        holder = copy
        for step in outer:
            holder = holder[step]
        del holder[name]
    return copy


def _sentence(detail: ErrorDetails) -> str:
    """The sentence for one of pydantic's errors: what was expected and what was received."""
    kind, context, received = detail["type"], detail.get("ctx", {}), detail["input"]
    if kind == "missing":
        return "This member is required."
    if kind == "string_too_long":
        return f"At most {context['max_length']} characters were expected; received {len(received)}."
    if kind == "mismatch":
        expected = context["expected"]
        fault = context["text"] or f"{expected[:1].upper()}{expected[1:]} was expected"
        return f"{fault}; received {_described(received)}."
    if kind == "string_pattern_mismatch":
        from emulator.api.shapes.parts import EXPECTED

        return f"{EXPECTED[context['pattern']]} was expected; received {_described(received)}."
    if kind == "literal_error":
        return f"One of {context['expected'].replace(chr(39), '')} was expected; received {_described(received)}."
    if kind in ("too_short", "too_long"):
        bound, number = ("At least", "min_length") if kind == "too_short" else ("At most", "max_length")
        items = "item was" if context[number] == 1 else "items were"
        return f"{bound} {context[number]} {items} expected; received {len(received)}."
    return f"{_EXPECTED_TYPES.get(kind, 'Another value')} was expected; received {_described(received)}."


_EXPECTED_TYPES = {
    "string_type": "Text in quotes",
    "string_too_short": "Text that is not empty",
    "list_type": "A list",
    "dict_type": "An object",
    "bool_type": "true or false",
}


def _described(value: Any) -> str:
    """A short description of a received value."""
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return f"the number {shortened(str(value))}"
