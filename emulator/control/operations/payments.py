"""`payments`: all of the bank, and the next status by hand (CONTRACT 9.3)."""

from __future__ import annotations

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank.payment import payment_views, progression
from emulator.bank.scheme.transitions import STATUSES
from emulator.control.operation import LIMIT, ControlCall, ControlOperation, object_of


def _list(call: ControlCall) -> Response:
    return json_response(200, {"payments": payment_views.listing(call.bank, call.query["limit"])})


def _advance(call: ControlCall) -> Response:
    members = call.body.members(("to",))
    to = members["to"].one_of(STATUSES, "status") if "to" in members else None
    call.refuse_mistakes()
    payment = progression.advance(call.bank, call.params["id"], to)
    return json_response(200, payment_views.view(payment))


OPERATIONS = (
    ControlOperation(
        id="listPayments",
        method="GET",
        path="/payments",
        summary="All payments, newest first.",
        handler=_list,
        answers={200: "The payments."},
        query=(LIMIT,),
    ),
    ControlOperation(
        id="advancePayment",
        method="POST",
        path="/payments/{id}/advance",
        summary="Take the next step of a payment, or go to a status; dates and missing money are no hindrance.",
        handler=_advance,
        answers={200: "The payment.", 404: "There is no such payment.", 409: "No step leads there."},
        body=object_of(to={"enum": list(STATUSES)}),
        example={"to": "ACSC"},
    ),
)
