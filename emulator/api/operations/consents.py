"""Consents, the PSU and its agreements (SPEC 4.7, 5.3; CONTRACT 4)."""

from __future__ import annotations

from typing import Any

from emulator.api.customer import claim, open_access
from emulator.api.headers import DETAILS
from emulator.api.operation import Access, Call, Operation, Reply
from emulator.api.operations.accounts import AISP, caller_of
from emulator.bank.customers import access, people
from emulator.bank.errors import ScaNeeded

REDIRECT = frozenset({"tpp-redirect-uri"})


def create_consent(call: Call) -> Reply:
    """201 with the scaRedirect at which the customer gives the bank-offered consent; the body is ignored.

    A PSU-ID may be left out. One that is not this TPP's, or without the agreement that its context needs, is refused
    here as everywhere (SPEC 7; CONTRACT 4, 13); an agreement of the customer's own may be chosen (SPEC 5.3.6).
    """
    access.check_consenting(call.bank, claim(call.headers, call.tpp.id))
    consent_id = call.bank.ids.new()
    token = open_access(call, purpose="consent", target=consent_id)
    body = {"consentId": consent_id, "consentStatus": "received", "_links": {"scaRedirect": call.sca_link(token)}}
    return Reply(201, body)


def get_user(call: Call) -> Reply:
    """The customer behind PSU-ID; until there is one, a redirect in the manner of a 401."""
    caller = call.caller
    if caller is None or caller.psu_id is None:
        raise ScaNeeded("SCA_NOT_FOUND", "The customer is not known yet: send the PSU to scaRedirect.", "PSU-ID")
    person = people.person(call.bank, caller.national_id)
    body: dict[str, Any] = {
        "psuId": caller.psu_id,
        "name": None if person is None else person["name"],
        "context": caller.context,
    }
    if caller.agreement is not None:
        body["psuCorporateId"] = caller.agreement
    return Reply(200, body)


def get_agreements(call: Call) -> Reply:
    """The customer's corporate agreements, to choose PSU-Corporate-ID from (SPEC 5.3.6)."""
    agreements = [
        {
            "psuCorporateId": agreement["id"],
            "name": agreement["name"],
            "organisationNumber": agreement.get("organisationNumber") or "",
        }
        for agreement in people.agreements_of(call.bank, caller_of(call).national_id)
    ]
    return Reply(200, {"agreements": agreements})


_ANSWERS = "emulator.api.shapes.answers"

OPERATIONS = (
    Operation(
        id="createConsent",
        method="POST",
        path="/v1/consents",
        spec="4.7",
        summary="Ask for a consent: the customer gives it during SCA",
        handler=create_consent,
        column=DETAILS,
        answers={201: f"{_ANSWERS}:Consent"},
        roles=AISP,
        needs=REDIRECT,
        remembers=True,
        tag="Consents",
    ),
    Operation(
        id="createBankOfferedConsent",
        method="POST",
        path="/v1/bank-offered-consents",
        spec="4.7",
        summary="Ask for a bank-offered consent: the same as POST /v1/consents",
        handler=create_consent,
        column=DETAILS,
        answers={201: f"{_ANSWERS}:Consent"},
        roles=AISP,
        needs=REDIRECT,
        remembers=True,
        tag="Consents",
    ),
    Operation(
        id="getUser",
        method="GET",
        path="/v1/user",
        spec="4.7",
        summary="Who the PSU is: the SCA flow for TPPs that only initiate payments",
        handler=get_user,
        column=DETAILS,
        answers={200: f"{_ANSWERS}:User"},
        access=Access.PSU,
        tag="PSU",
    ),
    Operation(
        id="getUsers",
        method="GET",
        path="/v1/users",
        spec="4.7",
        summary="Who the PSU is: the same as GET /v1/user",
        handler=get_user,
        column=DETAILS,
        answers={200: f"{_ANSWERS}:User"},
        access=Access.PSU,
        tag="PSU",
    ),
    Operation(
        id="getAgreements",
        method="GET",
        path="/v1/agreements",
        spec="4.7",
        summary="The PSU's corporate agreements",
        handler=get_agreements,
        column=DETAILS,
        answers={200: f"{_ANSWERS}:Agreements"},
        access=Access.SESSION,
        tag="PSU",
    ),
)
