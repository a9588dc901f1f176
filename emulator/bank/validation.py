"""Models of fixtures, scenarios and bodies of the control interface.

A model is the only description of a form: values are validated with it, and the JSON Schema and OpenAPI documents are
generated from it. `validate` returns the model, or every problem with its path, a sentence and a suggestion for a
misspelt word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, reduce
from itertools import islice
from operator import or_
from types import UnionType
from typing import Annotated, Any, NoReturn, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    Tag,
    TypeAdapter,
    model_validator,
)
from pydantic import ValidationError as Invalid
from pydantic.alias_generators import to_camel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticCustomError, core_schema

from emulator.bank import formats
from emulator.bank.errors import counted
from emulator.bank.formats import EARLIEST, END, NOT_BLANK, YEARS, Format
from emulator.bank.problems import MOST_SHOWN, Path, Problem, beginning, described, guess, unknown

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

LONGEST_TEXT = 10_000
_MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})"


class Model(BaseModel):
    """A form: unknown members are refused, values are not converted, names are camelCase."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel, defer_build=True)

    @model_validator(mode="wrap")
    @classmethod
    def _tells_its_members(cls, value: Any, validated: ModelWrapValidatorHandler[Self]) -> Self:
        """Add to an error about an unknown member which ones the form has."""
        try:
            return validated(value)
        except Invalid as error:
            known = tuple(field.alias or name for name, field in cls.model_fields.items() if not field.exclude)
            if isinstance(value, dict) and len(value) > _MOST_ERRORS:  # each unknown member takes long
                few = (*islice(value, MOST_SHOWN), *(name for name in known if name in value))
                return cls.model_validate({name: value[name] for name in few})
            if error.error_count() > _MOST_ERRORS:
                raise
            details = error.errors(include_url=False)
            if not any(detail["type"] == "extra_forbidden" for detail in details):
                raise
            raise Invalid.from_exception_data(error.title, [_line(detail, known) for detail in details]) from None


class _NotNull:
    """Removes null from `T | None`: an optional member is omitted, not written as null."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        return schema["schema"] if schema["type"] == "nullable" else schema


Omittable = Annotated[T | None, _NotNull()]  # an optional member: `name: Omittable[str] = None`


class Schema(GenerateJsonSchema):
    """JSON Schema without titles derived from names, and without `default: null`."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        schema_of_field = super().default_schema(schema)
        if schema_of_field.get("default", ...) is None:
            schema_of_field.pop("default")
        return schema_of_field


def _line(detail: ErrorDetails, known: Collection[str]) -> InitErrorDetails:
    """An error once more, that of an unknown member with those that are `known`."""
    kind: str | PydanticCustomError = detail["type"]
    context = detail.get("ctx", {})
    if kind == "extra_forbidden":
        kind = PydanticCustomError("unknown_member", "", {"known": known})
    elif kind in ("mismatch", "unknown_member"):
        kind = PydanticCustomError(kind, "{text}", context)
    return InitErrorDetails(type=kind, loc=detail["loc"], input=detail["input"], ctx=context)


@dataclass
class Mismatch(Exception):
    """A value does not fit: `expected` completes "Expected ..., found ...", or `text` is the complete sentence.

    `path` leads from the value to the part at fault; for a word that is not `known`, a similar one is suggested.
    """

    expected: str = ""
    text: str = ""
    path: Path = ()
    known: Collection[str] = ()
    value: Any = None


def refuse(*problems: Mismatch) -> NoReturn:
    """Raise the problems that a validator of a model has found, each with its own path."""
    lines = [
        InitErrorDetails(
            type=PydanticCustomError(
                "mismatch", "{text}", {"text": one.text, "expected": one.expected, "known": tuple(one.known)}
            ),
            loc=one.path,
            input=one.value,
        )
        for one in problems
    ]
    raise Invalid.from_exception_data("mismatch", lines)


