"""The bank acts, but its answer cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from emulator.conformance.explore.faults import FaultKind, RequestFault, repeated

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

FORMS = ("truncated", "not-json", "wrong-type", "empty", "html")


class Malformed(RequestFault):
    """`form`: what the answer is instead."""

    form: Literal["truncated", "not-json", "wrong-type", "empty", "html"] = "truncated"

    def then(self) -> dict[str, Any]:
        return {"malformed": self.form}

    def described(self) -> str:
        return f"{self.numbers()}: the body of the answer is {self.form}"


def draw(operations: Sequence[str]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    return repeated(operations, form=st.sampled_from(FORMS))


FAULT = FaultKind(
    name="malformed",
    summary="The bank acts, but its answer cannot be read.",
    effects=("malformed",),
    form=Malformed,
    draw=draw,
    example={"of": "getPaymentStatus", "at": 1, "count": 1, "form": "truncated"},
    spoils=True,
)
