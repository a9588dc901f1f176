"""`state`: all documents of the bank (CONTRACT 9.8)."""

from __future__ import annotations

from typing import Any

from emulator.api.messages import BodyParts, Response
from emulator.api.render import json_response
from emulator.control.answers import AnyObject
from emulator.control.operation import AnswerSpec, ControlCall, ControlOperation


def _state(call: ControlCall[Any]) -> Response:
    answer = json_response(200, b"")
    answer.parts = BodyParts(*call.bank.documents.json())
    return answer


OPERATIONS = (
    ControlOperation(
        id="getState",
        method="GET",
        path="/state",
        summary="Get all documents of the bank.",
        handler=_state,
        answers={200: AnswerSpec("The documents by kind.", AnyObject)},
    ),
)
