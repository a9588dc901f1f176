"""Faults of payments: their fee, their statuses, the notifications about them, and whether they are allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import Field

from emulator.bank.notifications import EFFECTS
from emulator.bank.payment import flows
from emulator.bank.scheme.transitions import FINAL
from emulator.bank.validation import Omittable, one_of
from emulator.conformance.explore.faults import Pick, RequestFault


class Fee(RequestFault):
    """`amount`: of the fee, in the currency of the debtor's account.

    If it is missing, each fault has another: two equal bookings of a day would look like one that is shown twice.
    """

    name = "fee"
    summary = "A payment has a fee."
    effects = ("fee",)
    example: ClassVar = {"of": "createPayment", "at": 1, "amount": "10.00"}
    operations = ("createPayment",)

    amount: Omittable[str] = None

    @property
    def fee(self) -> str:
        return self.amount or f"{9 + self.at}.00"

    def then(self) -> dict[str, Any]:
        return {"fee": self.fee}

    def described(self) -> str:
        return f"{self.numbers()}: the payment has a fee of {self.fee}"


class Notified(RequestFault):
    """`effect`: on the notifications that the request orders."""

    name = "notification"
    summary = "Notifications of a payment come late, twice, in the wrong order, forged, or not at all."
    effects = ("notification",)
    draws: ClassVar = {"effect": EFFECTS}
    example: ClassVar = {"of": "createPayment", "at": 1, "effect": "reordered"}
    operations = ("createPayment",)
    weight = 4

    effect: Annotated[str, one_of("effect", EFFECTS)] = "twice"

    def then(self) -> dict[str, Any]:
        return {"notification": self.effect}

    def settings(self) -> Mapping[str, Any]:
        return {"notifications": True}

    def described(self) -> str:
        return f"{self.numbers()}: its notifications are {self.effect}"


class Permission(RequestFault):
    """The payment is refused: 403 FORBIDDEN. `lasts`: and so is every later one."""

    name = "permission"
    summary = "Payments from the account are refused, though it can be read."
    effects = ("permission",)
    example: ClassVar = {"of": "createPayment", "at": 1, "lasts": True}
    operations = ("createPayment",)
    weight = 2

    lasts: bool = False

    def then(self) -> dict[str, Any]:
        return {"permission": "remove"}

    def rules(self) -> Iterable[dict[str, Any]]:
        for rule in super().rules():
            yield {**rule, "times": {"after": self.at - 1}} if self.lasts else rule

    def described(self) -> str:
        later = " and every later one" if self.lasts else ""
        return f"{self.numbers()}{later}: refused, the account may not be paid from"


WAITS = ("2s", "1h", "3d")
LENGTHS = (1, 2, 3, 4)  # of a path
UNKNOWN = "ACCC"  # a status that nobody knows: it may follow any
LATER = {"RJCT": "3d", "ACSC": "1h"}  # an end much later


@cache
def _following(status: str) -> tuple[str, ...]:
    """The statuses after this one in any flow; a payment is not cancelled by itself."""
    ends = {step.end for flow in flows.table().values() for step in flow.transitions if step.start == status}
    return tuple(sorted(ends - {"CANC", "PART"}))


def _path(pick: Pick) -> list[Any]:
    steps: list[Any] = []
    status = "RCVD"
    for left in reversed(range(pick(LENGTHS))):
        following = _following(status)
        going_on = [one for one in following if left == 0 or one not in FINAL]
        if not going_on:
            break
        status = pick(going_on)
        wait = pick(("", *WAITS)) if steps or status == "ACTC" else ""  # after a wait, a path begins in ACTC
        steps.append({status: wait} if wait else status)
    if status not in FINAL and pick((False, True)):
        steps.append(pick((UNKNOWN, *({end: wait} for end, wait in LATER.items() if end in _following(status)))))
    return steps


class Statuses(RequestFault):
    """`path`: as the effect `progress` takes it; of the payment that the request creates."""

    name = "statuses"
    summary = "A payment takes another path: any that transitions allow, or one with a status that nobody knows."
    effects = ("progress",)
    draws: ClassVar = {"path": _path}
    example: ClassVar = {"of": "createPayment", "at": 1, "path": ["ACTC", "ACCP", {"RJCT": "3d"}]}
    operations = ("createPayment",)
    weight = 8

    path: Annotated[list[Any], Field(min_length=1, max_length=20)]

    def then(self) -> dict[str, Any]:
        return {"progress": self.path}

    def described(self) -> str:
        steps = [
            step if isinstance(step, str) else "{} after {}".format(*next(iter(step.items()))) for step in self.path
        ]
        return f"{self.numbers()}: the payment goes {', '.join(steps)}"
