"""Bank time: the only reader of the wall clock in the core.

Bank time is either live (real time plus an offset) or frozen (a moment that only moves on request). It is stored in
the document `meta/clock`, so that it continues after a restart.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

from emulator.bank.documents import ClockDocument
from emulator.bank.errors import BankError
from emulator.bank.formats import EARLIEST, END, YEARS
from emulator.bank.kinds import CLOCK
from emulator.store import Documents

OSLO = ZoneInfo("Europe/Oslo")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Mode = Literal["live", "frozen"]
NEW_CLOCK: ClockDocument = {"id": "clock", "mode": "live", "offset": 0.0}


def real_now() -> datetime:
    """Real time in UTC: for signatures and certificates, which do not use bank time.

    Not `datetime.now(UTC)`, to which freezegun adds its `tz_offset`.
    """
    return datetime.fromtimestamp(time.time(), UTC)


def real_seconds() -> float:
    """Real time in seconds since 1970."""
    return time.time()


def stamp(at: datetime) -> str:
    """A moment as documents store it: UTC, microseconds, so that text order is time order."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


@lru_cache(maxsize=16)
def _second(second: int) -> str:
    """How the stamps of a second of bank time begin; cached, since a request needs two stamps."""
    return (_EPOCH + timedelta(seconds=second)).isoformat().removesuffix("+00:00")


def later(stamped: str, by: timedelta) -> str:
    """The stamp of the moment `by` (whole seconds) after another."""
    return (moment(stamped) + by).isoformat(timespec="microseconds")


def moment(text: str) -> datetime:
    """The moment of a stamp; the inverse of `stamp`."""
    return datetime.fromisoformat(text)


def date_time(at: datetime | str) -> str:
    """A moment as answers show it: YYYY-MM-DDThh:mm:ss+00:00."""
    if isinstance(at, str):
        at = moment(at)
    return at.astimezone(UTC).isoformat(timespec="seconds")


def oslo_date(at: datetime) -> date:
    """The calendar date in Oslo at `at`."""
    return at.astimezone(OSLO).date()


def oslo_day(stamped: str) -> str:
    """The calendar date in Oslo at a moment in text, in text too."""
    return oslo_date(moment(stamped)).isoformat()


@dataclass(frozen=True, slots=True)
class Beginning:
    """The clock with which a bank starts when it is created or reset; `now` None: real time."""

    now: datetime | None = None
    mode: Mode = "live"


LIVE = Beginning()


class Clock:
    """The clock of one bank; bank time stands still between `hold` and `release`, that is, during a request."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self.latest = 0  # real time that bank time was derived from last, in microseconds since 1970
        CLOCK.follow(documents, self._take)

    def _take(self, document: ClockDocument | None) -> None:
        document = document or NEW_CLOCK
        self.mode: Mode = document["mode"]
        self._offset = timedelta(seconds=document.get("offset", 0.0))
        self._frozen = stamp(moment(document["now"])) if document["mode"] == "frozen" else None
        self._held: str | None = None

    def hold(self) -> str:
        """Stop bank time until `release`, or until the clock is set, and return its stamp."""
        self._held = held = self._frozen or self._live()
        return held

    def _live(self) -> str:
        """Live bank time as documents store it."""
        now = time.time_ns() // 1000
        if now < self.latest:  # the host's clock was set back: bank time stands still until it has caught up
            now = self.latest
        else:
            self.latest = now
        second, rest = divmod(now + self._offset // _MICROSECOND, 1_000_000)
        return f"{_second(second)}.{rest:06}+00:00"

    @contextmanager
    def standing_at(self, stamped: str) -> Iterator[None]:
        """A context in which bank time is the moment of a due step, so that all its consequences bear that moment."""
        held, self._held = self._held, stamped
        try:
            yield
        finally:
            self._held = held

    def not_before(self, real: float) -> None:
        """Do not let live bank time run before this real time (seconds since 1970), at which it was last stored."""
        self.latest = max(self.latest, int(real * 1_000_000))

    def release(self) -> None:
        """Let bank time run again."""
        self._held = None

    def now(self) -> datetime:
        """Bank time, in UTC."""
        return moment(self.stamp())

    def stamp(self) -> str:
        """Bank time as documents store it."""
        return self._held or self._frozen or self._live()

    def today(self) -> date:
        """The Oslo date of bank time."""
        return oslo_date(self.now())

    def set(self, *, now: datetime | None = None, mode: Mode | None = None) -> None:
        """Set moment and mode; the caller checks that time does not go backwards. FORMAT_ERROR beyond its years."""
        if now is not None and not EARLIEST <= now < END:
            raise BankError("FORMAT_ERROR", f"Bank time is {YEARS}.", "now")
        at = now or self.now()
        mode = mode or self.mode
        if mode == "frozen":
            document: ClockDocument = {"id": "clock", "mode": "frozen", "now": stamp(at)}
        else:
            # Without a new moment a live clock keeps its offset: setting `live` twice must not shift bank time.
            keeps = now is None and self.mode == "live"
            offset = self._offset if keeps else at - max(real_now(), _EPOCH + self.latest * _MICROSECOND)
            document = {"id": "clock", "mode": "live", "offset": offset.total_seconds()}
        CLOCK.write(self._documents, document)

    def with_moment(self) -> ClockDocument:
        """The clock's document with the moment of a live clock added, for a snapshot of the documents."""
        return {**(CLOCK.read(self._documents) or NEW_CLOCK), "now": self.stamp()}

    def resume(self) -> None:
        """Let a live clock continue from the moment that `with_moment` stored."""
        document = CLOCK.read(self._documents)
        if document is not None and document["mode"] == "live" and "now" in document:
            self.set(now=moment(document["now"]))

    def advance(self, by: timedelta) -> None:
        """Move bank time forward by `by`; `progression.run_due` applies the work that becomes due."""
        self.set(now=self.now() + by)
