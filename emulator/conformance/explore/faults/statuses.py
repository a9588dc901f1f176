"""A payment takes another path of statuses: any that transitions allow, or one with a status that nobody knows."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from pydantic import Field

from emulator.bank.payment import flows
from emulator.bank.scheme.transitions import FINAL
from emulator.conformance.explore.faults import FaultKind, Pick, RequestFault

WAITS = ("2s", "1h", "3d")
LENGTHS = (1, 2, 3, 4)  # of a path
UNKNOWN = "ACCC"  # a status that nobody knows: it may follow any
LATER = {"RJCT": "3d", "ACSC": "1h"}  # an end much later


class Statuses(RequestFault):
    """`path`: as the effect `progress` takes it; of the payment that the request creates."""

    path: Annotated[list[Any], Field(min_length=1, max_length=20)]

    def then(self) -> dict[str, Any]:
        return {"progress": self.path}

    def described(self) -> str:
        steps = [
            step if isinstance(step, str) else "{} after {}".format(*next(iter(step.items()))) for step in self.path
        ]
        return f"{self.numbers()}: the payment goes {', '.join(steps)}"


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


FAULT = FaultKind(
    name="statuses",
    summary="A payment takes another path: any that transitions allow, or one with a status that nobody knows.",
    effects=("progress",),
    form=Statuses,
    draws={"path": _path},
    example={"of": "createPayment", "at": 1, "path": ["ACTC", "ACCP", {"RJCT": "3d"}]},
    operations=("createPayment",),
    weight=8,
)
