"""Banking days, cut-off and execution dates (CONTRACT 6, setting `calendar`).

`always-open`: every day is a banking day, without cut-off. `norway`: the days of Norges Bank, for EUR those of TARGET2
(assumed: Norges Bank for every other currency), with a cut-off and one execution run at 14:00 Oslo.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import cache

from emulator.bank.clock import OSLO

ALWAYS_OPEN = "always-open"
NORWAY = "norway"
CUT_OFF = time(14)
_DAY = timedelta(days=1)
_SATURDAY = 5


@cache
def _closed_days(year: int, currency: str) -> frozenset[date]:
    """The days of a year, without weekends, on which the payment system of NOK or EUR is closed."""
    import holidays  # takes 80 ms, and only the calendar `norway` needs it

    closed = holidays.financial_holidays("XECB") if currency == "EUR" else holidays.country_holidays("NO")
    closed.end_year = year  # the library's default ends in 2100
    closed.get(date(year, 1, 1))  # makes the library compute this year
    # Norges Bank's settlement system is also closed on Christmas Eve, which is not a public holiday.
    return frozenset(closed) if currency == "EUR" else frozenset(closed) | {date(year, 12, 24)}


def is_banking_day(day: date, currency: str, calendar: str = NORWAY) -> bool:
    """Whether payments in `currency` are executed on `day`."""
    if calendar == ALWAYS_OPEN:
        return True
    if day.weekday() >= _SATURDAY:
        return False
    return day not in _closed_days(day.year, "EUR" if currency == "EUR" else "NOK")


def next_banking_day(day: date, currency: str, calendar: str = NORWAY) -> date:
    """The first banking day later than `day`."""
    day += _DAY
    while not is_banking_day(day, currency, calendar):
        day += _DAY
    return day


def execution_time(day: date, calendar: str) -> datetime:
    """The moment of the execution run of `day`, in UTC: 00:00 Oslo, with the calendar `norway` 14:00 Oslo."""
    return datetime.combine(day, CUT_OFF if calendar == NORWAY else time(0), OSLO).astimezone(UTC)


def effective_date(requested: date | None, approved_at: datetime, currency: str, calendar: str) -> tuple[date, bool]:
    """The date on which a payment approved at `approved_at` (aware) is executed, and whether it was moved.

    Moved means another date than the requested one (ACWC, CONTRACT 6); without a requested date it is never moved. A
    requested date before the approval means the first possible day. An approval at exactly 14:00:00 Oslo is in time
    (assumed).
    """
    approved = approved_at.astimezone(OSLO)
    day = approved.date()
    if calendar == NORWAY and approved.time() > CUT_OFF:
        day += _DAY
    if requested is not None and requested > day:
        day = requested
    if not is_banking_day(day, currency, calendar):
        day = next_banking_day(day, currency, calendar)
    return day, requested is not None and day != requested
