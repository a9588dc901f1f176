"""The customer's authentication ends otherwise: at the bank, not by the customer's will."""

from __future__ import annotations

from typing import Any, Literal

from emulator.conformance.explore.faults import FaultKind, RequestFault

OPENS = ("createPayment", "createSigningBasket", "startCancellationAuthorisation", "getAccounts", "createConsent")


class ScaEnds(RequestFault):
    """`outcome`: of the SCA that the request opens."""

    outcome: Literal["fail", "expire", "reject", "abandon"] = "fail"

    def then(self) -> dict[str, Any]:
        return {"sca": self.outcome}

    def described(self) -> str:
        ends = {"fail": "fails", "expire": "expires", "reject": "is declined", "abandon": "is abandoned"}
        return f"{self.numbers()}: the authentication {ends[self.outcome]}"


FAULT = FaultKind(
    name="sca",
    summary="The customer's authentication fails, expires, is declined or abandoned.",
    effects=("sca",),
    form=ScaEnds,
    example={"of": "createPayment", "at": 1, "outcome": "fail"},
    operations=OPENS,
)
