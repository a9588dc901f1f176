"""SEPA and cross-border transfers: sent to another bank (ACWP) before they are booked."""

from __future__ import annotations

from datetime import datetime, timedelta

from emulator.bank.bank import Bank
from emulator.bank.documents import Payment
from emulator.bank.payment.flows import SECOND
from emulator.bank.payment.flows.dated import STEPS, Dated
from emulator.bank.products import PAYMENTS
from emulator.bank.scheme.transitions import REJECTED, Transition


class _Foreign(Dated):
    def step(self, bank: Bank, payment: Payment, at: datetime, *, by_hand: bool) -> str | None:
        return "ACWP" if payment["status"] == "ACSP" else "ACSC"

    def booked_after(self, status: str) -> timedelta:
        return SECOND


FLOW = _Foreign(
    "foreign",
    words="SEPA and cross-border",
    service=PAYMENTS,
    steps=(
        *STEPS,
        Transition("ACSP", "ACWP", "sent, not credited yet"),
        Transition("ACWP", "ACSC", "booked"),
        REJECTED,
        Transition("ACWP", "RJCT", "rejected late, by a script"),
    ),
)
