"""The end of an SCA: why it fails, its effect on its target, and the redirect that reports the outcome.

The redirect is the TPP's own address with the outcome appended (SPEC 5.3.4, 5.3.5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote_plus, urlencode

from emulator.bank.bank import Bank
from emulator.bank.errors import BankError


@dataclass(frozen=True, slots=True)
class ScaFailure:
    """How an SCA failed, as the redirect reports it."""

    status: int
    code: str
    message: str
    system: str | None = None


DECLINED = ScaFailure(401, "SCA_INVALID", "The customer declined.")
EXPIRED = ScaFailure(401, "SCA_EXPIRED", "The authentication was not completed within 10 minutes.")
UNKNOWN_PERSON = ScaFailure(401, "PSU_CREDENTIALS_INVALID", "The bank knows no customer with this identity number.")
OTHER_PERSON = ScaFailure(401, "PSU_CREDENTIALS_INVALID", "The identified person is not the customer of this request.")
NO_CONTEXT = ScaFailure(401, "PSU_CREDENTIALS_INVALID", "The customer has nothing to approve in the requested context.")
NOT_AWAITED = ScaFailure(400, "SCA_INVALID", "There is nothing left to approve.")
REFUSED = ScaFailure(401, "SCA_INVALID", "The authentication failed.")
CORE_FAILED = ScaFailure(500, "SYSTEM_ERROR", "A system of the bank failed.", "core")


def failure(
    status: int | None = None, code: str | None = None, message: str | None = None, system: str | None = None
) -> ScaFailure:
    """A failure with these members; missing ones are taken from the built-in failure that is most similar.

    Without any member it is CORE_FAILED. Only a server error names a system by default (SPEC 5.3.5).
    """
    similar = _like(status, code)
    status = similar.status if status is None else status
    default_system = similar.system if status >= CORE_FAILED.status else None
    return ScaFailure(status, code or similar.code, message or similar.message, system or default_system)


def _like(status: int | None, code: str | None) -> ScaFailure:
    if code is None:
        return CORE_FAILED if status is None or status >= CORE_FAILED.status else REFUSED
    return next((each for each in (DECLINED, EXPIRED, UNKNOWN_PERSON, CORE_FAILED) if each.code == code), REFUSED)


# The status in the redirect (SPEC 5.3.5) for the codes with which the business rules may refuse an approval.
_STATUSES = {"PSU_CREDENTIALS_INVALID": 401, "FORBIDDEN": 403, "PRODUCT_INVALID": 403, "CONFLICT": 409}


def refusal(error: BankError) -> ScaFailure:
    """The failure of an SCA whose approval the business rules refuse."""
    return ScaFailure(_STATUSES.get(error.code, 400), error.code, error.messages[0].text)


@dataclass(frozen=True, slots=True)
class ScaOutcome:
    """The effect of the end of an SCA on its target: each function takes the bank and the target's id.

    `awaited` returns whether the target still needs the SCA: another person may have signed it, or it may have
    expired. `approved` also takes the person who approved and the agreement that this person chose (None: private, or
    no choice), and raises BankError before it changes anything. Without `declined`, a refusal changes only the SCA.
    """

    awaited: Callable[[Bank, str], bool]
    approved: Callable[[Bank, str, str, str | None], None]
    declined: Callable[[Bank, str], None] | None = None


# By purpose. Payments import this module to open SCAs, so they register their outcomes here.
OUTCOMES: dict[str, ScaOutcome] = {}


# The parameters of both redirects; they are removed from the address's own query, so that they cannot be confused.
RESERVED = frozenset({"psu-id", "psu-corporate-id", "tpp-session-id", "context", "system", "status", "code", "message"})


def _appended(uri: str, values: Mapping[str, str]) -> str:
    """`uri` (without fragment) with `values` appended; only RESERVED names are removed from its own query."""
    address, _, own = uri.partition("?")
    parts = own.split("&") if own else []
    others = [part for part in parts if unquote_plus(part.partition("=")[0]) not in RESERVED]
    return f"{address}?{'&'.join([*others, urlencode(values, quote_via=quote)])}"


def success_redirect(uri: str, *, psu_id: str, agreement: str | None, session_id: str, context: str) -> str:
    """The address after a completed SCA."""
    values = {"psu-id": psu_id}
    if agreement is not None:
        values["psu-corporate-id"] = agreement
    values |= {"tpp-session-id": session_id, "context": context}
    return _appended(uri, values)


def failure_redirect(uri: str, *, status: int, code: str, message: str, system: str | None = None) -> str:
    """The address after a failed SCA; in a server error `system` names the internal system that failed."""
    values = {"system": system} if system else {}
    values |= {"status": str(status), "code": code, "message": message}
    return _appended(uri, values)
