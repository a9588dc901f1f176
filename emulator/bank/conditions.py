"""Conditions on a value: their forms in a file, and how a value is compared with one.

A condition is exact (a text may have `*`), or `{gt, lt, in, regex, absent}`, or a mapping or list of conditions. Rules
match requests with them, stories check answers. A rule compares loosely (`10` fits "10.00", because headers and amounts
are text), an expectation strictly (text is text, a number is a number). In a story, text may contain `${name}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property, lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, ForwardRef, Self

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypeAliasType

from emulator.bank.errors import counted
from emulator.bank.problems import Path, described
from emulator.bank.validation import Mismatch, Model, Omittable, Reads, refuse, union

if TYPE_CHECKING:
    import re2

DECIMAL = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?")

LONGEST_PATTERN = 500
LONGEST_TEXT = 100_000  # characters; a longer text matches no expression
MOST_MEMORY = 1 << 20  # bytes that one compiled expression may take


@lru_cache(maxsize=256)
def expression(text: str) -> re2._Regexp:
    """The compiled expression; raises Mismatch with the reason if google-re2 does not accept it.

    Its search takes linear time for every pattern.
    """
    import re2  # few banks have a rule with a regular expression

    if len(text) > LONGEST_PATTERN:
        raise Mismatch(text=f"This regular expression is longer than {LONGEST_PATTERN} characters.")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MOST_MEMORY
    try:
        return re2.compile(text, options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if isinstance(error, re2.error) else "half of a surrogate pair"
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise Mismatch(text=f"This is not a regular expression of RE2: {reason}.") from None


def matches(compiled: re2._Regexp, text: str) -> bool:
    """Whether `text` contains a match; False for a text of more than 100,000 characters."""
    return len(text) <= LONGEST_TEXT and compiled.search(text) is not None


ABSENT = object()
"""The value of a member that is absent."""
MOST_COMPARED = 50  # entries of a list that are compared to find the most similar one
Difference = tuple[Path, str]

Condition = Any
"""What a validated form states: a value, a text with `*`, Operators, or a list or mapping of conditions."""


def fits(stated: Condition, value: Any, *, strict: bool = False) -> bool:
    """Whether a value fits; common conditions are evaluated without building the texts of differences."""
    if isinstance(stated, str | int | float):
        return _is_same(stated, value, strict)
    if isinstance(stated, dict) and isinstance(value, dict):
        return all(fits(inner, value.get(name, ABSENT), strict=strict) for name, inner in stated.items())
    return next(differences(stated, value, strict=strict), None) is None


def differences(stated: Condition, value: Any, path: Path = (), *, strict: bool = False) -> Iterator[Difference]:
    """Where and why `value` (or ABSENT) does not fit; yields nothing if it fits."""
    if isinstance(stated, Operators):
        for text in _unmet(stated, value, strict):
            yield path, f"expected {text}, found {_described(value)}"
    elif isinstance(stated, dict):
        yield from _of_members(stated, value, path, strict)
    elif isinstance(stated, list):
        yield from _of_entries(stated, value, path, strict)
    elif not _is_same(stated, value, strict):
        yield path, f"expected {described(stated)}, found {_described(value)}"


def is_absence(stated: Condition) -> bool:
    """Whether nothing but an absent value fits."""
    return isinstance(stated, Operators) and stated.absent is True


def number(value: Any) -> Decimal | None:
    """The value as a number, also if it is a number in text; else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, float):
        return Decimal(repr(value)) if isfinite(value) else None
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        return Decimal(value)
    return None


def wildcard(pattern: str, text: str) -> bool:
    """Whether `text` matches `pattern`, in which each `*` stands for any characters."""
    first, *others = pattern.split("*")
    if not others:
        return pattern == text
    last = others.pop()
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in others:
        start = text.find(piece, at, end)
        if start < 0:
            return False
        at = start + len(piece)
    return True


def _described(value: Any) -> str:
    return "nothing" if value is ABSENT else described(value)


def _is_same(wanted: Any, value: Any, strict: bool) -> bool:
    """Whether a value is the one wanted: a text (with `*`), a number, true, false or null."""
    if value is ABSENT:
        return False
    if isinstance(wanted, str):
        if isinstance(value, dict | list):
            return wanted == "*"
        # With a * it is a pattern, as a regex is, and not a text of its own type.
        text = _text_of(value, strict and "*" not in wanted)
        return text is not None and wildcard(wanted, text)
    if isinstance(wanted, bool) or wanted is None:
        return value is wanted or (not strict and isinstance(value, str) and value == _as_text(wanted))
    if isinstance(value, bool) or (strict and isinstance(value, str)):
        return False
    return number(value) == number(wanted)


