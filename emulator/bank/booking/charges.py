"""The bank's fee for a payment: pending, booked and released beside it, an entry of its own (assumed)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from emulator.bank import products
from emulator.bank.accounts import ledger
from emulator.bank.bank import Bank
from emulator.bank.booking import entries
from emulator.bank.clock import moment, oslo_date
from emulator.bank.documents import Payment


def pend(bank: Bank, payment: Payment, amount: Decimal, *, at: str) -> None:
    """Show `amount` as the pending fee of all that the payment holds; nothing where there is no fee."""
    if amount:
        members = entries.pending(_members(payment, amount, at), payment.get("executeAt", at))
        payment["feePendingId"] = ledger.pend(
            bank, payment["debtorAccountId"], members, pending=payment.get("feePendingId"), at=at
        )


def book(bank: Bank, payment: Payment, amount: Decimal, *, at: str) -> None:
    """Book `amount` as the fee of one execution; nothing where there is no fee."""
    pending = payment.pop("feePendingId", None)
    if amount:
        ledger.book(bank, payment["debtorAccountId"], _members(payment, amount, at), pending=pending, at=at)


def release(bank: Bank, payment: Payment) -> None:
    """Take the pending fee away."""
    pending = payment.pop("feePendingId", None)
    if pending is not None:
        ledger.withdraw(bank, pending)


def _members(payment: Payment, amount: Decimal, at: str) -> dict[str, Any]:
    date = oslo_date(moment(at)).isoformat()
    return entries.fee(products.of(payment), payment_id=payment["id"], amount=amount, date=date)
