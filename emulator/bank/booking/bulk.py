"""The money of a bulk payment, entry by entry (payments.md#bulk-payments).

`entries` of a payment is parallel to its `initiation.payments`: `{status, amount, fee?, rate?, creditorAccountId?,
pendingId?}`; status OPEN (not funded yet), HELD, ACSC or RJCT. Each run funds the open entries in order; an entry
without enough money waits for the next run, while later ones may still be funded.
"""

from __future__ import annotations

from typing import Any

from emulator.bank.accounts import accounts, ledger
from emulator.bank.bank import Bank
from emulator.bank.booking import settlement
from emulator.bank.booking.entries import Part
from emulator.bank.documents import Payment

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


def _held(payment: Payment) -> list[Part]:
    return [
        Part(item(payment, index), entry) for index, entry in enumerate(payment["entries"]) if entry["status"] == HELD
    ]


def hold(bank: Bank, payment: Payment, at: str, *, whole: bool = False, force: bool = False) -> bool:
    """Reserve the money of open entries, in order; returns whether any was. `whole`: all entries or none."""
    debtor = accounts.payer(bank, payment["debtorAccountId"])
    if debtor is None:
        if force:
            close_open(payment, HELD)  # without an account it can still be advanced manually, like a single payment
        return force
    free = ledger.available(debtor)
    waiting = [index for index, entry in enumerate(payment["entries"]) if entry["status"] == OPEN]
    chosen: list[Part] = []
    for index in waiting:
        entry = payment["entries"][index]
        if force or settlement.cost(entry) <= free:
            chosen.append(Part(item(payment, index), entry))
            free -= settlement.cost(entry)
    if not chosen or (whole and len(chosen) < len(waiting)):
        return False
    for part in chosen:
        part.state["status"] = HELD
    settlement.reserve(bank, payment, debtor, chosen, at, held=_held(payment))
    return True


def settle(bank: Bank, payment: Payment, at: str) -> None:
    """Book every funded entry, separately or as a batch, all fees as one, and each creditor in this bank."""
    chosen = _held(payment)
    for part in chosen:
        part.state["status"] = PAID
    settlement.settle(bank, payment, at, chosen)


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
