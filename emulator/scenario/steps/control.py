"""`control: METHOD PATH`: an operation of the control interface, such as `POST consents/${consent}/revoke`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from emulator.scenario.actors import Actors
from emulator.scenario.address import ADDRESS_SCHEMA, read_address
from emulator.scenario.part import Part
from emulator.scenario.persona import Persona
from emulator.scenario.step import Action, StepKind
from emulator.scenario.transport import CONTROL, Answer


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """An operation with its body."""

    address: str
    json: Any

    def play(self, cast: Actors, persona: Persona, fill: Callable[[Any], Any]) -> Answer:
        del persona
        method, _, path = str(fill(self.address)).partition(" ")
        path = "/" + path.removeprefix(CONTROL).lstrip("/")
        return cast.transport.control(method, path, fill(self.json))


def read(members: Mapping[str, Part]) -> Action | None:
    """The operation that a step states."""
    address = read_address(members["control"], absolute=False)
    json = members["json"].value if "json" in members else None
    return None if address is None else ControlRequest(address, json)


STEP = StepKind(
    name="control",
    summary="An operation of the control interface; the path may be written with or without /_emulator.",
    schema=ADDRESS_SCHEMA,
    members={"json": {"description": "The body, as JSON."}},
    read=read,
    example={"control": "POST reset", "json": {"fixtures": "known-state"}},
)
