"""Something is booked between two requests, so that the borders of pages move."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from emulator.conformance.explore.faults import ChangeFault, FaultKind


class Booked(ChangeFault):
    """`entries`: how many are booked, today, to the account that the TPP pays from."""

    entries: Annotated[int, Field(ge=1, le=50)] = 1

    def start(self, debtor: str, number: str) -> dict[str, Any]:
        booked = {"account": debtor, "date": "0d", "name": "Kiosken", "text": number}
        amounts = [f"-{17 + entry}.{self.at:02}" for entry in range(self.entries)]
        return {"add": {"transactions": [{**booked, "amount": amount} for amount in amounts]}}

    def described(self) -> str:
        return f"after {self.of} {self.at}: {self.entries} more booked"


FAULT = FaultKind(
    name="booked",
    summary="Something is booked between two requests, so that the borders of pages move.",
    effects=(),
    form=Booked,
    draws={"entries": (1, 3)},
    example={"of": "getTransactions", "at": 1, "entries": 1},
    operations=("getTransactions",),
    weight=2,
)
