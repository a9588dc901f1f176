"""The money of a bulk payment, entry by entry (payments.md#bulk-payments).

`entries` of a payment is parallel to its `initiation.payments`: `{status, amount, fee?, rate?, creditorAccountId?,
pendingId?}`; status OPEN (not funded yet), HELD, ACSC or RJCT. Each run funds the open entries in order; an entry
without enough money waits for the next run, while later ones may still be funded.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from emulator.bank import products
from emulator.bank.accounts import accounts, ledger
from emulator.bank.bank import Bank
from emulator.bank.booking import entries, settlement
from emulator.bank.clock import moment, oslo_date
from emulator.bank.customers.people import CORPORATE
from emulator.bank.documents import Account, Payment, TransactionDetails, TransactionMembers
from emulator.bank.kinds import ACCOUNT
from emulator.bank.money import plain

ZERO = Decimal(0)
OPEN, HELD, PAID, REJECTED = "OPEN", "HELD", "ACSC", "RJCT"


def has_open(payment: Payment) -> bool:
    """Whether an entry still waits for money; False for a payment that is not a bulk."""
    return any(entry["status"] == OPEN for entry in payment.get("entries", ()))


def is_waiting(payment: Payment) -> bool:
    """Whether the only open entries of a bulk are those without money."""
    return has_open(payment) and all(entry["status"] != HELD for entry in payment["entries"])


def is_decided(payment: Payment) -> bool:
    """Whether every entry of a bulk has its final status."""
    return all(entry["status"] not in (OPEN, HELD) for entry in payment["entries"])


def outcome(payment: Payment) -> str:
    """The final status of the bulk, by its entries."""
    paid = [entry["status"] == PAID for entry in payment["entries"]]
    if all(paid):
        return "ACSC"
    return "PART" if any(paid) else "RJCT"


def item(payment: Payment, index: int) -> dict[str, Any]:
    """An entry in the form of a single payment: its members and the bulk's debtor account."""
    initiation = payment["initiation"]
    return {**initiation["payments"][index], "debtorAccount": initiation["debtorAccount"]}


def as_batch(payment: Payment) -> bool:
    """Whether the entries are booked as one transaction: on request, in the corporate context only."""
    return payment["context"] == CORPORATE and bool(payment["initiation"].get("batchBookingPreferred"))


def hold(bank: Bank, payment: Payment, at: str, *, whole: bool = False, force: bool = False) -> bool:
    """Reserve the money of open entries, in order; returns whether any was. `whole`: all entries or none."""
    debtor = accounts.payer(bank, payment["debtorAccountId"])
    if debtor is None:
        if force:
            close_open(payment, HELD)  # without an account it can still be advanced manually, like a single payment
        return force
    free = ledger.available(debtor)
    chosen: list[int] = []
    still_open = 0
    for index, entry in enumerate(payment["entries"]):
        if entry["status"] == OPEN:
            still_open += 1
            if force or settlement.cost(entry) <= free:
                chosen.append(index)
                free -= settlement.cost(entry)
    if not chosen or (whole and len(chosen) < still_open):
        return False
    total = sum((settlement.cost(payment["entries"][index]) for index in chosen), ZERO)
    ledger.reserve(bank, debtor["id"], total, at=at)
    payment["held"] = plain(total + Decimal(payment.get("held", "0")), debtor["currency"])
    for index in chosen:
        payment["entries"][index]["status"] = HELD
    _pend(bank, payment, debtor, chosen, at)
    settlement.pend_fee(bank, payment, _fees(payment, _held(payment)), at=at)
    return True


def _held(payment: Payment) -> list[int]:
    return [index for index, entry in enumerate(payment["entries"]) if entry["status"] == HELD]


def _fees(payment: Payment, chosen: list[int]) -> Decimal:
    return sum((settlement.fee(payment["entries"][index]) for index in chosen), ZERO)


def _shown(bank: Bank, payment: Payment, debtor: Account, index: int) -> tuple[TransactionDetails, Account | None]:
    one = item(payment, index)
    creditor = accounts.creditor(bank, one["creditorAccount"], payment["entries"][index].get("creditorAccountId"))
    shown = entries.parties(bank, products.of(payment), one, debtor=debtor, creditor=creditor)
    return shown, creditor


def _debit(payment: Payment, debtor: Account, index: int, shown: TransactionDetails, date: str) -> TransactionMembers:
    return entries.debit(
        shown,
        products.of(payment),
        payment["initiation"]["payments"][index],
        payment["entries"][index],
        payment_id=payment["id"],
        currency=debtor["currency"],
        date=date,
    )


