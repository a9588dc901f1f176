"""On which dates a periodic payment is executed (CONTRACT 6, Periodic): a pure function of its plan.

Planned dates: the first is the first fitting one from startDate on; then one every day, week, month and so on, up to
endDate. One that is no banking day moves to the following or preceding banking day.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

IsOpen = Callable[[date], bool]

DAYS = {"Daily": 1, "Weekly": 7, "EveryTwoWeeks": 14}
MONTHS = {"Monthly": 1, "EveryTwoMonths": 2, "Quarterly": 3, "SemiAnnual": 6, "Annual": 12}
VARIABLE = "MonthlyVariable"
FREQUENCIES = (*DAYS, *MONTHS, VARIABLE)
PRECEDING = ("preceding", "preceeding")  # both spellings are in use (CONTRACT 6)

_DAY = timedelta(days=1)
_FARTHEST_MOVE = timedelta(days=31)  # the most closed days in a row
_LAST_YEAR = 9998  # well before the last date that Python has


@dataclass(frozen=True, slots=True)
class Plan:
    """When a standing order is executed: the members of its initiation, read.

    `day`: day of the month, 31 (and any day that a month lacks) meaning its last; None: that of startDate (assumed).
    It is ignored for Daily, Weekly and EveryTwoWeeks, which count from startDate (assumed). `preceding`: dates
    move to the banking day before, else (assumed: also without executionRule) to the one after.
    """

    start: date
    frequency: str
    end: date | None = None
    day: int | None = None
    preceding: bool = False
    months: tuple[int, ...] = ()


def plan_of(initiation: Mapping[str, Any]) -> Plan:
    """The plan of a validated periodic payment."""
    end, day = initiation.get("endDate"), initiation.get("dayOfExecution")
    return Plan(
        start=date.fromisoformat(initiation["startDate"]),
        frequency=initiation["frequency"],
        end=date.fromisoformat(end) if end else None,
        day=int(day) if day else None,
        preceding=initiation.get("executionRule") in PRECEDING,
        months=tuple(sorted(int(month) for month in initiation.get("monthsOfExecution") or ())),
    )


def every_day(_: date) -> bool:
    """The calendar in which every day is a banking day."""
    return True


def next_execution(plan: Plan, after: date | None = None, is_open: IsOpen = every_day) -> date | None:
    """The first execution date later than `after` (None: the very first), None when there is none."""
    return next(executions(plan, after, is_open), None)


def executions(plan: Plan, after: date | None = None, is_open: IsOpen = every_day) -> Iterator[date]:
    """The execution dates later than `after`, strictly increasing, all between startDate and endDate.

    A move that would leave these bounds goes the other way; planned dates that move to one day are one execution,
    and a planned date with no banking day inside the bounds is left out (assumed).
    """
    latest = after
    since = plan.start if after is None else after - _FARTHEST_MOVE
    for planned in _planned(plan, max(since, plan.start)):
        actual = _moved(planned, plan, is_open)
        if actual is not None and (latest is None or actual > latest):
            yield actual
            latest = actual


def _moved(planned: date, plan: Plan, is_open: IsOpen) -> date | None:
    """The banking day on which a planned date is executed."""
    if is_open(planned):
        return planned
    first, second = (-_DAY, _DAY) if plan.preceding else (_DAY, -_DAY)
    return _search(planned, first, plan, is_open) or _search(planned, second, plan, is_open)


def _search(day: date, step: timedelta, plan: Plan, is_open: IsOpen) -> date | None:
    while plan.start <= day and (plan.end is None or day <= plan.end) and day.year <= _LAST_YEAR:
        if is_open(day):
            return day
        day += step
    return None


def _planned(plan: Plan, since: date) -> Iterator[date]:
    """The planned dates from about `since` on, possibly with some earlier ones."""
    dates = _by_days(plan, since) if plan.frequency in DAYS else _by_months(plan, since)
    for day in dates:
        if plan.end is not None and day > plan.end:
            return
        yield day


def _by_days(plan: Plan, since: date) -> Iterator[date]:
    step = timedelta(days=DAYS[plan.frequency])
    day = plan.start + (since - plan.start) // step * step
    while day.year <= _LAST_YEAR:
        yield day
        day += step


def _by_months(plan: Plan, since: date) -> Iterator[date]:
    """The day of the plan in the months of its frequency, counted from the first month whose day is not too early."""
    first = _month_number(plan.start)
    if _in_month(plan, first) < plan.start:
        first += 1
    step = MONTHS.get(plan.frequency, 1)
    month = first + max(0, _month_number(since) - first) // step * step
    while month // 12 <= _LAST_YEAR:
        if plan.frequency != VARIABLE or month % 12 + 1 in plan.months:
            yield _in_month(plan, month)
        month += step


def _month_number(day: date) -> int:
    return day.year * 12 + day.month - 1


def _in_month(plan: Plan, month: int) -> date:
    year, zero_based = divmod(month, 12)
    last = monthrange(year, zero_based + 1)[1]
    return date(year, zero_based + 1, min(plan.day or plan.start.day, last))
