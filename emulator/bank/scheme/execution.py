"""The execution runs of a payment: the first one, further ones while it lacks money, and the last one (CONTRACT 6)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

from emulator.bank.bank import Bank
from emulator.bank.clock import oslo_date
from emulator.bank.documents import Payment
from emulator.bank.reference.calendar import (
    ALWAYS_OPEN,
    effective_date,
    execution_time,
    is_banking_day,
    next_banking_day,
)
from emulator.bank.scheme.schedule import IsOpen, every_day, next_execution, schedule_of

RUNS_WITHOUT_MONEY = 3  # CONTRACT 6: RJCT after 3 banking days; assumed: at the third run after the first
INSTANT_RETRY = timedelta(minutes=1)
INSTANT_PATIENCE = timedelta(minutes=10)  # assumed: from the moment the execution was due, that is the approval


def currency_of(payment: Payment) -> str:
    """The currency whose banking days apply to a payment: the instructed one, NOK for a bulk."""
    amount = payment["initiation"].get("instructedAmount")
    return str(amount["currency"]) if amount else "NOK"


def requested_date(payment: Payment) -> date | None:
    """The requestedExecutionDate of a payment."""
    text = payment["initiation"].get("requestedExecutionDate")
    return date.fromisoformat(text) if text is not None else None


def first_run(bank: Bank, payment: Payment, accepted: datetime) -> tuple[datetime, bool]:
    """When a payment accepted at `accepted` is executed, and whether that is another date than requested.

    A payment for today is executed immediately with `always-open`, at 14:00 Oslo with `norway`.
    """
    calendar = bank.settings.calendar
    day, moved = effective_date(requested_date(payment), accepted, currency_of(payment), calendar)
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
