"""`people`: everybody whom the bank knows, for tests and tools (CONTRACT 13)."""

from __future__ import annotations

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank import people
from emulator.control.operation import ControlCall, ControlOperation


def _people(call: ControlCall) -> Response:
    return json_response(200, {"people": people.listing(call.bank)})


OPERATIONS = (
    ControlOperation(
        id="listPeople",
        method="GET",
        path="/people",
        summary="Every person of the bank with national identity number, accounts and agreements.",
        handler=_people,
        answers={200: "The people."},
    ),
)
