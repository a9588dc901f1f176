"""`notifications`: what TPPs were notified of, and how each attempt ended (CONTRACT 18)."""

from __future__ import annotations

from typing import Any

from emulator.api.messages import Response
from emulator.api.query import QueryParameter
from emulator.api.render import json_response
from emulator.bank import notifications
from emulator.control import answers
from emulator.control.operation import LIMIT, Answer, ControlCall, ControlOperation

TARGET = QueryParameter("target", "text", "The id of a payment, basket or consent: its notifications alone.")


def _list(call: ControlCall[Any]) -> Response:
    target, limit = call.query.get("target"), call.query["limit"]
    return json_response(200, {"notifications": notifications.listing(call.bank, target=target, limit=limit)})


OPERATIONS = (
    ControlOperation(
        id="listNotifications",
        method="GET",
        path="/notifications",
        summary="Status notifications with their deliveries, newest first; the last 1000 that are over are stored.",
        handler=_list,
        answers={200: Answer("The notifications.", answers.Notifications)},
        query=(TARGET, LIMIT),
    ),
)
