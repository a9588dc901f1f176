"""How schedules are drawn, by hypothesis: simpler ones first, so that its shrinking makes them simple."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args, get_origin

from hypothesis import strategies as st

from emulator.conformance.explore.faults import FaultKind, NumberedFault, Pick, kinds
from emulator.conformance.explore.schedule import BEGINS, BEHAVIOURS, MOST_TASKS, REQUESTS, FaultSchedule, Task, of

FEW_FAULTS = 4
MOST_FAULTS = 8
MOST_ACTS = 3
MOST_PASSES = 2
MOST_RESTARTS = 2
PASSES = ("1m", "2h", "1m", "2h", "25h", "4d", "35d")  # after days, orders that nobody has signed yet are gone
SEEDS = 3


def schedules(tasks: Sequence[Task], *, restarts: bool) -> st.SearchStrategy[FaultSchedule]:
    """The schedules with these tasks, and with kills if the TPP is a command."""

    @st.composite
    def schedule(draw: st.DrawFn) -> FaultSchedule:
        one = st.sampled_from(tasks)  # few tasks more often: such a run is shorter, and what it finds is too
        chosen = draw(st.one_of(*(st.lists(one, min_size=1, max_size=most) for most in (1, 2, MOST_TASKS))))
        requests: Counter[str] = Counter()
        for task in chosen:
            requests.update(REQUESTS[task])
        faults = partial(st.lists, _fault(requests), unique_by=_place)
        act = st.sampled_from(("approve", *BEHAVIOURS))
        number = st.integers(1, requests.total())
        killed = st.one_of(st.integers(1, 5), number)
        passing = st.fixed_dictionaries({"after": number, "passes": st.sampled_from(PASSES)})
        return of(
            {
                "tasks": chosen,
                "begins": draw(st.sampled_from(BEGINS)),
                "customer": draw(_some(act, MOST_ACTS)),
                "faults": draw(st.one_of(faults(max_size=MOST_FAULTS), faults(min_size=1, max_size=FEW_FAULTS))),
                "time": draw(_some(passing, MOST_PASSES)),
                "restarts": sorted(set(draw(_some(killed, MOST_RESTARTS)))) if restarts else [],
                "seed": draw(st.integers(0, SEEDS)),
            }
        )

    return schedule()


def _some(strategy: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[list[Any]]:
    """A list that is empty in half of the schedules: what is always there hides what is rare."""
    return st.one_of(st.just([]), st.lists(strategy, min_size=1, max_size=most))


def _place(fault: Mapping[str, Any]) -> tuple[Any, ...]:
    """Of two faults of a kind at the same request, only one would happen."""
    return fault["fault"], fault.get("of", fault.get("effect")), fault.get("at")


def _fault(requests: Mapping[str, int]) -> st.SearchStrategy[dict[str, Any]]:
    """A fault of any kind that concerns these requests; what is requested more often is drawn more often."""
    used = {
        kind.name: [
            name
            for name, number in requests.items()
            if not kind.operations or name in kind.operations
            for _ in range(number)
        ]
        for kind in kinds().values()
    }
    fitting = [kind for kind in kinds().values() if used[kind.name] for _ in range(kind.weight)]

    @st.composite
    def fault(draw: st.DrawFn) -> dict[str, Any]:
        def pick(values: Sequence[Any]) -> Any:
            return draw(st.sampled_from(values))

        kind = pick(fitting)
        members: dict[str, Any] = {"fault": kind.name}
        if issubclass(kind.form, NumberedFault):
            members["of"] = pick(used[kind.name])
            members["at"] = draw(st.one_of(st.just(1), st.integers(1, requests[members["of"]])))
        for name, values in _values(kind).items():
            members[name] = values(pick) if callable(values) else pick(values)
        return {name: value for name, value in members.items() if value is not None}

    return fault()


def _values(kind: FaultKind) -> dict[str, Sequence[Any] | Callable[[Pick], Any]]:
    """What is drawn for the members of a fault, by name."""
    types = {name: member.annotation for name, member in kind.form.model_fields.items()}
    whole = {name: get_args(of) for name, of in types.items() if get_origin(of) is Literal}
    return {**whole, **{name: (False, True) for name, of in types.items() if of is bool}, **kind.draws}
