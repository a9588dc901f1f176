"""A payment has a fee."""

from __future__ import annotations

from typing import Any

from emulator.bank.validation import Omittable
from emulator.conformance.explore.faults import FaultKind, RequestFault


class Fee(RequestFault):
    """`amount`: of the fee, in the currency of the debtor's account.

    If it is missing, each fault has another: two equal bookings of a day would look like one that is shown twice.
    """

    amount: Omittable[str] = None

    @property
    def fee(self) -> str:
        return self.amount or f"{9 + self.at}.00"

    def then(self) -> dict[str, Any]:
        return {"fee": self.fee}

    def described(self) -> str:
        return f"{self.numbers()}: the payment has a fee of {self.fee}"


FAULT = FaultKind(
    name="fee",
    summary="A payment has a fee.",
    effects=("fee",),
    form=Fee,
    example={"of": "createPayment", "at": 1, "amount": "10.00"},
    operations=("createPayment",),
)
