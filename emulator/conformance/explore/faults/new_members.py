"""An answer has members that nobody knows, as banks add them without notice."""

from __future__ import annotations

from typing import Any

from emulator.conformance.explore.faults import FaultKind, RequestFault


class NewMembers(RequestFault):
    """Every object of the answer has one more member."""

    def then(self) -> dict[str, Any]:
        return {"malformed": "new-members"}

    def described(self) -> str:
        return f"{self.numbers()}: the answer has new members"


FAULT = FaultKind(
    name="new-members",
    summary="An answer has members that nobody knows, as banks add them without notice.",
    effects=("malformed",),
    form=NewMembers,
    example={"of": "getPaymentStatus", "at": 1},
)
