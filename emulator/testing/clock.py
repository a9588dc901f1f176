"""The clock of a bank for a test (CONTRACT 12)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from emulator.api.service import BankService
from emulator.scenario import durations
from emulator.scenario.durations import Duration

if TYPE_CHECKING:
    from emulator.testing.running import RunningBank


class BankClock:
    """Bank time, which stands still until a test moves it."""

    def __init__(self, bank: RunningBank) -> None:
        self._bank = bank

    @property
    def now(self) -> datetime:
        """Bank time, in UTC."""
        return self._bank.call(lambda service: service.bank.clock.now())

    def advance(self, by: str | timedelta | None = None, **units: float) -> datetime:
        """Move bank time on: `advance("1h30m")`, `advance("P1M")`, `advance(days=1)`; what falls due is applied."""
        duration = _duration(by, units)

        def move(service: BankService) -> datetime:
            service.settle()
            service.bank.clock.set(now=duration.after(service.bank.clock.now()))
            service.settle()
            return service.bank.clock.now()

        return self._bank.call(move)


def _duration(by: str | timedelta | None, units: dict[str, float]) -> Duration:
    if by is not None and units:
        raise TypeError("bank time moves by one length of time, or by days, hours and so on, not by both")
    if isinstance(by, str):
        found = durations.parse(by)
        if found is None:
            raise ValueError(f"{durations.expected(by)} is needed, not {by!r}")
        return found
    if by is not None and not isinstance(by, timedelta):
        raise TypeError(f'bank time moves by a text such as "10s", a timedelta, or seconds=10, not by {by!r}')
    found = Duration(0, by if by is not None else timedelta(**units))
    if found.rest < timedelta(0):
        raise ValueError("bank time goes forwards only")
    return found
