"""A payment has a fee."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from emulator.conformance.explore.faults import FaultKind, RequestFault

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


class Fee(RequestFault):
    """`amount`: of the fee, in the currency of the debtor's account."""

    amount: str = "10.00"

    def then(self) -> dict[str, Any]:
        return {"fee": self.amount}

    def described(self) -> str:
        return f"{self.numbers()}: the payment has a fee of {self.amount}"


def draw(_operations: Sequence[str]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    # Each payment has another fee, so that two fees of a day are no duplicates.
    return st.integers(1, 3).map(lambda at: {"of": "createPayment", "at": at, "amount": f"{9 + at}.00"})


FAULT = FaultKind(
    name="fee",
    summary="A payment has a fee.",
    effects=("fee",),
    form=Fee,
    draw=draw,
    example={"of": "createPayment", "at": 1, "amount": "10.00"},
    operations=("createPayment",),
)
