"""`when` of a rule and `match` of requests/count: which requests are meant (CONTRACT 10, 13)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from emulator.scenario import conditions, stated
from emulator.scenario.conditions import ABSENT, Condition, OneOf, wildcard
from emulator.scenario.facts import SINGLE, Facts
from emulator.scenario.part import Part
from emulator.scenario.vocabulary import Vocabulary, vocabulary

KNOWN = (*SINGLE, "headers", "query", "body")

_Values = Callable[[Facts], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Matcher:
    """Which requests are meant: all conditions hold."""

    conditions: tuple[tuple[_Values, Condition], ...]

    def fits(self, facts: Facts) -> bool:
        """Whether a request is meant."""
        return all(_any_fits(condition, values(facts)) for values, condition in self.conditions)


def _any_fits(condition: Condition, values: tuple[Any, ...]) -> bool:
    return any(conditions.fits(condition, value) for value in values or (ABSENT,))


def read(part: Part, *, answered: bool = False) -> Matcher:
    """The matcher that `when` states; mistakes are noted.

    `answered`: the requests are in the log, so that `status` may be asked for.
    """
    found: list[tuple[_Values, Condition]] = []
    for name, member in part.members(KNOWN).items():
        if name == "status" and not answered:
            member.wrong("A rule is asked before there is an answer; status is known only in requests/count.")
        elif name in SINGLE:
            _note(found, SINGLE[name], _single(name, member))
        elif name == "body":
            _note(found, lambda facts: (facts.body,), stated.read(member))
        else:
            by_name = Facts.header if name == "headers" else Facts.query
            for inner, named in member.mapping().items():
                _note(found, _named(by_name, inner), stated.read(named, nested=False))
    return Matcher(tuple(found))


def _note(found: list[tuple[_Values, Condition]], values: _Values, condition: Condition | None) -> None:
    if condition is not None:
        found.append((values, condition))


def _named(by_name: Callable[[Facts, str], tuple[Any, ...]], name: str) -> _Values:
    return lambda facts: by_name(facts, name)


def _single(name: str, part: Part) -> Condition | None:
    condition = stated.read(part, nested=False)
    known = vocabulary().of(name)
    if condition is None or known is None:
        return condition
    for place in _words(part):
        if not isinstance(place.value, dict | list) and not _is_among(place.value, known):
            place.unknown(place.value, known, f"There is no {name}")
    return condition


def _words(part: Part) -> list[Part]:
    """What a condition names outright."""
    if not isinstance(part.value, dict):
        return [part]
    choices = part.value.get("in")
    return list(part.inner("in", choices).items()) if isinstance(choices, list) else []


def _is_among(word: Any, known: Collection[str]) -> bool:
    if not isinstance(word, str):
        return False
    return word in known or ("*" in word and any(wildcard(word, candidate) for candidate in known))


def operations_meant(value: Any, words: Vocabulary) -> frozenset[str]:
    """The operationIds that the `operation` of a `when` can fit; all of them where it does not say."""
    named = value.get("operation") if isinstance(value, dict) else None
    listed = named.get("in") if isinstance(named, dict) else None
    chosen: list[Any] = listed if isinstance(listed, list) else [named]
    if not all(isinstance(word, str) for word in chosen):
        return frozenset(words.operations)
    meant = OneOf.of(chosen, strict=False)
    return frozenset(operation for operation in words.operations if conditions.fits(meant, operation))
