"""The execution dates of a periodic payment (payments.md#standing-orders): a pure function of its schedule.

The first planned date is the first matching one on or after startDate; further ones follow every day, week, month and
so on, up to endDate. A planned date that is not a banking day is moved to the following or preceding banking day.
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
PRECEDING = ("preceding", "preceeding")  # both spellings are in use

_DAY = timedelta(days=1)
_FARTHEST_MOVE = timedelta(days=31)  # the most closed days in a row
_LAST_YEAR = 9998  # the year before the last one that `date` supports


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


def every_day(_: date) -> bool:
    """The calendar in which every day is a banking day."""
    return True


def next_execution(schedule: Schedule, after: date | None = None, is_open: IsOpen = every_day) -> date | None:
    """The first execution date later than `after` (None: the first of all), or None."""
    return next(executions(schedule, after, is_open), None)


def executions(schedule: Schedule, after: date | None = None, is_open: IsOpen = every_day) -> Iterator[date]:
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
    if is_open(planned):
        return planned
    first, second = (-_DAY, _DAY) if schedule.preceding else (_DAY, -_DAY)
    return _search(planned, first, schedule, is_open) or _search(planned, second, schedule, is_open)


def _search(day: date, step: timedelta, schedule: Schedule, is_open: IsOpen) -> date | None:
    while schedule.start <= day and (schedule.end is None or day <= schedule.end) and day.year <= _LAST_YEAR:
        if is_open(day):
            return day
        day += step
    return None


def _planned(schedule: Schedule, since: date) -> Iterator[date]:
    """The planned dates on or after `since`, possibly with some earlier ones."""
    dates = _by_days(schedule, since) if schedule.frequency in DAYS else _by_months(schedule, since)
    for day in dates:
        if schedule.end is not None and day > schedule.end:
            return
        yield day


def _by_days(schedule: Schedule, since: date) -> Iterator[date]:
    step = timedelta(days=DAYS[schedule.frequency])
    day = schedule.start + (since - schedule.start) // step * step
    while day.year <= _LAST_YEAR:
        yield day
        day += step


def _by_months(schedule: Schedule, since: date) -> Iterator[date]:
    """The planned day in the months of the frequency, counted from the first month whose day is not too early."""
    first = _month_number(schedule.start)
    if _in_month(schedule, first) < schedule.start:
        first += 1
    step = MONTHS.get(schedule.frequency, 1)
    month = first + max(0, _month_number(since) - first) // step * step
    while month // 12 <= _LAST_YEAR:
        if schedule.frequency != VARIABLE or month % 12 + 1 in schedule.months:
            yield _in_month(schedule, month)
        month += step


def _month_number(day: date) -> int:
    return day.year * 12 + day.month - 1


def _in_month(schedule: Schedule, month: int) -> date:
    year, zero_based = divmod(month, 12)
    last = monthrange(year, zero_based + 1)[1]
    return date(year, zero_based + 1, min(schedule.day or schedule.start.day, last))
