"""The connection closes without an answer: before the bank acts, or after it has."""

from __future__ import annotations

from typing import Any, Literal

from emulator.conformance.explore.faults import COUNTS, FaultKind, RequestFault


class Lost(RequestFault):
    """`when`: before the bank acts, or after."""

    when: Literal["after", "before"] = "after"

    def then(self) -> dict[str, Any]:
        return {"disconnect": self.when}

    def described(self) -> str:
        return f"{self.numbers()}: the {'answer' if self.when == 'after' else 'request'} is lost"


FAULT = FaultKind(
    name="lost",
    summary="The connection closes without an answer: before the bank acts, or after it has.",
    effects=("disconnect",),
    form=Lost,
    draws={"count": COUNTS},
    example={"of": "createPayment", "at": 1, "count": 2, "when": "after"},
    spoils=True,
    weight=2,
)
