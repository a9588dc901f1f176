"""The kinds of step of a story: their common form with `expect`, to which an answer is compared.

The files of this folder have the kinds.

The steps to add one: add-step.md. `tests/api/test_control_effects.py` names the kinds, and `mutations` of
`tests/scenarios/test_library.py` those that change the bank.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from emulator.bank import conditions
from emulator.bank.conditions import ABSENT, NAMED, Nested, Operators, Single
from emulator.bank.problems import written
from emulator.bank.validation import Mismatch, Model, Names, Omittable, filled, refuse, validate
from emulator.discovery import modules
from emulator.scenario.actors import Actors, As
from emulator.scenario.transport import ReceivedAnswer
from emulator.scenario.values import possible_status
from emulator.scenario.variables import NAME

Save = Annotated[
    dict[str, Annotated[str, filled(500)]],
    Names(NAME, "A saved name has letters, digits, - and _, and starts with a letter."),
]


LEAST_FAILURE = 400
LONGEST_SHOWN = 600


def _a_range(stated: Any) -> Any:
    if not isinstance(stated, Operators):
        refuse(Mismatch("a condition, such as {lt: 2}", value=stated))
    return stated


_A_STATUS = Field(
    json_schema_extra={
        "anyOf": [
            {"type": "integer", "minimum": 100, "maximum": 599},
            {"type": "string", "pattern": rf"\*|{NAMED}"},
            {"type": "object"},
        ]
    }
)


class Expect(Model):
    """The expected answer of a step."""

    model_config = ConfigDict(title="expect")

    status: Annotated[Omittable[Single], AfterValidator(partial(possible_status, strict=True)), _A_STATUS] = None
    json_body: Omittable[Nested] = Field(
        None, alias="json", description="Members that the answer must have; it may have others."
    )
    headers: dict[str, Single] = Field(default_factory=dict)
    body: Omittable[Single] = None
    lost: bool = Field(False, description="The connection was closed without an answer.")
    seconds: Annotated[Omittable[Single], AfterValidator(_a_range), Field(json_schema_extra={"type": "object"})] = None

    @model_validator(mode="after")
    def _has_an_answer(self) -> Self:
        if self.lost and len(self.model_fields_set) > 1:
            refuse(Mismatch(text="An answer that is lost has nothing else to expect.", path=("lost",)))
        return self


class Step(Model):
    """A step: its word and value, the expected answer, and what to save of it.

    `word` is the member that identifies the kind of a step; `summary` and `example` are for the documentation. Values,
    also those of the persona, may contain `${names}` when a step is played.
    """

    word: ClassVar[str]
    summary: ClassVar[str]
    example: ClassVar[Mapping[str, Any]]

    expect: Omittable[Expect] = None
    save: Save = Field({}, description="Name: path in the answer, such as accounts[0].resourceId.")
    as_: Omittable[As] = Field(None, alias="as")

    @abstractmethod
    def play(self, actors: Actors, persona: As, fill: Callable[[Any], Any]) -> ReceivedAnswer:
        """Play the step as `persona`; returns the answer."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A step ready to play: who acts, and the expected answer as in the file."""

    step: Step
    title: str
    persona: As
    expect: Mapping[str, Any] | None


@cache
def step_kinds() -> dict[str, type[Step]]:
    """Every kind of step by its word."""
    every = (form for module in modules(__path__, __name__) for form in vars(module).values())
    steps = [form for form in every if isinstance(form, type) and issubclass(form, Step) and form is not Step]
    return {step.word: step for step in sorted(steps, key=attrgetter("word"))}


def differences(expected: Mapping[str, Any] | None, answer: ReceivedAnswer) -> list[str]:
    """Each difference from the expected answer, as a sentence; without an expectation an error is one."""
    wanted, problems = validate(Expect, dict(expected or {}))
    if wanted is None:
        return [f"expect.{problem.where()}: {problem.text}" for problem in problems]
    if answer.lost != wanted.lost:
        return [
            "expected an answer, but the connection was closed" if answer.lost else "expected no answer, received one"
        ]
    if answer.lost:
        return []
    if expected is None and answer.status >= LEAST_FAILURE:
        return [f"expected no error, received status {answer.status}: {brief(answer)}"]
    return list(_differences(wanted, answer))


def _differences(wanted: Expect, answer: ReceivedAnswer) -> Iterator[str]:
    """The differences, in the order of the form."""
    given = wanted.model_fields_set
    if "status" in given:
        yield from _compared(wanted.status, answer.status, "status")
    if "json_body" in given:
        yield from _compared(wanted.json_body, answer.json() if answer.body else ABSENT, "")
    for header, stated in wanted.headers.items():  # of several values any may fit, as in a rule
        values = [value for sent, value in answer.headers if sent.lower() == header.lower()]
        if not conditions.meets(stated, values):
            each = (list(_compared(stated, one, f"header {header}", strict=False)) for one in values or (ABSENT,))
            yield from min(filter(None, each), key=len)
    if "body" in given:
        yield from _compared(wanted.body, answer.body.decode("utf-8", "replace"), "body")
    if "seconds" in given:
        yield from _compared(wanted.seconds, answer.seconds, "seconds")


def _compared(stated: Any, value: Any, name: str, *, strict: bool = True) -> Iterator[str]:
    for path, text in conditions.differences(stated, value, strict=strict):
        place = written((name, *path)) if name else written(path) or "the body"
        yield f"{place}: {text}"


def brief(answer: ReceivedAnswer) -> str:
    """The body of an answer, cut to a readable length."""
    value = answer.json()
    text = json.dumps(value, ensure_ascii=False) if value is not None else answer.body.decode("utf-8", "replace")
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]} ..."
