"""Instant payments (straks): executed immediately, at any hour; retried every minute without money (CONTRACT 6)."""

from __future__ import annotations

from datetime import datetime

from emulator.bank.bank import Bank
from emulator.bank.documents import Payment
from emulator.bank.payment.flows import Flow
from emulator.bank.products import PAYMENTS
from emulator.bank.scheme.execution import INSTANT_PATIENCE, INSTANT_RETRY
from emulator.bank.scheme.transitions import BOOKED, EXECUTED_ONCE, SIGNED


class _Instant(Flow):
    def retry(self, bank: Bank, payment: Payment, at: datetime) -> datetime:
        return at + INSTANT_RETRY

    def last_try(self, bank: Bank, payment: Payment, first: datetime) -> datetime:
        return first + INSTANT_PATIENCE


FLOW = _Instant("instant", words="straks", service=PAYMENTS, steps=(*SIGNED, *EXECUTED_ONCE, BOOKED))
