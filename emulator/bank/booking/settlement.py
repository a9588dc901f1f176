"""The money of a single payment: reserved when it is accepted, later booked or released.

A payment's `held` is its reservation (payments.md#money), shown as the pending transaction `pendingId`. The bank's
fee is a separate transaction (assumed).

    moment                          function     account                       payment
    accepted, or money has come     `hold`       reserved, pending shown       `held`, `pendingId`, `feePendingId`
    without money                   `hold`       unchanged                     unchanged; the answer is False
    ACSC                            `settle`     booked, and the creditor's    without them
                                                 if this bank holds it
    ACCP, RJCT, CANC                `release`    as before                     without them

`force`, for a status that a script or a person sets, reserves below the credit line. A debtor account that was deleted
takes part in nothing. Nothing here prevents a second reservation or booking: `Flow.hold` asks for `held`, and
`lifecycle.change` does nothing for the status that a payment already has.
"""

from __future__ import annotations

from decimal import Decimal

from emulator.bank import products
from emulator.bank.accounts import accounts, ledger
from emulator.bank.bank import Bank
from emulator.bank.booking import entries
from emulator.bank.clock import moment, oslo_date
from emulator.bank.documents import Account, Payment, Price, TransactionDetails, TransactionMembers
from emulator.bank.kinds import ACCOUNT
from emulator.bank.money import plain
from emulator.bank.scheme.transitions import NOT_EXECUTED


def pend_fee(bank: Bank, payment: Payment, amount: Decimal, *, at: str) -> None:
    """Show `amount` as the pending fee of the whole reservation; does nothing for an amount of 0."""
    if amount:
        members = entries.pending(_fee_members(payment, amount, at), payment.get("executeAt", at))
        payment["feePendingId"] = ledger.pend(
            bank, payment["debtorAccountId"], members, pending=payment.get("feePendingId"), at=at
        )


def book_fee(bank: Bank, payment: Payment, amount: Decimal, *, at: str) -> None:
    """Book `amount` as the fee of one execution; does nothing for an amount of 0."""
    pending = payment.pop("feePendingId", None)
    if amount:
        ledger.book(bank, payment["debtorAccountId"], _fee_members(payment, amount, at), pending=pending, at=at)


def _fee_members(payment: Payment, amount: Decimal, at: str) -> TransactionMembers:
    date = oslo_date(moment(at)).isoformat()
    return entries.fee(products.of(payment), payment_id=payment["id"], amount=amount, date=date)


def cost(price: Price) -> Decimal:
    """The amount that one execution of a payment, or of an entry of a bulk, debits, including the fee."""
    return Decimal(price["amount"]) + fee(price)


def fee(price: Price) -> Decimal:
    """The fee of one execution; 0 if there is none."""
    return Decimal(price.get("fee", "0"))


def funds_available(bank: Bank, payment: Payment) -> bool:
    """Whether an authorised payment is funded; for one that waits without a reservation, as of now."""
    if "held" in payment or payment["status"] not in NOT_EXECUTED:
        return payment["fundsAvailable"]
    return covers(bank, payment)


def covers(bank: Bank, payment: Payment) -> bool:
    """Whether the debtor's account has the money for one execution."""
    debtor = accounts.payer(bank, payment["debtorAccountId"])
    return debtor is not None and ledger.available(debtor) >= cost(payment)


def hold(bank: Bank, payment: Payment, at: str, *, force: bool = False) -> bool:
    """Reserve the payment's money and show it pending; returns whether there was enough money, or `force` is set."""
    debtor = accounts.payer(bank, payment["debtorAccountId"])
    if debtor is None:
        return force
    needed = cost(payment)
    if not force and ledger.available(debtor) < needed:
        return False
    ledger.reserve(bank, debtor["id"], needed, at=at)
    payment["held"] = plain(needed, debtor["currency"])
    members = entries.pending(_debit(bank, payment, debtor, None, at)[0], payment.get("executeAt", at))
    payment["pendingId"] = ledger.pend(bank, debtor["id"], members, at=at)
    pend_fee(bank, payment, fee(payment), at=at)
    return True


def _creditor(bank: Bank, payment: Payment) -> Account | None:
    return accounts.creditor(bank, payment["initiation"]["creditorAccount"], payment.get("creditorAccountId"))


def _debit(
    bank: Bank, payment: Payment, debtor: Account, creditor: Account | None, at: str
) -> tuple[TransactionMembers, TransactionDetails, str]:
    """The debtor's transaction, the members that both sides show, and the Oslo date."""
    product = products.of(payment)
    initiation = payment["initiation"]
    creditor = creditor or _creditor(bank, payment)
    date = oslo_date(moment(at)).isoformat()
    shown = entries.parties(bank, product, initiation, debtor=debtor, creditor=creditor)
    debit = entries.debit(
        shown,
        product,
        initiation,
        payment,
        payment_id=payment["id"],
        currency=debtor["currency"],
        date=date,
    )
    return debit, shown, date


def settle(bank: Bank, payment: Payment, at: str) -> None:
    """Book one execution: debtor, fee, and a creditor in this bank."""
    debtor = bank.documents.get(ACCOUNT, payment["debtorAccountId"])
    held, pending = Decimal(payment.pop("held", "0")), payment.pop("pendingId", None)
    if debtor is None:
        return
    product = products.of(payment)
    creditor = _creditor(bank, payment)
    debit, shown, date = _debit(bank, payment, debtor, creditor, at)
    ledger.book(bank, debtor["id"], debit, pending=pending, released=held, at=at)
    book_fee(bank, payment, fee(payment), at=at)
    if creditor is not None:
        credit = entries.credit(bank, shown, product, payment["initiation"], to=creditor, date=date)
        ledger.book(bank, creditor["id"], credit, at=at)


def release(bank: Bank, payment: Payment, at: str) -> None:
    """Release the reservation, and remove the pending transactions of the payment and of its fee."""
    held = payment.pop("held", None)
    if held is not None and bank.documents.exists(ACCOUNT, payment["debtorAccountId"]):
        ledger.release(bank, payment["debtorAccountId"], Decimal(held), at=at)
    for pending in (payment.pop("pendingId", None), payment.pop("feePendingId", None)):
        if pending is not None:
            ledger.withdraw(bank, pending)
