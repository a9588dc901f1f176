"""Bulks: each entry is funded and booked separately; the bulk ends when all entries are decided."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from emulator.bank.bank import Bank
from emulator.bank.booking import bulk
from emulator.bank.clock import moment, stamp
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
        if bulk.is_waiting(payment):
            self.hold(bank, payment, stamp(at), force=by_hand)
        else:
            bulk.settle(bank, payment, stamp(at))
        if bulk.has_open(payment) and stamp(at) >= payment["giveUpAt"]:
            bulk.close_open(payment)
        return bulk.outcome(payment) if bulk.is_decided(payment) else None

    def due(self, bank: Bank, payment: Payment, at: datetime) -> datetime | None:
        waits = payment["status"] == "ACSP" and bulk.is_waiting(payment)
        return execution.next_run(bank, payment, at) if waits else None

    def foresee(self, bank: Bank, payment: Payment, at: str) -> None:
        payment["fundsAvailable"] = bulk.hold(bank, payment, at, whole=True)

    def hold(self, bank: Bank, payment: Payment, at: str, *, force: bool = False) -> bool:
        if "held" in payment:
            return True
        funded = bulk.hold(bank, payment, at, force=force)
        payment["fundsAvailable"] = funded and not bulk.has_open(payment)
        return funded

    def release(self, bank: Bank, payment: Payment, at: str) -> None:
        bulk.release(bank, payment, at)

    def executing(self, bank: Bank, payment: Payment, at: str) -> None:
        self.hold(bank, payment, at, force=True)
        if bulk.has_open(payment):
            payment.setdefault("giveUpAt", stamp(self.give_up_at(bank, payment, moment(at))))

    def book(self, bank: Bank, payment: Payment, at: str) -> None:
        self.hold(bank, payment, at, force=True)
        bulk.finish(bank, payment, at)
        payment["fundsAvailable"] = True

    def part(self, bank: Bank, payment: Payment, at: str) -> None:
        bulk.part(bank, payment, at)

    def end(self, payment: Payment, status: str) -> None:
        bulk.close_open(payment, status)

    def book_held(self, bank: Bank, payment: Payment, at: str) -> None:
        bulk.settle(bank, payment, at)

    def deletable(self, status: str) -> bool:
        return status != "ACSP"

    def details(self, payment: Payment) -> Mapping[str, Any]:
        return {"entryStatuses": bulk.statuses(payment)}


FLOW = _BatchFlow(
    "batch", words="bulk", service=BULK, steps=(*STEPS, BOOKED, Transition("ACSP", "PART", "some entries rejected"))
)
