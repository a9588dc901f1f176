"""How an SCA ends: why it fails, as the redirect tells it, and what its success means to what it was for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulator.bank.bank import Bank
from emulator.bank.errors import BankError


@dataclass(frozen=True, slots=True)
class Failure:
    """How an SCA failed, as the redirect tells it."""

    status: int
    code: str
    message: str
    system: str | None = None


DECLINED = Failure(401, "SCA_INVALID", "The customer declined.")
EXPIRED = Failure(401, "SCA_EXPIRED", "The authentication was not completed within 10 minutes.")
UNKNOWN_PERSON = Failure(401, "PSU_CREDENTIALS_INVALID", "The bank knows no customer with this identity number.")
OTHER_PERSON = Failure(401, "PSU_CREDENTIALS_INVALID", "Somebody else than the customer of this request identified.")
NO_CONTEXT = Failure(401, "PSU_CREDENTIALS_INVALID", "The customer has nothing to approve in the requested context.")
NOT_AWAITED = Failure(400, "SCA_INVALID", "What was to be approved awaits no approval any more.")
REFUSED = Failure(401, "SCA_INVALID", "The authentication failed.")
CORE_FAILED = Failure(500, "SYSTEM_ERROR", "A system of the bank failed.", "core")


def failure(
    status: int | None = None, code: str | None = None, message: str | None = None, system: str | None = None
) -> Failure:
    """The failure that is asked for; of what is left out, what goes with the rest: of nothing, a failed system.

    Only a server error names a system by itself (SPEC 5.3.5).
    """
    known = _like(status, code)
    status = known.status if status is None else status
    named = known.system if status >= CORE_FAILED.status else None
    return Failure(status, code or known.code, message or known.message, system or named)


def _like(status: int | None, code: str | None) -> Failure:
    if code is None:
        return CORE_FAILED if status is None or status >= CORE_FAILED.status else REFUSED
    return next((known for known in (DECLINED, EXPIRED, UNKNOWN_PERSON, CORE_FAILED) if known.code == code), REFUSED)


# What the business rules may refuse at an approval, as the redirect's HTTP status (SPEC 5.3.5).
_STATUSES = {"PSU_CREDENTIALS_INVALID": 401, "FORBIDDEN": 403, "PRODUCT_INVALID": 403, "CONFLICT": 409}


def refusal(error: BankError) -> Failure:
    """The failure of an SCA whose approval the business rules refuse."""
    return Failure(_STATUSES.get(error.code, 400), error.code, error.messages[0].text)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the end of an SCA means to what it was for: each function gets the bank and the target's id.

    `awaited` says whether the target still needs the SCA: another one may have signed it, or time gone by. `approved`
    is told who approved as well, and the agreement that this person has chosen (None: did not have to, or privately),
    and raises BankError before it changes anything; without `declined` a refusal changes nothing but the SCA.
    """

    awaited: Callable[[Bank, str], bool]
    approved: Callable[[Bank, str, str, str | None], None]
    declined: Callable[[Bank, str], None] | None = None


# By purpose. Payments open SCAs, so they enter themselves here and not the other way round.
OUTCOMES: dict[str, Outcome] = {}
