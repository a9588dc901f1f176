"""`when` of a rule and `match` of requests/count: the conditions on a request (CONTRACT 10, 13)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from emulator.bank import conditions
from emulator.bank.conditions import ABSENT, Condition, Constant, Members, compiled, wildcard
from emulator.bank.operators import Nested, Operators, Single
from emulator.bank.problems import Path
from emulator.bank.validation import Maybe, Model, Unfit, refuse
from emulator.scenario.facts import SINGLE, Facts
from emulator.scenario.vocabulary import Vocabulary, vocabulary

_Values = Callable[[Facts], tuple[Any, ...]]


Place = tuple[str, ...]
"""The name of a fact, or the names that lead to a header, query parameter or member of the body."""

# The facts whose constants distinguish rules best, best first.
_SELECTIVE = ("body", "payment", "account", "psu", "query", "headers", "tpp", "path", "product", "service", "context")


@dataclass(frozen=True, slots=True)
class Matcher:
    """Matches a request if all conditions hold. `anchor`: a place that must have one of these constants."""

    conditions: tuple[tuple[_Values, Condition], ...]
    anchor: tuple[Place, frozenset[Constant]] | None = None

    def fits(self, facts: Facts) -> bool:
        """Whether a request matches."""
        for values, condition in self.conditions:
            if not any(conditions.fits(condition, value) for value in values(facts) or (ABSENT,)):
                return False
        return True


def constants_at(place: Place, facts: Facts) -> Iterable[Constant] | None:
    """The constants that match the value at a place; None if a list is on the way, as any of its entries may match."""
    name, *inner = place
    values: tuple[Any, ...]
    if name == "body":
        value = facts.body
        for member in inner:
            if isinstance(value, list):
                return None
            value = value.get(member, ABSENT) if isinstance(value, dict) else ABSENT
        values = (value,)
    elif name == "headers":
        values = facts.header(inner[0])
    else:
        values = facts.query(inner[0]) if name == "query" else SINGLE[name](facts)
    return {constant for value in values for constant in conditions.constants_of(value)}


def _anchors(name: str, condition: Condition, place: Place) -> Iterator[tuple[Place, frozenset[Constant]]]:
    """The places, at or below `place`, where a condition requires constants."""
    constants = conditions.constants(condition)
    if constants is not None:
        yield place, constants
    elif isinstance(condition, Members) and name == "body":
        for member, inner in condition.members:
            yield from _anchors(name, inner, (*place, member))


@dataclass(frozen=True, slots=True)
class _Known:
    """Checks that a condition names existing values of a fact, or matches one with `*`."""

    fact: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, stated: Any) -> Any:
        known = vocabulary().of(self.fact) or ()
        if isinstance(stated, Operators):
            listed = stated.in_ if isinstance(stated.in_, list) else []
            named: list[tuple[Path, Any]] = [(("in", index), word) for index, word in enumerate(listed)]
        else:
            named = [((), stated)]
        unknown = [
            Unfit(text=f"There is no {self.fact}", path=path, known=known, value=word)
            for path, word in named
            if not _is_among(word, known)
        ]
        if unknown:
            refuse(*unknown)
        return stated

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema with the existing values in place of any value, in `in` too."""
        union = handler(schema)
        word = {"anyOf": [{"enum": list(vocabulary().of(self.fact) or ())}, {"type": "string", "pattern": r"\*"}]}
        listed = {"type": "array", "minItems": 1, "items": word}
        narrowed = {"allOf": [union["oneOf"][1], {"properties": {"in": listed}}]}
        return {"anyOf": [*word["anyOf"], narrowed]}


def _is_among(word: Any, known: Collection[str]) -> bool:
    if not isinstance(word, str):
        return False
    return word in known or ("*" in word and any(wildcard(word, candidate) for candidate in known))


class When(Model):
    """The conditions on a request; all must hold."""

    model_config = ConfigDict(title="when")

    operation: Annotated[Maybe[Single], _Known("operation")] = None
    service: Annotated[Maybe[Single], _Known("service")] = None
    product: Annotated[Maybe[Single], _Known("product")] = None
    payment: Maybe[Single] = None
    account: Maybe[Single] = None
    method: Annotated[Maybe[Single], _Known("method")] = None
    path: Maybe[Single] = None
    tpp: Maybe[Single] = None
    psu: Maybe[Single] = None
    context: Annotated[Maybe[Single], _Known("context")] = None
    headers: Maybe[dict[str, Single]] = None
    query: Maybe[dict[str, Single]] = None
    body: Maybe[Nested] = Field(None, description="Members of the body, nested as in the body.")

    @model_validator(mode="before")
    @classmethod
    def _has_no_status(cls, value: Any) -> Any:
        if isinstance(value, dict) and "status" in value and "status" not in cls.model_fields:
            text = "A rule is evaluated before there is an answer; only requests/count can match status."
            refuse(Unfit(text=text, path=("status",), value=value["status"]))
        return value

    @cached_property
    def matcher(self) -> Matcher:
        """The compiled conditions."""
        pairs: list[tuple[_Values, Condition]] = []
        anchors: list[tuple[Place, frozenset[Constant]]] = []
        for name in sorted(self.model_fields_set, key=list(type(self).model_fields).index):
            stated = getattr(self, name)
            if name in SINGLE:
                pairs.append((SINGLE[name], compiled(stated)))
                anchors += _anchors(name, pairs[-1][1], (name,))
            elif name == "body":
                pairs.append((lambda facts: (facts.body,), compiled(stated)))
                anchors += _anchors(name, pairs[-1][1], (name,))
            else:
                by_name = Facts.header if name == "headers" else Facts.query
                for inner, value in stated.items():
                    pairs.append((_named(by_name, inner), compiled(value)))
                    anchors += _anchors(name, pairs[-1][1], (name, inner))
        selective = [anchor for anchor in anchors if anchor[0][0] in _SELECTIVE]
        anchor = min(selective, key=lambda anchor: _SELECTIVE.index(anchor[0][0]), default=None)
        return Matcher(tuple(pairs), anchor)

    @cached_property
    def operations(self) -> frozenset[str]:
        """The operationIds that `operation` can match; all if it is not given."""
        return operations_meant(self.operation if "operation" in self.model_fields_set else None, vocabulary())


class Match(When):
    """`match` of requests/count: as `when`, and the status of the answer."""

    model_config = ConfigDict(title="match")

    status: Maybe[Single] = None


class CountFilter(Model):
    """The body of requests/count."""

    match: Match


def _named(by_name: Callable[[Facts, str], tuple[Any, ...]], name: str) -> _Values:
    return lambda facts: by_name(facts, name)


def operations_meant(stated: Any, words: Vocabulary) -> frozenset[str]:
    """The operationIds that a condition about the operation can fit."""
    chosen: Any = stated.in_ if isinstance(stated, Operators) and set(stated.model_fields_set) == {"in_"} else [stated]
    if not isinstance(chosen, list) or not all(isinstance(word, str) for word in chosen):
        return frozenset(words.operations)
    named = frozenset(chosen).intersection(words.operations)
    patterns = [word for word in chosen if "*" in word]
    fitting = (operation for operation in words.operations for pattern in patterns if wildcard(pattern, operation))
    return named.union(fitting)
