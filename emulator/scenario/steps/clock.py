"""`clock: advance 10s` or `clock: set 2026-03-02T09:00:00+01:00`: bank time moves on, and what is due happens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from emulator.scenario import durations
from emulator.scenario.actors import Actors
from emulator.scenario.part import Part
from emulator.scenario.persona import Persona
from emulator.scenario.step import Action, StepKind
from emulator.scenario.transport import Answer

WORDS = ("advance", "set")


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A change of bank time."""

    word: str
    value: str

    def play(self, cast: Actors, persona: Persona, fill: Callable[[Any], Any]) -> Answer:
        del persona
        if self.word == "advance":
            return cast.transport.control("POST", "/clock/advance", {"by": fill(self.value)})
        return cast.transport.control("PUT", "/clock", {"now": fill(self.value), "mode": "frozen"})


def read(members: Mapping[str, Part]) -> Action | None:
    """The change that a step states."""
    part = members["clock"]
    text = part.text(longest=200)
    if text is None:
        return None
    word, _, value = text.partition(" ")
    value = value.strip()
    if word not in WORDS:
        part.unknown(word, WORDS, "A clock cannot")
    elif "${" in value:
        pass
    elif word == "set":
        Part(value, part.path, part.report).moment()
    elif durations.parse(value) is None:
        part.wrong(f"Expected advance and {durations.expected(value)}.")
    return ClockChange(word, value)


STEP = StepKind(
    name="clock",
    summary="Bank time moves on by a length of time, or to a moment; all that falls due happens in order.",
    schema={"type": "string", "pattern": r"^(advance|set) \S+$"},
    members={},
    read=read,
    example={"clock": "advance 1h30m"},
)
