"""Conditions as rules and stories state them, for tests."""

from __future__ import annotations

from typing import Any

from emulator.bank.conditions import Condition, Nested, Single
from emulator.bank.validation import validate, validate_as
from emulator.scenario.matching import When


def condition(stated: Any) -> Condition:
    """The condition that a file states; it has no problems."""
    form, problems = validate_as(Nested, stated)
    assert not problems
    return form


def problems_of(stated: Any, *, nested: bool = True) -> list[str]:
    """What is wrong with a condition, `path: sentence` each."""
    _, problems = validate_as(Nested if nested else Single, stated)
    return [f"{problem.where()}: {problem.text}" for problem in problems]


def conditions(when: Any) -> When:
    """A `when`, which has no problems."""
    form, problems = validate(When, when)
    assert form is not None, problems
    return form
