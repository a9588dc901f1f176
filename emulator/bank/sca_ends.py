"""How an SCA ends: why it fails, as the redirect tells it, and what its success means to what it was for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulator.bank.bank import Bank


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
CORE_FAILED = Failure(500, "SYSTEM_ERROR", "A system of the bank failed.", "core")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the end of an SCA means to what it was for: each function gets the bank and the target's id.

    `awaited` says whether the target still needs the SCA: another one may have signed it, or time gone by. `approved`
    is told who approved as well; without `declined` a refusal changes nothing but the SCA.
    """

    awaited: Callable[[Bank, str], bool]
    approved: Callable[[Bank, str, str], None]
    declined: Callable[[Bank, str], None] | None = None


# By purpose. Payments open SCAs, so they enter themselves here and not the other way round.
OUTCOMES: dict[str, Outcome] = {}
