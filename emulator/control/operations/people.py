"""`people`: everybody whom the bank knows, for tests and tools (CONTRACT 13)."""

from __future__ import annotations

from typing import Any

from emulator.api.messages import Response
from emulator.api.query import Parameter
from emulator.api.render import json_response
from emulator.bank.customers import people
from emulator.control import answers
from emulator.control.operation import Answer, ControlCall, ControlOperation

MOST = 1_000_000  # a story looks for the owner of an account among all of them


def _people(call: ControlCall[Any]) -> Response:
    return json_response(200, {"people": people.listing(call.bank, call.query["limit"])})


OPERATIONS = (
    ControlOperation(
        id="listPeople",
        method="GET",
        path="/people",
        summary="The persons of the bank with national identity number, accounts and agreements, newest first.",
        handler=_people,
        answers={200: Answer("The people.", answers.People)},
        query=(Parameter("limit", "int", "How many at most.", minimum=1, maximum=MOST, default=100),),
    ),
)
