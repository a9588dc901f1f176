"""The gate "PSU and access" with its quotas, and the SCA that follows a refusal (consents.md)."""

from __future__ import annotations

from typing import Any, cast

from emulator.api.headers import Headers, with_one_spelling
from emulator.api.operation import Access, Call
from emulator.bank.authentication import sca
from emulator.bank.customers import access, people
from emulator.bank.documents import Approach, ScaTarget
from emulator.bank.errors import BankError
from emulator.bank.kinds import AGREEMENT

ACCOUNT_INFORMATION = frozenset({"AISP"})  # the role of account and consent operations alone

_OPEN, _PSU, _SESSION = Access.OPEN, Access.PSU, Access.SESSION  # faster than attribute access for each request
_IDENTIFYING = ("psu-id", "x-psu-identity", "tpp-session-id", "psu-context", "psu-corporate-id")


def claim(headers: Headers, tpp_id: str) -> access.Claim:
    """A request's statements about its customer, from its headers."""
    header = headers.get
    return access.Claim(
        tpp_id=tpp_id,
        psu_id=header("psu-id"),
        identity=header("x-psu-identity"),
        session_id=header("tpp-session-id"),
        context=header("psu-context"),
        agreement=header("psu-corporate-id"),
        attended=header("psu-ip-address") is not None,
    )


def admit(call: Call) -> access.Caller | None:
    """The customer of a request, as far as its operation needs one; ScaNeeded if SCA must come first."""
    operation = call.operation
    needed = operation.access
    if needed is _PSU:
        return _payer(call)
    if needed is _OPEN:
        return None
    claimed = claim(call.headers, call.tpp.id)
    if needed is _SESSION:
        return access.session_holder(call.bank, claimed)
    resource = call.params.get("id")
    caller = access.account_reader(
        call.bank, claimed, resource=resource, kind=operation.resource, quota=operation.quota
    )
    exhausted = call.script.quota_exhausted
    if operation.quota and resource and (exhausted or not claimed.attended):
        access.count_unattended(call.bank, claimed, caller.resource, operation.quota, exhausted=exhausted)
    return caller


def _payer(call: Call) -> access.Caller | None:
    """The customer of a payment or basket; cached by the request's headers until a document changes."""
    key = (call.tpp.id, *map(call.headers.get, _IDENTIFYING))
    cached: dict[Any, access.Caller | None] = call.bank.payers.values()
    if key in cached:
        return cached[key]
    cached[key] = caller = access.payer(call.bank, claim(call.headers, call.tpp.id))
    return caller


def likely_context(call: Call, tpp_id: str) -> str | None:
    """The context of a request, as far as it is known before or after the gates (see `access`)."""
    sent = call.request.headers  # the request log has no parsed headers
    claimed = claim(Headers(with_one_spelling(sent) or sent), tpp_id)
    return access.likely_context(call.bank, claimed, of_session=call.operation.access is _SESSION)


def open_access(call: Call, *, purpose: str | None = None, target: str | None = None) -> str:
    """Open the SCA of a request whose customer must authenticate first, and return its token.

    The SCA of an account operation results in a consent, that of other operations only in a session.
    """
    header = call.headers.get
    if header("tpp-redirect-uri") is None:
        raise BankError(
            "HTTP_HEADER_REQUIRED",
            "The customer must authenticate first; the browser then returns to this address.",
            "TPP-Redirect-URI",
        )
    members = cast(ScaTarget, {**approach_of(call)})
    psu_id, agreement, context = header("psu-id"), header("psu-corporate-id"), header("psu-context")
    psu = people.psu_of(call.bank, call.tpp.id, psu_id) if psu_id else None
    if psu is not None:
        members["presumed"] = psu["nationalId"]
    if agreement is not None and call.bank.documents.exists(AGREEMENT, agreement):
        members["agreement"] = agreement
    if context:
        members["context"] = context
    if target is not None:
        members["target"] = target
    if purpose is None:
        reads_accounts = call.operation.roles == ACCOUNT_INFORMATION and "AISP" in call.tpp.roles
        purpose = "access" if reads_accounts else "user"
    return sca.open_sca(call.bank, call.tpp.id, purpose, members)


def approach_of(call: Call) -> Approach:
    """The approach to the customer's SCA that the request's headers ask for."""
    header = call.headers.get
    members = {
        "tppName": header("tpp-brand-logging-information") or call.tpp.name,
        "app": header("tpp-redirect-preferred") == "false",
        "method": sca.offered_method(header("x-psu-authmethod-preferred")),
        "language": header("psu-accept-language"),
        "outcome": call.script.sca,
        "delay": call.script.sca_delay,
        "sessionId": header("tpp-session-id"),
        "identityHint": header("x-psu-identity"),
    }
    stated = {member: value for member, value in members.items() if value}
    return cast(Approach, {"redirectUri": header("tpp-redirect-uri") or "", **stated})