def _batch(
    bank: Bank, payment: Payment, debtor: Account, shown: Mapping[int, TransactionDetails], date: str
) -> TransactionMembers:
    return entries.batch(
        products.of(payment),
        [(parties, Decimal(payment["entries"][index]["amount"])) for index, parties in shown.items()],
        debtor=debtor,
        debtor_name=accounts.holder(bank, debtor),
        payment_id=payment["id"],
        information_id=payment["initiation"].get("paymentInformationId"),
        date=date,
    )


def _pend(bank: Bank, payment: Payment, debtor: Account, chosen: list[int], at: str) -> None:
    """Show the reservation as pending: one transaction per `chosen` entry, or one batch that replaces the last."""
    date = oslo_date(moment(at)).isoformat()
    batched = as_batch(payment)
    shown = {index: _shown(bank, payment, debtor, index)[0] for index in (_held(payment) if batched else chosen)}
    if batched:
        members = entries.pending(_batch(bank, payment, debtor, shown, date), payment.get("executeAt", at))
        payment["pendingId"] = ledger.pend(bank, debtor["id"], members, pending=payment.get("pendingId"), at=at)
        return
    for index in chosen:
        members = entries.pending(_debit(payment, debtor, index, shown[index], date), payment.get("executeAt", at))
        payment["entries"][index]["pendingId"] = ledger.pend(bank, debtor["id"], members, at=at)


def settle(bank: Bank, payment: Payment, at: str) -> None:
    """Book every funded entry, separately or as a batch, all fees as one, and each creditor in this bank."""
    chosen = _held(payment)
    held, batch_pending = Decimal(payment.pop("held", "0")), payment.pop("pendingId", None)
    debtor = bank.documents.get(ACCOUNT, payment["debtorAccountId"])
    for index in chosen:
        payment["entries"][index]["status"] = PAID
    if debtor is None or not chosen:
        return
    date = oslo_date(moment(at)).isoformat()
    shown: dict[int, TransactionDetails] = {}
    for index in chosen:
        shown[index], creditor = _shown(bank, payment, debtor, index)
        if creditor is not None:
            credit = entries.credit(
                bank, shown[index], products.of(payment), item(payment, index), to=creditor, date=date
            )
            ledger.book(bank, creditor["id"], credit, at=at)
    ledger.release(bank, debtor["id"], held, at=at)
    if as_batch(payment):
        members = _batch(bank, payment, debtor, shown, date)
        ledger.book(bank, debtor["id"], members, pending=batch_pending, at=at)
    else:
        for index in chosen:
            pending = payment["entries"][index].pop("pendingId", None)
            members = _debit(payment, debtor, index, shown[index], date)
            ledger.book(bank, debtor["id"], members, pending=pending, at=at)
    settlement.book_fee(bank, payment, _fees(payment, chosen), at=at)


def release(bank: Bank, payment: Payment, at: str) -> None:
    """Release the reservation and reopen its entries."""
    settlement.release(bank, payment, at)
    for entry in payment["entries"]:
        if entry["status"] == HELD:
            entry["status"] = OPEN
            if "pendingId" in entry:
                ledger.withdraw(bank, entry.pop("pendingId"))


def close_open(payment: Payment, status: str = REJECTED) -> None:
    """Set this status on the entries without money: RJCT if rejected, CANC in a cancelled bulk."""
    for entry in payment["entries"]:
        if entry["status"] == OPEN:
            entry["status"] = status


def statuses(payment: Payment) -> list[str]:
    """The transactionStatus of each entry: its own final status, ACCP while only this entry waits for money."""
    undecided = {OPEN: "ACCP" if payment["status"] == "ACSP" else payment["status"], HELD: payment["status"]}
    return [undecided.get(entry["status"], entry["status"]) for entry in payment["entries"]]


def finish(bank: Bank, payment: Payment, at: str) -> None:
    """Book every entry that is not decided yet, funded or not, for a status set manually or by a script."""
    hold(bank, payment, at, force=True)
    settle(bank, payment, at)


def part(bank: Bank, payment: Payment, at: str) -> None:
    """Book funded entries and reject the others; if all are funded, reject the last one (a status set manually)."""
    undecided = [entry for entry in payment["entries"] if entry["status"] in (OPEN, HELD)]
    if undecided and not has_open(payment):
        release(bank, payment, at)
        undecided[-1]["status"] = REJECTED
        hold(bank, payment, at, force=True)
    settle(bank, payment, at)
    close_open(payment)
