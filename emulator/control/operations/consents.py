"""`consents`: list and revoke consents (CONTRACT 9.3)."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank.customers import consents
from emulator.control.answers import closed
from emulator.control.operation import LIMIT, AnswerSpec, ControlCall, ControlOperation


@closed
class Consent(consents.ConsentView):
    """The accounts and cards that a customer shares with a TPP."""


@closed
class Consents(TypedDict):
    """Consents, newest first."""

    consents: list[Consent]


def _list(call: ControlCall[Any]) -> Response:
    return json_response(200, {"consents": consents.listing(call.bank, call.query["limit"])})


def _revoke(call: ControlCall[Any]) -> Response:
    return json_response(200, consents.view(call.bank, consents.revoke(call.bank, call.params["id"])))


OPERATIONS = (
    ControlOperation(
        id="listConsents",
        method="GET",
        path="/consents",
        summary="List consents, newest first.",
        handler=_list,
        answers={200: AnswerSpec("The consents.", Consents)},
        query=(LIMIT,),
    ),
    ControlOperation(
        id="revokeConsent",
        method="POST",
        path="/consents/{id}/revoke",
        summary="Revoke a consent, as the customer can do at the bank.",
        handler=_revoke,
        answers={200: AnswerSpec("The consent.", Consent), 404: AnswerSpec("There is no such consent.")},
    ),
)
