"""Customers: the persons of the bank, what they see and do there, sessions and consents."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NotRequired

from pydantic import Field

from emulator.api.certificates import identity
from emulator.api.query import QueryParameter
from emulator.bank.customers import consents, people, sessions
from emulator.bank.customers.consents import OwnConsent, Read
from emulator.bank.errors import BankError
from emulator.bank.payment import self_service
from emulator.bank.payment.payment_views import ApprovalItem
from emulator.bank.payment.self_service import Decision, OwnAccount, OwnContext, OwnPayment, PersonOverview
from emulator.bank.problems import unknown
from emulator.bank.validation import Model, Omittable, Text200, Text512
from emulator.control.operation import LIMIT, Answers, ControlCall, Json, operation
from emulator.control.operations import Closed, Who, closed

# anything else may be a tppId: an organizationIdentifier, whatever its form, or the subject of a certificate
_NAME = re.compile(r"[a-z][a-z0-9 ._-]*")
MOST = 1_000_000  # a story searches all of them for the owner of an account


class Which(Model):
    """`cancels`: decide about the cancellation of the payment, not about the payment."""

    cancels: Omittable[bool] = None


class PersonAccount(Closed):
    """An account that a person may act on."""

    id: str
    iban: str
    bban: str
    currency: str
    name: str


class PersonAgreement(Closed):
    """An agreement under which a person acts."""

    psuCorporateId: str
    name: str
    organisationNumber: str | None


class PersonSummary(Closed):
    """A person of the bank."""

    nationalId: str
    name: str
    accounts: list[PersonAccount]
    agreements: list[PersonAgreement]


# What a person sees and does is the same here and on the page /my.
for _shape in (ApprovalItem, OwnAccount, OwnContext, OwnPayment, Read, OwnConsent, PersonOverview, Decision):
    closed(_shape)


@operation(
    "GET",
    "/people",
    {200: ("The people.", {"people": list[PersonSummary]})},
    query=(QueryParameter("limit", "int", "At most that many.", minimum=1, maximum=MOST, default=100),),
)
def list_people(call: ControlCall[Any]) -> Json:
    """List the persons of the bank, newest first, with national identity number, accounts and agreements."""
    return {"people": people.listing(call.bank, call.query["limit"])}


@operation(
    "GET", "/people/{nationalId}", {200: ("The person.", PersonOverview), 404: "The bank does not know this person."}
)
def get_person(call: ControlCall[Any]) -> Json:
    """Get what a person sees on the page /my: accounts, payments that wait, consents with their use."""
    return self_service.overview(call.bank, call.params["nationalId"])


_DECISION: Answers = {
    200: ("The status of the payment.", Decision),
    401: "This person may not sign the payment.",
    404: "There is no such payment.",
    409: "The payment does not wait for approval by this person.",
}


def _decided(call: ControlCall[Which], decide: Callable[..., Decision]) -> Json:
    cancels = bool(call.body.cancels)
    return decide(call.bank, call.params["nationalId"], call.params["id"], cancels=cancels)


@operation("POST", "/people/{nationalId}/payments/{id}/approve", _DECISION, body=Which, example={"cancels": False})
def approve_own_payment(call: ControlCall[Which]) -> Json:
    """Approve a payment that waits, as the person can do at the bank, without the link of the TPP."""
    return _decided(call, self_service.approve)


@operation("POST", "/people/{nationalId}/payments/{id}/decline", _DECISION, body=Which, example={"cancels": False})
def decline_own_payment(call: ControlCall[Which]) -> Json:
    """Decline a payment that waits, as the person can do at the bank."""
    return _decided(call, self_service.decline)


class Seed(Who):
    """The customer and the TPP of the session."""

    tpp: Text512 = Field(description="tppId, or the name of an issued TPP.")
    national_id: Text200


@operation(
    "POST",
    "/sessions",
    {200: ("The session.", {"psuId": str, "tppSessionId": str, "context": str, "psuCorporateId": NotRequired[str]})},
    body=Seed,
    example={"tpp": "demo", "nationalId": "14888520059"},
)
def seed_session(call: ControlCall[Seed]) -> Json:
    """Create a session and a consent without an SCA; accounts omitted: all accounts."""
    tpp_id, tpp_name = _tpp_named(call, call.body.tpp)
    who = call.body.model_dump(exclude={"tpp"})
    with call.bank.documents.transaction():
        return sessions.seed(call.bank, tpp_id=tpp_id, tpp_name=tpp_name, **who)


def _tpp_named(call: ControlCall[Seed], named: str) -> tuple[str, str | None]:
    """The tppId of an issued TPP with its name, or as it stands that of a TPP with its own certificate; FORMAT_ERROR.

    The bank learns of such a certificate with its first request only: what is not written as a name is taken.
    """
    credentials = call.authority.find(named)
    if credentials is not None:
        tpp = identity(credentials.certificate)
        return tpp.id, tpp.name
    if _NAME.fullmatch(named):
        issued = call.authority.tpps()
        if named not in {identity(tpp.certificate).id for tpp in issued}:
            text = unknown(named, [tpp.name for tpp in issued], "No TPP was issued with the name")
            remedy = "A TPP with its own certificate is named by its tppId, such as PSDNO-FSA-123456 or CN=shop,C=NO."
            raise BankError("FORMAT_ERROR", f"{text} {remedy}", "tpp")
    return named, None


class Consent(consents.ConsentView):
    """The accounts and cards that a customer shares with a TPP."""


@operation("GET", "/consents", {200: ("The consents.", {"consents": list[Consent]})}, query=(LIMIT,))
def list_consents(call: ControlCall[Any]) -> Json:
    """List consents, newest first."""
    return {"consents": consents.listing(call.bank, call.query["limit"])}


@operation("POST", "/consents/{id}/revoke", {200: ("The consent.", Consent), 404: "There is no such consent."})
def revoke_consent(call: ControlCall[Any]) -> Json:
    """Revoke a consent, as the customer can do at the bank."""
    return consents.view(call.bank, consents.revoke(call.bank, call.params["id"]))
