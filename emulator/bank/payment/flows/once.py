"""Payments that are executed once: transfers and bulks.

Domestic ones wait for their date and are executed at the run of a banking day
(payments.md#when-a-payment-is-executed). SEPA and cross-border ones do the same, and are sent to another bank (ACWP)
before they are booked. Instant ones (straks) are executed immediately, at any hour, and retried every minute without
money. Each entry of a bulk is funded and booked separately; the bulk ends when all entries are decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from emulator.bank import settlement
from emulator.bank.bank import Bank
from emulator.bank.clock import stamp
from emulator.bank.documents import Payment, PsuMessage
from emulator.bank.payment.flows import AUTHORISED, SECOND, Flow, Planned
from emulator.bank.scheme import execution
from emulator.bank.scheme.transitions import BOOKED, EXECUTED_ONCE, REJECTED, SIGNED, WAITS_FOR_A_DATE, Transition

STEPS = (*SIGNED, *EXECUTED_ONCE, *WAITS_FOR_A_DATE)
RETRY = timedelta(minutes=1)
PATIENCE = timedelta(minutes=10)  # assumed: from the moment the execution was due, that is the approval


class Dated(Flow):
    """The flow of payments that may wait for an execution date."""

    def plan(self, bank: Bank, payment: Payment, at: datetime) -> Planned:
        run, moved = execution.first_run(bank, payment, at)
        payment["executeAt"] = stamp(run)
        initiations = payment["initiation"].get("payments") or [payment["initiation"]]
        changed = any(settlement.changes_text(initiation) for initiation in initiations)
        reasons: list[PsuMessage] = [*(["dateChanged"] if moved else ()), *(["textChanged"] if changed else ())]
        return ("ACWC", reasons) if reasons else AUTHORISED


class _Bulk(Dated):
    def step(self, bank: Bank, payment: Payment, at: datetime, *, by_hand: bool) -> str | None:
        """Book the funded entries, else check for money at this run; the last run rejects entries without money.

        Until then the bulk is ACSP (assumed): a part of it is executed, so it can no longer be cancelled.
        """
        if settlement.is_waiting(payment):
            self.hold(bank, payment, stamp(at), force=by_hand)
        else:
            settlement.settle(bank, payment, stamp(at))
        if settlement.has_open(payment) and stamp(at) >= payment["giveUpAt"]:
            settlement.close_open(payment)
        return settlement.outcome(payment)

    def due(self, bank: Bank, payment: Payment, at: datetime) -> datetime | None:
        waits = payment["status"] == "ACSP" and settlement.is_waiting(payment)
        return execution.next_run(bank, payment, at) if waits else None

    def part(self, bank: Bank, payment: Payment, at: str) -> None:
        settlement.settle_in_part(bank, payment, at)

    def deletable(self, status: str) -> bool:
        return status != "ACSP"

    def details(self, payment: Payment) -> Mapping[str, Any]:
        return {"entryStatuses": settlement.statuses(payment)}


BATCH = _Bulk("batch", words="bulk", steps=(*STEPS, BOOKED, Transition("ACSP", "PART", "some entries rejected")))


DATED = Dated("dated", words="domestic", steps=(*STEPS, BOOKED, REJECTED))


class _Foreign(Dated):
    def step(self, bank: Bank, payment: Payment, at: datetime, *, by_hand: bool) -> str | None:
        return "ACWP" if payment["status"] == "ACSP" else "ACSC"

    def booked_after(self, status: str) -> timedelta:
        return SECOND


FOREIGN = _Foreign(
    "foreign",
    words="SEPA and cross-border",
    steps=(
        *STEPS,
        Transition("ACSP", "ACWP", "sent, not credited yet"),
        Transition("ACWP", "ACSC", "booked"),
        REJECTED,
        Transition("ACWP", "RJCT", "rejected late, by a script"),
    ),
)


class _Instant(Flow):
    def retry(self, bank: Bank, payment: Payment, at: datetime) -> datetime:
        return at + RETRY

    def last_try(self, bank: Bank, payment: Payment, first: datetime) -> datetime:
        return first + PATIENCE


INSTANT = _Instant("instant", words="straks", steps=(*SIGNED, *EXECUTED_ONCE, BOOKED, REJECTED))
