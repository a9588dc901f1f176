"""`control: METHOD PATH`: an operation of the control interface, such as `POST consents/${consent}/revoke`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from pydantic import Field

from emulator.scenario.actors import Actors, Persona
from emulator.scenario.steps import Step
from emulator.scenario.transport import CONTROL, ReceivedAnswer
from emulator.scenario.values import address


class ControlStep(Step):
    """An operation of the control interface."""

    word = "control"
    summary = "An operation of the control interface; the path may be written with or without /_emulator."
    example: ClassVar = {"control": "POST reset", "json": {"fixtures": "known-state"}}

    control: Annotated[str, address(absolute=False)]
    json_body: Any = Field(None, alias="json", description="The body, as JSON.")

    def play(self, actors: Actors, persona: Persona, fill: Callable[[Any], Any]) -> ReceivedAnswer:
        del persona
        method, _, path = str(fill(self.control)).partition(" ")
        path = "/" + path.removeprefix(CONTROL).lstrip("/")
        return actors.transport.control(method, path, fill(self.json_body))


STEP = ControlStep
