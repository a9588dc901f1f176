"""The gate "PSU and access" with its quotas, and the SCA that follows a refusal (consents.md)."""

from __future__ import annotations

from functools import lru_cache
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


_OF_APPROACH = (
    "tpp-brand-logging-information",
    "tpp-redirect-preferred",
    "x-psu-authmethod-preferred",
    "psu-accept-language",
)


def approach_of(call: Call) -> Approach:
    """The approach to the customer's SCA that the request's headers ask for."""
    header = call.headers.get
    common = _common_approach(call.tpp.name, call.script.sca, call.script.sca_delay, *map(header, _OF_APPROACH))
    approach: Approach = {"redirectUri": header("tpp-redirect-uri") or "", **common}
    session_id, identity = header("tpp-session-id"), header("x-psu-identity")
    if session_id:
        approach["sessionId"] = session_id
    if identity:
        approach["identityHint"] = identity
    return approach


# Nearly all requests of a TPP agree in these members; those of one customer are not cached.
@lru_cache(maxsize=64)
def _common_approach(
    tpp_name: str,
    outcome: str | None,
    delay: float,
    brand: str | None,
    preferred: str | None,
    method: str | None,
    language: str | None,
) -> Approach:
    """The members of an approach that do not depend on the customer; do not change the result."""
    members = {
        "tppName": brand or tpp_name,
        "app": preferred == "false",
        "method": sca.offered_method(method),
        "language": language,
        "outcome": outcome,
        "delay": delay,
    }
    return cast(Approach, {member: value for member, value in members.items() if value})
