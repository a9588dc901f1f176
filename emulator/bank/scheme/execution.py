"""When a payment is executed (payments.md#when-a-payment-is-executed): banking days, cut-off, retries; the dates of a
periodic payment (payments.md#standing-orders), which are a pure function of its schedule.

With the setting `calendar` at `always-open` every day is a banking day, without cut-off. With `norway` these are the
days of Norges Bank, for EUR those of TARGET2 (assumed: Norges Bank for every other currency), with a cut-off and one
execution run at 14:00 Oslo.

The first planned date of a periodic payment is the first matching one on or after startDate; further ones follow every
day, week, month and so on, up to endDate. One that is not a banking day is moved to the following or preceding one.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Any

from dateutil.easter import easter

from emulator.bank.bank import Bank
from emulator.bank.clock import OSLO, oslo_date
from emulator.bank.documents import Payment

IsOpen = Callable[[date], bool]

DAYS = {"Daily": 1, "Weekly": 7, "EveryTwoWeeks": 14}
MONTHS = {"Monthly": 1, "EveryTwoMonths": 2, "Quarterly": 3, "SemiAnnual": 6, "Annual": 12}
VARIABLE = "MonthlyVariable"
FREQUENCIES = (*DAYS, *MONTHS, VARIABLE)
PRECEDING = ("preceding", "preceeding")  # both spellings are in use

_DAY = timedelta(days=1)
_FARTHEST_MOVE = timedelta(days=31)  # the most closed days in a row
_LAST_DAY = date(9998, 12, 31)  # of the year before the last one that `date` supports

ALWAYS_OPEN = "always-open"
NORWAY = "norway"
CUT_OFF = time(14)
_SATURDAY = 5
# Days on which they are closed: by month and day, and by the days from Easter Sunday. Christmas Eve is no holiday.
NORGES_BANK = (((1, 1), (5, 1), (5, 17), (12, 24), (12, 25), (12, 26)), (-3, -2, 1, 39, 50))
TARGET2 = (((1, 1), (5, 1), (12, 25), (12, 26)), (-2, 1))


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of a standing order: the members of its initiation, parsed.

    `day`: day of the month; in a month that has no such day, the last one; None: the day of startDate (assumed). It is
    ignored for Daily, Weekly and EveryTwoWeeks, which count from startDate (assumed). `preceding`: dates are moved to
    the banking day before, else (assumed: also without executionRule) to the one after.
    """

    start: date
    frequency: str
    end: date | None = None
    day: int | None = None
    preceding: bool = False
    months: tuple[int, ...] = ()

    @property
    def last(self) -> date:
        """The last day on which it may be executed."""
        return min(self.end or _LAST_DAY, _LAST_DAY)


def schedule_of(initiation: Mapping[str, Any]) -> Schedule:
    """The schedule of a validated periodic payment."""
    end, day = initiation.get("endDate"), initiation.get("dayOfExecution")
    return Schedule(
        start=date.fromisoformat(initiation["startDate"]),
        frequency=initiation["frequency"],
        end=date.fromisoformat(end) if end else None,
        day=int(day) if day else None,
        preceding=initiation.get("executionRule") in PRECEDING,
        months=tuple(sorted(int(month) for month in initiation.get("monthsOfExecution") or ())),
    )


def next_execution(bank: Bank, initiation: Mapping[str, Any], after: date | None = None) -> date | None:
    """The first execution date of a standing order later than `after` (None: the first of all), or None."""
    calendar, currency = bank.settings.calendar, initiation["instructedAmount"]["currency"]
    return next(executions(schedule_of(initiation), after, lambda day: is_banking_day(day, currency, calendar)), None)


def executions(schedule: Schedule, after: date | None = None, is_open: IsOpen = lambda _: True) -> Iterator[date]:
    """The execution dates later than `after`, strictly increasing, all between startDate and endDate.

    A date that would be moved out of these bounds is moved in the other direction; planned dates that are moved to the
    same day are one execution, and a planned date without a banking day inside the bounds is skipped (assumed).
    """
    latest = after
    since = schedule.start if after is None else after - _FARTHEST_MOVE
    for planned in _planned(schedule, max(since, schedule.start)):
        actual = _moved(planned, schedule, is_open)
        if actual is not None and (latest is None or actual > latest):
            yield actual
            latest = actual


