"""Several processes on one PostgreSQL give no wrong answer whatever fails; and a bank that would is found out."""

from __future__ import annotations

import pytest

from tests.postgres import jepsen
from tests.postgres.server import MISSING, binaries

pytestmark = [pytest.mark.crash, pytest.mark.skipif(binaries() is None, reason=MISSING)]

# Planted fault: what happens meanwhile, and how long it takes at most to show.
PLANTED = {
    "stale-read": (("none",), 8),
    "skipped-lock": (("none",), 8),
    "lost-append": (("kill",), 12),
    "answer-before-the-commit": (("crash", "kill"), 25),
}


def test_nothing_is_wrong_when_processes_and_connections_fail() -> None:
    notes = jepsen.run(12, faults=("kill", "cut"), clients=6)
    assert notes.problems == []
    assert len(notes.operations) > 50


@pytest.mark.long
def test_nothing_is_wrong_whatever_fails() -> None:
    notes = jepsen.run(60)
    assert notes.problems == [], jepsen.report(notes)
    assert {fault for fault, _ in notes.recoveries} == set(jepsen.FAULTS)


@pytest.mark.long
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str) -> None:
    faults, seconds = PLANTED[fault]
    program = ("-m", "tests.postgres.faulty", fault)
    assert jepsen.run(seconds, faults=faults, program=program).problems
