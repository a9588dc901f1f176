"""The search: hypothesis draws schedules, and what fails is made small; outcomes of runs in parallel are remembered."""

from __future__ import annotations

import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, get_args, get_origin

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from emulator.assemble.local_banks import LocalBanks
from emulator.bank.ids import random_uuid
from emulator.conformance.program import RunFailed, awaited
from emulator.explore.faults import NumberedFault, Pick, PlannedFault, kinds
from emulator.explore.judge import Finding, Process, RunOutcome, play
from emulator.explore.schedule import BEGINS, BEHAVIOURS, MOST_TASKS, REQUESTS, FaultSchedule, Task, of

AHEAD = 2  # schedules that are drawn ahead for each job
REPEATED = 2  # times that a failure is played again
EARLY = (1, 2, 3)  # requests at which everything may happen in a smaller schedule
SEEDS = 1_000_003  # between the seeds of two searches

FEW_FAULTS = 4
MOST_FAULTS = 8
MOST_ACTS = 3
MOST_PASSES = 2
MOST_RESTARTS = 2
PASSES = ("1m", "2h", "1m", "2h", "25h", "4d", "35d")  # after days, orders that nobody has signed yet are gone
BANK_SEEDS = 3


@dataclass(frozen=True, slots=True)
class Breakage:
    """A failure: the outcome of the smallest schedule that shows it, and how often the drawn one failed."""

    finding: Finding
    outcome: RunOutcome
    failed: int
    played: int

    @property
    def name(self) -> str:
        return f"{self.finding.what}-{self.outcome.schedule.digest}"


@dataclass(slots=True)
class SearchProgress:
    """How far a search is: drawn schedules, all runs, faults by kind, and what was found."""

    drawn: int = 0
    runs: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    found: list[Breakage] = field(default_factory=list)
    alike: Counter[str] = field(default_factory=Counter)  # further schedules that fail like one that was found


