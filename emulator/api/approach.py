"""What a request's headers say of the SCA that it opens (SPEC 2.1, 5.3)."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from emulator.api.operation import Call
from emulator.bank.authentication import sca
from emulator.bank.authentication.approach import Approach

_MANNER = (
    "tpp-brand-logging-information",
    "tpp-redirect-preferred",
    "x-psu-authmethod-preferred",
    "psu-accept-language",
)


def approach_of(call: Call) -> Approach:
    """How the customer of this request is to be approached."""
    header = call.headers.get
    manner = _manner(call.tpp.name, call.script.sca, *map(header, _MANNER))
    found: Approach = {"redirectUri": header("tpp-redirect-uri") or "", **manner}
    session_id, identity = header("tpp-session-id"), header("x-psu-identity")
    if session_id:
        found["sessionId"] = session_id
    if identity:
        found["identityHint"] = identity
    return found


# Nearly all requests of a TPP say the same here; what is the customer's own is not dependent_cache.
@lru_cache(maxsize=64)
def _manner(
    tpp_name: str,
    outcome: str | None,
    brand: str | None,
    preferred: str | None,
    method: str | None,
    language: str | None,
) -> Approach:
    """The part of an approach that is not of one customer; not to be changed."""
    said = {
        "tppName": brand or tpp_name,
        "app": preferred == "false",
        "method": sca.offered_method(method),
        "language": language,
        "outcome": outcome,
    }
    return cast(Approach, {member: value for member, value in said.items() if value})
