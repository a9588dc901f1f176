"""Payments, and the status notifications to TPPs."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from emulator.api.query import QueryParameter
from emulator.bank import notifications
from emulator.bank.documents import Amount, DeliveryAttempt, PayeeVerification, StatusChange
from emulator.bank.payment import payment_views, progression
from emulator.bank.scheme.transitions import STATUSES
from emulator.bank.validation import Model, Omittable, one_of
from emulator.control.operation import LIMIT, ControlCall, Json, operation
from emulator.control.operations import Closed, closed


class AdvancePayment(Model):
    """The status to advance to; omitted: the next one."""

    to: Omittable[Annotated[str, one_of("status", tuple(STATUSES))]] = None


for _shape in (Amount, StatusChange, PayeeVerification, DeliveryAttempt):
    closed(_shape)


class Payment(Closed):
    """A payment of any TPP."""

    paymentId: str
    service: str
    product: str
    tpp: str
    nationalId: NotRequired[str]
    context: NotRequired[str]
    agreement: NotRequired[str]
    transactionStatus: str
    fundsAvailable: NotRequired[bool]
    instructedAmount: Amount
    creditorName: NotRequired[str]
    debtorAccountId: str
    psuMessage: NotRequired[str]
    payeeVerification: NotRequired[PayeeVerification]
    basketId: NotRequired[str]
    created: str
    due: NotRequired[str]
    history: list[StatusChange]


@operation("GET", "/payments", {200: ("The payments.", {"payments": list[Payment]})}, query=(LIMIT,))
def list_payments(call: ControlCall[Any]) -> Json:
    """List payments, newest first."""
    return {"payments": payment_views.listing(call.bank, call.query["limit"])}


@operation(
    "POST",
    "/payments/{id}/advance",
    {
        200: ("The payment.", Payment),
        404: "There is no such payment.",
        409: "There is no transition to this status.",
    },
    body=AdvancePayment,
    example={"to": "ACSC"},
)
def advance_payment(call: ControlCall[AdvancePayment]) -> Json:
    """Advance a payment by one status, or to a given one; dates and missing money do not stop it."""
    payment = progression.advance(call.bank, call.params["id"], call.body.to)
    return payment_views.view(call.bank, payment)


TARGET = QueryParameter("target", "text", "Only the notifications of the payment, basket or consent with this id.")


class Notification(Closed):
    """A notification about a change of status; `place` is its number among those of its target."""

    id: str
    target: str
    tpp: str
    uri: str
    place: int
    state: Literal["waiting", "sending", "delivered", "failed", "dropped"]
    body: dict[str, str]
    created: str
    nextAttempt: str | None
    forged: bool
    traceparent: NotRequired[str]
    deliveries: list[DeliveryAttempt]


@operation(
    "GET", "/notifications", {200: ("The notifications.", {"notifications": list[Notification]})}, query=(TARGET, LIMIT)
)
def list_notifications(call: ControlCall[Any]) -> Json:
    """List status notifications with deliveries, newest first. The last 1000 completed ones are stored."""
    target, limit = call.query.get("target"), call.query["limit"]
    return {"notifications": notifications.listing(call.bank, target=target, limit=limit)}
