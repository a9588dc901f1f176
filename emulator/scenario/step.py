"""One step of a story: the base of the step kinds, one file each in `steps/`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from emulator.scenario.part import Part
from emulator.scenario.transport import Answer

if TYPE_CHECKING:
    from emulator.scenario.actors import Actors
    from emulator.scenario.persona import Persona

COMMON = ("expect", "save", "as")


class Action(Protocol):
    """What a step does; its values, and those of the persona, still hold `${names}`."""

    def play(self, cast: Actors, persona: Persona, fill: Callable[[Any], Any]) -> Answer:
        """Do it, as `persona`; what came back."""
        ...


@dataclass(frozen=True, slots=True)
class StepKind:
    """A kind of step as its file declares it.

    `name`: its word in the story; `summary`: one sentence for the documents; `members`: what may stand beside the
    word, with the JSON Schema of each; `schema`: that of the word's value; `read`: the action that the members
    state, None with its mistakes noted.
    """

    name: str
    summary: str
    schema: Mapping[str, Any]
    members: Mapping[str, Mapping[str, Any]]
    read: Callable[[Mapping[str, Part]], Action | None]
    example: Mapping[str, Any]

    def known(self) -> Collection[str]:
        """Every member that such a step may have."""
        return (self.name, *self.members, *COMMON)


@dataclass(frozen=True, slots=True)
class Step:
    """A step ready to play."""

    kind: str
    title: str
    action: Action
    persona: Persona
    expect: Mapping[str, Any] | None
    save: Mapping[str, str]
