"""Payments from the account are refused, though it can be read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from emulator.conformance.explore.faults import FaultKind, RequestFault


class Permission(RequestFault):
    """The payment is refused: 403 FORBIDDEN. `lasts`: and so is every later one."""

    lasts: bool = False

    def then(self) -> dict[str, Any]:
        return {"permission": "remove"}

    def rules(self) -> Iterable[dict[str, Any]]:
        for rule in super().rules():
            yield {**rule, "times": {"after": self.at - 1}} if self.lasts else rule

    def described(self) -> str:
        later = " and every later one" if self.lasts else ""
        return f"{self.numbers()}{later}: refused, the account may not be paid from"


FAULT = FaultKind(
    name="permission",
    summary="Payments from the account are refused, though it can be read.",
    effects=("permission",),
    form=Permission,
    example={"of": "createPayment", "at": 1, "lasts": True},
    operations=("createPayment",),
    weight=2,
)