class Search:
    """Plays schedules with one TPP, and knows the outcome of each that was played."""

    def __init__(self, banks: LocalBanks, client: Process, tasks: Sequence[Task], *, base: int, jobs: int = 1) -> None:
        self._banks = banks
        self._client = client
        self._drawn: deque[FaultSchedule] = deque(maxlen=1)
        self._draw = _drawing(schedules(tasks, restarts=client.restarts), self._drawn)
        self._tasks = tasks
        self._base = base
        self._jobs = jobs
        self._runs: dict[str, Future[RunOutcome]] = {}  # of each schedule that was played, by its content
        self._name = random_uuid()[:6]  # a TPP that keeps what it knows by the names of runs meets no name again
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="run")
        self.progress = SearchProgress()

    def _begin(self, schedule: FaultSchedule) -> Future[RunOutcome]:
        self.progress.runs += 1
        return self._pool.submit(play, schedule, self._banks, self._client, f"run-{self._name}-{self.progress.runs}")

    def _begun(self, schedule: FaultSchedule) -> Future[RunOutcome]:
        if schedule.key not in self._runs:
            self._runs[schedule.key] = self._begin(schedule)
        return self._runs[schedule.key]

    def outcome(self, schedule: FaultSchedule) -> RunOutcome:
        """The outcome of a schedule, played once."""
        return awaited(self._begun(schedule))

    def trial(self) -> RunOutcome:
        """A run without any fault; raises RunFailed if the TPP sends nothing, or nothing that the bank accepts."""
        outcome = self.outcome(of({"tasks": [self._tasks[0]]}))
        if outcome.silent:
            crash = next((finding.text for finding in outcome.findings if finding.what == "crash"), "")
            reason = crash or "it ended without one"
            raise RunFailed(f"the TPP sent no request: {reason}")
        if outcome.refused:
            raise RunFailed(f"without any fault the bank refuses what the TPP sends: {outcome.refused}")
        return outcome

    def run(
        self,
        runs: int,
        *,
        seconds: float | None = None,
        report: Callable[[SearchProgress], None] = lambda _: None,
    ) -> SearchProgress:
        """Play so many schedules, or search for so many seconds; what is found is small. Raises RunFailed."""
        until = None if seconds is None else time.monotonic() + seconds
        numbers = itertools.count() if until is not None else iter(range(runs))
        ahead: deque[Future[RunOutcome]] = deque()  # begun, while earlier ones are considered
        try:
            self.trial()
            while True:
                if until is None or time.monotonic() < until:
                    for number in itertools.islice(numbers, AHEAD * self._jobs - len(ahead)):
                        ahead.append(self._begun(self.drawn(number)))
                if not ahead:
                    return self.progress
                self._consider(awaited(ahead.popleft()))
                report(self.progress)
        except KeyboardInterrupt:
            self._client.stop()
            raise
        finally:
            self._pool.shutdown(cancel_futures=True)

    def _consider(self, outcome: RunOutcome) -> None:
        """Count an outcome, and make each new kind of failure in it small."""
        progress = self.progress
        progress.drawn += 1
        progress.kinds.update(sorted({fault.fault for fault in outcome.schedule.faults}))  # each time in the same order
        known = {breakage.finding.what for breakage in progress.found}
        new = next((finding for finding in outcome.findings if finding.what not in known), None)
        if new is not None:
            self._find(outcome, new)
        elif outcome.findings:
            progress.alike[outcome.findings[0].what] += 1

    def _find(self, outcome: RunOutcome, finding: Finding) -> None:
        """Play a failure again, and make it small.

        As far as that has come, it is among what was found: a search may be interrupted.
        """
        breakages = self.progress.found
        breakages.append(Breakage(finding, outcome, failed=1, played=1))
        again = [self._begin(outcome.schedule) for _ in range(REPEATED)]
        failed = 1 + sum(any(one.what == finding.what for one in awaited(other).findings) for other in again)
        breakages[-1] = replace(breakages[-1], failed=failed, played=1 + REPEATED)
        if failed > 1:
            for smaller in self._smaller_ones(outcome, finding.what):
                finding = next(one for one in smaller.findings if one.what == finding.what)
                breakages[-1] = replace(breakages[-1], finding=finding, outcome=smaller)

    def _smaller_ones(self, outcome: RunOutcome, what: str) -> Iterator[RunOutcome]:
        """Outcomes with one part less each that fail alike, until there is no part that the failure does not need.

        Hypothesis, which knows only the choices and not what they mean, takes twice the runs and leaves more.
        """
        smaller = True
        while smaller:
            smaller = False
            for candidate in _smaller(outcome.schedule, self._tasks):
                if candidate.key == outcome.schedule.key:
                    continue
                other = self.outcome(candidate)
                if any(finding.what == what for finding in other.findings):
                    outcome, smaller = other, True
                    yield outcome
                    break

    def drawn(self, number: int) -> FaultSchedule:
        """The schedule of this number. Each has a seed of its own: the first example of a seed is the simplest."""
        seed(self._base * SEEDS + number)(self._draw)()
        return self._drawn.pop()


def _smaller(schedule: FaultSchedule, known: Sequence[Task]) -> Iterator[FaultSchedule]:
    """The schedules with one part less, an earlier one of the `known` tasks, or everything at an earlier request."""
    document = schedule.document()
    tasks, acts = document["tasks"], document.get("customer", [])
    for name in ("faults", "tasks", "time", "restarts", "customer"):
        parts = document.get(name, [])
        for number in range(len(parts)):
            if name != "tasks" or len(parts) > 1:
                yield of({**document, name: _without(parts, number)})
    for name in ("begins", "seed"):
        if name in document:
            yield of({key: value for key, value in document.items() if key != name})
    for first in range(1, len(tasks)):  # the first tasks, with what the customer did in them
        for act in range(1, len(acts) + 1):
            yield of({**document, "tasks": tasks[first:], "customer": acts[act:]})
    for latest in EARLY:
        early = {
            "faults": [
                {**one, "at": min(one["at"], latest)} if "at" in one else one for one in document.get("faults", [])
            ],
            "time": [{**one, "after": min(one["after"], latest)} for one in document.get("time", [])],
            "restarts": sorted({min(one, latest) for one in document.get("restarts", [])}),
        }
        for fewer in (tasks, *(_without(tasks, number) for number in range(len(tasks)) if len(tasks) > 1)):
            yield of({**document, **early, "tasks": fewer})
    for number, task in enumerate(tasks):
        for simpler in known[: known.index(task)]:
            yield of({**document, "tasks": [*tasks[:number], simpler, *tasks[number + 1 :]]})
    for number, fault in enumerate(document.get("faults", [])):
        smaller = [{name: fault[name] - 1} for name in ("at", "count") if fault.get(name, 1) > 1]
        smaller += [{"entries": 1}] if fault.get("entries", 1) > 1 else []
        path = fault.get("path", [])
        smaller += [{"path": _without(path, step)} for step in range(len(path)) if len(path) > 1]
        for less in smaller:
            faults = [*document["faults"][:number], {**fault, **less}, *document["faults"][number + 1 :]]
            yield of({**document, "faults": faults})


