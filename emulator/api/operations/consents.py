"""Consents, the PSU and its agreements (consents.md, sca.md#corporate-context)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from emulator.api.gates import claim, open_access
from emulator.api.headers import DETAILS
from emulator.api.operation import AISP, REDIRECT, SCA_APPROACH, Access, Call, Reply, operation
from emulator.api.operations.accounts import caller_of
from emulator.bank.authentication import sca
from emulator.bank.clock import moment, oslo_date, oslo_day
from emulator.bank.customers import access, consents, people
from emulator.bank.documents import Consent, Sca
from emulator.bank.errors import BankError, ScaNeeded
from emulator.bank.kinds import CONSENT, SCA

if TYPE_CHECKING:
    from emulator.api.shapes import answers

_consent = partial(operation, column=DETAILS, roles=AISP, before_first_sca=True, tag="Consents", manual="consents")
_created = partial(_consent, gives=("consentId", "consentId"), needs=REDIRECT, remembers=True)
_psu = partial(operation, column=DETAILS, tag="PSU", manual="sca#knowing-the-customer-without-accounts")
_STATES: Mapping[consents.ConsentStatus, answers.ConsentStatus] = {
    "valid": "valid",
    "revoked": "revokedByPsu",
    "terminated": "terminatedByTpp",
    "expired": "expired",
}


@_created("POST", "/v1/consents", notifies=("consent", "consentId"))
def create_consent(call: Call) -> Reply[answers.Consent]:
    """Request a consent, which the customer grants during SCA.

    201 with a scaRedirect to the page where the customer grants the bank-offered consent; the body is ignored. PSU-ID
    is optional. A PSU-ID of another TPP, or one without the agreement that its context needs, is refused as in other
    operations; PSU-Corporate-ID may name one of the customer's agreements.
    """
    access.consenting(call.bank, claim(call.headers, call.tpp.id))
    consent_id = call.bank.ids.new()
    token = open_access(call, purpose="consent", target=consent_id)
    links, location = {"scaRedirect": call.sca_link(token)}, call.location(f"/v1/consents/{consent_id}")
    return Reply(201, {"consentId": consent_id, "consentStatus": "received", "_links": links}, (location, SCA_APPROACH))


@_created("POST", "/v1/bank-offered-consents", notifies=("consent", "consentId"))
def create_bank_offered_consent(call: Call) -> Reply[answers.Consent]:
    """Request a bank-offered consent: the same as POST /v1/consents."""
    return create_consent.handler(call)


def _states(call: Call) -> tuple[answers.ConsentStatus, Consent | None, Sca | None]:
    """consentStatus of the consent in the path, and the consent, or the SCA that did not grant it.

    RESOURCE_UNKNOWN for one of another TPP, and with a PSU-ID for one of another customer.
    """
    bank, consent_id = call.bank, call.params["consentId"]
    customer = access.consenting(bank, claim(call.headers, call.tpp.id))
    consent = bank.documents.get(CONSENT, consent_id)
    if consent is not None and consent["tpp"] == call.tpp.id and customer in (None, consent["nationalId"]):
        return _STATES[consents.status(bank, consent)], consent, None
    own = [
        opened
        for opened in bank.documents.find(SCA, target=consent_id)
        if opened["tpp"] == call.tpp.id
        and opened["status"] != "finalised"
        and customer in (None, opened.get("person") or opened.get("presumed") or customer)
    ]
    if not own:
        raise BankError("RESOURCE_UNKNOWN", f"There is no consent {consent_id}.", "consentId")
    opened = own[-1]
    if sca.is_open(opened):
        return ("expired" if sca.is_late(bank, opened) else "received"), None, opened
    return ("expired" if "timedOut" in opened else "rejected"), None, opened


@_consent("GET", "/v1/consents/{consentId}")
def get_consent(call: Call) -> Reply[answers.ConsentDetails]:
    """A consent: accounts, validity and status."""
    status, consent, opened = _states(call)
    shared: list[answers.SharedAccount] = []
    since = last = "" if opened is None else opened["created"]
    if opened is not None and status == "rejected":
        last = opened["ended"]
    if consent is not None:
        for account in access.shared_accounts(call.bank, consent):
            shared.append({"bban": account["bban"], "iban": account["iban"], "currency": account["currency"]})
        for card in access.shared_cards(call.bank, consent):
            shared.append({"maskedPan": card["maskedPan"], "currency": card["currency"]})
        since = last = consent["lastSca"]
    last_use = None if consent is None else consent.get("lastUse")
    path = f"/v1/consents/{call.params['consentId']}"
    body: answers.ConsentDetails = {
        "access": {"accounts": shared, "balances": shared, "transactions": shared},
        "recurringIndicator": True,
        "validUntil": oslo_date(moment(since) + consents.LIFETIME).isoformat(),
        "frequencyPerDay": access.UNATTENDED_CALLS,
        "lastActionDate": last_use or oslo_day(last),
        "consentStatus": status,
        "_links": {"self": call.link(path, "GET", "DELETE"), "status": call.link(f"{path}/status")},
    }
    return Reply(200, body)


@_consent("GET", "/v1/consents/{consentId}/status")
def get_consent_status(call: Call) -> Reply[answers.ConsentState]:
    """Status of a consent."""
    return Reply(200, {"consentStatus": _states(call)[0]})


@_consent("DELETE", "/v1/consents/{consentId}")
def delete_consent(call: Call) -> Reply[None]:
    """Delete a consent.

    204, whatever its status; a consent that is not granted yet can no longer be granted.
    """
    status, consent, _ = _states(call)
    if consent is not None:
        consents.terminate(call.bank, consent)
    elif status == "received":
        sca.void(call.bank, call.params["consentId"])
    return Reply(204, None)


@_psu("GET", "/v1/user", access=Access.PSU, before_first_sca=True)
def get_user(call: Call) -> Reply[answers.User]:
    """The PSU: the SCA flow for TPPs that only initiate payments.

    The customer with the request's PSU-ID; 401 with a scaRedirect if the customer is not known yet.
    """
    caller = call.caller
    if caller is None or caller.psu_id is None:
        raise ScaNeeded("SCA_NOT_FOUND", "The customer is not known yet: send the PSU to scaRedirect.", "PSU-ID")
    person = people.person(call.bank, caller.national_id)
    body: answers.User = {
        "psuId": caller.psu_id,
        "name": None if person is None else person["name"],
        "context": caller.context,
    }
    if caller.agreement is not None:
        body["psuCorporateId"] = caller.agreement
    return Reply(200, body)


@_psu("GET", "/v1/users", access=Access.PSU, before_first_sca=True)
def get_users(call: Call) -> Reply[answers.User]:
    """The PSU: the same as GET /v1/user."""
    return get_user.handler(call)


@_psu("GET", "/v1/agreements", access=Access.SESSION, acts=False)  # reading the contexts requires none
def get_agreements(call: Call) -> Reply[answers.Agreements]:
    """The PSU's corporate agreements.

    PSU-Corporate-ID is one of their ids.
    """
    agreements: list[answers.Agreement] = [
        {
            "psuCorporateId": agreement["id"],
            "name": agreement["name"],
            "organisationNumber": agreement.get("organisationNumber") or "",
        }
        for agreement in people.agreements_of(call.bank, caller_of(call).national_id)
    ]
    return Reply(200, {"agreements": agreements})
