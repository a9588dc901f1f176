"""`sca`: the customer's authentication without a browser (CONTRACT 9.3)."""

from __future__ import annotations

from collections.abc import Callable

from emulator.api.messages import Response
from emulator.api.render import STATUS, json_response
from emulator.bank.authentication import sca, sca_control, sca_ends, sca_views
from emulator.bank.documents import Sca
from emulator.control.choices import WHO, WHO_SCHEMA, chosen_person
from emulator.control.operation import LIMIT, TEXT, ControlCall, ControlOperation, object_of


def _list(call: ControlCall) -> Response:
    return json_response(200, {"sca": sca_views.listing(call.bank, call.query["limit"])})


def _show(call: ControlCall) -> Response:
    return json_response(200, sca_views.view(call.bank, sca_control.find(call.bank, call.params["id"])))


def _ended(call: ControlCall, end: Callable[[Sca], str | None]) -> Response:
    """Do something with an open SCA, all or nothing; where the browser would go."""
    call.refuse_mistakes()
    with call.bank.documents.transaction():
        redirect = end(sca_control.find(call.bank, call.params["id"]))
    return json_response(200, {"redirect": redirect})


def _approve(call: ControlCall) -> Response:
    members = call.body.members((*WHO, "method"))
    who = chosen_person(members)
    method = members["method"].one_of(sca.METHODS, "method") if "method" in members else None
    return _ended(
        call,
        lambda found: sca_control.approve(
            call.bank,
            found,
            national_id=who.national_id,
            method=method,
            context=who.context,
            agreement=who.agreement,
            accounts=who.accounts,
        ),
    )


def _reject(call: ControlCall) -> Response:
    return _ended(call, lambda found: sca_control.reject(call.bank, found))


def _expire(call: ControlCall) -> Response:
    return _ended(call, lambda found: sca_control.end(call.bank, found, sca_ends.EXPIRED))


def _fail(call: ControlCall) -> Response:
    members = call.body.members(("status", "code", "message", "system"))
    status = members["status"].whole(400, 599) if "status" in members else None
    code = members["code"].one_of(STATUS, "code") if "code" in members else None
    message = members["message"].text(longest=512) if "message" in members else None
    system = members["system"].text(longest=100) if "system" in members else None
    failure = sca_ends.failure(status, code, message, system)
    return _ended(call, lambda found: sca_control.end(call.bank, found, failure))


_ENDED = {200: "Where the browser would go.", 404: "There is no such SCA.", 409: "The SCA has ended already."}

OPERATIONS = (
    ControlOperation(
        id="listSca",
        method="GET",
        path="/sca",
        summary="Open and past authentications, newest first.",
        handler=_list,
        answers={200: "The authentications."},
        query=(LIMIT,),
    ),
    ControlOperation(
        id="getSca",
        method="GET",
        path="/sca/{id}",
        summary="One authentication: by the last part of its scaRedirect, the id of what it is about, or latest.",
        handler=_show,
        answers={200: "The authentication.", 404: "There is no such SCA."},
    ),
    ControlOperation(
        id="approveSca",
        method="POST",
        path="/sca/{id}/approve",
        summary="The customer goes through all steps and approves; what is left out is chosen for it.",
        handler=_approve,
        answers=_ENDED,
        body=object_of(**WHO_SCHEMA, method={"enum": list(sca.METHODS)}),
        example={"nationalId": "14888520059"},
    ),
    ControlOperation(
        id="rejectSca",
        method="POST",
        path="/sca/{id}/reject",
        summary="The customer declines.",
        handler=_reject,
        answers=_ENDED,
    ),
    ControlOperation(
        id="expireSca",
        method="POST",
        path="/sca/{id}/expire",
        summary="The customer is too late.",
        handler=_expire,
        answers=_ENDED,
    ),
    ControlOperation(
        id="failSca",
        method="POST",
        path="/sca/{id}/fail",
        summary="A system of the bank fails during the authentication.",
        handler=_fail,
        answers=_ENDED,
        body=object_of(
            status={"type": "integer", "minimum": 400, "maximum": 599},
            code={"enum": list(STATUS)},
            message=TEXT,
            system=TEXT,
        ),
        example={"status": 500, "code": "SYSTEM_ERROR", "message": "Try again later.", "system": "core"},
    ),
)
