"""Plays schedules and judges them; needs no hypothesis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from emulator.bank.ids import random_uuid
from emulator.conformance.explore.client import Client
from emulator.conformance.explore.house import House
from emulator.conformance.explore.judge import Finding, judge
from emulator.conformance.explore.play import Row, Run
from emulator.conformance.explore.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to; `silent`: the TPP has sent no request."""

    schedule: Schedule
    findings: Sequence[Finding]
    rows: Sequence[Row]
    silent: bool = False
    output: str = ""


def play(schedule: Schedule, house: House, client: Client, name: str) -> Outcome:
    """Play a schedule on a bank of its own, and judge it."""
    run = Run(schedule, house, name)
    try:
        ending = client.play(run)
        run.bank.call(run.finish)
        findings = judge(run, ending, client.claims(run))
        return Outcome(schedule, findings, run.rows, silent=run.requests == 0, output=ending.output)
    finally:
        run.bank.close()


def replay(schedules: Sequence[Schedule], house: House, client: Client) -> Iterator[Outcome]:
    """Play schedules again, in order."""
    name = random_uuid()[:6]
    for number, schedule in enumerate(schedules, 1):
        yield play(schedule, house, client, f"replay-{name}-{number}")
