"""`notifications`: status notifications to TPPs, and the result of each attempt (CONTRACT 18)."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from emulator.api.messages import Response
from emulator.api.query import QueryParameter
from emulator.api.render import json_response
from emulator.bank import notifications
from emulator.control.answers import closed
from emulator.control.operation import LIMIT, AnswerSpec, ControlCall, ControlOperation

TARGET = QueryParameter("target", "text", "Only the notifications of the payment, basket or consent with this id.")


@closed
class NotificationDelivery(TypedDict):
    """An attempt: the HTTP status of the answer, or why there was none."""

    at: str
    status: NotRequired[int]
    error: NotRequired[str]


@closed
class Notification(TypedDict):
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
    deliveries: list[NotificationDelivery]


@closed
class Notifications(TypedDict):
    """Notifications, newest first."""

    notifications: list[Notification]


def _list(call: ControlCall[Any]) -> Response:
    target, limit = call.query.get("target"), call.query["limit"]
    return json_response(200, {"notifications": notifications.listing(call.bank, target=target, limit=limit)})


OPERATIONS = (
    ControlOperation(
        id="listNotifications",
        method="GET",
        path="/notifications",
        summary="List status notifications with deliveries, newest first. The last 1000 completed ones are stored.",
        handler=_list,
        answers={200: AnswerSpec("The notifications.", Notifications)},
        query=(TARGET, LIMIT),
    ),
)