def _text_of(value: Any, strict: bool) -> str | None:
    """The value as text, for a comparison with a text; `strict`: None unless it is a text."""
    if value is ABSENT or isinstance(value, dict | list) or (strict and not isinstance(value, str)):
        return None
    return _as_text(value)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)


def _unmet(stated: Operators, value: Any, strict: bool) -> Iterator[str]:
    """What a value does not fit, in words: it must fit all operators.

    `gt` and `lt` compare numbers, also numbers in text; of `regex` the text contains a match; `absent`: true if the
    member must be absent, false if it must be present.
    """
    actual = number(value)
    if stated.gt is not None and (actual is None or actual <= _bound_of(stated.gt)):
        yield f"more than {_bound_of(stated.gt)}"
    if stated.lt is not None and (actual is None or actual >= _bound_of(stated.lt)):
        yield f"less than {_bound_of(stated.lt)}"
    if stated.in_ is not None and not stated.lists(value, strict):
        yield f"one of {', '.join(map(str, stated.listed))}"
    if stated.regex is not None and not (
        isinstance(value, str | int | float) and matches(stated.pattern, _as_text(value))
    ):
        yield f"text that matches {stated.regex}"
    if stated.absent is not None and (value is ABSENT) != stated.absent:
        yield "nothing" if stated.absent else "a value"


def _bound_of(stated: Any) -> Decimal:
    return number(stated) or Decimal(0)  # a text with `${name}` that no story has filled is no number


def _of_members(stated: dict[str, Any], value: Any, path: Path, strict: bool) -> Iterator[Difference]:
    """A mapping with at least these members; in a rule, a list with at least one such entry fits too."""
    if isinstance(value, list) and not strict:
        if not any(fits(stated, entry) for entry in value):
            yield path, "expected an entry that fits, found none"
        return
    if value is ABSENT and stated:
        value = {}
    if not isinstance(value, dict):
        yield path, f"expected a mapping, found {_described(value)}"
        return
    for name, condition in stated.items():
        yield from differences(condition, value.get(name, ABSENT), (*path, name), strict=strict)


def _of_entries(stated: list[Any], value: Any, path: Path, strict: bool) -> Iterator[Difference]:
    """A list with these entries in this order, possibly with others between them; without entries, an empty list."""
    if not isinstance(value, list):
        yield path, f"expected a list, found {_described(value)}"
        return
    if not stated and value:
        yield path, f"expected an empty list, found {counted(len(value), 'entry', 'entries')}"
    at = 0
    for index, entry in enumerate(stated):
        position = next((i for i in range(at, len(value)) if fits(entry, value[i], strict=strict)), None)
        if position is None:
            # why the entry that differs least does not fit
            rest = enumerate(value[at : at + MOST_COMPARED], at)
            none = [(path, f"expected an entry {index + 1} that fits, found no more entries")]
            several = (list(differences(entry, one, (*path, place), strict=strict)) for place, one in rest)
            yield from min(several, key=len, default=none)
            return
        at = position + 1


# Forms

NAMED = r"\$\{"  # in the text of a story: a value that a step has saved

OPERATORS = ("gt", "lt", "in", "regex", "absent")
# Operators of other tools: as names of members they would never fit, and the author would not see why.
FOREIGN = frozenset({"gte", "lte", "ge", "le", "eq", "ne", "equals", "matches", "contains", "exists", "like", "not"})


