"""The access of the TPP ends between two requests: its consents, sessions or the reads of the day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from emulator.conformance.explore.faults import ChangeFault, FaultKind, drawn
from emulator.scenario.start import ACCESS

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

ENDS = {
    "consent-revoked": {"consents": "revoked"},
    "consent-expired": {"consents": "expired"},
    "session-over": {"sessions": "expired"},
    "quota-used-up": {"quotas": "exhausted"},
}


class AccessEnds(ChangeFault):
    """`ends`: what ends."""

    ends: Literal["consent-revoked", "consent-expired", "session-over", "quota-used-up"]

    def start(self) -> dict[str, Any]:
        return {"change": [ENDS[self.ends]]}

    def described(self) -> str:
        return f"after {self.of} {self.at}: {self.ends.replace('-', ' ')}"


def draw(operations: Sequence[str]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    return drawn(operations, ends=st.sampled_from(list(ENDS)))


FAULT = FaultKind(
    name="access",
    summary="The access of the TPP ends between two requests: its consents, sessions or the reads of the day.",
    effects=tuple(f"change: {name}" for name in ACCESS),
    form=AccessEnds,
    draw=draw,
    example={"of": "getTransactions", "at": 1, "ends": "consent-revoked"},
    weight=2,
)
