"""Where runs get their banks from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from emulator.api.service import BankService
from emulator.scenario.target import ScenarioTarget

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class SharedTpp:
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
    def credentials(self) -> SharedTpp:
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
