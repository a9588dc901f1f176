"""One row per operation of the control interface, as the TPP interface has them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from emulator.api.messages import Request, Response, Steps, Stream
from emulator.api.openapi import resolved
from emulator.api.query import QueryParameter
from emulator.api.service import BankService
from emulator.bank.bank import Bank, Event
from emulator.bank.clock import Mode
from emulator.bank.documents import FixtureSource
from emulator.bank.errors import BankError, Message
from emulator.bank.problems import Problem
from emulator.ca import CertificateAuthority
from emulator.scenario.target import ScenarioTarget
from emulator.scenario.transport import Transport

LIMIT = QueryParameter("limit", "int", "How many at most.", minimum=1, maximum=1000, default=100)

Body = TypeVar("Body")


@dataclass(frozen=True, slots=True)
class BankSpec:
    """What a bank is made from: fixture (None: --fixtures), seed and clock; `prepare` changes it before it is there."""

    fixture: str | None = None
    seed: int | None = None
    now: datetime | None = None
    mode: Mode | None = None
    prepare: Callable[[BankService], None] = lambda _: None


class Banks(Protocol):
    """The banks of this process, as assemble hands them in."""

    def made_with(self, bank: Bank) -> FixtureSource: ...
    def names(self) -> list[str]: ...
    def exists(self, name: str) -> bool: ...
    def find(self, name: str) -> BankService | None: ...
    def without_damage(self, name: str) -> AbstractContextManager[None]: ...
    def making(self, name: str, spec: BankSpec) -> Generator[object, None, BankService]: ...
    def close_bank(self, name: str) -> None: ...
    def publish_to_all(self, kind: str, name: str, status: str) -> None: ...
    def transport(self) -> Transport:
        """A new bank for a story to play on, which is none of those that there are."""
        ...


@dataclass(slots=True)
class ControlCall(Generic[Body]):
    """A request on its way to its handler: the bank it is about, its parameters and its body.

    `scenario_target` has what scenarios change; `body` is the checked body, `value` the JSON value that it was made
    from, `text` a body that came as YAML.
    """

    service: BankService
    scenario_target: ScenarioTarget
    banks: Banks
    authority: CertificateAuthority
    target_of: Callable[[BankService], ScenarioTarget]
    request: Request
    body: Body
    value: Any = None
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None

    @property
    def bank(self) -> Bank:
        return self.service.bank

    def publish(self, kind: str, status: str) -> None:
        """Tell the watchers about a change of the bank as a whole (CONTRACT 9.4, events)."""
        self.bank.publish(_event(self.bank, kind, self.bank.name, status))

    def publish_to_all(self, kind: str, name: str, status: str) -> None:
        """Tell the watchers of all banks about a change of the process: its TPPs, its banks."""
        self.banks.publish_to_all(kind, name, status)


def _event(bank: Bank, kind: str, name: str, status: str) -> Event:
    return {"type": kind, "id": name, "status": status, "at": bank.clock.stamp()}


def refusal(problems: list[Problem] | tuple[Problem, ...]) -> BankError:
    """The problems of a body or scenario as one FORMAT_ERROR with an entry each."""
    messages = []
    for problem in problems:
        place = f"Line {problem.line}, column {problem.column}: " if problem.line else ""
        messages.append(Message("FORMAT_ERROR", f"{place}{problem.text}", problem.where() or None))
    return BankError.several(messages)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of an operation: what it is, in a phrase, and the form of its body (None: it has none)."""

    text: str
    form: Any = None
    media: str = "application/json"


Handler = Callable[[ControlCall[Any]], Response | Stream | Steps]
"""What takes long is a generator: other requests are answered between its steps."""


@dataclass(frozen=True, slots=True)
class ControlOperation:
    """One operation; `path` follows /_emulator.

    `answers`: by status; refusals all have the form of an error. `body`: the form that the body is checked with, a
    type or `module:Name`; None: it takes none. An empty body counts as {}; `required`: the form has members that must
    be there. `checks_body`: the handler checks the body itself. `yaml`: the body may come as application/yaml;
    `values`: what a parameter of the path may be, by its name.
    """

    id: str
    method: str
    path: str
    summary: str
    handler: Handler
    answers: Mapping[int, Answer]
    query: tuple[QueryParameter, ...] = ()
    body: Any = None
    required: bool = False
    example: Any = None
    yaml: bool = False
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    checks_body: bool = False

    def body_form(self) -> Any:
        """The form of the body, imported where it is named by its module."""
        return resolved(self.body)
