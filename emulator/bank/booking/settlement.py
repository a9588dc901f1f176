"""The money of a single payment: held back when it is accepted, booked or released in the end.

A payment's `held` is its reservation (CONTRACT 6, Money); with it goes a pending transaction, `pendingId`.
"""

from __future__ import annotations

from decimal import Decimal

from emulator.bank import products
from emulator.bank.accounts import accounts, ledger
from emulator.bank.bank import Bank
from emulator.bank.booking import charges, entries
from emulator.bank.clock import moment, oslo_date
from emulator.bank.documents import Account, Payment
from emulator.bank.kinds import ACCOUNT
from emulator.bank.money import plain
from emulator.bank.scheme.transitions import NOT_EXECUTED


def cost(payment: Payment) -> Decimal:
    """What one execution takes from the debtor's account, fee included."""
    return Decimal(payment["amount"]) + _fee(payment)


def _fee(payment: Payment) -> Decimal:
    return Decimal(payment.get("fee", "0"))


def funds_available(bank: Bank, payment: Payment) -> bool:
    """Whether there is money for an authorised payment: of one that waits and reserves nothing, as of now."""
    if "held" in payment or payment["status"] not in NOT_EXECUTED:
        return payment["fundsAvailable"]
    return ledger.covers(bank, payment["debtorAccountId"], cost(payment))


def hold(bank: Bank, payment: Payment, at: str, *, force: bool = False) -> bool:
    """Hold the payment's money back and show it pending; whether there was enough, or `force` says so."""
    debtor = bank.documents.get(ACCOUNT, payment["debtorAccountId"])
    if debtor is None:
        return force
    needed = cost(payment)
    if not force and ledger.available(debtor) < needed:
        return False
    ledger.reserve(bank, debtor["id"], needed, at=at)
    payment["held"] = plain(needed, debtor["currency"])
    members = entries.pending(_debit(bank, payment, debtor, None, at)[0], payment.get("executeAt", at))
    payment["pendingId"] = ledger.pend(bank, debtor["id"], members, at=at)
    charges.pend(bank, payment, _fee(payment), at=at)
    return True


def _creditor(bank: Bank, payment: Payment) -> Account | None:
    return accounts.creditor(bank, payment["initiation"]["creditorAccount"], payment.get("creditorAccountId"))


def _debit(
    bank: Bank, payment: Payment, debtor: Account, creditor: Account | None, at: str
) -> tuple[dict[str, object], dict[str, object], str]:
    """The debtor's transaction, what both sides show of the payment, and the Oslo date."""
    product = products.of(payment)
    initiation = payment["initiation"]
    creditor = creditor or _creditor(bank, payment)
    date = oslo_date(moment(at)).isoformat()
    shown = entries.parties(bank, product, initiation, debtor=debtor, creditor=creditor)
    debit = entries.debit(
        shown,
        product,
        initiation,
        payment_id=payment["id"],
        amount=Decimal(payment["amount"]),
        currency=debtor["currency"],
        rate=payment.get("rate"),
        date=date,
    )
    return debit, shown, date


def settle(bank: Bank, payment: Payment, at: str, debtor: Account | None = None) -> None:
    """Book one execution: debtor, fee, and the creditor when it is in this bank; `debtor`: its account, if at hand."""
    debtor = debtor or bank.documents.get(ACCOUNT, payment["debtorAccountId"])
    held, pending = Decimal(payment.pop("held", "0")), payment.pop("pendingId", None)
    if debtor is None:
        return
    product = products.of(payment)
    creditor = _creditor(bank, payment)
    debit, shown, date = _debit(bank, payment, debtor, creditor, at)
    ledger.book(bank, debtor["id"], debit, pending=pending, released=held, at=at)
    charges.book(bank, payment, _fee(payment), at=at)
    if creditor is not None:
        credit = entries.credit(bank, shown, product, payment["initiation"], to=creditor, date=date)
        ledger.book(bank, creditor["id"], credit, at=at)


def release(bank: Bank, payment: Payment, at: str) -> None:
    """Give back what is held and take the pending transaction away."""
    held, pending = payment.pop("held", None), payment.pop("pendingId", None)
    if held is not None and bank.documents.exists(ACCOUNT, payment["debtorAccountId"]):
        ledger.release(bank, payment["debtorAccountId"], Decimal(held), at=at)
    if pending is not None:
        ledger.withdraw(bank, pending)
    charges.release(bank, payment)
