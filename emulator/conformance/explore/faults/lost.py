"""The connection closes without an answer: before the bank acts, or after it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from emulator.conformance.explore.faults import FaultKind, RequestFault, repeated

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


class Lost(RequestFault):
    """`when`: before the bank acts, or after."""

    when: Literal["after", "before"] = "after"

    def then(self) -> dict[str, Any]:
        return {"disconnect": self.when}

    def described(self) -> str:
        return f"{self.numbers()}: the {'answer' if self.when == 'after' else 'request'} is lost"


def draw(operations: Sequence[str]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    return repeated(operations, when=st.sampled_from(["after", "before"]))


FAULT = FaultKind(
    name="lost",
    summary="The connection closes without an answer: before the bank acts, or after it has.",
    effects=("disconnect",),
    form=Lost,
    draw=draw,
    example={"of": "createPayment", "at": 1, "count": 2, "when": "after"},
    spoils=True,
    weight=2,
)
