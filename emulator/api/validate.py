"""Validates a body against its shape, and reports every problem with its path and one sentence (requests.md#bodies).

Two ways lead to the same result. The short one (`_valid`) is for a body about which there is nothing to report: decoded
by a fast parser, checked, and encoded again to see that nothing was lost. Anything else, a fault or only an unusual
spelling, takes the full way (`validate`), which collects the problems in this order: duplicate members, characters that
the bank cannot process, types and lengths, then the rules over several members, which do not repeat a member that was
reported. Unknown members are no problem: they are removed and named in a WARNING.

A body may be made to be slow. Therefore of very many problems those at the beginning of its lists are reported, and
rules over several members only see the beginning of the lists of a refused body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

import orjson

from emulator.api.headers import UTF_8, Headers, charset_of
from emulator.api.json_body import check_strings, read_with_duplicates
from emulator.bank.errors import MOST_MESSAGES, BankError, Message, quoted, shortened
from emulator.bank.formats import is_plain
from emulator.bank.problems import beginning, written

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError
    from pydantic_core import ErrorDetails

Loc = tuple[int | str, ...]

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
    try:
        clean = expected_shape.check(value)
    except expected_shape.invalid as error:
        return _with_mistakes(expected_shape, value, wrong, _details(expected_shape, value, error))
    if wrong:
        return _with_mistakes(expected_shape, value, wrong, ())
    for rule in expected_shape.rules:
        wrong += rule(value)
    if wrong:
        raise BankError.several(wrong)
    return clean, []


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


def _with_mistakes(
    expected_shape: Shape, value: Any, wrong: list[Message], details: Sequence[ErrorDetails]
) -> tuple[Any, list[Message]]:
    """The result of `validate` for a body that does not fit its types; unknown members are allowed."""
    unknown: list[ErrorDetails] = []
    for detail in details:
        if detail["type"] == _UNKNOWN:
            unknown.append(detail)
        elif detail["type"] != "string_unicode":  # half of a surrogate pair: `check_strings` has named it
            wrong.append(Message("FORMAT_ERROR", _sentence(detail), written(detail["loc"]) or None))
    reported = {message.path for message in wrong}
    if wrong:
        value = beginning(value, _LOOKED_AT)
    for rule in expected_shape.rules:
        # A member that has been reported is not reported again.
        wrong.extend(message for message in rule(value) if message.path not in reported)
    if wrong:
        raise BankError.several(wrong)
    clean = expected_shape.check(_without(value, [detail["loc"] for detail in unknown])) if unknown else None
    text = "The bank does not know this member and has ignored it."
    places = (written(detail["loc"]) or None for detail in unknown[:MOST_MESSAGES])
    return clean, [Message("FORMAT_ERROR", text, place, "WARNING") for place in places]


def _without(value: Any, unknown: Sequence[Loc]) -> Any:
    """A copy of the body without these members."""
    copy = deepcopy(value)
    for *outer, name in unknown:
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
