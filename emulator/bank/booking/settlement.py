"""The money of payments: reserved when they are accepted, later booked or released.

What is paid by itself is a part: a single payment, or an entry of a bulk (payments.md#bulk-payments). A payment's
`held` is its reservation (payments.md#money), shown as the pending transaction `pendingId` of each part, or of the
payment if its entries are booked as one. The bank's fee is a separate transaction (assumed).

`entries` of a bulk is parallel to its `initiation.payments`: `{status, amount, fee?, rate?, creditorAccountId?,
pendingId?}`; status OPEN (not funded yet), HELD, ACSC or RJCT. Each run funds the open entries in order; an entry
without enough money waits for the next run, while later ones may still be funded.

    moment                          function     account                       payment
    accepted, or money has come     `hold`       reserved, pending shown       `held`, `pendingId`, `feePendingId`
    without money                   `hold`       unchanged                     unchanged; the answer is False
    ACSC                            `settle`     booked, and the creditor's    without them
                                                 if this bank holds it
    ACCP, RJCT, CANC                `release`    as before                     without them

`force`, for a status that a script or a person sets, reserves below the credit line. A debtor account that was deleted
takes part in nothing. Nothing here prevents a second booking: `flows.change` does nothing for the status that a
payment already has.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from emulator.bank.accounts import accounts, ledger
from emulator.bank.bank import Bank
from emulator.bank.booking import entries
from emulator.bank.booking.entries import PaymentPart
from emulator.bank.clock import oslo_day
from emulator.bank.customers.people import CORPORATE
from emulator.bank.documents import Account, BulkEntry, Payment, Price, TransactionDetails, TransactionMembers
from emulator.bank.kinds import ACCOUNT
from emulator.bank.money import plain
from emulator.bank.scheme.transitions import NOT_EXECUTED

ZERO = Decimal(0)
OPEN, HELD, PAID, REJECTED = "OPEN", "HELD", "ACSC", "RJCT"


def cost(price: Price) -> Decimal:
    """The amount that one execution of a payment, or of an entry of a bulk, debits, including the fee."""
    return Decimal(price["amount"]) + Decimal(price.get("fee", "0"))


def funds_available(bank: Bank, payment: Payment) -> bool:
    """Whether an authorised payment is funded; for one that waits without a reservation, as of now."""
    if "held" in payment or not (payment["status"] in NOT_EXECUTED or has_open(payment)):
        return payment["fundsAvailable"]
    return covers(bank, payment)


def covers(bank: Bank, payment: Payment) -> bool:
    """Whether the debtor's account has the money for one execution, of a bulk for its open entries."""
    debtor = accounts.payer(bank, payment["debtorAccountId"])
    needed = sum((cost(part.state) for part in _parts(payment, OPEN)), ZERO)
    return debtor is not None and ledger.available(debtor) >= needed


def has_open(payment: Payment) -> bool:
    """Whether an entry still waits for money; False for a payment that is not a bulk."""
    return any(entry["status"] == OPEN for entry in payment.get("entries", ()))


def is_waiting(payment: Payment) -> bool:
    """Whether the only open entries of a bulk are those without money."""
    return has_open(payment) and all(entry["status"] != HELD for entry in payment["entries"])


def outcome(payment: Payment) -> str | None:
    """The final status of the bulk, by its entries; None while one of them has not its own."""
    statuses = {entry["status"] for entry in payment["entries"]}
    if statuses & {OPEN, HELD}:
        return None
    if statuses == {PAID}:
        return "ACSC"
    return "PART" if PAID in statuses else "RJCT"


def item(payment: Payment, index: int) -> dict[str, Any]:
    """An entry in the form of a single payment: its members and the bulk's debtor account."""
    initiation = payment["initiation"]
    return {**initiation["payments"][index], "debtorAccount": initiation["debtorAccount"]}


def _parts(payment: Payment, status: str) -> list[PaymentPart]:
    """The entries of a bulk with this status; of another payment itself, unless it is open and has its money."""
    if "entries" in payment:
        indexed = enumerate(payment["entries"])
        return [PaymentPart(item(payment, index), entry) for index, entry in indexed if entry["status"] == status]
    return [] if status == OPEN and "held" in payment else [PaymentPart(payment["initiation"], payment)]


def hold(bank: Bank, payment: Payment, at: str, *, whole: bool = False, force: bool = False) -> bool:
    """Reserve the money of open parts, in order, and show it pending; returns whether any was.

    `whole`: all parts or none. Without an account nothing is reserved, and the answer is `force`.
    """
    debtor = accounts.payer(bank, payment["debtorAccountId"])
    if debtor is None:
        if force:
            close_open(payment, HELD)  # without an account it can still be advanced manually, like a single payment
        return force
    free = ledger.available(debtor)
    waiting = _parts(payment, OPEN)
    chosen: list[PaymentPart] = []
    for part in waiting:
        if force or cost(part.state) <= free:
            chosen.append(part)
            free -= cost(part.state)
    if not chosen or (whole and len(chosen) < len(waiting)):
        return False
    _set_status(payment, chosen, HELD)
    _reserve(bank, payment, debtor, chosen, at)
    return True


