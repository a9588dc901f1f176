"""Standing orders: ACTC after approval, executed on each of their dates, ACSC after the last.

`executeOn` is the date of the next execution, `executeAt` its moment; `executions` lists past ones, executed or
skipped, oldest first.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from emulator.bank import settlement
from emulator.bank.bank import Bank
from emulator.bank.clock import moment, oslo_date, stamp
from emulator.bank.documents import Execution, Payment
from emulator.bank.payment.flows import AUTHORISED, Flow, PaymentDates, Planned
from emulator.bank.scheme import execution
from emulator.bank.scheme.execution import DAYS, next_execution, schedule_of
from emulator.bank.scheme.transitions import CANCELLABLE, SIGNED, Transition


class _Standing(Flow):
    def plan(self, bank: Bank, payment: Payment, at: datetime) -> Planned:
        first = _next(bank, payment, None)
        _plan(bank, payment, first or oslo_date(at), at)
        return AUTHORISED

    def steps_itself(self, status: str) -> bool:
        return True

    def step(self, bank: Bank, payment: Payment, at: datetime, *, by_hand: bool) -> str | None:
        return "ACSC" if execute(bank, payment, at) else None

    def due(self, bank: Bank, payment: Payment, at: datetime) -> datetime | None:
        return run_from(bank, payment, moment(payment["executeAt"]), at)

    # A standing order reserves no money: each execution checks for it.

    def foresee(self, bank: Bank, payment: Payment, at: str) -> None:
        payment["fundsAvailable"] = settlement.covers(bank, payment)

    def executing(self, bank: Bank, payment: Payment, at: str) -> None:
        pass

    def book(self, bank: Bank, payment: Payment, at: str) -> None:
        pass

    def details(self, payment: Payment) -> Mapping[str, Any]:
        return {"executions": payment.get("executions", [])[::-1]}  # newest first

    def dates(self, bank: Bank, payment: Payment) -> PaymentDates:
        initiation = payment["initiation"]
        schedule = schedule_of(initiation)
        days: PaymentDates = {"frequency": initiation["frequency"], "startDate": initiation["startDate"]}
        if "endDate" in initiation:
            days["endDate"] = initiation["endDate"]
        first = _next(bank, payment, None)
        if first is not None:
            days["first"] = oslo_date(_moment(bank, payment, first, bank.clock.now())).isoformat()
        if schedule.months:
            days["months"] = ", ".join(map(str, schedule.months))
        if schedule.frequency not in DAYS:
            days["day"] = str(schedule.day or schedule.start.day)
        return days


FLOW = _Standing(
    "standing",
    words="periodic",
    steps=(*SIGNED, Transition("ACTC", "ACSC", "last execution"), CANCELLABLE),
)


EXECUTIONS_KEPT = 100


def _next(bank: Bank, payment: Payment, after: date | None) -> date | None:
    days = execution.open_days(bank, execution.currency_of(payment))
    return next_execution(schedule_of(payment["initiation"]), after, days)


def _plan(bank: Bank, payment: Payment, day: date, at: datetime) -> None:
    """Set the next execution to `day`, with its moment as planned at `at`."""
    payment["executeOn"] = day.isoformat()
    payment["executeAt"] = stamp(_moment(bank, payment, day, at))


def _moment(bank: Bank, payment: Payment, day: date, at: datetime) -> datetime:
    return run_from(bank, payment, execution.execution_time(day, bank.settings.calendar), at)


def run_from(bank: Bank, payment: Payment, run: datetime, at: datetime) -> datetime:
    """`run`, or the moment at which a run that was missed at `at` is made up for (assumed).

    That is immediately with the calendar `always-open`, and at the next run with `norway`.
    """
    if run >= at:
        return run
    return at if bank.settings.calendar == execution.ALWAYS_OPEN else execution.next_run(bank, payment, at)


def execute(bank: Bank, payment: Payment, at: datetime) -> bool:
    """Book one execution, or skip it without money, and plan the next one; returns whether it was the last."""
    payment["fundsAvailable"] = settlement.covers(bank, payment)
    if payment["fundsAvailable"]:
        settlement.settle(bank, payment, stamp(at))
    status = "ACSC" if payment["fundsAvailable"] else "RJCT"
    result: Execution = {"executionDate": oslo_date(at).isoformat(), "transactionStatus": status}
    payment["executions"] = [*payment.get("executions", ()), result][-EXECUTIONS_KEPT:]
    executed_on = date.fromisoformat(payment["executeOn"])
    # One late execution replaces all missed ones; with progression `manual`, each is advanced separately.
    if "due" in payment:
        executed_on = max(executed_on, oslo_date(at))
    following = _next(bank, payment, executed_on)
    if following is not None:
        _plan(bank, payment, following, at)
    return following is None
