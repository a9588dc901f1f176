"""The customer's authentication ends otherwise: at the bank, not by the customer's will."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from emulator.conformance.explore.faults import FaultKind, RequestFault, drawn

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

OPENS = ("createPayment", "createSigningBasket", "startCancellationAuthorisation", "getAccounts", "createConsent")


class ScaEnds(RequestFault):
    """`outcome`: of the SCA that the request opens."""

    outcome: Literal["fail", "expire", "reject", "abandon"] = "fail"

    def then(self) -> dict[str, Any]:
        return {"sca": self.outcome}

    def described(self) -> str:
        ends = {"fail": "fails", "expire": "expires", "reject": "is declined", "abandon": "is abandoned"}
        return f"{self.numbers()}: the authentication {ends[self.outcome]}"


def draw(operations: Sequence[str]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    opening = [operation for operation in operations if operation in OPENS]
    return drawn(opening, outcome=st.sampled_from(["fail", "expire", "reject", "abandon"]))


FAULT = FaultKind(
    name="sca",
    summary="The customer's authentication fails, expires, is declined or abandoned.",
    effects=("sca",),
    form=ScaEnds,
    draw=draw,
    example={"of": "createPayment", "at": 1, "outcome": "fail"},
    operations=OPENS,
)
