"""The money of payments: reserved when they are accepted, later booked or released.

What is paid by itself is a part: a single payment, or an entry of a bulk (`bulk.py`). A payment's `held` is its
reservation (payments.md#money), shown as the pending transaction `pendingId` of each part, or of the payment if its
entries are booked as one. The bank's fee is a separate transaction (assumed).

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

from collections.abc import Sequence
from decimal import Decimal

from emulator.bank.accounts import accounts, ledger
from emulator.bank.bank import Bank
from emulator.bank.booking import entries
from emulator.bank.booking.entries import Part
from emulator.bank.clock import moment, oslo_date
from emulator.bank.customers.people import CORPORATE
from emulator.bank.documents import Account, BulkEntry, Payment, Price, TransactionDetails, TransactionMembers
from emulator.bank.kinds import ACCOUNT
from emulator.bank.money import plain
from emulator.bank.scheme.transitions import NOT_EXECUTED

ZERO = Decimal(0)


def cost(price: Price) -> Decimal:
    """The amount that one execution of a payment, or of an entry of a bulk, debits, including the fee."""
    return Decimal(price["amount"]) + Decimal(price.get("fee", "0"))


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
    """Reserve a single payment's money and show it pending; returns whether there was enough, or `force` is set."""
    debtor = accounts.payer(bank, payment["debtorAccountId"])
    if debtor is None:
        return force
    if not force and ledger.available(debtor) < cost(payment):
        return False
    only = [_whole(payment)]
    reserve(bank, payment, debtor, only, at, held=only)
    return True


def _whole(payment: Payment) -> Part:
    return Part(payment["initiation"], payment)


def as_batch(payment: Payment) -> bool:
    """Whether the entries of a bulk are booked as one transaction: on request, in the corporate context only."""
    wanted = "entries" in payment and payment["initiation"].get("batchBookingPreferred")
    return payment["context"] == CORPORATE and bool(wanted)


def reserve(
    bank: Bank, payment: Payment, debtor: Account, parts: Sequence[Part], at: str, *, held: Sequence[Part]
) -> None:
    """Reserve the money of `parts` and show it pending; `held`: all parts whose money is reserved then."""
    total = sum((cost(part.state) for part in parts), ZERO)
    ledger.reserve(bank, debtor["id"], total, at=at)
    payment["held"] = plain(total + Decimal(payment.get("held", "0")), debtor["currency"])
    pending = held if as_batch(payment) else parts  # a batch replaces the last one
    shown = [entries.parties(bank, payment, part, debtor)[0] for part in pending]
    for state, members in _debits(bank, payment, debtor, pending, shown, at):
        waiting = entries.pending(members, payment.get("executeAt", at))
        state["pendingId"] = ledger.pend(bank, debtor["id"], waiting, pending=state.get("pendingId"), at=at)
    if fees := _fees(held):
        waiting = entries.pending(entries.fee(payment, fees, _date(at)), payment.get("executeAt", at))
        payment["feePendingId"] = ledger.pend(bank, debtor["id"], waiting, pending=payment.get("feePendingId"), at=at)


def _date(at: str) -> str:
    return oslo_date(moment(at)).isoformat()


def _fees(parts: Sequence[Part]) -> Decimal:
    return sum((Decimal(part.state.get("fee", "0")) for part in parts), ZERO)


def _debits(
    bank: Bank,
    payment: Payment,
    debtor: Account,
    parts: Sequence[Part],
    shown: Sequence[TransactionDetails],
    at: str,
) -> list[tuple[Payment | BulkEntry, TransactionMembers]]:
    """The debtor's transactions, each with the document that has its `pendingId`."""
    if as_batch(payment):
        return [(payment, entries.batch(bank, payment, parts, shown, debtor, _date(at)))]
    return [
        (part.state, entries.debit(payment, part, texts, debtor["currency"], _date(at)))
        for part, texts in zip(parts, shown, strict=True)
    ]


def settle(bank: Bank, payment: Payment, at: str, parts: Sequence[Part] | None = None) -> None:
    """Book one execution of the parts (None: the single payment): debtor, fee, and creditors in this bank."""
    parts = [_whole(payment)] if parts is None else parts
    debtor = bank.documents.get(ACCOUNT, payment["debtorAccountId"])
    held = Decimal(payment.pop("held", "0"))
    if debtor is None or not parts:
        payment.pop("pendingId", None)
        return
    sides = [entries.parties(bank, payment, part, debtor) for part in parts]
    for state, members in _debits(bank, payment, debtor, parts, [shown for shown, _ in sides], at):
        ledger.book(bank, debtor["id"], members, pending=state.pop("pendingId", None), released=held, at=at)
        held = ZERO  # released with the first one
    pending, fees = payment.pop("feePendingId", None), _fees(parts)
    if fees:
        ledger.book(bank, debtor["id"], entries.fee(payment, fees, _date(at)), pending=pending, at=at)
    for part, (shown, creditor) in zip(parts, sides, strict=True):
        if creditor is not None:
            credit = entries.credit(bank, payment, part, shown, creditor, _date(at))
            ledger.book(bank, creditor["id"], credit, at=at)


def release(bank: Bank, payment: Payment, at: str) -> None:
    """Release the reservation, and remove the pending transactions of the payment and of its fee."""
    held = payment.pop("held", None)
    if held is not None and bank.documents.exists(ACCOUNT, payment["debtorAccountId"]):
        ledger.release(bank, payment["debtorAccountId"], Decimal(held), at=at)
    for pending in (payment.pop("pendingId", None), payment.pop("feePendingId", None)):
        if pending is not None:
            ledger.withdraw(bank, pending)
