"""The flows of payments, and the changes of their statuses.

A flow has the statuses of a kind of payment, and what differs in its timing, its money and its views. `change` sets the
status of a payment, with its history, money, messages and events, and its basket's. It does not check whether the
change is allowed: `progression` follows the flow, but scripts and tests need not.

A product names its flow. `Flow` itself is the flow of a single payment that is executed once; other flows override
what differs. No other module depends on which flow a payment has.

Domestic payments wait for their date and are executed at the run of a banking day
(payments.md#when-a-payment-is-executed). SEPA and cross-border ones do the same, and are sent to another bank (ACWP)
before they are booked. Instant ones (straks) are executed immediately, at any hour, and retried every minute without
money. Each entry of a bulk is funded and booked separately; the bulk ends when all entries are decided. A standing
order is ACTC after approval, is executed on each of its dates, and ACSC after the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, cast

from typing_extensions import TypedDict

from emulator.bank import notifications, products, settlement
from emulator.bank.accounts import accounts
from emulator.bank.bank import Bank
from emulator.bank.clock import moment, oslo_date, stamp
from emulator.bank.documents import Execution, Payment, PsuMessage
from emulator.bank.kinds import BASKET, PAYMENT
from emulator.bank.products import Product
from emulator.bank.scheme import execution
from emulator.bank.scheme.execution import next_execution, schedule_of
from emulator.bank.scheme.transitions import (
    BOOKED,
    CANCELLABLE,
    EXECUTED_ONCE,
    FINAL,
    NOT_EXECUTED,
    REJECTED,
    SIGNED,
    STATUSES,
    WAITS_FOR_A_DATE,
    Transition,
    basket_status,
)

SECOND = timedelta(seconds=1)
Planned = tuple[str, Sequence[PsuMessage]]  # the status of an accepted payment, and for ACWC what was changed
AUTHORISED: Planned = ("ACTC", ())
EXECUTIONS_KEPT = 100
REASONS: Mapping[str, PsuMessage] = {"RJCT": "rejected", "ACWC": "changed"}
_UNTIL_FINAL = ("due", "progress", "sca", "executeAt", "giveUpAt", "polls")


class PaymentDates(TypedDict, total=False):
    """The days on which a payment is made, as the customer approves them."""

    date: str  # of a single payment
    frequency: str  # of a standing order, as are the other members
    startDate: str
    endDate: str
    first: str  # the date of the first execution if it is approved now
    months: str  # of a variable order, such as `1, 6, 12`
    day: str  # of the month, if it counts in months; the last day of a month that is too short


class Flow:
    """The flow of one kind of payment.

    `name`: for products; `words`: for the manual; `steps`: its transitions; of two paths of equal length `path` takes
    the first.
    """

    to_booking = timedelta(seconds=2)  # how long a payment stays in ACSP
    tries = 3  # without money: RJCT after 3 banking days; assumed: at the third run after the first

    def __init__(self, name: str, *, words: str, steps: Sequence[Transition]) -> None:
        self.name = name
        self.words = words
        self.transitions = tuple(steps)

    def allowed(self, start: str, end: str) -> bool:
        """Whether the step `start -> end` exists."""
        return any((step.start, step.end) == (start, end) for step in self.transitions)

    def missing_step(self, script: Sequence[tuple[str, float]], at: str | None = None) -> tuple[str, str] | None:
        """The first step of a scripted progress (statuses, each with the seconds before it) that the flow lacks.

        It goes on from the status `at`; without, a script that begins with a wait begins in ACTC, another in RCVD. A
        status that no flow knows may come at any time, and after it any status to which the flow leads.
        """
        first, wait = script[0]
        at, in_between = at or ("RCVD" if wait <= 0 or first == "ACTC" else "ACTC"), False
        for status, _ in script:
            if status not in STATUSES:
                in_between = True
                continue
            if not self.allowed(at, status) and not (in_between and self.path(at, status)):
                return at, status
            at, in_between = status, False
        return None

    def path(self, start: str, end: str) -> tuple[str, ...]:
        """The shortest sequence of statuses from `start` (excluded) to `end`; empty if there is none."""
        paths: dict[str, tuple[str, ...]] = {start: ()}
        reached = [start]
        for status in reached:  # grows while it is read: the nearest come first
            for step in self.transitions:
                if step.start == status and step.end not in paths:
                    paths[step.end] = (*paths[status], step.end)
                    reached.append(step.end)
        return paths.get(end, ())

    # Time

    def plan(self, bank: Bank, payment: Payment) -> Planned:
        """Set `executeAt` of a payment that is accepted; returns its status, and the reasons if that is ACWC."""
        payment["executeAt"] = bank.clock.stamp()
        return AUTHORISED

    def step(self, bank: Bank, payment: Payment, *, by_hand: bool) -> None:
        """Take the step of an authorised payment; `by_hand`: one that waits for money stops waiting."""
        status = payment["status"]
        if status in ("ACTC", "ACWC") and payment["executeAt"] > bank.clock.stamp():
            change(bank, payment, "PDNG")
        elif status in NOT_EXECUTED:
            self._execute(bank, payment, force=by_hand and status == "ACCP")
        else:  # else a status that only a script knows, of a payment that is advanced by hand
            following = self.finish(bank, payment, by_hand=by_hand) if status in ("ACSP", "ACWP") else "ACSC"
            if following is not None:
                change(bank, payment, following)

    def _execute(self, bank: Bank, payment: Payment, *, force: bool) -> None:
        # what was reserved is of no use on an account that was deleted since
        pays = force or accounts.payer(bank, payment["debtorAccountId"]) is not None
        if pays and self.hold(bank, payment, force=force):
            change(bank, payment, "ACSP")
        elif payment["status"] != "ACCP":
            change(bank, payment, "ACCP")
        elif bank.clock.stamp() >= payment["giveUpAt"]:
            change(bank, payment, "RJCT", reasons=["noMoney"])

    def finish(self, bank: Bank, payment: Payment, *, by_hand: bool) -> str | None:
        """The status after ACSP or ACWP; None: it stays, and `due` is the moment of the next step."""
        return "ACSC"

    def due(self, bank: Bank, payment: Payment) -> datetime | None:
        """The moment of the step after this one; None: status reads cause it."""
        status, pace, at = payment["status"], bank.settings.progression, bank.clock.now()
        if status == "ACCP":
            return min(self.retry(bank, payment, at), max(moment(payment["giveUpAt"]), at + SECOND))
        if isinstance(pace, dict):
            return None
        wait = timedelta(0) if pace == "immediate" else self.to_booking if status == "ACSP" else SECOND
        if status not in ("ACTC", "ACWC", "PDNG"):
            return at + wait
        execute_at = moment(payment["executeAt"])
        waits_for_its_date = status != "PDNG" and execute_at > at + wait
        return at + wait if waits_for_its_date else max(execute_at, at) + wait

    def retry(self, bank: Bank, payment: Payment, at: datetime) -> datetime:
        """When to check again for money that was missing at `at`."""
        return execution.next_run(bank, payment, at)

    def give_up_at(self, bank: Bank, payment: Payment) -> str:
        """When a payment or entry that lacks money now is rejected (payments.md#missing-money)."""
        # Counted from the moment when the execution was due, a second before the check found no money. If reads or the
        # control interface cause the steps, any time may have passed in between.
        due, at = moment(payment["executeAt"]), bank.clock.now()
        last = due if due <= at <= due + SECOND else at
        for _ in range(self.tries):
            last = self.retry(bank, payment, last)
        return stamp(last)

    # Money

    def foresee(self, bank: Bank, payment: Payment) -> None:
        """At acceptance: reserve the full amount if there is enough money."""
        payment["fundsAvailable"] = settlement.hold(bank, payment, whole=True)

    def hold(self, bank: Bank, payment: Payment, *, force: bool = False) -> bool:
        """Reserve the payment's money and show it pending; returns whether there was enough.

        `force`, for a status that is set manually or by a script, may take the account below its credit line.
        """
        if "held" in payment:
            return True
        funded = settlement.hold(bank, payment, force=force)
        payment["fundsAvailable"] = funded and not settlement.has_open(payment)
        return funded

    def move_money(self, bank: Bank, payment: Payment, status: str) -> None:
        """Reserve, book or release its money when the payment gets this status, whether there is enough or not."""
        if status == "ACCP":
            settlement.release(bank, payment)
            payment["fundsAvailable"] = False
            payment["giveUpAt"] = self.give_up_at(bank, payment)
        elif status in ("RJCT", "CANC"):
            settlement.release(bank, payment)
            settlement.close_open(payment, status)
        elif status in ("ACSP", "ACWP"):
            self.hold(bank, payment, force=True)
            if settlement.has_open(payment):
                payment.setdefault("giveUpAt", self.give_up_at(bank, payment))
        elif status == "ACSC":
            settlement.hold(bank, payment, force=True)
            settlement.settle(bank, payment)
            payment["fundsAvailable"] = True
        elif status == "PART":  # only a flow of several payments books anything
            settlement.release(bank, payment)

    # What is shown

    def deletable(self, status: str) -> bool:
        """Whether links offer DELETE for a payment in this status (not a final one)."""
        return True

    def details(self, payment: Payment) -> Mapping[str, Any]:
        """Further members of the details of an authorised payment."""
        return {}

    def dates(self, bank: Bank, payment: Payment) -> PaymentDates:
        """The days on which it is paid, for the page where it is approved."""
        date = payment["initiation"].get("requestedExecutionDate")
        return {} if date is None else {"date": date}


class _Instant(Flow):
    tries = 10  # assumed: for 10 minutes from the moment the execution was due, that is the approval

    def retry(self, bank: Bank, payment: Payment, at: datetime) -> datetime:
        return at + timedelta(minutes=1)


class _Dated(Flow):
    """The flow of payments that may wait for an execution date."""

    def plan(self, bank: Bank, payment: Payment) -> Planned:
        run, moved = execution.first_run(bank, payment)
        payment["executeAt"] = stamp(run)
        initiations = payment["initiation"].get("payments") or [payment["initiation"]]
        changed = any(settlement.changes_text(initiation) for initiation in initiations)
        reasons: list[PsuMessage] = [*(["dateChanged"] if moved else ()), *(["textChanged"] if changed else ())]
        return ("ACWC", reasons) if reasons else AUTHORISED


class _Foreign(_Dated):
    to_booking = SECOND

    def finish(self, bank: Bank, payment: Payment, *, by_hand: bool) -> str | None:
        return "ACWP" if payment["status"] == "ACSP" else "ACSC"


class _Bulk(_Dated):
    def finish(self, bank: Bank, payment: Payment, *, by_hand: bool) -> str | None:
        """Book the funded entries, else check for money at this run; the last run rejects entries without money.

        Until then the bulk is ACSP (assumed): a part of it is executed, so it can no longer be cancelled.
        """
        if settlement.is_waiting(payment):
            self.hold(bank, payment, force=by_hand)
        else:
            settlement.settle(bank, payment)
        if settlement.has_open(payment) and bank.clock.stamp() >= payment["giveUpAt"]:
            settlement.close_open(payment)
        return settlement.outcome(payment)

    def due(self, bank: Bank, payment: Payment) -> datetime | None:
        waits = payment["status"] == "ACSP" and settlement.is_waiting(payment)
        return execution.next_run(bank, payment, bank.clock.now()) if waits else super().due(bank, payment)

    def move_money(self, bank: Bank, payment: Payment, status: str) -> None:
        if status == "PART":
            settlement.settle_in_part(bank, payment)
        else:
            super().move_money(bank, payment, status)

    def deletable(self, status: str) -> bool:
        return status != "ACSP"

    def details(self, payment: Payment) -> Mapping[str, Any]:
        return {"entryStatuses": settlement.statuses(payment)}


class _Standing(Flow):
    """The flow of standing orders, which reserve no money: each execution checks for it.

    `executeOn` is the date of the next execution, `executeAt` its moment; `executions` lists past ones, executed or
    skipped, oldest first.
    """

    def plan(self, bank: Bank, payment: Payment) -> Planned:
        self._plan(bank, payment, next_execution(bank, payment["initiation"]) or bank.clock.today())
        return AUTHORISED

    def step(self, bank: Bank, payment: Payment, *, by_hand: bool) -> None:
        """Book one execution, or skip it without money, and plan the next one; ACSC after the last."""
        self.foresee(bank, payment)
        if payment["fundsAvailable"]:
            settlement.settle(bank, payment)
        status = "ACSC" if payment["fundsAvailable"] else "RJCT"
        today = bank.clock.today()
        result: Execution = {"executionDate": today.isoformat(), "transactionStatus": status}
        payment["executions"] = [*payment.get("executions", ()), result][-EXECUTIONS_KEPT:]
        executed_on = date.fromisoformat(payment["executeOn"])
        # One late execution replaces all missed ones; with progression `manual`, each is advanced separately.
        if "due" in payment:
            executed_on = max(executed_on, today)
        following = next_execution(bank, payment["initiation"], executed_on)
        if following is None:
            change(bank, payment, "ACSC")
        else:
            self._plan(bank, payment, following)

    def due(self, bank: Bank, payment: Payment) -> datetime | None:
        return self._made_up(bank, payment, moment(payment["executeAt"]))

    def _plan(self, bank: Bank, payment: Payment, day: date) -> None:
        """Set the next execution to `day`, with its moment as planned now."""
        payment["executeOn"] = day.isoformat()
        payment["executeAt"] = stamp(self._moment(bank, payment, day))

    def _moment(self, bank: Bank, payment: Payment, day: date) -> datetime:
        return self._made_up(bank, payment, execution.execution_time(day, bank.settings.calendar))

    def _made_up(self, bank: Bank, payment: Payment, run: datetime) -> datetime:
        """`run`, or the moment at which a run that was missed is made up for (assumed).

        That is immediately with the calendar `always-open`, and at the next run with `norway`.
        """
        at = bank.clock.now()
        if run >= at:
            return run
        return at if bank.settings.calendar == execution.ALWAYS_OPEN else execution.next_run(bank, payment, at)

    def foresee(self, bank: Bank, payment: Payment) -> None:
        payment["fundsAvailable"] = settlement.covers(bank, payment)

    def move_money(self, bank: Bank, payment: Payment, status: str) -> None:
        if status not in ("ACSP", "ACWP", "ACSC"):
            super().move_money(bank, payment, status)

    def details(self, payment: Payment) -> Mapping[str, Any]:
        return {"executions": payment.get("executions", [])[::-1]}  # newest first

    def dates(self, bank: Bank, payment: Payment) -> PaymentDates:
        initiation = payment["initiation"]
        schedule = schedule_of(initiation)
        days: PaymentDates = {"frequency": initiation["frequency"], "startDate": initiation["startDate"]}
        if "endDate" in initiation:
            days["endDate"] = initiation["endDate"]
        first = next_execution(bank, initiation)
        if first is not None:
            days["first"] = oslo_date(self._moment(bank, payment, first)).isoformat()
        if schedule.months:
            days["months"] = ", ".join(map(str, schedule.months))
        if schedule.frequency not in execution.DAYS:
            days["day"] = str(schedule.day or schedule.start.day)
        return days


_STEPS = (*SIGNED, *EXECUTED_ONCE, *WAITS_FOR_A_DATE)
FLOWS: Mapping[str, Flow] = {
    flow.name: flow
    for flow in (
        _Bulk("batch", words="bulk", steps=(*_STEPS, BOOKED, Transition("ACSP", "PART", "some entries rejected"))),
        _Dated("dated", words="domestic", steps=(*_STEPS, BOOKED, REJECTED)),
        _Foreign(
            "foreign",
            words="SEPA and cross-border",
            steps=(
                *_STEPS,
                Transition("ACSP", "ACWP", "sent, not credited yet"),
                Transition("ACWP", "ACSC", "booked"),
                REJECTED,
                Transition("ACWP", "RJCT", "rejected late, by a script"),
            ),
        ),
        _Instant("instant", words="straks", steps=(*SIGNED, *EXECUTED_ONCE, BOOKED, REJECTED)),
        _Standing(
            "standing", words="periodic", steps=(*SIGNED, Transition("ACTC", "ACSC", "last execution"), CANCELLABLE)
        ),
    )
}


def of(payment: Payment) -> Flow:
    return of_product(products.of(payment))


def of_product(product: Product) -> Flow:
    return FLOWS[product.flow]


# Changes of the status


def change(bank: Bank, payment: Payment, status: str, *, reasons: Sequence[PsuMessage] = ()) -> None:
    """Set the payment's status, with all consequences; the caller stores the document.

    `reasons`: the messages to the customer, for ACWC and RJCT. Does nothing if the payment has this status already.
    """
    if status == payment["status"]:
        return
    when, before = bank.clock.stamp(), payment["status"]
    of(payment).move_money(bank, payment, status)
    payment["status"] = status
    payment["history"].append({"status": status, "at": when})
    payment.pop("psuMessages", None)
    if status in REASONS:
        payment["psuMessages"] = [*reasons] or [REASONS[status]]
    if status in FINAL:
        for name in _UNTIL_FINAL:
            cast(dict[str, Any], payment).pop(name, None)
    bank.publish({"type": "payment", "id": payment["id"], "status": status, "at": when})
    notifies = bank.settings.notifications
    if notifies:
        notifications.status_changed(bank, payment["id"], status)
    if (bank.watchers or notifies) and "basketId" in payment:
        _publish_basket(bank, payment, before, when)


def without_account(bank: Bank, payment: Payment) -> None:
    """The debtor's account is deleted: book a payment in execution; release the reservation of a waiting one."""
    if payment["status"] in ("ACSP", "ACWP"):
        settlement.settle(bank, payment)
    else:
        settlement.release(bank, payment)


def _publish_basket(bank: Bank, payment: Payment, before: str, at: str) -> None:
    """Publish the basket's new status if the payment's change from `before` has changed it."""
    basket = bank.documents.get(BASKET, payment["basketId"])
    if basket is None:
        return
    members = (
        bank.documents.get(PAYMENT, payment_id) for payment_id in basket["payments"] if payment_id != payment["id"]
    )
    others = [member["status"] for member in members if member is not None]
    status = basket_status([*others, payment["status"]])
    if status != basket_status([*others, before]):
        bank.publish({"type": "basket", "id": basket["id"], "status": status, "at": at})
        if bank.settings.notifications:
            notifications.status_changed(bank, basket["id"], status)
