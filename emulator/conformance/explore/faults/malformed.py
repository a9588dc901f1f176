"""The bank acts, but its answer cannot be read."""

from __future__ import annotations

from typing import Any, Literal

from emulator.conformance.explore.faults import COUNTS, FaultKind, RequestFault


class Malformed(RequestFault):
    """`form`: what the answer is instead."""

    form: Literal["truncated", "not-json", "wrong-type", "empty", "html"] = "truncated"

    def then(self) -> dict[str, Any]:
        return {"malformed": self.form}

    def described(self) -> str:
        return f"{self.numbers()}: the body of the answer is {self.form}"


FAULT = FaultKind(
    name="malformed",
    summary="The bank acts, but its answer cannot be read.",
    effects=("malformed",),
    form=Malformed,
    draws={"count": COUNTS},
    example={"of": "getPaymentStatus", "at": 1, "count": 1, "form": "truncated"},
    spoils=True,
)
