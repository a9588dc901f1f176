"""Merchants with one bug each, which no check of `conformance run` finds: it needs a combination, or a rare moment."""

from __future__ import annotations

from typing import Any

from emulator.client.clients import Prepared, TppResponse
from tests.explore.merchant import DOMESTIC, GaveUp, Merchant, Order


class PaidTwiceWhenTheRepetitionIsLost(Merchant):
    """Orders again when the answer to a status, and the answer to its repetition, are lost."""

    def look_at(self, order: Order) -> bool:
        for _ in range(2):
            answer = self.send(self.prepare("GET", order["status"], headers=self.payer()))
            if answer is not None:
                usable = answer.status == 200 and self.usable(answer, ("transactionStatus", str))
                return self.noted(order, answer) if usable else super().look_at(order)
        order |= {"identity": self.request_id(), "payment": None, "signed": False}
        order.pop("flow", None)
        self.send_order(order, DOMESTIC)
        if order["payment"]:
            self.sign(order, order["sca"])
        return not order["payment"]


class ForgottenWhenKilled(Merchant):
    """Stores an order when its payment is final: killed before, it orders again."""

    def place(self, name: str, path: str, body: dict[str, Any]) -> Order:
        self.orders.pop(name, None)
        return super().place(name, path, body)


class AccpIsPaid(Merchant):
    """Takes ACCP for paid."""

    def note(self, order: Order, status: str) -> None:
        super().note(order, status)
        if status == "ACCP":
            order |= {"state": "paid", "final": True}


class PatcIsPaid(Merchant):
    """Takes the first of two signatures for both."""

    def note(self, order: Order, status: str) -> None:
        super().note(order, status)
        if status == "PATC":
            order |= {"state": "paid", "final": True}


class BasketIsWhole(Merchant):
    """Follows one payment of a basket, and believes that the others went the same way."""

    def basket(self, number: int) -> None:
        super().basket(number)
        first, *others = [self.orders[f"{number}-{part}"] for part in range(2) if f"{number}-{part}" in self.orders]
        for order in others:
            if order["payment"] and first["payment"]:
                order |= {"state": first["state"], "final": first["final"]}


class CountsTwiceAcrossAMovedBorder(Merchant):
    """Keeps its items by page: what was on another page at an earlier reading is counted again."""

    def read_pages(self, link: str, listed: dict[str, Any]) -> int:
        self.page = 0
        return super().read_pages(link, listed)

    def record(self, known: dict[str, Any], booked: list[dict[str, Any]]) -> None:
        if self.page == 0 or not any(self.likeness(entry) in known for entry in booked):
            self.page += 1
        items = self.disk.setdefault("items", {})
        items.update({f"{self.page} {self.likeness(entry)}": None for entry in booked})
        super().record(known, booked)

    def counted(self, listed: dict[str, Any]) -> int:
        return sum(name.partition(" ")[2] in listed for name in self.disk["items"])


class BasketForgottenAtRenewal(Merchant):
    """When the session is renewed in the middle of a basket, it takes the payments before that for signed."""

    def renewed(self, placed: list[Order]) -> None:
        super().renewed(placed)
        for order in placed:
            if order["payment"]:
                order |= {"state": "paid", "final": True}


class OldNotification(Merchant):
    """Takes a notification that a payment is on its way for news, though it has read how it ended."""

    def notified(self, body: dict[str, Any]) -> None:
        for order in self.orders.values():
            if order["payment"] == body.get("paymentId") and body.get("transactionStatus") in ("ACTC", "ACSP", "PDNG"):
                order["state"] = "open"


class PartOfTheListIsTheList(Merchant):
    """Takes a refusal in the middle of the pages for the end of the list."""

    def broken_off(self, known: dict[str, Any], listed: dict[str, Any]) -> None:
        if listed:
            known["transactions"] = len(listed)


class AcwcIsRefused(Merchant):
    """Takes accepted with a change for refused."""

    def note(self, order: Order, status: str) -> None:
        super().note(order, status)
        if status == "ACWC":
            order |= {"state": "failed", "final": True}


class NextMonthIsNotBooked(Merchant):
    """Leaves out what is booked next month, by the month in UTC: in Oslo it has begun an hour or two before."""

    def counted(self, listed: dict[str, Any]) -> int:
        month = self.today[:7]
        return sum(not month or entry["bookingDate"][:7] <= month for entry in listed.values())


class MaintenanceIsFailure(Merchant):
    """Takes 503 with Retry-After, on the first read after the customer's return, for a failed payment."""

    def look_at(self, order: Order) -> bool:
        if not order.get("looked"):
            order["looked"] = True
            answer = self.send(self.prepare("GET", order["status"], headers=self.payer()))
            if answer is not None and answer.status == 503 and "Retry-After" in answer.headers:
                order |= {"state": "failed", "final": True}
                return True
        return super().look_at(order)


