"""The reads of the day are used up: 429 ACCESS_EXCEEDED."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from emulator.conformance.explore.faults import FaultKind, RequestFault, drawn
from emulator.scenario.effects.quota import EFFECT

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


class ReadsUsedUp(RequestFault):
    """The read is refused."""

    def then(self) -> dict[str, Any]:
        return {"quota": "exhausted"}

    def described(self) -> str:
        return f"{self.numbers()}: the reads of the day are used up"


def draw(operations: Sequence[str]) -> SearchStrategy[Any]:
    return drawn([operation for operation in operations if operation in EFFECT.operations])


FAULT = FaultKind(
    name="quota",
    summary="The reads of the day are used up: 429 ACCESS_EXCEEDED.",
    effects=("quota",),
    form=ReadsUsedUp,
    draw=draw,
    example={"of": "getTransactions", "at": 1},
    operations=EFFECT.operations,
    spoils=True,
)
