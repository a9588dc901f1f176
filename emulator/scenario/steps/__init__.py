"""The kinds of step of a story: their common form, and one file each in this folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from emulator.bank.validation import Adds, Mismatch, Model, Omittable, filled, refuse
from emulator.discovery import discover
from emulator.scenario.actors import Actors, As, Persona
from emulator.scenario.expectation import Expect
from emulator.scenario.transport import ReceivedAnswer
from emulator.scenario.variables import NAME


def _check_names(save: dict[str, str]) -> dict[str, str]:
    text = "A saved name has letters, digits, - and _, and starts with a letter."
    wrong = [Mismatch(text=text, path=(name,)) for name in save if not NAME.fullmatch(name)]
    if wrong:
        refuse(*wrong)
    return save


Save = Annotated[
    dict[str, Annotated[str, filled(500)]],
    AfterValidator(_check_names),
    Adds({"propertyNames": {"pattern": f"^{NAME.pattern}$"}}),
]


class Step(Model):
    """A step: its word and value, the expected answer, and what to save of it.

    `word` is the member that identifies the kind of a step; `summary` and `example` are for the documentation. Values,
    also those of the persona, may contain `${names}` when a step is played.
    """

    word: ClassVar[str]
    summary: ClassVar[str]
    example: ClassVar[Mapping[str, Any]]

    expect: Omittable[Expect] = None
    save: Save = Field({}, description="Name: path in the answer.")
    as_: Omittable[As] = Field(None, alias="as")

    def play(self, actors: Actors, persona: Persona, fill: Callable[[Any], Any]) -> ReceivedAnswer:
        """Play the step as `persona`; returns the answer."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Scene:
    """A step ready to play: who acts, and the expected answer as in the file."""

    step: Step
    title: str
    persona: Persona
    expect: Mapping[str, Any] | None


def _problem(kind: object) -> str | None:
    return None if isinstance(kind, type) and issubclass(kind, Step) else "has no STEP that is a subclass of Step"


@cache
def step_kinds() -> dict[str, type[Step]]:
    """Every kind of step by its word."""
    return discover(__path__, __name__, "STEP", name=lambda kind: kind.word, problem=_problem)
