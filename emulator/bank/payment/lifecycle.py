"""Changes the status of a payment, with its history, money, messages and events (CONTRACT 6).

It does not check whether the change is allowed: `progression` follows the flow, but scripts and tests need not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from emulator.bank import notifications
from emulator.bank.bank import Bank
from emulator.bank.clock import moment, stamp
from emulator.bank.documents import Payment, PsuMessage
from emulator.bank.payment import basket_status, flows
from emulator.bank.scheme.transitions import FINAL

_UNTIL_FINAL: tuple[Literal["due", "progress", "sca", "executeAt", "giveUpAt", "polls"], ...] = (
    "due",
    "progress",
    "sca",
    "executeAt",
    "giveUpAt",
    "polls",
)
REASONS: Mapping[str, PsuMessage] = {"RJCT": "rejected", "ACWC": "changed"}


def change(bank: Bank, payment: Payment, status: str, at: datetime, *, reasons: Sequence[PsuMessage] = ()) -> None:
    """Set the payment's status at a moment, with all consequences; the caller stores the document.

    `reasons`: for ACWC and RJCT, what the customer is told (CONTRACT 13). Does nothing if the payment has this status
    already.
    """
    if status == payment["status"]:
        return
    when, before = stamp(at), payment["status"]
    _move_money(bank, payment, status, when)
    payment["status"] = status
    payment["history"].append({"status": status, "at": when})
    payment.pop("psuMessage", None)
    payment.pop("psuMessages", None)
    if status in REASONS:
        payment["psuMessages"] = [*reasons] or [REASONS[status]]
    if status in FINAL:
        for name in _UNTIL_FINAL:
            payment.pop(name, None)
    bank.publish({"type": "payment", "id": payment["id"], "status": status, "at": when})
    notifies = bank.settings.notifications
    if notifies:
        notifications.status_changed(bank, payment["id"], status)
    if (bank.is_watched or notifies) and "basketId" in payment:
        basket_status.publish_change(bank, payment, before, when)


def _move_money(bank: Bank, payment: Payment, status: str, at: str) -> None:
    flow = flows.of(payment)
    if status == "ACCP":
        flow.release(bank, payment, at)
        payment["fundsAvailable"] = False
        payment["giveUpAt"] = stamp(flow.give_up_at(bank, payment, moment(at)))
    elif status in ("RJCT", "CANC"):
        flow.release(bank, payment, at)
        flow.end(payment, status)
    elif status in ("ACSP", "ACWP"):
        flow.executing(bank, payment, at)
    elif status == "ACSC":
        flow.book(bank, payment, at)
    elif status == "PART":
        flow.part(bank, payment, at)


def without_account(bank: Bank, payment: Payment, at: str) -> None:
    """The debtor's account is deleted: book a payment in execution; release the reservation of a waiting one."""
    flow = flows.of(payment)
    if payment["status"] in ("ACSP", "ACWP"):
        flow.book_held(bank, payment, at)
    else:
        flow.release(bank, payment, at)
