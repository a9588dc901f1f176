"""The one place that changes a payment's status: history, money, messages and the events (CONTRACT 6).

Nobody here asks whether the change is allowed: progression follows the table, a script or a hand on purpose may not.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from emulator.bank import products
from emulator.bank.bank import Bank
from emulator.bank.booking import bulk, settlement
from emulator.bank.clock import moment, stamp
from emulator.bank.documents import Payment
from emulator.bank.payment import basket_status
from emulator.bank.payment.psu_messages import CHANGED, REJECTED
from emulator.bank.scheme import execution
from emulator.bank.scheme.transitions import BATCH, FINAL, INSTANT, STANDING

A_SECOND = timedelta(seconds=1)  # that time takes from the due moment to the execution
_UNTIL_FINAL: tuple[Literal["due", "progress", "sca", "executeAt", "giveUpAt", "polls"], ...] = (
    "due",
    "progress",
    "sca",
    "executeAt",
    "giveUpAt",
    "polls",
)
REASONS = {"RJCT": REJECTED, "ACWC": CHANGED}


def change(bank: Bank, payment: Payment, status: str, at: datetime, *, reason: str | None = None) -> None:
    """Give the payment a status at a moment, with all that follows from it; the caller puts the document.

    `reason`: the psuMessage of ACWC and RJCT (CONTRACT 13). A script may name the status that the payment has.
    """
    if status == payment["status"]:
        return
    when, before = stamp(at), payment["status"]
    _move_money(bank, payment, status, when)
    payment["status"] = status
    payment["history"].append({"status": status, "at": when})
    payment.pop("psuMessage", None)
    if status in REASONS:
        payment["psuMessage"] = reason or REASONS[status]
    if status in FINAL:
        for name in _UNTIL_FINAL:
            payment.pop(name, None)
    bank.publish({"type": "payment", "id": payment["id"], "status": status, "at": when})
    if bank.watchers and "basketId" in payment:
        basket_status.tell_change(bank, payment, before, when)


def _move_money(bank: Bank, payment: Payment, status: str, at: str) -> None:
    flow = products.of(payment).flow
    if status == "ACCP":
        settlement.let_go(bank, payment, at)
        payment["fundsAvailable"] = False
        payment["giveUpAt"] = stamp(_give_up_at(bank, payment, moment(at)))
    elif status in ("RJCT", "CANC"):
        settlement.let_go(bank, payment, at)
        if flow == BATCH:
            bulk.close_open(payment, status)
    elif flow == STANDING:
        return
    elif status in ("ACSP", "ACWP"):
        settlement.hold(bank, payment, at, force=True)
        if bulk.has_open(payment):
            payment.setdefault("giveUpAt", stamp(_give_up_at(bank, payment, moment(at))))
    elif status == "ACSC":
        _book(bank, payment, at)
    elif flow == BATCH and status == "PART":
        bulk.part(bank, payment, at)
    elif status == "PART":  # only a script says this of a single payment: nothing of it is booked (assumed)
        settlement.let_go(bank, payment, at)


def _book(bank: Bank, payment: Payment, at: str) -> None:
    settlement.hold(bank, payment, at, force=True)
    if products.of(payment).flow == BATCH:
        bulk.finish(bank, payment, at)
    else:
        settlement.settle(bank, payment, at)
    payment["fundsAvailable"] = True


def _give_up_at(bank: Bank, payment: Payment, at: datetime) -> datetime:
    """When what lacks money is rejected, a payment or entries of a bulk: 10 minutes for straks, else 3 banking days."""
    # CONTRACT 6. Counted from the moment the execution was due, a second before the money was found missing; where
    # reads or a hand bring the steps, any time may lie between.
    due = moment(payment["executeAt"])
    first = due if due <= at <= due + A_SECOND else at
    if products.of(payment).flow == INSTANT:
        return first + execution.INSTANT_PATIENCE
    return execution.last_run(bank, payment, first)
