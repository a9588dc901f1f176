"""`payments`: list payments, and advance one through its statuses (CONTRACT 9.3)."""

from __future__ import annotations

from typing import Annotated, Any

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank.payment import payment_views, progression
from emulator.bank.scheme.transitions import STATUSES
from emulator.bank.validation import Maybe, Model, one_of
from emulator.control import answers
from emulator.control.operation import LIMIT, AnswerSpec, ControlCall, ControlOperation


class Advance(Model):
    """The status to advance to; omitted: the next one."""

    to: Maybe[Annotated[str, one_of("status", tuple(STATUSES))]] = None


def _list(call: ControlCall[Any]) -> Response:
    return json_response(200, {"payments": payment_views.listing(call.bank, call.query["limit"])})


def _advance(call: ControlCall[Advance]) -> Response:
    payment = progression.advance(call.bank, call.params["id"], call.body.to)
    return json_response(200, payment_views.view(call.bank, payment))


OPERATIONS = (
    ControlOperation(
        id="listPayments",
        method="GET",
        path="/payments",
        summary="List payments, newest first.",
        handler=_list,
        answers={200: AnswerSpec("The payments.", answers.Payments)},
        query=(LIMIT,),
    ),
    ControlOperation(
        id="advancePayment",
        method="POST",
        path="/payments/{id}/advance",
        summary="Advance a payment by one status, or to a given one; dates and missing money do not stop it.",
        handler=_advance,
        answers={
            200: AnswerSpec("The payment.", answers.Payment),
            404: AnswerSpec("There is no such payment."),
            409: AnswerSpec("There is no transition to this status."),
        },
        body=Advance,
        example={"to": "ACSC"},
    ),
)