@dataclass(frozen=True, eq=False)
class Reads:
    """A value that `read` checks and converts, raising Mismatch; `schema` is its JSON Schema."""

    read: Callable[[Any], Any]
    schema: Mapping[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        del source, handler

        def checked(value: Any) -> Any:
            try:
                return self.read(value)
            except Mismatch as mismatch:
                refused = mismatch.value if mismatch.value is not None or mismatch.path else value
                refuse(Mismatch(mismatch.expected, mismatch.text, mismatch.path, mismatch.known, refused))

        return core_schema.no_info_plain_validator_function(checked)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        del schema, handler
        return dict(self.schema)


@dataclass(frozen=True, eq=False)
class Names:
    """The names in a mapping fit `pattern`; `text` is the sentence about one that does not."""

    pattern: re.Pattern[str]
    text: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, named: dict[str, Any]) -> dict[str, Any]:
        wrong = [Mismatch(text=self.text, path=(name,)) for name in named if not self.pattern.fullmatch(name)]
        if wrong:
            refuse(*wrong)
        return named

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), "propertyNames": {"pattern": f"^{self.pattern.pattern}$"}}


def union(forms: Mapping[str, Any], which: Callable[[Any], str], *, refused: Callable[[Any], Any] | None = None) -> Any:
    """The type of a value of one of these forms: `which` names it, so that problems are those of that form alone.

    `which` also gets models, which are validated already. `refused` raises Mismatch for a value that has none.
    """
    arms = [Annotated[form, Tag(f"({name})")] for name, form in forms.items()]
    if refused is not None:
        arms.append(Annotated[Any, Reads(refused, {"not": {}}), Tag("(none)")])

    def tag(value: Any) -> str:
        name = which(value)
        return f"({name})" if name in forms else "(none)"

    return Annotated[reduce(or_, arms), Discriminator(tag)]


def one_of(what: str, words: Collection[str]) -> Reads:
    """One of `words`; for another text a similar word is suggested."""

    def read(value: Any) -> str:
        if isinstance(value, str) and value in words:
            return value
        if isinstance(value, str):
            raise Mismatch(text=f"There is no {what}", known=words)
        raise Mismatch(f"one of {', '.join(words)}")

    return Reads(read, {"enum": list(words)})


def typed(form: Format) -> Reads:

    def read(value: Any) -> Any:
        expected = form.check(value)
        if expected is not None:
            raise Mismatch(expected)
        return value

    return Reads(read, form.schema)


def matching(pattern: re.Pattern[str] | str, expected: str) -> Reads:
    """Text that `pattern` matches completely."""
    return typed(formats.matching(pattern, expected))


def digits(pattern: str, expected: str, **bounds: int) -> Reads:
    """Text with this pattern, or a whole number within `bounds`: YAML reads digits without quotes as one."""
    return _number_or(matching(pattern, expected), int, {"type": "integer", **bounds})


def amount(pattern: str, *, example: str = "100.00", **bounds: int) -> Reads:
    """The text of an amount; a number, within `bounds`, is converted."""
    return _number_or(matching(pattern, f'an amount, such as "{example}"'), int | float, {"type": "number", **bounds})


def _number_or(text: Reads, numbers: type | UnionType, schema: Mapping[str, Any]) -> Reads:
    def read(value: Any) -> Any:
        is_number = isinstance(value, numbers) and not isinstance(value, bool)
        return text.read(repr(value) if is_number else value)

    return Reads(read, {"anyOf": [text.schema, schema]})


def _moment(value: Any) -> datetime:
    at = None
    if isinstance(value, str) and re.fullmatch(_MOMENT, value):
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            at = None
    if at is None:
        raise Mismatch("a moment with its zone, such as 2026-03-02T09:00:00+01:00")
    if not EARLIEST <= at < END:
        raise Mismatch(f"a moment {YEARS}")
    return at


Moment = Annotated[datetime, Reads(_moment, {"type": "string", "pattern": f"^{_MOMENT}$"})]


def filled(longest: int) -> Any:
    """Text that is not blank, with a maximum length."""
    return Field(pattern=NOT_BLANK, max_length=longest)


Text = Annotated[str, filled(LONGEST_TEXT)]
Text100 = Annotated[str, filled(100)]
Text200 = Annotated[str, filled(200)]
Text512 = Annotated[str, filled(512)]


_MOST_ERRORS = 1000  # errors of pydantic that are shown before any is left out


def validate(form: type[M], value: Any) -> tuple[M | None, list[Problem]]:
    """The model of `value`, or its problems, at most a hundred."""
    return validate_as(form, value)


def validate_as(form: Any, value: Any) -> tuple[Any, list[Problem]]:
    """The same for a type that is not a model, such as a union of models."""
    check = _adapter(form).validate_python
    try:
        return check(value), []
    except Invalid as error:
        if error.error_count() > _MOST_ERRORS:  # to tell all of it would take long
            try:
                check(beginning(value, MOST_SHOWN))
            except Invalid as first:
                return None, list(problems(first, value))
        return None, list(problems(error, value))


