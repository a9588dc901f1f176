"""The transactionStatus of a basket: the worst of its payments' statuses (CONTRACT 7)."""

from __future__ import annotations

from collections.abc import Iterable

from emulator.bank import notifications
from emulator.bank.bank import Bank
from emulator.bank.documents import Basket, Payment
from emulator.bank.kinds import BASKET, PAYMENT
from emulator.bank.scheme.transitions import UNSIGNED

# Worst first; a status of a payment that is not in the table counts as ACTC (CONTRACT 7).
WORST_FIRST = ("RJCT", "RCVD", "PATC", "ACTC")
COUNTS_AS = {"CANC": "RJCT", "RJCT": "RJCT", "PART": "PATC", "PATC": "PATC", "RCVD": "RCVD"}


def status_of(statuses: Iterable[str]) -> str:
    """The worst of the payments' statuses: RJCT, RCVD, PATC or ACTC; RJCT without payments, after a repair."""
    counted = {COUNTS_AS.get(status, "ACTC") for status in statuses}
    return next((status for status in WORST_FIRST if status in counted), "RJCT")


def members(bank: Bank, basket: Basket) -> list[Payment]:
    """The payments of a basket, in its order."""
    payments = (bank.documents.get(PAYMENT, payment_id) for payment_id in basket["payments"])
    return [payment for payment in payments if payment is not None]


def state(bank: Bank, basket: Basket) -> tuple[str, bool]:
    """The basket's status, the worst of its payments, and whether one of them lacks a signature."""
    statuses = [payment["status"] for payment in members(bank, basket)]
    return status_of(statuses), any(status in UNSIGNED for status in statuses)


def publish_change(bank: Bank, payment: Payment, before: str, at: str) -> None:
    """Publish the basket's new status if the payment's change from `before` has changed it."""
    basket = bank.documents.get(BASKET, payment["basketId"])
    if basket is None:
        return
    others = [other["status"] for other in members(bank, basket) if other["id"] != payment["id"]]
    status = status_of([*others, payment["status"]])
    if status != status_of([*others, before]):
        bank.publish({"type": "basket", "id": basket["id"], "status": status, "at": at})
        if bank.settings.notifications:
            notifications.status_changed(bank, basket["id"], status)
