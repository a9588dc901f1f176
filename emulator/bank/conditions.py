"""Conditions on a value: their forms in a file, and how a value is compared with one.

A condition is exact (a text may have `*`), or `{gt, lt, in, not, regex, absent}`, or a mapping or list of conditions:

    rule          the facts of a request   loosely: `10` fits "10.00", because headers and amounts are text
    feed          an entry of an account   loosely
    expectation   the answer in a story    strictly: text is text, a number is a number; text may contain `${name}`
    check         an observation of a TPP  strictly

`matcher` is the test of a value, made once where it is applied often; `fits` makes and applies it. A fact may have
several values, such as a header that is sent twice (`fact_matcher`, `meets`): one of them has to fit, but none what
stands under `not`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from operator import gt, lt
from typing import TYPE_CHECKING, Annotated, Any, ForwardRef, Self

from pydantic import (
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
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
Matcher = Callable[[Any], bool]


def matcher(stated: Condition, *, strict: bool = False, absent: Any = ABSENT) -> Matcher:
    """The test of a value, or of `absent`."""
    if isinstance(stated, Operators):
        tests = [test for test, _ in stated.tests(strict, absent)]
        return tests[0] if len(tests) == 1 else lambda value: all(test(value) for test in tests)
    if isinstance(stated, dict):
        members = {name: matcher(inner, strict=strict) for name, inner in stated.items()}
        return lambda value: (
            all(test(value.get(name, ABSENT)) for name, test in members.items())
            if isinstance(value, dict)
            else next(_of_members(stated, value, (), strict), None) is None
        )
    if isinstance(stated, list):
        return lambda value: next(_of_entries(stated, value, (), strict), None) is None
    if strict and isinstance(stated, str) and "*" not in stated:
        return lambda value: bool(value == stated)
    return lambda value: value is not absent and _is_same(stated, value, strict)


def fact_matcher(
    stated: Condition, *, strict: bool = False, absent: Any = ABSENT
) -> Callable[[Sequence[Any] | None], bool]:
    """The test of a fact by its values; one without values is `absent`."""
    test = matcher(stated, strict=strict, absent=absent)
    if not isinstance(stated, Operators) or stated.not_ is None:
        return lambda values: any(map(test, values or (absent,)))
    excluded = matcher(stated.not_, strict=strict, absent=absent)
    return lambda values: any(map(test, values or (absent,))) and not any(map(excluded, values or ()))


def fits(stated: Condition, value: Any, *, strict: bool = False) -> bool:
    """Whether a value, or ABSENT, fits."""
    return matcher(stated, strict=strict)(value)


def meets(stated: Condition, values: Sequence[Any]) -> bool:
    """Whether a fact with these values fits, by the comparison of rules."""
    return fact_matcher(stated)(values)


def differences(stated: Condition, value: Any, path: Path = (), *, strict: bool = False) -> Iterator[Difference]:
    """Where and why `value` (or ABSENT) does not fit; yields nothing if it fits."""
    if isinstance(stated, Operators):
        for test, text in stated.tests(strict):
            if not test(value):
                yield path, f"expected {text}, found {_described(value)}"
    elif isinstance(stated, dict):
        yield from _of_members(stated, value, path, strict)
    elif isinstance(stated, list):
        yield from _of_entries(stated, value, path, strict)
    elif not _is_same(stated, value, strict):
        yield path, f"expected {described(stated)}, found {_described(value)}"


def is_absence(stated: Condition) -> bool:
    """Whether nothing but an absent value fits."""
    if not isinstance(stated, Operators):
        return False
    present = isinstance(stated.not_, Operators) and stated.not_.model_dump(exclude_unset=True) == {"absent": False}
    return stated.absent is True or stated.not_ == "*" or present


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
    if isinstance(wanted, str):
        if isinstance(value, str):
            return wanted == value or ("*" in wanted and wildcard(wanted, value))
        if isinstance(value, dict | list):
            return wanted == "*"
        # With a * it is a pattern, as a regex is, and not a text of its own type.
        return value is not ABSENT and not (strict and "*" not in wanted) and wildcard(wanted, _as_text(value))
    if isinstance(wanted, bool) or wanted is None:
        return value is wanted or (not strict and isinstance(value, str) and value == _as_text(wanted))
    if value is ABSENT or isinstance(value, bool) or (strict and isinstance(value, str)):
        return False
    return number(value) == number(wanted)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)


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

OPERATORS = ("gt", "lt", "in", "not", "regex", "absent")
# Operators of other tools: as names of members they would never fit, and the author would not see why.
FOREIGN = frozenset({"gte", "lte", "ge", "le", "eq", "ne", "equals", "matches", "contains", "exists", "like"})


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


# The schema of `not` is not that of Single, which contains it: schemas of feeds are written without references.
_ANY_SINGLE: dict[str, Any] = {"type": ["string", "number", "boolean", "object"], "minProperties": 1}


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
    not_: Annotated[Omittable[Single], WithJsonSchema(_ANY_SINGLE)] = Field(None, alias="not")
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
            refuse(Mismatch(text="absent: true allows no other operator.", value=self))
        least, most = number(self.gt), number(self.lt)
        if least is not None and most is not None and least >= most:
            refuse(Mismatch(text=f"No number is more than {self.gt} and less than {self.lt}.", value=self))
        return self

    @property
    def listed(self) -> list[Any]:
        """The values of `in`, before a story has filled it a text with `${name}`."""
        return self.in_ if isinstance(self.in_, list) else [self.in_]

    def tests(self, strict: bool, absent: Any = ABSENT) -> Iterator[tuple[Matcher, str]]:
        """The test of each operator, and what fits it, in words."""
        if self.gt is not None:
            yield _test_of_order(self.gt, gt), f"more than {_bound_of(self.gt)}"
        if self.lt is not None:
            yield _test_of_order(self.lt, lt), f"less than {_bound_of(self.lt)}"
        if self.in_ is not None:
            yield _test_of_any(self.listed, strict, absent), f"one of {', '.join(map(str, self.listed))}"
        if self.not_ is not None:
            excluded = matcher(self.not_, strict=strict, absent=absent)
            yield lambda value: not excluded(value), f"anything but {_in_words(self.not_)}"
        if self.regex is not None:
            yield self._matches, f"text that matches {self.regex}"
        if (wanted := self.absent) is not None:
            yield lambda value: (value is absent) is wanted, "nothing" if wanted else "a value"

    def _matches(self, value: Any) -> bool:
        return isinstance(value, str | int | float) and matches(expression(self.regex or ""), _as_text(value))


def _test_of_order(bound: Any, is_beyond: Callable[[Any, Any], bool]) -> Matcher:
    """The test whether a number, also one in text, is beyond a bound."""
    exact = _bound_of(bound)
    is_plain = not isinstance(bound, str)

    def test(value: Any) -> bool:
        if is_plain and type(value) is float:  # as most facts of checks; a Decimal takes ten times as long
            return isfinite(value) and is_beyond(value, bound)
        one = number(value)
        return one is not None and is_beyond(one, exact)

    return test


def _test_of_any(listed: Sequence[Any], strict: bool, absent: Any) -> Matcher:
    """The test whether a value is one of those in `in`, possibly very many."""
    texts = frozenset(one for one in listed if isinstance(one, str) and "*" not in one)
    others = [matcher(one, strict=strict, absent=absent) for one in listed if not isinstance(one, str) or "*" in one]

    def is_listed(value: Any) -> bool:
        is_text = isinstance(value, str) or not (strict or value is ABSENT or isinstance(value, dict | list))
        return (is_text and _as_text(value) in texts) or any(test(value) for test in others)

    return is_listed


def _in_words(stated: Condition) -> str:
    if not isinstance(stated, Operators):
        return described(stated)
    return " and ".join(text for _, text in stated.tests(strict=False))


def values_of(stated: Condition) -> list[tuple[Path, Any]]:
    """The values that the condition on a fact names, each with its place in it."""
    if not isinstance(stated, Operators):
        return [((), stated)]
    listed = enumerate(stated.in_ if isinstance(stated.in_, list) else ())
    other = [] if stated.not_ is None else values_of(stated.not_)
    return [*((("in", index), value) for index, value in listed), *((("not", *path), value) for path, value in other)]


def respelled(stated: Condition, spellings: Callable[[Any], Sequence[Any]]) -> Condition:
    """The condition on a fact with each value that it names in several spellings, of which any fits."""
    if not isinstance(stated, Operators):
        several = spellings(stated)
        return Operators.model_validate({"in": [*several]}) if len(several) > 1 else several[0]
    members = stated.model_dump(by_alias=True, exclude_unset=True)
    if isinstance(stated.in_, list):
        members["in"] = [one for value in stated.in_ for one in spellings(value)]
    if stated.not_ is not None:
        members["not"] = respelled(stated.not_, spellings)
    return Operators.model_validate(members)


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
