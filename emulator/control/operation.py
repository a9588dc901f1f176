"""One row per operation of the control interface, as the TPP interface has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from emulator.api.messages import Request, Response, Stream
from emulator.api.query import Parameter
from emulator.api.service import BankService
from emulator.bank.bank import Bank, Event
from emulator.bank.errors import BankError, Message
from emulator.bank.fixtures import Fixture
from emulator.ca import CertificateAuthority
from emulator.scenario.mistakes import ScenarioRefused
from emulator.scenario.part import Part
from emulator.scenario.target import ScenarioTarget
from emulator.scenario.transport import Transport

LIMIT = Parameter("limit", "int", "How many at most.", minimum=1, maximum=1000, default=100)


class Banks(Protocol):
    """The banks of this process, as assemble hands them in."""

    def made_with(self, bank: Bank) -> Fixture: ...
    def names(self) -> list[str]: ...
    def find(self, name: str) -> BankService | None: ...
    def without_damage(self, name: str) -> AbstractContextManager[None]: ...
    def make(
        self,
        name: str,
        *,
        fixture: str | None = None,
        seed: int | None = None,
        prepare: Callable[[BankService], None] = ...,
    ) -> BankService: ...
    def close_bank(self, name: str) -> None: ...
    def services(self) -> Iterator[BankService]: ...
    def transport(self) -> Transport:
        """A bank for a story to play on, which nobody else knows."""
        ...


@dataclass(slots=True)
class ControlCall:
    """A request on its way to its handler: the bank it is about, its parameters and its JSON body.

    `scenario_target` has what scenarios change; `text` is a body that came as YAML.
    """

    service: BankService
    scenario_target: ScenarioTarget
    banks: Banks
    authority: CertificateAuthority
    target_of: Callable[[BankService], ScenarioTarget]
    request: Request
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Part = field(default_factory=lambda: Part({}))
    text: str | None = None

    @property
    def bank(self) -> Bank:
        return self.service.bank

    def tell(self, kind: str, status: str) -> None:
        """Tell whoever watches what has changed about the bank as a whole (CONTRACT 9.4, events)."""
        self.bank.publish(_event(self.bank, kind, self.bank.name, status))

    def tell_all(self, kind: str, name: str, status: str) -> None:
        """Tell whoever watches any bank what has changed about the process: its TPPs, its banks."""
        for service in self.banks.services():
            if service.bank.watchers:  # of hundreds of banks hardly one is watched
                service.bank.publish(_event(service.bank, kind, name, status))

    def refuse_mistakes(self) -> None:
        """Raise FORMAT_ERROR for what was noted about the body, all of it at once."""
        if self.body.report:
            raise refused(ScenarioRefused("body", self.body.report.mistakes))


def _event(bank: Bank, kind: str, name: str, status: str) -> Event:
    return {"type": kind, "id": name, "status": status, "at": bank.clock.stamp()}


def refused(error: ScenarioRefused) -> BankError:
    """The mistakes of a body or scenario as one FORMAT_ERROR with an entry each."""
    found = []
    for mistake in error.mistakes:
        place = f"Line {mistake.line}, column {mistake.column}: " if mistake.line else ""
        found.append(Message("FORMAT_ERROR", f"{place}{mistake.text}", mistake.where() or None))
    return BankError.several(found)


Handler = Callable[[ControlCall], Response | Stream]


@dataclass(frozen=True, slots=True)
class ControlOperation:
    """One operation; `path` follows /_emulator. `body` is JSON Schema, None when there is none; `example` one of it.

    `yaml`: the body may come as application/yaml; `answers`: by status what they are; `values`: what a parameter of the
    path may be, by its name.
    """

    id: str
    method: str
    path: str
    summary: str
    handler: Handler
    answers: Mapping[int, str]
    query: tuple[Parameter, ...] = ()
    body: Mapping[str, Any] | None = None
    example: Any = None
    yaml: bool = False
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def object_of(required: tuple[str, ...] = (), /, **properties: Any) -> dict[str, Any]:
    """JSON Schema of an object with these members and no others."""
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


TEXT = {"type": "string", "minLength": 1}
