"""`consents`: who shares what with whom, and taking it back (CONTRACT 9.3)."""

from __future__ import annotations

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank.customers import consents
from emulator.control.operation import LIMIT, ControlCall, ControlOperation


def _list(call: ControlCall) -> Response:
    return json_response(200, {"consents": consents.listing(call.bank, call.query["limit"])})


def _revoke(call: ControlCall) -> Response:
    return json_response(200, consents.view(call.bank, consents.revoke(call.bank, call.params["id"])))


OPERATIONS = (
    ControlOperation(
        id="listConsents",
        method="GET",
        path="/consents",
        summary="All consents, newest first.",
        handler=_list,
        answers={200: "The consents."},
        query=(LIMIT,),
    ),
    ControlOperation(
        id="revokeConsent",
        method="POST",
        path="/consents/{id}/revoke",
        summary="The customer takes a consent back at the bank.",
        handler=_revoke,
        answers={200: "The consent.", 404: "There is no such consent."},
    ),
)
