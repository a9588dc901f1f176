"""How schedules are drawn, by hypothesis: simpler ones first, so that its shrinking makes them simple."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from emulator.conformance.explore.faults import kinds
from emulator.conformance.explore.schedule import BEGINS, BEHAVIOURS, MOST_TASKS, OPERATIONS, FaultSchedule, Task, of

MOST_FAULTS = 4
MOST_ACTS = 3
MOST_PASSES = 2
MOST_RESTARTS = 2
PASSES = ("1m", "2h", "25h", "4d", "35d")
SEEDS = 3


def schedules(tasks: Sequence[Task], *, restarts: bool) -> st.SearchStrategy[FaultSchedule]:
    """The schedules with these tasks, and with kills if the TPP is a command."""

    @st.composite
    def schedule(draw: st.DrawFn) -> FaultSchedule:
        one = st.sampled_from(tasks)  # few tasks more often: such a run is shorter, and what it finds is too
        chosen = draw(st.one_of(*(st.lists(one, min_size=1, max_size=most) for most in (2, MOST_TASKS))))
        used = dict.fromkeys(operation for task in chosen for operation in OPERATIONS[task])
        passing = st.fixed_dictionaries(
            {"after": st.one_of(st.integers(1, 4), st.integers(1, 20)), "passes": st.sampled_from(PASSES)}
        )
        acts = st.sampled_from(BEHAVIOURS)
        killed = st.lists(st.one_of(st.integers(1, 5), st.integers(1, 20)), max_size=MOST_RESTARTS, unique=True)
        return of(
            {
                "tasks": chosen,
                "begins": draw(st.sampled_from(BEGINS)),
                "customer": draw(st.lists(acts, max_size=MOST_ACTS)),
                "faults": draw(st.lists(_fault(tuple(used)), max_size=MOST_FAULTS)),
                "time": draw(st.lists(passing, max_size=MOST_PASSES)),
                "restarts": sorted(draw(killed)) if restarts else [],
                "seed": draw(st.integers(0, SEEDS)),
            }
        )

    return schedule()


def _fault(operations: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """A fault of any kind that concerns these operations."""
    suited = [kind for kind in kinds().values() if not set(kind.operations).isdisjoint(operations)]
    fitting = [kind for kind in suited for _ in range(kind.weight)]

    @st.composite
    def fault(draw: st.DrawFn) -> dict[str, Any]:
        kind = draw(st.sampled_from(fitting))
        return {"fault": kind.name, **draw(kind.draw([name for name in operations if name in kind.operations]))}

    return fault()
