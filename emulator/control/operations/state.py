"""`state`: all documents of the bank (CONTRACT 9.8)."""

from __future__ import annotations

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.control.operation import ControlCall, ControlOperation


def _state(call: ControlCall) -> Response:
    return json_response(200, call.bank.documents.dump())


OPERATIONS = (
    ControlOperation(
        id="getState",
        method="GET",
        path="/state",
        summary="All documents of the bank.",
        handler=_state,
        answers={200: "The documents by kind."},
    ),
)