def _moved(planned: date, schedule: Schedule, is_open: IsOpen) -> date | None:
    """The banking day on which a planned date is executed."""
    for step in (-_DAY, _DAY) if schedule.preceding else (_DAY, -_DAY):
        day = planned
        while schedule.start <= day <= schedule.last:
            if is_open(day):
                return day
            day += step
    return None


def _planned(schedule: Schedule, since: date) -> Iterator[date]:
    """The planned dates on or after `since`, possibly with some earlier ones, and one after the end in its month."""
    start, frequency = schedule.start, schedule.frequency
    if frequency in DAYS:
        step, passed = DAYS[frequency], (since - start).days
        for days in range(passed // step * step, (schedule.last - start).days + 1, step):
            yield start + days * _DAY
        return
    # The months of the frequency are counted from the first one whose day is not too early.
    first = _month_number(start)
    if _in_month(schedule, first) < start:
        first += 1
    step = MONTHS.get(frequency, 1)
    passed = max(0, _month_number(since) - first)
    for month in range(first + passed // step * step, _month_number(schedule.last) + 1, step):
        if frequency != VARIABLE or month % 12 + 1 in schedule.months:
            yield _in_month(schedule, month)


def _month_number(day: date) -> int:
    return day.year * 12 + day.month - 1


def _in_month(schedule: Schedule, month: int) -> date:
    year, zero_based = divmod(month, 12)
    last = monthrange(year, zero_based + 1)[1]
    return date(year, zero_based + 1, min(schedule.day or schedule.start.day, last))


@cache
def _closed_days(year: int, currency: str) -> frozenset[date]:
    """The days of a year, besides weekends, on which the payment system of NOK or EUR is closed."""
    fixed, moving = TARGET2 if currency == "EUR" else NORGES_BANK
    sunday = easter(year)
    return frozenset([*(date(year, *day) for day in fixed), *(sunday + days * _DAY for days in moving)])


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


def closest_banking_day(day: date, *, before: bool) -> date:
    """`day`, or the banking day of Norway `before` or after it, if that is none."""
    while not is_banking_day(day, "NOK"):
        day += -_DAY if before else _DAY
    return day


def execution_time(day: date, calendar: str) -> datetime:
    """The moment of the execution run of `day`, in UTC: 00:00 Oslo, with the calendar `norway` 14:00 Oslo."""
    return datetime.combine(day, CUT_OFF if calendar == NORWAY else time(0), OSLO).astimezone(UTC)


def effective_date(requested: date | None, approved_at: datetime, currency: str, calendar: str) -> tuple[date, bool]:
    """The date on which a payment approved at `approved_at` (aware) is executed, and whether it was moved.

    Moved means another date than the requested one (ACWC); without a requested date it is never moved. A
    requested date before the approval means the first possible day. An approval at exactly 14:00:00 Oslo is in time
    (assumed).
    """
    approved = approved_at.astimezone(OSLO)
    day = approved.date()
    if calendar == NORWAY and approved.time() > CUT_OFF:
        day += _DAY
    if requested is not None and requested > day:
        day = requested
    day = next_banking_day(day - _DAY, currency, calendar)
    return day, requested is not None and day != requested


def currency_of(payment: Payment) -> str:
    """The currency whose banking days apply to a payment: the instructed one, NOK for a bulk."""
    amount = payment["initiation"].get("instructedAmount")
    return str(amount["currency"]) if amount else "NOK"


def first_run(bank: Bank, payment: Payment) -> tuple[datetime, bool]:
    """When a payment that is accepted now is executed, and whether that is another date than requested.

    A payment for today is executed immediately with `always-open`, at 14:00 Oslo with `norway`.
    """
    calendar, accepted = bank.settings.calendar, bank.clock.now()
    requested = payment["initiation"].get("requestedExecutionDate")
    date_requested = None if requested is None else date.fromisoformat(requested)
    day, moved = effective_date(date_requested, accepted, currency_of(payment), calendar)
    return max(execution_time(day, calendar), accepted), moved


def next_run(bank: Bank, payment: Payment, after: datetime) -> datetime:
    """The first execution run later than `after`: 00:00 Oslo of the next day, with `norway` 14:00 of a banking day."""
    calendar, currency = bank.settings.calendar, currency_of(payment)
    day = oslo_date(after)
    run = execution_time(day, calendar)
    if run > after and is_banking_day(day, currency, calendar):
        return run
    return execution_time(next_banking_day(day, currency, calendar), calendar)
