"""Instant payments (straks): executed immediately, at any hour; retried every minute without money."""

from __future__ import annotations

from datetime import datetime, timedelta

from emulator.bank.bank import Bank
from emulator.bank.documents import Payment
from emulator.bank.payment.flows import Flow
from emulator.bank.products import PAYMENTS
from emulator.bank.scheme.transitions import BOOKED, EXECUTED_ONCE, REJECTED, SIGNED

RETRY = timedelta(minutes=1)
PATIENCE = timedelta(minutes=10)  # assumed: from the moment the execution was due, that is the approval


class _Instant(Flow):
    def retry(self, bank: Bank, payment: Payment, at: datetime) -> datetime:
        return at + RETRY

    def last_try(self, bank: Bank, payment: Payment, first: datetime) -> datetime:
        return first + PATIENCE


FLOW = _Instant("instant", words="straks", service=PAYMENTS, steps=(*SIGNED, *EXECUTED_ONCE, BOOKED, REJECTED))
