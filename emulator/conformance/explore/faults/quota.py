"""The reads of the day are used up: 429 ACCESS_EXCEEDED."""

from __future__ import annotations

from typing import Any

from emulator.conformance.explore.faults import FaultKind, RequestFault
from emulator.scenario.effects.quota import EFFECT


class ReadsUsedUp(RequestFault):
    """The read is refused."""

    def then(self) -> dict[str, Any]:
        return {"quota": "exhausted"}

    def described(self) -> str:
        return f"{self.numbers()}: the reads of the day are used up"


FAULT = FaultKind(
    name="quota",
    summary="The reads of the day are used up: 429 ACCESS_EXCEEDED.",
    effects=("quota",),
    form=ReadsUsedUp,
    example={"of": "getTransactions", "at": 1},
    operations=EFFECT.operations,
    spoils=True,
)
