"""`sca`: complete an SCA without a browser (control.md#sca-by-hand)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NotRequired

from pydantic import Field

from emulator.bank.authentication import sca, sca_control
from emulator.bank.documents import Sca as ScaDocument
from emulator.bank.errors import STATUS
from emulator.bank.validation import Model, Omittable, Text100, Text200, Text512, one_of
from emulator.control.operation import LIMIT, Answers, ControlCall, Json, operation
from emulator.control.operations import Closed, Who


class Approve(Who):
    """Who approves, and how; omitted members get a default."""

    national_id: Omittable[Text200] = None
    method: Omittable[Annotated[str, one_of("method", sca.METHODS)]] = None


class Fail(Model):
    """The server error that is reported to the TPP."""

    status: Omittable[Annotated[int, Field(ge=400, le=599)]] = None
    code: Omittable[Annotated[str, one_of("code", tuple(STATUS))]] = None
    message: Omittable[Text512] = None
    system: Omittable[Text100] = None


class Sca(Closed):
    """An authentication of a customer."""

    id: str
    purpose: str
    tpp: str
    target: NotRequired[str]
    status: str
    step: NotRequired[str]
    nationalId: NotRequired[str]
    redirectUri: str
    redirect: NotRequired[str]
    created: str
    expires: str
    ended: NotRequired[str]


class Redirect(Closed):
    """The address that the browser would go to; null for none."""

    redirect: str | None


@operation("GET", "/sca", {200: ("The SCAs.", {"sca": list[Sca]})}, query=(LIMIT,))
def list_sca(call: ControlCall[Any]) -> Json:
    """List open and past SCAs, newest first."""
    return {"sca": sca_control.listing(call.bank, call.query["limit"])}


@operation("GET", "/sca/{id}", {200: ("The SCA.", Sca), 404: "There is no such SCA."})
def get_sca(call: ControlCall[Any]) -> Json:
    """Get an SCA: by the last part of its scaRedirect, the id of its payment, basket or consent, or latest."""
    return sca_control.view(call.bank, sca_control.find(call.bank, call.params["id"]))


_ENDED: Answers = {
    200: ("Where the browser would go.", Redirect),
    404: "There is no such SCA.",
    409: "The SCA has already ended.",
}


def _ended(call: ControlCall[Any], end: Callable[[ScaDocument], str | None]) -> Json:
    """Complete an open SCA in one transaction; answers where the browser would go."""
    with call.bank.documents.transaction():
        redirect = end(sca_control.find(call.bank, call.params["id"]))
    return {"redirect": redirect}


@operation("POST", "/sca/{id}/approve", _ENDED, body=Approve, example={"nationalId": "14888520059"})
def approve_sca(call: ControlCall[Approve]) -> Json:
    """Go through all steps as the customer and approve; omitted members get a default."""
    return _ended(call, lambda opened: sca_control.approve(call.bank, opened, **dict(call.body)))


@operation("POST", "/sca/{id}/reject", _ENDED)
def reject_sca(call: ControlCall[Any]) -> Json:
    """Decline, as the customer."""
    return _ended(call, lambda opened: sca_control.reject(call.bank, opened))


@operation("POST", "/sca/{id}/expire", _ENDED)
def expire_sca(call: ControlCall[Any]) -> Json:
    """Let the time of the SCA run out."""
    return _ended(call, lambda opened: sca_control.end(call.bank, opened, sca.EXPIRED))


@operation(
    "POST",
    "/sca/{id}/fail",
    _ENDED,
    body=Fail,
    example={"status": 500, "code": "SYSTEM_ERROR", "message": "Try again later.", "system": "core"},
)
def fail_sca(call: ControlCall[Fail]) -> Json:
    """Let a system of the bank fail during the SCA."""
    failure = sca.failure_like(**dict(call.body))
    return _ended(call, lambda opened: sca_control.end(call.bank, opened, failure))
