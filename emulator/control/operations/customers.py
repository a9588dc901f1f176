"""Customers: the persons of the bank, what they see and do there, sessions and consents (CONTRACT 9.3, 13, 18)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from emulator.api.certificates import identity
from emulator.api.messages import Response
from emulator.api.query import QueryParameter
from emulator.api.render import json_response
from emulator.bank.customers import consents, people, sessions
from emulator.bank.customers.consents import OwnConsent, Read
from emulator.bank.payment import self_service
from emulator.bank.payment.self_service import Decision, OwnAccount, OwnContext, OwnPayment, PersonOverview
from emulator.bank.validation import Maybe, Model, Text200, Text512
from emulator.control.forms import Who, closed
from emulator.control.operation import LIMIT, AnswerSpec, ControlCall, ControlOperation

MOST = 1_000_000  # a story searches all of them for the owner of an account


class Which(Model):
    """`cancels`: decide about the cancellation of the payment, not about the payment."""

    cancels: Maybe[bool] = None


@closed
class PersonAccount(TypedDict):
    """An account that a person may act on."""

    id: str
    iban: str
    bban: str
    currency: str
    name: str


@closed
class PersonAgreement(TypedDict):
    """An agreement under which a person acts."""

    psuCorporateId: str
    name: str
    organisationNumber: str | None


@closed
class PersonSummary(TypedDict):
    """A person of the bank."""

    nationalId: str
    name: str
    accounts: list[PersonAccount]
    agreements: list[PersonAgreement]


@closed
class People(TypedDict):
    """Persons, newest first."""

    people: list[PersonSummary]


# What a person sees and does is the same here and on the page /my.
for _shape in (OwnAccount, OwnContext, OwnPayment, Read, OwnConsent, PersonOverview, Decision):
    closed(_shape)


def _list_people(call: ControlCall[Any]) -> Response:
    return json_response(200, {"people": people.listing(call.bank, call.query["limit"])})


def _person(call: ControlCall[Any]) -> Response:
    return json_response(200, self_service.overview(call.bank, call.params["nationalId"]))


def _decided(call: ControlCall[Which], decide: Callable[..., Decision]) -> Response:
    cancels = bool(call.body.cancels)
    decision = decide(call.bank, call.params["nationalId"], call.params["id"], cancels=cancels)
    return json_response(200, decision)


def _approve(call: ControlCall[Which]) -> Response:
    return _decided(call, self_service.approve)


def _decline(call: ControlCall[Which]) -> Response:
    return _decided(call, self_service.decline)


_DECISION = {
    200: AnswerSpec("The status of the payment.", Decision),
    401: AnswerSpec("This person may not sign the payment."),
    404: AnswerSpec("There is no such payment."),
    409: AnswerSpec("The payment does not wait for approval by this person."),
}


class Seed(Who):
    """The customer and the TPP of the session."""

    tpp: Text512 = Field(description="tppId, or the name of an issued TPP.")
    national_id: Text200


@closed
class Session(TypedDict):
    """A session with its consent."""

    psuId: str
    tppSessionId: str
    psuCorporateId: NotRequired[str]
    context: str


def _seed(call: ControlCall[Seed]) -> Response:
    who = call.body
    credentials = call.authority.find(who.tpp)
    tpp = identity(credentials.certificate) if credentials is not None else None
    with call.bank.documents.transaction():
        seeded = sessions.seed(
            call.bank,
            tpp_id=tpp.id if tpp is not None else who.tpp,  # a tppId too, of a TPP with its own certificate
            tpp_name=tpp.name if tpp is not None else None,
            national_id=who.national_id,
            context=who.context,
            agreement=who.agreement,
            accounts=who.accounts,
        )
    corporate = "psuCorporateId" in seeded
    return json_response(200, {**seeded, "context": "CORPORATE" if corporate else "PRIVATE"})


@closed
class Consent(consents.ConsentView):
    """The accounts and cards that a customer shares with a TPP."""


@closed
class Consents(TypedDict):
    """Consents, newest first."""

    consents: list[Consent]


def _list_consents(call: ControlCall[Any]) -> Response:
    return json_response(200, {"consents": consents.listing(call.bank, call.query["limit"])})


def _revoke_consent(call: ControlCall[Any]) -> Response:
    return json_response(200, consents.view(call.bank, consents.revoke(call.bank, call.params["id"])))


OPERATIONS = (
    ControlOperation(
        id="listPeople",
        method="GET",
        path="/people",
        summary="List the persons of the bank, newest first, with national identity number, accounts and agreements.",
        handler=_list_people,
        answers={200: AnswerSpec("The people.", People)},
        query=(QueryParameter("limit", "int", "At most that many.", minimum=1, maximum=MOST, default=100),),
    ),
    ControlOperation(
        id="getPerson",
        method="GET",
        path="/people/{nationalId}",
        summary="Get what a person sees on the page /my: accounts, payments that wait, consents with their use.",
        handler=_person,
        answers={
            200: AnswerSpec("The person.", PersonOverview),
            404: AnswerSpec("The bank does not know this person."),
        },
    ),
    ControlOperation(
        id="approveOwnPayment",
        method="POST",
        path="/people/{nationalId}/payments/{id}/approve",
        summary="Approve a payment that waits, as the person can do at the bank, without the link of the TPP.",
        handler=_approve,
        answers=_DECISION,
        body=Which,
        example={"cancels": False},
    ),
    ControlOperation(
        id="declineOwnPayment",
        method="POST",
        path="/people/{nationalId}/payments/{id}/decline",
        summary="Decline a payment that waits, as the person can do at the bank.",
        handler=_decline,
        answers=_DECISION,
        body=Which,
        example={"cancels": False},
    ),
    ControlOperation(
        id="seedSession",
        method="POST",
        path="/sessions",
        summary="Create a session and a consent without an SCA; accounts omitted: all accounts.",
        handler=_seed,
        answers={200: AnswerSpec("The session.", Session)},
        body=Seed,
        example={"tpp": "demo", "nationalId": "14888520059"},
    ),
    ControlOperation(
        id="listConsents",
        method="GET",
        path="/consents",
        summary="List consents, newest first.",
        handler=_list_consents,
        answers={200: AnswerSpec("The consents.", Consents)},
        query=(LIMIT,),
    ),
    ControlOperation(
        id="revokeConsent",
        method="POST",
        path="/consents/{id}/revoke",
        summary="Revoke a consent, as the customer can do at the bank.",
        handler=_revoke_consent,
        answers={200: AnswerSpec("The consent.", Consent), 404: AnswerSpec("There is no such consent.")},
    ),
)
