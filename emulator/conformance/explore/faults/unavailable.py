"""The bank answers 503 or 429, with or without Retry-After."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from emulator.bank.validation import Maybe
from emulator.conformance.explore.faults import FaultKind, RequestFault, repeated

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


class Unavailable(RequestFault):
    """`retry`: the seconds of Retry-After."""

    status: Literal[503, 429] = 503
    retry: Maybe[Annotated[int, Field(ge=1, le=86400)]] = None

    def then(self) -> dict[str, Any]:
        text = "The bank is unavailable for a moment." if self.status == 503 else "Too many requests."
        headers = {} if self.retry is None else {"headers": {"Retry-After": str(self.retry)}}
        return {"answer": {"status": self.status, "text": text, **headers}}

    def described(self) -> str:
        retry = "" if self.retry is None else f" with Retry-After: {self.retry}"
        return f"{self.numbers()}: answered {self.status}{retry}"


def draw(operations: Sequence[str]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    plain = repeated(operations, status=st.sampled_from([503, 429]))
    with_header = repeated(operations, status=st.sampled_from([503, 429]), retry=st.sampled_from([1, 30]))
    return st.one_of(plain, with_header)


FAULT = FaultKind(
    name="unavailable",
    summary="The bank answers 503 or 429, with or without Retry-After.",
    effects=("answer",),
    form=Unavailable,
    draw=draw,
    example={"of": "getPaymentStatus", "at": 1, "count": 1, "status": 503},
    spoils=True,
    weight=3,
)
