"""A payment takes another path of statuses: any that transitions allow, or one with a status that nobody knows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from emulator.bank.payment import flows
from emulator.bank.scheme.transitions import FINAL
from emulator.conformance.explore.faults import FaultKind, RequestFault
from emulator.scenario.effects.progress import EFFECT

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

WAITS = ("2s", "1h", "3d")
LONGEST = 4  # statuses of a path


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


def draw(_operations: Sequence[str]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    @st.composite
    def path(draw: st.DrawFn) -> list[Any]:
        steps: list[Any] = []
        status = "RCVD"
        for _ in range(draw(st.one_of(st.integers(1, 2), st.integers(1, LONGEST)))):
            following = _following(status)
            if not following:
                break
            status = draw(st.sampled_from(following))
            wait = draw(st.sampled_from(["", *WAITS]))
            steps.append({status: wait} if wait else status)
        if status not in FINAL and draw(st.booleans()):
            steps.append(draw(st.sampled_from(["ACCC", {"RJCT": "3d"}, {"ACSC": "1h"}])))
        return steps

    numbers = st.one_of(st.just(1), st.integers(1, 3))
    return st.fixed_dictionaries({"of": st.just("createPayment"), "at": numbers, "path": path()})


FAULT = FaultKind(
    name="statuses",
    summary="A payment takes another path: any that transitions allow, or one with a status that nobody knows.",
    effects=("progress",),
    form=Statuses,
    draw=draw,
    example={"of": "createPayment", "at": 1, "path": ["ACTC", "ACCP", {"RJCT": "3d"}]},
    operations=EFFECT.operations,
    weight=5,
)
