"""Faults of the access of the TPP to the customer and its accounts: SCA, consents, sessions, and the reads of a day."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from emulator.conformance.explore.faults import ChangeFault, RequestFault
from emulator.scenario.effects import quota
from emulator.scenario.start import ACCESS

ENDS = {
    "consent-revoked": {"consents": "revoked"},
    "consent-expired": {"consents": "expired"},
    "session-over": {"sessions": "expired"},
    "quota-used-up": {"quotas": "exhausted"},
}


class AccessEnds(ChangeFault):
    """`ends`: what ends."""

    name = "access"
    summary = "The access of the TPP ends between two requests: its consents, sessions or the reads of the day."
    effects = tuple(f"change: {name}" for name in ACCESS)
    example: ClassVar = {"of": "getTransactions", "at": 1, "ends": "consent-revoked"}
    operations = ("getAccounts", "getBalances", "getTransactions", "createPayment")  # statuses need no access
    weight = 2

    ends: Literal["consent-revoked", "consent-expired", "session-over", "quota-used-up"]

    def start(self, debtor: str, number: str) -> dict[str, Any]:
        del debtor, number
        return {"change": [ENDS[self.ends]]}

    def described(self) -> str:
        return f"after {self.of} {self.at}: {self.ends.replace('-', ' ')}"


class ReadsUsedUp(RequestFault):
    """The read is refused."""

    name = "quota"
    summary = "The reads of the day are used up: 429 ACCESS_EXCEEDED."
    effects = ("quota",)
    example: ClassVar = {"of": "getTransactions", "at": 1}
    operations = quota.EFFECT.operations
    spoils = True

    def then(self) -> dict[str, Any]:
        return {"quota": "exhausted"}

    def described(self) -> str:
        return f"{self.numbers()}: the reads of the day are used up"


class ScaEnds(RequestFault):
    """`outcome`: of the SCA that the request opens."""

    name = "sca"
    summary = "The customer's authentication fails, expires, is declined or abandoned."
    effects = ("sca",)
    example: ClassVar = {"of": "createPayment", "at": 1, "outcome": "fail"}
    operations = (
        "createPayment",
        "createSigningBasket",
        "startCancellationAuthorisation",
        "getAccounts",
        "createConsent",
    )

    outcome: Literal["fail", "expire", "reject", "abandon"] = "fail"

    def then(self) -> dict[str, Any]:
        return {"sca": self.outcome}

    def described(self) -> str:
        ends = {"fail": "fails", "expire": "expires", "reject": "is declined", "abandon": "is abandoned"}
        return f"{self.numbers()}: the authentication {ends[self.outcome]}"