class ThrottledIsFailure(Merchant):
    """Takes 429 on a status for a failed payment."""

    def look_at(self, order: Order) -> bool:
        answer = self.send(self.prepare("GET", order["status"], headers=self.payer()))
        if answer is not None and answer.status == 429:
            order |= {"state": "failed", "final": True}
            return True
        usable = answer is not None and answer.status == 200 and self.usable(answer, ("transactionStatus", str))
        return self.noted(order, answer) if usable and answer is not None else super().look_at(order)


class CrashesAtHalfAnAnswer(Merchant):
    """Reads a status without looking whether it is JSON."""

    def usable(self, answer: TppResponse, wants: tuple[str, type] | None) -> bool:
        if wants is not None and wants[0] == "transactionStatus" and answer.status == 200:
            answer.json()
        return super().usable(answer, wants)


class TiredIsFailed(Merchant):
    """Gives a payment up that the customer has not approved after a while: a late customer pays all the same."""

    def note(self, order: Order, status: str) -> None:
        super().note(order, status)
        if order["unapproved"] >= 2:
            order |= {"state": "failed", "final": True}


class CancelledByAsking(Merchant):
    """Believes that a payment is cancelled when the customer was asked to cancel it."""

    def withdraw(self, order: Order, deleted: TppResponse) -> None:
        super().withdraw(order, deleted)
        order |= {"state": "failed", "final": True}

    def follow_order(self, order: Order) -> None:
        if not order["final"]:
            super().follow_order(order)


class OrdersAfterADecline(Merchant):
    """Takes a declined payment for an accident, and orders it again."""

    def follow_order(self, order: Order) -> None:
        super().follow_order(order)
        if order["state"] == "failed" and not order.get("again") and "psu-id" not in str(self.flows[order["flow"]]):
            order |= {"again": True, "identity": self.request_id(), "payment": None, "signed": False, "final": False}
            order.pop("flow", None)
            self.send_order(order, DOMESTIC)
            if order["payment"]:
                self.sign(order, order["sca"])
                self.follow_order(order)


class NeverTakesForbidden(Merchant):
    """Changes and repeats an order that is forbidden, without end."""

    def turned_down(self, order: Order, answer: TppResponse) -> None:
        number = 0
        while answer.status == 403:
            number += 1
            body = {**order["body"], "remittanceInformationUnstructured": f"try {number}"}
            answer = self.ask("POST", DOMESTIC, json=body, headers=self.payer())
        super().turned_down(order, answer)


class GivesUpOnTheBank(Merchant):
    """After three lost answers in sequence it takes the payment for failed, and never asks again."""

    lost = 0

    def send(self, prepared: Prepared) -> TppResponse | None:
        answer = super().send(prepared)
        self.lost = self.lost + 1 if answer is None else 0
        if self.lost == 3 and prepared.method == "GET":
            raise GaveUp
        return answer

    def look_at(self, order: Order) -> bool:
        try:
            return super().look_at(order)
        except GaveUp:
            order |= {"state": "failed", "final": True}
            return True


# By name: the merchant, and what its failure may be called
PLANTED: dict[str, tuple[type[Merchant], tuple[str, ...]]] = {
    "paid-twice-when-the-repetition-is-lost": (PaidTwiceWhenTheRepetitionIsLost, ("paid-twice", "forgotten")),
    "forgotten-when-killed": (ForgottenWhenKilled, ("paid-twice", "forgotten")),
    "accp-is-paid": (AccpIsPaid, ("believed-paid",)),
    "patc-is-paid": (PatcIsPaid, ("believed-paid",)),
    "basket-is-whole": (BasketIsWhole, ("believed-paid", "believed-failed")),
    "counts-twice-across-a-moved-border": (CountsTwiceAcrossAMovedBorder, ("wrong-transactions",)),
    "basket-forgotten-at-renewal": (BasketForgottenAtRenewal, ("believed-paid",)),
    "old-notification": (OldNotification, ("believed-open",)),
    "part-of-the-list-is-the-list": (PartOfTheListIsTheList, ("wrong-transactions",)),
    "acwc-is-refused": (AcwcIsRefused, ("believed-failed",)),
    "next-month-is-not-booked": (NextMonthIsNotBooked, ("wrong-transactions",)),
    "maintenance-is-failure": (MaintenanceIsFailure, ("believed-failed",)),
    "throttled-is-failure": (ThrottledIsFailure, ("believed-failed",)),
    "crashes-at-half-an-answer": (CrashesAtHalfAnAnswer, ("crash",)),
    "tired-is-failed": (TiredIsFailed, ("believed-failed",)),
    "cancelled-by-asking": (CancelledByAsking, ("believed-failed",)),
    "orders-after-a-decline": (OrdersAfterADecline, ("paid-after-decline", "paid-twice")),
    "never-takes-forbidden": (NeverTakesForbidden, ("endless",)),
    "gives-up-on-the-bank": (GivesUpOnTheBank, ("believed-failed",)),
}