@lru_cache(maxsize=256)
def _adapter(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)


def problems(error: Invalid, value: Any) -> Iterator[Problem]:
    """The problems in pydantic's error about `value`."""
    seen: set[tuple[Path, str]] = set()
    for detail in error.errors(include_url=False):
        if len(seen) >= MOST_SHOWN:
            return
        path = place(detail["loc"], value)
        text = sentence(detail)
        if (path, text) not in seen:
            seen.add((path, text))
            yield Problem(path, text)


def place(loc: Sequence[int | str], value: Any) -> Path:
    """The path of a problem in `value`: pydantic's path without the tags of unions."""
    path: list[int | str] = []
    for position, part in enumerate(loc):
        if isinstance(part, str) and part.startswith("("):
            continue
        last = position == len(loc) - 1
        if isinstance(value, dict) and isinstance(part, str) and (part in value or last):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        elif not (last and isinstance(part, int)):
            continue
        path.append(part)
    return tuple(path)


def sentence(detail: Mapping[str, Any]) -> str:
    """One of pydantic's errors as a sentence."""
    ctx: Mapping[str, Any] = detail.get("ctx", {})
    if detail["type"] == "mismatch":
        if ctx["known"]:
            return unknown(detail["input"], ctx["known"], ctx["text"])
        return str(ctx["text"]) or f"{_expected(ctx['expected'], detail['input'])}."
    if detail["type"] in ("unknown_member", "extra_forbidden"):
        return unknown(detail["loc"][-1], ctx.get("known", ()), "There is no member")
    if detail["type"] == "missing":
        return f"The member {detail['loc'][-1]} is missing."
    if detail["type"] == "string_type" and isinstance(detail["input"], bool | int | float):
        return f"Expected text, found {described(detail['input'])}; write it in quotes."
    what = expected(detail)
    if what is not None:
        words = re.findall("'([^']*)'", ctx["expected"]) if detail["type"] == "literal_error" else ()
        end = guess(detail["input"], words) if isinstance(detail["input"], str) else ""
        return f"{_expected(what, detail['input'])}{end or '.'}"
    text = str(detail["msg"]).removeprefix("Value error, ")
    return f"{text[:1].upper()}{text[1:]}."


def _expected(what: str, value: Any) -> str:
    """`Expected ..., found ...`; a text that is refused where text is expected is blank."""
    what = "text that is not blank" if what == "text" and isinstance(value, str) else what
    return f"Expected {what}, found {described(value)}"


def expected(detail: Mapping[str, Any]) -> str | None:
    """The expected value of one of pydantic's errors, in words; None if its message contains it."""
    ctx: Mapping[str, Any] = detail.get("ctx", {})
    kind = detail["type"]
    plain = {
        "string_type": "text",
        "string_unicode": "text without half of a surrogate pair",
        "bool_type": "true or false",
        "int_type": "a whole number",
        "float_type": "a number",
        "finite_number": "a number",
        "list_type": "a list",
        "model_type": "a mapping",
        "model_attributes_type": "a mapping",
        "dict_type": "a mapping",
    }
    if kind in plain:
        return plain[kind]
    if kind == "literal_error":
        return f"one of {ctx['expected'].replace(' or ', ', ')}".replace("'", "")
    if kind == "string_pattern_mismatch":
        return "text" if ctx["pattern"] == NOT_BLANK else f"text that fits {ctx['pattern']}"
    if kind in ("greater_than_equal", "less_than_equal"):
        return f"a number of at least {ctx['ge']:g}" if "ge" in ctx else f"a number of at most {ctx['le']:g}"
    sizes = {
        "string_too_short": ("text of at least", "min_length", "character", None),
        "string_too_long": ("text of at most", "max_length", "character", None),
        "too_short": ("a list of at least", "min_length", "entry", "entries"),
        "too_long": ("a list of at most", "max_length", "entry", "entries"),
    }
    if kind in sizes:
        size, bound, one, several = sizes[kind]
        return f"{size} {counted(ctx[bound], one, several)}"
    return None


def json_schema(form: Any) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a form."""
    schema: dict[str, Any] = TypeAdapter(form).json_schema(by_alias=True, schema_generator=Schema)
    return schema
