"""`notifications`: status notifications to TPPs, and the result of each attempt (CONTRACT 18)."""

from __future__ import annotations

from typing import Any

from emulator.api.messages import Response
from emulator.api.query import QueryParameter
from emulator.api.render import json_response
from emulator.bank import notifications
from emulator.control import answers
from emulator.control.operation import LIMIT, AnswerSpec, ControlCall, ControlOperation

TARGET = QueryParameter("target", "text", "Only the notifications of the payment, basket or consent with this id.")


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
        answers={200: AnswerSpec("The notifications.", answers.Notifications)},
        query=(TARGET, LIMIT),
    ),
)
