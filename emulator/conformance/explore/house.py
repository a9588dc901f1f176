"""Where runs get their banks from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from emulator.api.service import BankService
from emulator.scenario.target import ScenarioTarget

Result = TypeVar("Result")


class OnBankThread(Protocol):
    """Does work on the bank's thread, between two requests."""

    def __call__(self, work: Callable[[], Result]) -> Result: ...


@dataclass(frozen=True, slots=True)
class RunBank:
    """A bank of one run: its base address, the certificate and key (PEM) of its TPP, and itself.

    `service` and `target`, all of it that a scenario changes, are to be used within `call` only; `close` deletes it.
    """

    url: str
    certificate: str
    key: str
    service: BankService
    target: ScenarioTarget
    call: OnBankThread
    close: Callable[[], None]


class House(Protocol):
    """Opens banks."""

    def open(self, name: str, *, seed: int, now: datetime, settings: Mapping[str, Any]) -> RunBank:
        """A new bank in its known state, whose clock stands still."""