def _set_status(payment: Payment, parts: Sequence[PaymentPart], status: str) -> None:
    if "entries" in payment:  # a single payment changes its status itself
        for part in parts:
            part.state["status"] = status


def as_batch(payment: Payment) -> bool:
    """Whether the entries of a bulk are booked as one transaction: on request, in the corporate context only."""
    wanted = "entries" in payment and payment["initiation"].get("batchBookingPreferred")
    return payment["context"] == CORPORATE and bool(wanted)


def _reserve(bank: Bank, payment: Payment, debtor: Account, parts: Sequence[PaymentPart], at: str) -> None:
    held = _parts(payment, HELD)
    total = sum((cost(part.state) for part in parts), ZERO)
    ledger.reserve(bank, debtor["id"], total, at=at)
    payment["held"] = plain(total + Decimal(payment.get("held", "0")), debtor["currency"])
    pending = held if as_batch(payment) else parts  # a batch replaces the last one
    shown = [entries.parties(bank, payment, part, debtor)[0] for part in pending]
    for state, members in _debits(bank, payment, debtor, pending, shown, at):
        waiting = entries.pending(members, payment.get("executeAt", at))
        state["pendingId"] = ledger.pend(bank, debtor["id"], waiting, pending=state.get("pendingId"), at=at)
    if fees := _fees(held):
        waiting = entries.pending(entries.fee(payment, fees, oslo_day(at)), payment.get("executeAt", at))
        payment["feePendingId"] = ledger.pend(bank, debtor["id"], waiting, pending=payment.get("feePendingId"), at=at)


def _fees(parts: Sequence[PaymentPart]) -> Decimal:
    return sum((Decimal(part.state.get("fee", "0")) for part in parts), ZERO)


def _debits(
    bank: Bank,
    payment: Payment,
    debtor: Account,
    parts: Sequence[PaymentPart],
    shown: Sequence[TransactionDetails],
    at: str,
) -> list[tuple[Payment | BulkEntry, TransactionMembers]]:
    """The debtor's transactions, each with the document that has its `pendingId`."""
    if as_batch(payment):
        return [(payment, entries.batch(bank, payment, parts, shown, debtor, oslo_day(at)))]
    return [
        (part.state, entries.debit(payment, part, texts, debtor["currency"], oslo_day(at)))
        for part, texts in zip(parts, shown, strict=True)
    ]


def settle(bank: Bank, payment: Payment, at: str) -> None:
    """Book one execution of the funded parts, separately or as a batch: debtor, fee, and creditors in this bank."""
    parts = _parts(payment, HELD)
    _set_status(payment, parts, PAID)
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
        ledger.book(bank, debtor["id"], entries.fee(payment, fees, oslo_day(at)), pending=pending, at=at)
    for part, (shown, creditor) in zip(parts, sides, strict=True):
        if creditor is not None:
            credit = entries.credit(bank, payment, part, shown, creditor, oslo_day(at))
            ledger.book(bank, creditor["id"], credit, at=at)


def release(bank: Bank, payment: Payment, at: str) -> None:
    """Release the reservation, remove the pending transactions, and reopen the entries of a bulk."""
    held = payment.pop("held", None)
    if held is not None and bank.documents.exists(ACCOUNT, payment["debtorAccountId"]):
        ledger.release(bank, payment["debtorAccountId"], Decimal(held), at=at)
    pending = [payment.pop("pendingId", None), payment.pop("feePendingId", None)]
    for entry in payment.get("entries", ()):
        if entry["status"] == HELD:
            entry["status"] = OPEN
            pending.append(entry.pop("pendingId", None))
    for transaction_id in pending:
        if transaction_id is not None:
            ledger.withdraw(bank, transaction_id)


def close_open(payment: Payment, status: str = REJECTED) -> None:
    """Set this status on the entries without money: RJCT if rejected, CANC in a cancelled bulk."""
    for entry in payment.get("entries", ()):
        if entry["status"] == OPEN:
            entry["status"] = status


def statuses(payment: Payment) -> list[str]:
    """The transactionStatus of each entry: its own final status, ACCP while only this entry waits for money."""
    undecided = {OPEN: "ACCP" if payment["status"] == "ACSP" else payment["status"], HELD: payment["status"]}
    return [undecided.get(entry["status"], entry["status"]) for entry in payment["entries"]]


def settle_in_part(bank: Bank, payment: Payment, at: str) -> None:
    """Book funded entries and reject the others; if all are funded, reject the last one (a status set manually)."""
    undecided = [entry for entry in payment["entries"] if entry["status"] in (OPEN, HELD)]
    if undecided and not has_open(payment):
        release(bank, payment, at)
        undecided[-1]["status"] = REJECTED
        hold(bank, payment, at, force=True)
    settle(bank, payment, at)
    close_open(payment)
