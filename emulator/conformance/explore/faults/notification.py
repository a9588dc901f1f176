"""Notifications of a payment come late, twice, in the wrong order, forged, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from emulator.bank.notifications import EFFECTS
from emulator.bank.validation import one_of
from emulator.conformance.explore.faults import FaultKind, RequestFault


class Notified(RequestFault):
    """`effect`: on the notifications that the request orders."""

    effect: Annotated[str, one_of("effect", EFFECTS)] = "twice"

    def then(self) -> dict[str, Any]:
        return {"notification": self.effect}

    def settings(self) -> Mapping[str, Any]:
        return {"notifications": True}

    def described(self) -> str:
        return f"{self.numbers()}: its notifications are {self.effect}"


FAULT = FaultKind(
    name="notification",
    summary="Notifications of a payment come late, twice, in the wrong order, forged, or not at all.",
    effects=("notification",),
    form=Notified,
    draws={"effect": EFFECTS},
    example={"of": "createPayment", "at": 1, "effect": "reordered"},
    operations=("createPayment",),
    weight=4,
)
