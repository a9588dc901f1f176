"""Notifications of a payment come late, twice, in the wrong order, forged, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from emulator.bank.notifications import EFFECTS
from emulator.bank.validation import one_of
from emulator.conformance.explore.faults import FaultKind, RequestFault

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


class Notified(RequestFault):
    """`effect`: on the notifications that the request orders."""

    effect: Annotated[str, one_of("effect", EFFECTS)] = "twice"

    def then(self) -> dict[str, Any]:
        return {"notification": self.effect}

    def settings(self) -> Mapping[str, Any]:
        return {"notifications": True}

    def described(self) -> str:
        return f"{self.numbers()}: its notifications are {self.effect}"


def draw(_operations: Sequence[str]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    members = {"at": st.integers(1, 2), "effect": st.sampled_from(EFFECTS)}
    return st.fixed_dictionaries({"of": st.just("createPayment"), **members})


FAULT = FaultKind(
    name="notification",
    summary="Notifications of a payment come late, twice, in the wrong order, forged, or not at all.",
    effects=("notification",),
    form=Notified,
    draw=draw,
    example={"of": "createPayment", "at": 1, "effect": "reordered"},
    operations=("createPayment",),
    weight=3,
)
