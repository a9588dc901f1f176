"""An answer comes late, in real time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from emulator.conformance.explore.faults import FaultKind, RequestFault, drawn

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


class SlowAnswer(RequestFault):
    """`ms`: the delay in milliseconds."""

    ms: Annotated[int, Field(ge=1, le=60_000)] = 100

    def then(self) -> dict[str, Any]:
        return {"delay": f"{self.ms}ms"}

    def described(self) -> str:
        return f"{self.numbers()}: the answer takes {self.ms} ms longer"


def draw(operations: Sequence[str]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    return drawn(operations, ms=st.sampled_from([50, 200]))


FAULT = FaultKind(
    name="slow",
    summary="An answer comes late, in real time.",
    effects=("delay",),
    form=SlowAnswer,
    draw=draw,
    example={"of": "createPayment", "at": 1, "ms": 200},
)
