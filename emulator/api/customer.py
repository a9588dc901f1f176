"""The gate "PSU and access" with its quotas, and the SCA that a customer is sent to (SPEC 2.1, 5.3; CONTRACT 3, 4)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

from emulator.api.headers import Headers
from emulator.api.operation import Access, Call
from emulator.bank.authentication import sca
from emulator.bank.customers import access, people
from emulator.bank.documents import Approach, ScaTarget
from emulator.bank.errors import BankError
from emulator.bank.kinds import AGREEMENT

ACCOUNT_INFORMATION = frozenset({"AISP"})  # the role of account and consent operations alone

_OPEN, _PSU, _SESSION = Access.OPEN, Access.PSU, Access.SESSION  # to ask the Enum each time takes longer
_NAMING = ("psu-id", "x-psu-identity", "tpp-session-id", "psu-context", "psu-corporate-id")


def claim(headers: Headers, tpp_id: str) -> access.Claim:
    """What a request's headers say of its customer."""
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
    """The customer behind a request, as far as its operation needs one; ScaNeeded when SCA must come first."""
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
        access.count_unattended(call.bank, claimed, resource, operation.quota, exhausted=exhausted)
    return caller


def _payer(call: Call) -> access.Caller | None:
    """The customer of a payment or basket: that of the last request with the same headers, while nothing changed."""
    payers = call.bank.payers
    named = (call.tpp.id, *map(call.headers.get, _NAMING))
    known: dict[Any, access.Caller | None] = payers.values()
    if named in known:
        return known[named]
    known[named] = caller = access.payer(call.bank, claim(call.headers, call.tpp.id))
    return caller


def likely_context(call: Call, tpp_id: str) -> str | None:
    """The context of a request, as far as it is known before or after the gates (see `access`)."""
    claimed = claim(Headers(call.request.headers), tpp_id)  # the log keeps no others
    return access.likely_context(call.bank, claimed, of_session=call.operation.access is _SESSION)


def open_access(call: Call, *, purpose: str | None = None, target: str | None = None) -> str:
    """Open the SCA of a request whose customer must come first; the token.

    Account operations end in a consent, others only in a known customer with a session.
    """
    header = call.headers.get
    if header("tpp-redirect-uri") is None:
        raise BankError(
            "HTTP_HEADER_REQUIRED", "The customer must be sent to SCA, and back to this address.", "TPP-Redirect-URI"
        )
    known = cast(ScaTarget, {**approach_of(call)})
    psu_id, agreement, context = header("psu-id"), header("psu-corporate-id"), header("psu-context")
    psu = people.psu_of(call.bank, call.tpp.id, psu_id) if psu_id else None
    if psu is not None:
        known["presumed"] = psu["nationalId"]
    if agreement is not None and call.bank.documents.exists(AGREEMENT, agreement.lower()):
        known["agreement"] = agreement.lower()
    if context:
        known["context"] = context
    if target is not None:
        known["target"] = target
    if purpose is None:
        reads_accounts = call.operation.roles == ACCOUNT_INFORMATION and "AISP" in call.tpp.roles
        purpose = "access" if reads_accounts else "user"
    return sca.open_sca(call.bank, call.tpp.id, purpose, known)


_OF_APPROACH = (
    "tpp-brand-logging-information",
    "tpp-redirect-preferred",
    "x-psu-authmethod-preferred",
    "psu-accept-language",
)


def approach_of(call: Call) -> Approach:
    """How the customer of this request is to be approached."""
    header = call.headers.get
    common = _common_approach(call.tpp.name, call.script.sca, call.script.sca_delay, *map(header, _OF_APPROACH))
    approach: Approach = {"redirectUri": header("tpp-redirect-uri") or "", **common}
    session_id, identity = header("tpp-session-id"), header("x-psu-identity")
    if session_id:
        approach["sessionId"] = session_id
    if identity:
        approach["identityHint"] = identity
    return approach


# Nearly all requests of a TPP have the same here; what belongs to one customer is not cached.
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
    """The part of an approach that is not of one customer; not to be changed."""
    members = {
        "tppName": brand or tpp_name,
        "app": preferred == "false",
        "method": sca.offered_method(method),
        "language": language,
        "outcome": outcome,
        "delay": delay,
    }
    return cast(Approach, {member: value for member, value in members.items() if value})
