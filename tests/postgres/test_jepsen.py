"""Several processes on one PostgreSQL give no wrong answer whatever fails; and a bank that would is found out."""

from __future__ import annotations

import shutil

import pytest

from tests.postgres import jepsen
from tests.postgres.history import Kind
from tests.postgres.server import MISSING, binaries

pytestmark = [pytest.mark.crash, pytest.mark.skipif(binaries() is None, reason=MISSING)]

# Planted fault: what happens meanwhile, seconds and operations that it takes to show, and as what it does.
PLANTED: dict[str, tuple[tuple[str, ...], float, int, frozenset[Kind]]] = {
    "stale-read": (("none",), 8, 1500, frozenset({"history"})),
    "skipped-lock": (("none",), 8, 300, frozenset({"history", "lost", "doubled"})),
    "lost-append": (("kill",), 12, 300, frozenset({"events", "history", "lost"})),
    "answer-before-the-commit": (("crash", "crash"), 12, 200, frozenset({"history", "lost"})),
}


def test_nothing_is_wrong_when_processes_and_connections_fail() -> None:
    notes = jepsen.run(8, faults=("kill", "cut"), clients=6, least=150)
    assert notes.problems == [], jepsen.report(notes)
    assert {fault for fault, _ in notes.recoveries} == {"kill", "cut"}


@pytest.mark.long
@pytest.mark.skipif(shutil.which("pgbouncer") is None, reason="missing tool: pgbouncer")
def test_nothing_is_wrong_through_pgbouncer_in_transaction_mode() -> None:
    notes = jepsen.run(20, faults=("kill", "cut", "crash"), clients=6, least=300, pooled=True)
    assert notes.problems == [], jepsen.report(notes)


@pytest.mark.long
def test_nothing_is_wrong_whatever_fails() -> None:
    notes = jepsen.run(60)
    assert notes.problems == [], jepsen.report(notes)
    assert {fault for fault, _ in notes.recoveries} == set(jepsen.FAULTS)


@pytest.mark.long
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str) -> None:
    faults, seconds, least, kinds = PLANTED[fault]
    notes = jepsen.run(seconds, faults=faults, program=("-m", "tests.postgres.faulty", fault), least=least)
    # a process that refuses the bank since a change is missing has found it, too
    problems = [problem for problem in notes.problems if problem.kind in kinds or "is damaged: " in problem.text]
    assert problems, jepsen.report(notes)