def _without(parts: list[Any], number: int) -> list[Any]:
    return parts[:number] + parts[number + 1 :]


# How schedules are drawn


def _drawing(strategy: st.SearchStrategy[FaultSchedule], drawn: deque[FaultSchedule]) -> Callable[[], None]:
    """A function that appends the two first examples of its seed."""

    @settings(
        max_examples=2,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(schedule: FaultSchedule) -> None:
        drawn.append(schedule)

    return draw


def schedules(tasks: Sequence[Task], *, restarts: bool) -> st.SearchStrategy[FaultSchedule]:
    """The schedules with these tasks, and with kills if the TPP is a command."""
    one = st.sampled_from(tasks)  # few tasks more often: such a run is shorter, and what it finds is too
    several = st.one_of(*(st.lists(one, min_size=1, max_size=most) for most in (1, 2, MOST_TASKS)))
    acts = _some(st.sampled_from(("approve", *BEHAVIOURS)), MOST_ACTS)
    begins, passes, seeds = st.sampled_from(BEGINS), st.sampled_from(PASSES), st.integers(0, BANK_SEEDS)

    @st.composite
    def schedule(draw: st.DrawFn) -> FaultSchedule:
        chosen = draw(several)
        requests: Counter[str] = Counter()
        for task in chosen:
            requests.update(REQUESTS[task])
        faults = partial(st.lists, _fault(requests), unique_by=_place)
        number = st.integers(1, requests.total())
        killed = st.one_of(st.integers(1, 5), number)
        passing = st.fixed_dictionaries({"after": number, "passes": passes})
        return of(
            {
                "tasks": chosen,
                "begins": draw(begins),
                "customer": draw(acts),
                "faults": draw(st.one_of(faults(max_size=MOST_FAULTS), faults(min_size=1, max_size=FEW_FAULTS))),
                "time": draw(_some(passing, MOST_PASSES)),
                "restarts": sorted(set(draw(_some(killed, MOST_RESTARTS)))) if restarts else [],
                "seed": draw(seeds),
            }
        )

    return schedule()


def _some(strategy: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[list[Any]]:
    """A list that is empty in half of the schedules: what is always there hides what is rare."""
    return st.one_of(st.just([]), st.lists(strategy, min_size=1, max_size=most))


def _place(fault: Mapping[str, Any]) -> tuple[Any, ...]:
    """Of two faults of a kind at the same request, only one would happen."""
    return fault["fault"], fault.get("of", fault.get("effect")), fault.get("at")


@st.composite
def _fault(draw: st.DrawFn, requests: Counter[str]) -> dict[str, Any]:
    """A fault of any kind that concerns these requests; what is requested more often is drawn more often."""

    def pick(values: Sequence[Any]) -> Any:
        return draw(st.sampled_from(values))

    def concerned(kind: type[PlannedFault]) -> list[str]:
        return [name for name in requests.elements() if not kind.operations or name in kind.operations]

    kind = pick([kind for kind in kinds().values() if concerned(kind) for _ in range(kind.weight)])
    members: dict[str, Any] = {"fault": kind.name}
    if issubclass(kind, NumberedFault):
        names = concerned(kind)
        often = [name for name in names if name in kind.often]
        members["of"] = pick(pick((names, often)) if often else names)
        members["at"] = draw(st.one_of(st.just(1), st.integers(1, requests[members["of"]])))
    for name, values in _values(kind).items():
        members[name] = values(pick) if callable(values) else pick(values)
    return {name: value for name, value in members.items() if value is not None}


def _values(kind: type[PlannedFault]) -> dict[str, Sequence[Any] | Callable[[Pick], Any]]:
    """What is drawn for the members of a fault, by name."""
    types = {name: member.annotation for name, member in kind.model_fields.items()}
    whole = {name: get_args(of) for name, of in types.items() if get_origin(of) is Literal}
    return {**whole, **{name: (False, True) for name, of in types.items() if of is bool}, **kind.draws}
