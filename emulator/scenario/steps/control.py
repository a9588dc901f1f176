"""Steps over the control interface: `control: METHOD PATH`, any operation, such as `POST consents/${consent}/revoke`;
`clock: advance 10s` or `clock: set 2026-03-02T09:00:00+01:00`, which moves bank time, and what falls due happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from pydantic import Field

from emulator.bank.validation import Mismatch, Moment, Reads, validate_as
from emulator.scenario import durations
from emulator.scenario.actors import Actors, As
from emulator.scenario.steps import Step
from emulator.scenario.transport import CONTROL, ReceivedAnswer
from emulator.scenario.values import address, in_two


class ControlStep(Step):
    """An operation of the control interface."""

    word = "control"
    summary = "An operation of the control interface; the path may be written with or without /_emulator."
    example: ClassVar = {"control": "POST reset", "json": {"fixtures": "known-state"}}

    control: Annotated[str, address(absolute=False)]
    json_body: Any = Field(None, alias="json", description="The body, as JSON.")

    def play(self, actors: Actors, persona: As, fill: Callable[[Any], Any]) -> ReceivedAnswer:
        del persona
        method, _, path = str(fill(self.control)).partition(" ")
        path = "/" + path.removeprefix(CONTROL).lstrip("/")
        return actors.transport.control(method, path, fill(self.json_body))


def _change(text: Any) -> str:
    word, value = in_two(text, ("advance", "set"), "A clock cannot")
    if "${" in value:
        return str(text)
    if word == "set":
        _, problems = validate_as(Moment, value.strip())
        if problems:
            raise Mismatch(text=problems[0].text)
    elif durations.parse(value.strip()) is None:
        raise Mismatch(text=f"Expected advance and {durations.expected(value.strip())}.")
    return str(text)


class ClockStep(Step):
    """A change of bank time."""

    word = "clock"
    summary = "Bank time advances by a duration, or to a time; what falls due happens in order."
    example: ClassVar = {"clock": "advance 1h30m"}

    clock: Annotated[str, Reads(_change, {"type": "string", "pattern": r"^(advance|set) \S+$"})]

    def play(self, actors: Actors, persona: As, fill: Callable[[Any], Any]) -> ReceivedAnswer:
        del persona
        word, _, value = self.clock.partition(" ")
        if word == "advance":
            return actors.transport.control("POST", "/clock/advance", {"by": fill(value.strip())})
        return actors.transport.control("PUT", "/clock", {"now": fill(value.strip()), "mode": "frozen"})
