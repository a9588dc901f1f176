"""The forms of conditions in a file: exact, with `*`, or `{gt, lt, in, regex, absent}`; nested in mappings and lists.

`conditions.py` evaluates them. In a story, text may contain `${name}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ForwardRef, Self

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypeAliasType

from emulator.bank.conditions import (
    DECIMAL,
    Condition,
    Entries,
    Exactly,
    Members,
    OneOf,
    Restricted,
    expression,
    number,
)
from emulator.bank.validation import Adds, Mismatch, Model, Omittable, Reads, refuse, union

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


NO_NULL = "No request has null here; {absent: true} means that there is nothing."


def _fact(value: Any) -> Any:
    if value is None:
        raise Mismatch(text=NO_NULL)
    return _scalar(value)


_Fact = Annotated[Any, Reads(_fact, {"type": ["string", "number", "boolean"]})]

_NO_OPERATORS = Adds({"propertyNames": {"not": {"enum": [*OPERATORS, *sorted(FOREIGN)]}}})

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


# From a form to its condition


def compiled(stated: Any, *, strict: bool = False) -> Condition:
    """The condition for a validated form: a value, a text with `*`, Operators, a list or a mapping."""
    if isinstance(stated, Operators):
        listed = stated.in_ if isinstance(stated.in_, list) else [stated.in_]
        return Restricted(
            gt=number(stated.gt),
            lt=number(stated.lt),
            among=None if stated.in_ is None else OneOf.of(listed, strict),
            pattern=None if stated.regex is None else expression(stated.regex),
            absent=stated.absent,
        )
    if isinstance(stated, list):
        return Entries(tuple(compiled(entry, strict=strict) for entry in stated))
    if isinstance(stated, dict):
        return Members(tuple((name, compiled(inner, strict=strict)) for name, inner in stated.items()), strict)
    return Exactly(stated, strict)
