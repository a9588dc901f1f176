"""Bulks: each entry is funded and booked separately; the bulk ends when all entries are decided."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from emulator.bank.bank import Bank
from emulator.bank.booking import settlement
from emulator.bank.clock import stamp
from emulator.bank.documents import Payment
from emulator.bank.payment.flows.single import STEPS, Dated
from emulator.bank.products import BULK
from emulator.bank.scheme import execution
from emulator.bank.scheme.transitions import BOOKED, Transition


class _BatchFlow(Dated):
    several = True

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
        return settlement.outcome(payment) if settlement.is_decided(payment) else None

    def due(self, bank: Bank, payment: Payment, at: datetime) -> datetime | None:
        waits = payment["status"] == "ACSP" and settlement.is_waiting(payment)
        return execution.next_run(bank, payment, at) if waits else None

    def part(self, bank: Bank, payment: Payment, at: str) -> None:
        settlement.part(bank, payment, at)

    def deletable(self, status: str) -> bool:
        return status != "ACSP"

    def details(self, payment: Payment) -> Mapping[str, Any]:
        return {"entryStatuses": settlement.statuses(payment)}


FLOW = _BatchFlow(
    "batch", words="bulk", service=BULK, steps=(*STEPS, BOOKED, Transition("ACSP", "PART", "some entries rejected"))
)
