"""The clock of a bank, as a test advances it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from emulator.api.service import BankService
from emulator.scenario import durations
from emulator.scenario.durations import Duration


class BankClock:
    """Bank time, which stands still until a test advances it."""

    def __init__(self, call: Callable[[Callable[[BankService], datetime]], datetime]) -> None:
        self._call = call  # between two requests

    @property
    def now(self) -> datetime:
        """Bank time, in UTC."""
        return self._call(lambda service: service.bank.clock.now())

    def advance(self, by: str | timedelta | None = None, **units: float) -> datetime:
        """Advance bank time: `advance("1h30m")`, `advance("P1M")`, `advance(days=1)`; what falls due happens."""
        duration = _duration(by, units)

        def move(service: BankService) -> datetime:
            service.settle()
            service.bank.clock.set(now=duration.after(service.bank.clock.now()))
            service.settle()
            return service.bank.clock.now()

        return self._call(move)


def _duration(by: str | timedelta | None, units: dict[str, float]) -> Duration:
    if by is not None and units:
        raise TypeError("bank time advances by one duration, or by days, hours and so on, not by both")
    if isinstance(by, str):
        parsed = durations.parse(by)
        if parsed is None:
            raise ValueError(f"{durations.expected(by)} is needed, not {by!r}")
        return parsed
    if by is not None and not isinstance(by, timedelta):
        raise TypeError(f'bank time advances by a string such as "10s", a timedelta, or seconds=10, not by {by!r}')
    duration = Duration(0, by if by is not None else timedelta(**units))
    if duration.rest < timedelta(0):
        raise ValueError("bank time only advances")
    return duration
