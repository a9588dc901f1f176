"""Plays schedules and judges them; needs no hypothesis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from emulator.bank.ids import random_uuid
from emulator.conformance.explore.client import TestedTpp
from emulator.conformance.explore.house import House
from emulator.conformance.explore.judge import Finding, judge
from emulator.conformance.explore.play import Row, Run
from emulator.conformance.explore.schedule import FaultSchedule


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run came to; `silent`: the TPP has sent no request."""

    schedule: FaultSchedule
    findings: Sequence[Finding]
    rows: Sequence[Row]
    silent: bool = False
    output: str = ""


def play(schedule: FaultSchedule, house: House, client: TestedTpp, name: str) -> RunOutcome:
    """Play a schedule on a bank of its own, and judge it."""
    run = Run(schedule, house, name)
    try:
        ending = client.play(run)
        run.bank.call(run.finish)
        findings = judge(run, ending, client.claims(run))
        return RunOutcome(schedule, findings, run.rows, silent=run.requests == 0, output=ending.output)
    finally:
        run.bank.close()


def replay(schedules: Sequence[FaultSchedule], house: House, client: TestedTpp) -> Iterator[RunOutcome]:
    """Play schedules again, in order."""
    name = random_uuid()[:6]
    for number, schedule in enumerate(schedules, 1):
        yield play(schedule, house, client, f"replay-{name}-{number}")
