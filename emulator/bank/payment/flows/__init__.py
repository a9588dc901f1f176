"""The flows of payments: each module of this package defines one `Flow` or several; a malformed one stops the start.

A product names its flow. `Flow` itself is the flow of a single payment that is executed once; other flows override
what differs. No other module depends on which flow a payment has. `tests/unit/payments/test_transitions.py` quotes the
names of the flows, in the order of their modules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from typing_extensions import TypedDict

from emulator.bank import products, settlement
from emulator.bank.bank import Bank
from emulator.bank.clock import moment, stamp
from emulator.bank.documents import Payment, PsuMessage
from emulator.bank.products import Product
from emulator.bank.scheme import execution
from emulator.bank.scheme.transitions import STATUSES, Transition
from emulator.discovery import discover

SECOND = timedelta(seconds=1)
TO_BOOKING = timedelta(seconds=2)  # ACSP after 1 s, ACSC after 3 s
NO_WAIT = timedelta(0)
Planned = tuple[str, Sequence[PsuMessage]]  # the status of an accepted payment, and for ACWC what was changed
AUTHORISED: Planned = ("ACTC", ())


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

    def __init__(self, name: str, *, words: str, steps: Sequence[Transition]) -> None:
        self.name = name
        self.words = words
        self.transitions = tuple(steps)

    def allowed(self, start: str, end: str) -> bool:
        """Whether the step `start -> end` exists."""
        return any((step.start, step.end) == (start, end) for step in self.transitions)

    def following(self, start: str) -> tuple[str, ...]:
        """The statuses that may follow `start`."""
        return tuple(step.end for step in self.transitions if step.start == start)

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
        open_paths: deque[tuple[str, ...]] = deque([(start,)])
        seen = {start}
        while open_paths:
            current = open_paths.popleft()
            for status in self.following(current[-1]):
                if status == end:
                    return (*current[1:], end)
                if status not in seen:
                    seen.add(status)
                    open_paths.append((*current, status))
        return ()

    # Time

    def plan(self, bank: Bank, payment: Payment, at: datetime) -> Planned:
        """Set `executeAt` of a payment accepted at `at`; returns its status, and the reasons if that is ACWC."""
        payment["executeAt"] = stamp(at)
        return AUTHORISED

    def step(self, bank: Bank, payment: Payment, at: datetime, *, by_hand: bool) -> str | None:
        """Take the step after ACSP or ACWP, or any status of `steps_itself`; returns the new status, if it changes."""
        return "ACSC"

    def steps_itself(self, status: str) -> bool:
        """Whether `step` takes the next step in this status; else the payment waits for its date and its money."""
        return status in ("ACSP", "ACWP")

    def due(self, bank: Bank, payment: Payment, at: datetime) -> datetime | None:
        """The moment of the step after the one at `at`, if the flow determines it; else None."""
        return None

    def booked_after(self, status: str) -> timedelta:
        """How long a payment stays in ACSP or ACWP."""
        return TO_BOOKING if status == "ACSP" else SECOND

    def retry(self, bank: Bank, payment: Payment, at: datetime) -> datetime:
        """When to check again for money that was missing at `at`."""
        return execution.next_run(bank, payment, at)

    def give_up_at(self, bank: Bank, payment: Payment, at: datetime) -> datetime:
        """When a payment or entry that lacks money at `at` is rejected (payments.md#missing-money)."""
        # Counted from the moment when the execution was due, a second before the check found no money. If reads or the
        # control interface cause the steps, any time may have passed in between.
        due = moment(payment["executeAt"])
        return self.last_try(bank, payment, due if due <= at <= due + SECOND else at)

    def last_try(self, bank: Bank, payment: Payment, first: datetime) -> datetime:
        """The last check for money that was first missing at `first`."""
        return execution.last_run(bank, payment, first)

    # Money

    def foresee(self, bank: Bank, payment: Payment, at: str) -> None:
        """At acceptance: reserve the full amount if there is enough money."""
        payment["fundsAvailable"] = settlement.hold(bank, payment, at, whole=True)

    def hold(self, bank: Bank, payment: Payment, at: str, *, force: bool = False) -> bool:
        """Reserve the payment's money and show it pending; returns whether there was enough.

        `force`, for a status that is set manually or by a script, may take the account below its credit line.
        """
        if "held" in payment:
            return True
        funded = settlement.hold(bank, payment, at, force=force)
        payment["fundsAvailable"] = funded and not settlement.has_open(payment)
        return funded

    def executing(self, bank: Bank, payment: Payment, at: str) -> None:
        """The payment becomes ACSP or ACWP: reserve its money, whether there is enough or not."""
        self.hold(bank, payment, at, force=True)
        if settlement.has_open(payment):
            payment.setdefault("giveUpAt", stamp(self.give_up_at(bank, payment, moment(at))))

    def book(self, bank: Bank, payment: Payment, at: str) -> None:
        """The payment becomes ACSC: book it, whether there is enough or not."""
        settlement.hold(bank, payment, at, force=True)
        settlement.settle(bank, payment, at)
        payment["fundsAvailable"] = True

    def part(self, bank: Bank, payment: Payment, at: str) -> None:
        """The payment becomes PART, of which only a flow of several books anything."""
        settlement.release(bank, payment, at)

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


@cache
def table() -> dict[str, Flow]:
    """Every flow by name."""
    return {flow.name: flow for flow in discover(__path__, __name__, Flow, names=lambda flow: (flow.name,))}


def of(payment: Payment) -> Flow:
    return of_product(products.of(payment))


def of_product(product: Product) -> Flow:
    return table()[product.flow]