def _expression(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Mismatch("text")
    if "${" not in value:
        expression(value)
    return value


def _bound(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number or (isinstance(value, str) and ("${" in value or DECIMAL.fullmatch(value))):
        return value
    raise Mismatch("a number")


def _kind(value: Any) -> str:
    """The form of a condition; a mapping without any operator is a mapping of members."""
    if isinstance(value, list):
        return "list"
    if isinstance(value, dict) and not any(name in OPERATORS or name in FOREIGN for name in value):
        return "members"
    return "condition" if isinstance(value, dict | Operators) else "value"


def _single_kind(value: Any) -> str:
    kind = _kind(value)
    return "condition" if kind == "members" else kind


def _no_list(value: Any) -> Any:
    del value
    raise Mismatch(text="Expected one value; several are written as {in: [...]}.")


def _scalar(value: Any) -> Any:
    if isinstance(value, dict | list):
        raise Mismatch("one value")
    return value


ONE_VALUE: dict[str, Any] = {"type": ["string", "number", "boolean", "null"]}
Scalar = Annotated[Any, Reads(_scalar, ONE_VALUE)]
_Bound = Annotated[
    Any,
    Reads(_bound, {"anyOf": [{"type": "number"}, {"type": "string", "pattern": f"^{DECIMAL.pattern}$|{NAMED}"}]}),
]


class OrSaved:
    """Also accepts a string with `${name}` of an earlier step: `Annotated[int, OrSaved()]`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(
            lambda value, read: value if isinstance(value, str) and "${" in value else read(value), handler(source)
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(schema), {"type": "string", "pattern": NAMED}]}


class Operators(Model):
    """One or several operators that a value must fit."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    gt: Omittable[_Bound] = None
    lt: Omittable[_Bound] = None
    in_: Omittable[Annotated[list[Scalar], Field(min_length=1), OrSaved()]] = Field(None, alias="in")
    regex: Annotated[str | None, Reads(_expression, {"type": "string", "pattern": r"\S"})] = None
    absent: Omittable[bool] = None

    @model_validator(mode="before")
    @classmethod
    def _asks_for_something(cls, value: Any) -> Any:
        if value == {}:
            refuse(Mismatch(text=f"A condition needs one of {', '.join(OPERATORS)}.", value=value))
        return value

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        if self.absent and len(self.model_fields_set) > 1:
            refuse(Mismatch(text="Nothing is absent and fits another operator too.", value=self))
        least, most = number(self.gt), number(self.lt)
        if least is not None and most is not None and least >= most:
            refuse(Mismatch(text=f"No number is more than {self.gt} and less than {self.lt}.", value=self))
        return self

    @property
    def listed(self) -> list[Any]:
        """The values of `in`, before a story has filled it a text with `${name}`."""
        return self.in_ if isinstance(self.in_, list) else [self.in_]

    def lists(self, value: Any, strict: bool) -> bool:
        """Whether `in` names a value."""
        texts, others = self._texts_and_others
        return _text_of(value, strict) in texts or any(_is_same(other, value, strict) for other in others)

    @cached_property
    def _texts_and_others(self) -> tuple[frozenset[str], list[Any]]:
        """Of the values of `in` the texts without `*`, possibly very many, and the others."""
        texts = frozenset(one for one in self.listed if isinstance(one, str) and "*" not in one)
        return texts, [one for one in self.listed if not isinstance(one, str) or "*" in one]

    @cached_property
    def pattern(self) -> re2._Regexp:
        return expression(self.regex or "")

    def with_words(self, words: list[Any]) -> Operators:
        """The same with these values in `in`; a copy by `model_copy` would take over what is derived from others."""
        return self.model_validate({**self.model_dump(by_alias=True, exclude_unset=True), "in": words})


NO_NULL = "No request has null here; {absent: true} means that there is nothing."


def _fact(value: Any) -> Any:
    if value is None:
        raise Mismatch(text=NO_NULL)
    return _scalar(value)


_Fact = Annotated[Any, Reads(_fact, {"type": ["string", "number", "boolean"]})]

_NO_OPERATORS = Field(json_schema_extra={"propertyNames": {"not": {"enum": [*OPERATORS, *sorted(FOREIGN)]}}})

_MOST_ENTRIES = 1000  # of a list
if TYPE_CHECKING:
    Single = Any
    Nested = Any
    NestedFacts = Any
else:
    # One value: text with `*`, a number, true or false, or Operators.
    Single = union({"value": _Fact, "condition": Operators}, _single_kind, refused=_no_list)

    def _nested(name: str, value: Any) -> Any:
        inner = ForwardRef(name)
        forms = {
            "value": value,
            "condition": Operators,
            "list": Annotated[list[inner], Field(max_length=_MOST_ENTRIES)],
            "members": Annotated[dict[str, inner], _NO_OPERATORS],
        }
        return TypeAliasType(name, union(forms, _kind))

    # A condition, or members and entries that are themselves conditions; of what a request has, where no null is.
    Nested = _nested("Nested", Scalar)
    NestedFacts = _nested("NestedFacts", _Fact)
