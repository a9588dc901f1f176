"""The money is gone: every account of the customer is empty from a request on."""

from __future__ import annotations

from typing import Any

from emulator.conformance.explore.faults import ChangeFault, FaultKind


class MoneyGone(ChangeFault):
    """Accounts are empty, and have no credit."""

    def start(self, debtor: str, number: str) -> dict[str, Any]:
        del debtor, number
        return {"change": [{"account": "NO*", "balance": "0.00", "creditLine": "0.00"}]}

    def described(self) -> str:
        return f"after {self.of} {self.at}: the accounts are empty"


FAULT = FaultKind(
    name="money",
    summary="The money is gone: the accounts are empty from a request on.",
    effects=("change: account",),
    form=MoneyGone,
    example={"of": "createPayment", "at": 1},
)
