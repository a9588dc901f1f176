"""An answer comes late, in real time."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from emulator.conformance.explore.faults import FaultKind, RequestFault


class SlowAnswer(RequestFault):
    """`ms`: the delay in milliseconds."""

    ms: Annotated[int, Field(ge=1, le=60_000)] = 100

    def then(self) -> dict[str, Any]:
        return {"delay": f"{self.ms}ms"}

    def described(self) -> str:
        return f"{self.numbers()}: the answer takes {self.ms} ms longer"


FAULT = FaultKind(
    name="slow",
    summary="An answer comes late, in real time.",
    effects=("delay",),
    form=SlowAnswer,
    draws={"ms": (20, 100)},
    example={"of": "createPayment", "at": 1, "ms": 200},
)
