"""When a payment is executed (payments.md#when-a-payment-is-executed): banking days, cut-off, retries.

With the setting `calendar` at `always-open` every day is a banking day, without cut-off. With `norway` these are the
days of Norges Bank, for EUR those of TARGET2 (assumed: Norges Bank for every other currency), with a cut-off and one
execution run at 14:00 Oslo.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Any

from dateutil.easter import easter

from emulator.bank.bank import Bank
from emulator.bank.clock import OSLO, oslo_date
from emulator.bank.documents import Payment
from emulator.bank.scheme.schedule import IsOpen, every_day, next_execution, schedule_of

ALWAYS_OPEN = "always-open"
NORWAY = "norway"
CUT_OFF = time(14)
_DAY = timedelta(days=1)
_SATURDAY = 5
# Days on which they are closed: by month and day, and by the days from Easter Sunday. Christmas Eve is no holiday.
NORGES_BANK = (((1, 1), (5, 1), (5, 17), (12, 24), (12, 25), (12, 26)), (-3, -2, 1, 39, 50))
TARGET2 = (((1, 1), (5, 1), (12, 25), (12, 26)), (-2, 1))
RUNS_WITHOUT_MONEY = 3  # RJCT after 3 banking days; assumed: at the third run after the first


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
    if not is_banking_day(day, currency, calendar):
        day = next_banking_day(day, currency, calendar)
    return day, requested is not None and day != requested


def currency_of(payment: Payment) -> str:
    """The currency whose banking days apply to a payment: the instructed one, NOK for a bulk."""
    amount = payment["initiation"].get("instructedAmount")
    return str(amount["currency"]) if amount else "NOK"


def first_run(bank: Bank, payment: Payment, accepted: datetime) -> tuple[datetime, bool]:
    """When a payment accepted at `accepted` is executed, and whether that is another date than requested.

    A payment for today is executed immediately with `always-open`, at 14:00 Oslo with `norway`.
    """
    calendar = bank.settings.calendar
    requested = payment["initiation"].get("requestedExecutionDate")
    date_requested = None if requested is None else date.fromisoformat(requested)
    day, moved = effective_date(date_requested, accepted, currency_of(payment), calendar)
    return max(execution_time(day, calendar), accepted), moved


def next_run(bank: Bank, payment: Payment, after: datetime) -> datetime:
    """The first execution run later than `after`: 00:00 Oslo of the next day, with `norway` 14:00 of a banking day."""
    calendar, currency = bank.settings.calendar, currency_of(payment)
    day = oslo_date(after)
    if calendar != ALWAYS_OPEN and is_banking_day(day, currency, calendar):
        run = execution_time(day, calendar)
        if run > after:
            return run
    return execution_time(next_banking_day(day, currency, calendar), calendar)


def last_run(bank: Bank, payment: Payment, first: datetime) -> datetime:
    """The run at which a payment that has lacked money since `first` is rejected."""
    run = first
    for _ in range(RUNS_WITHOUT_MONEY):
        run = next_run(bank, payment, run)
    return run


def open_days(bank: Bank, currency: str) -> IsOpen:
    """Which dates are banking days for payments in `currency`, as the setting `calendar` says."""
    calendar = bank.settings.calendar
    if calendar == ALWAYS_OPEN:
        return every_day
    return lambda day: is_banking_day(day, currency, calendar)


def has_execution(bank: Bank, initiation: Mapping[str, Any]) -> bool:
    """Whether any date between startDate and endDate fits the plan."""
    days = open_days(bank, initiation["instructedAmount"]["currency"])
    return next_execution(schedule_of(initiation), None, days) is not None
