"""The account feed drifts between two reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from emulator.bank.feed import EFFECTS
from emulator.bank.validation import one_of
from emulator.conformance.explore.faults import FaultKind, PlannedFault

READ = ("getTransactions",)


class Feed(PlannedFault):
    """`effect`: as the setting `feed` takes it; `chance`: of each entry."""

    effect: Annotated[str, one_of("effect", EFFECTS)]
    chance: Annotated[float, Field(ge=0, le=1)] = 1.0

    def settings(self) -> Mapping[str, Any]:
        return {"feed": [{"effect": self.effect, "chance": self.chance}]}

    def described(self) -> str:
        return f"the feed drifts: {self.effect} ({self.chance:.0%} of the entries)"


FAULT = FaultKind(
    name="feed",
    summary="The account feed drifts between two reads.",
    effects=tuple(f"feed: {effect}" for effect in EFFECTS),
    form=Feed,
    draws={"effect": EFFECTS, "chance": (1.0, 0.3)},
    example={"effect": "duplicate", "chance": 1.0},
    operations=READ,
    weight=2,
)
