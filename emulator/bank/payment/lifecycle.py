"""Changes the status of a payment, with its history, money, messages and events, and its basket's.

It does not check whether the change is allowed: `progression` follows the flow, but scripts and tests need not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from emulator.bank import notifications, settlement
from emulator.bank.bank import Bank
from emulator.bank.clock import moment, stamp
from emulator.bank.documents import Basket, Payment, PsuMessage
from emulator.bank.kinds import BASKET, PAYMENT
from emulator.bank.payment import flows
from emulator.bank.scheme.transitions import FINAL, UNSIGNED, BasketTransactionStatus

_UNTIL_FINAL = ("due", "progress", "sca", "executeAt", "giveUpAt", "polls")
REASONS: Mapping[str, PsuMessage] = {"RJCT": "rejected", "ACWC": "changed"}


def change(bank: Bank, payment: Payment, status: str, at: datetime, *, reasons: Sequence[PsuMessage] = ()) -> None:
    """Set the payment's status at a moment, with all consequences; the caller stores the document.

    `reasons`: the messages to the customer, for ACWC and RJCT. Does nothing if the payment has this
    status already.
    """
    if status == payment["status"]:
        return
    when, before = stamp(at), payment["status"]
    _move_money(bank, payment, status, when)
    payment["status"] = status
    payment["history"].append({"status": status, "at": when})
    payment.pop("psuMessages", None)
    if status in REASONS:
        payment["psuMessages"] = [*reasons] or [REASONS[status]]
    if status in FINAL:
        for name in _UNTIL_FINAL:
            cast(dict[str, Any], payment).pop(name, None)
    bank.publish({"type": "payment", "id": payment["id"], "status": status, "at": when})
    notifies = bank.settings.notifications
    if notifies:
        notifications.status_changed(bank, payment["id"], status)
    if (bank.watchers or notifies) and "basketId" in payment:
        _publish_basket(bank, payment, before, when)


def _move_money(bank: Bank, payment: Payment, status: str, at: str) -> None:
    flow = flows.of(payment)
    if status == "ACCP":
        settlement.release(bank, payment, at)
        payment["fundsAvailable"] = False
        payment["giveUpAt"] = stamp(flow.give_up_at(bank, payment, moment(at)))
    elif status in ("RJCT", "CANC"):
        settlement.release(bank, payment, at)
        settlement.close_open(payment, status)
    elif status in ("ACSP", "ACWP"):
        flow.executing(bank, payment, at)
    elif status == "ACSC":
        flow.book(bank, payment, at)
    elif status == "PART":
        flow.part(bank, payment, at)


def without_account(bank: Bank, payment: Payment, at: str) -> None:
    """The debtor's account is deleted: book a payment in execution; release the reservation of a waiting one."""
    if payment["status"] in ("ACSP", "ACWP"):
        settlement.settle(bank, payment, at)
    else:
        settlement.release(bank, payment, at)


# The statuses of a basket, worst first; a status of a payment that is not in the table counts as ACTC.
WORST_FIRST: tuple[BasketTransactionStatus, ...] = ("RJCT", "RCVD", "PATC", "ACTC")
COUNTS_AS: Mapping[str, BasketTransactionStatus] = {
    "CANC": "RJCT",
    "RJCT": "RJCT",
    "PART": "PATC",
    "PATC": "PATC",
    "RCVD": "RCVD",
}


def basket_status(statuses: Iterable[str]) -> BasketTransactionStatus:
    """The worst of the payments' statuses: RJCT, RCVD, PATC or ACTC; RJCT without payments, after a repair."""
    counted = {COUNTS_AS.get(status, "ACTC") for status in statuses}
    return next((status for status in WORST_FIRST if status in counted), "RJCT")


def basket_members(bank: Bank, basket: Basket) -> list[Payment]:
    """The payments of a basket, in its order."""
    payments = (bank.documents.get(PAYMENT, payment_id) for payment_id in basket["payments"])
    return [payment for payment in payments if payment is not None]


def basket_state(bank: Bank, basket: Basket) -> tuple[BasketTransactionStatus, bool]:
    """The basket's status, the worst of its payments, and whether one of them lacks a signature."""
    statuses = [payment["status"] for payment in basket_members(bank, basket)]
    return basket_status(statuses), any(status in UNSIGNED for status in statuses)


def _publish_basket(bank: Bank, payment: Payment, before: str, at: str) -> None:
    """Publish the basket's new status if the payment's change from `before` has changed it."""
    basket = bank.documents.get(BASKET, payment["basketId"])
    if basket is None:
        return
    others = [other["status"] for other in basket_members(bank, basket) if other["id"] != payment["id"]]
    status = basket_status([*others, payment["status"]])
    if status != basket_status([*others, before]):
        bank.publish({"type": "basket", "id": basket["id"], "status": status, "at": at})
        if bank.settings.notifications:
            notifications.status_changed(bank, basket["id"], status)
