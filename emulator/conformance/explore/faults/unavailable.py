"""The bank answers 503 or 429, with or without Retry-After."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from emulator.bank.validation import Omittable
from emulator.conformance.explore.faults import COUNTS, FaultKind, RequestFault


class Unavailable(RequestFault):
    """`retry`: the seconds of Retry-After."""

    status: Literal[503, 429] = 503
    retry: Omittable[Annotated[int, Field(ge=1, le=86400)]] = None

    def then(self) -> dict[str, Any]:
        text = "The bank is unavailable for a moment." if self.status == 503 else "Too many requests."
        headers = {} if self.retry is None else {"headers": {"Retry-After": str(self.retry)}}
        return {"answer": {"status": self.status, "text": text, **headers}}

    def described(self) -> str:
        retry = "" if self.retry is None else f" with Retry-After: {self.retry}"
        return f"{self.numbers()}: answered {self.status}{retry}"


FAULT = FaultKind(
    name="unavailable",
    summary="The bank answers 503 or 429, with or without Retry-After.",
    effects=("answer",),
    form=Unavailable,
    draws={"retry": (None, 1, 30), "count": COUNTS},
    example={"of": "getPaymentStatus", "at": 1, "count": 1, "status": 503},
    spoils=True,
    weight=6,
)
