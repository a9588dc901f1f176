"""What becomes of a schedule that is played (`play.py`) and judged (`judge.py`), once or again; without hypothesis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from emulator.bank.ids import random_uuid
from emulator.conformance.explore.house import House
from emulator.conformance.explore.judge import Claims, Ending, Finding, judge
from emulator.conformance.explore.play import Row, Run
from emulator.conformance.explore.schedule import FaultSchedule


class TestedTpp(Protocol):
    """The TPP under test."""

    @property
    def restarts(self) -> bool:
        """Whether it can be killed and started again."""
        ...

    def play(self, run: Run) -> Ending:
        """Let the TPP do the tasks of the run until it has ended or the run is over."""
        ...

    def claims(self, run: Run) -> Claims | None:
        """What the TPP claims; None if it has no address for that."""
        ...


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run came to; `silent`: the TPP has sent no request; `refused`: the last one, if the bank refused all."""

    schedule: FaultSchedule
    findings: Sequence[Finding]
    rows: Sequence[Row]
    silent: bool = False
    refused: str = ""
    output: str = ""


def play(schedule: FaultSchedule, house: House, client: TestedTpp, name: str) -> RunOutcome:
    """Play a schedule on a bank of its own, and judge it."""
    run = Run(schedule, house, name)
    try:
        ending = client.play(run)
        run.bank.call(run.finish)
        findings = judge(run, ending, client.claims(run))
        refused = "" if run.accepted else run.refused
        return RunOutcome(schedule, findings, run.rows, run.requests == 0, refused, ending.output)
    finally:
        run.bank.close()


def replay(schedules: Sequence[FaultSchedule], house: House, client: TestedTpp) -> Iterator[RunOutcome]:
    """Play schedules again, in order."""
    name = random_uuid()[:6]
    for number, schedule in enumerate(schedules, 1):
        yield play(schedule, house, client, f"replay-{name}-{number}")
