"""What a run needs around it: a bank of its own, and the TPP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from emulator.api.service import BankService
from emulator.scenario.target import ScenarioTarget

if TYPE_CHECKING:
    from emulator.conformance.explore.play import Run
    from emulator.conformance.explore.schedule import Schedule

Result = TypeVar("Result")


class SearchFailed(Exception):
    """The search cannot go on: the TPP cannot be run, or its claims cannot be read. The argument is a sentence."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The TPP that all runs share: its id, certificate and key (PEM)."""

    tpp_id: str
    certificate: str
    key: str


class RunBank(Protocol):
    """A bank of one run."""

    @property
    def url(self) -> str:
        """Its base address."""
        ...

    @property
    def credentials(self) -> Credentials:
        """The TPP."""
        ...

    @property
    def service(self) -> BankService:
        """The bank itself, to be used within `call` only."""
        ...

    def target(self) -> ScenarioTarget:
        """All of it that a scenario changes."""
        ...

    def call(self, work: Callable[[], Result]) -> Result:
        """Do work on the bank's thread, between two requests."""
        ...

    def close(self) -> None:
        """Delete it."""
        ...


class House(Protocol):
    """Opens banks."""

    def open(self, name: str, *, seed: int, now: datetime, settings: Mapping[str, Any]) -> RunBank:
        """A new bank in its known state, whose clock stands still."""
        ...


@dataclass(frozen=True, slots=True)
class Ending:
    """How the TPP ended: `crash` says how it failed, None if it did not; `output`: the last that it printed."""

    crash: str | None = None
    output: str = ""


Claims = Callable[[str, str], Mapping[str, Any] | None]
"""What the TPP claims, of `payments` or `accounts` and an id; None: it knows no such thing."""


class Client(Protocol):
    """The TPP under test."""

    restarts: bool  # whether it can be killed and started again

    def play(self, run: Run, schedule: Schedule) -> Ending:
        """Let the TPP do the tasks of the run until it has ended or the run is over."""
        ...

    def claims(self, run: Run) -> Claims | None:
        """What the TPP claims; None if it has no address for that."""
        ...
