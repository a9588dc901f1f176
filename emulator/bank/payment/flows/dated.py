"""Domestic transfers: executed on a date, at the run of a banking day (payments.md#when-a-payment-is-executed)."""

from __future__ import annotations

from datetime import datetime

from emulator.bank.bank import Bank
from emulator.bank.booking import entries
from emulator.bank.clock import stamp
from emulator.bank.documents import Payment, PsuMessage
from emulator.bank.payment.flows import AUTHORISED, Flow, Planned
from emulator.bank.products import PAYMENTS
from emulator.bank.scheme import execution
from emulator.bank.scheme.transitions import BOOKED, EXECUTED_ONCE, REJECTED, SIGNED, WAITS_FOR_A_DATE

STEPS = (*SIGNED, *EXECUTED_ONCE, *WAITS_FOR_A_DATE)


class Dated(Flow):
    """The flow of payments that may wait for an execution date."""

    def plan(self, bank: Bank, payment: Payment, at: datetime) -> Planned:
        run, moved = execution.first_run(bank, payment, at)
        payment["executeAt"] = stamp(run)
        initiations = payment["initiation"].get("payments") or [payment["initiation"]]
        changed = any(entries.changes_text(initiation) for initiation in initiations)
        reasons: list[PsuMessage] = [*(["dateChanged"] if moved else ()), *(["textChanged"] if changed else ())]
        return ("ACWC", reasons) if reasons else AUTHORISED


FLOW = Dated("dated", words="domestic", service=PAYMENTS, steps=(*STEPS, BOOKED, REJECTED))
