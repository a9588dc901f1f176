"""The forms of a condition in a file: a value, a text with `*`, or `{gt, lt, in, regex, absent}`; may be nested.

This module validates them, `conditions` evaluates them. In a story, text may contain `${name}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator
from typing_extensions import TypeAliasType

from emulator.bank.validation import Adds, Maybe, Model, Reads, Unfit, refuse

if TYPE_CHECKING:
    import re2

NAMED = r"\$\{"  # in the text of a story: a value that a step has saved
SAVED: Mapping[str, Any] = {"type": "string", "pattern": NAMED}

DECIMAL = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?")
OPERATORS = ("gt", "lt", "in", "regex", "absent")
# Operators of other tools: as names of members they would never fit, and the author would not see why.
FOREIGN = frozenset({"gte", "lte", "ge", "le", "eq", "ne", "equals", "matches", "contains", "exists", "like", "not"})

LONGEST_PATTERN = 500
LONGEST_TEXT = 100_000  # characters; a longer text matches no expression
MOST_MEMORY = 1 << 20  # bytes that one compiled expression may take


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled expression of google-re2, whose search takes linear time for every pattern."""

    text: str
    compiled: re2._Regexp

    def matches(self, text: str) -> bool:
        """Whether `text` contains a match; False for a text of more than 100,000 characters."""
        return len(text) <= LONGEST_TEXT and self.compiled.search(text) is not None


@lru_cache(maxsize=256)
def expression(text: str) -> Pattern:
    """The compiled pattern; raises Unfit with the reason if google-re2 does not accept it."""
    import re2  # few banks have a rule with a regular expression

    if len(text) > LONGEST_PATTERN:
        raise Unfit(text=f"This regular expression is longer than {LONGEST_PATTERN} characters.")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MOST_MEMORY
    try:
        return Pattern(text, re2.compile(text, options))
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if isinstance(error, re2.error) else "half of a surrogate pair"
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise Unfit(text=f"This is not a regular expression of RE2: {reason}.") from None


def _expression(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Unfit("text")
    if "${" not in value:
        expression(value)
    return value


def _bound(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number or (isinstance(value, str) and ("${" in value or DECIMAL.fullmatch(value))):
        return value
    raise Unfit("a number")


def _kind(value: Any) -> str:
    """The form of a condition; a mapping without any operator is a mapping of members."""
    if isinstance(value, list):
        return "(list)"
    if isinstance(value, Operators):
        return "(condition)"
    if isinstance(value, dict):
        return "(condition)" if any(name in OPERATORS or name in FOREIGN for name in value) else "(members)"
    return "(value)"


def _single_kind(value: Any) -> str:
    if isinstance(value, list):
        return "(list)"
    return "(condition)" if isinstance(value, dict | Operators) else "(value)"


def _no_list(value: Any) -> Any:
    del value
    raise Unfit(text="Expected one value; several are written as {in: [...]}.")


def _scalar(value: Any) -> Any:
    if isinstance(value, dict | list):
        raise Unfit("one value")
    return value


ONE_VALUE: dict[str, Any] = {"type": ["string", "number", "boolean", "null"]}
Scalar = Annotated[Any, Reads(_scalar, ONE_VALUE)]
_Bound = Annotated[
    Any,
    Reads(_bound, {"anyOf": [{"type": "number"}, {"type": "string", "pattern": f"^{DECIMAL.pattern}$|{NAMED}"}]}),
]


def _choices(value: Any) -> Any:
    if isinstance(value, str) and "${" in value:
        return value
    if not isinstance(value, list):
        raise Unfit("a list")
    if not value:
        raise Unfit("a list of at least 1 entry")
    for index, entry in enumerate(value):
        if isinstance(entry, dict | list):
            raise Unfit("one value", path=(index,), value=entry)
    return value


_CHOICES = {"anyOf": [{"type": "array", "minItems": 1, "items": ONE_VALUE}, SAVED]}


class Operators(Model):
    """One or several operators that a value must fit."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    gt: Maybe[_Bound] = None
    lt: Maybe[_Bound] = None
    in_: Annotated[Any, Reads(_choices, _CHOICES)] = Field(None, alias="in")
    regex: Annotated[str | None, Reads(_expression, {"type": "string", "pattern": r"\S"})] = None
    absent: Maybe[bool] = None

    @model_validator(mode="before")
    @classmethod
    def _asks_for_something(cls, value: Any) -> Any:
        if value == {}:
            refuse(Unfit(text=f"A condition needs one of {', '.join(OPERATORS)}.", value=value))
        return value


Value = Annotated[Scalar, Tag("(value)")]
_Condition = Annotated[Operators, Tag("(condition)")]

# One value: text with `*`, a number, true, false or null, or Operators.
Single = Annotated[
    Value | _Condition | Annotated[Any, Reads(_no_list, {"not": {}}), Tag("(list)")],
    Discriminator(_single_kind),
]

_NO_OPERATORS = Adds({"propertyNames": {"not": {"enum": [*OPERATORS, *sorted(FOREIGN)]}}})

# A condition, or members and entries that are themselves conditions.
if TYPE_CHECKING:
    Nested = Any
else:
    Nested = TypeAliasType(
        "Nested",
        Annotated[
            Value
            | _Condition
            | Annotated[list["Nested"], Tag("(list)")]
            | Annotated[dict[str, "Nested"], _NO_OPERATORS, Tag("(members)")],
            Discriminator(_kind),
        ],
    )
