"""Several processes on one PostgreSQL give no wrong answer whatever fails; and a bank that would is found out."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from emulator.client import TppClient
from tests.crash.test_kill import BODY
from tests.known_state import DOMESTIC, KARI
from tests.postgres import jepsen
from tests.postgres.cluster import Node, cluster, control
from tests.postgres.history import Kind
from tests.postgres.server import MISSING, binaries

pytestmark = [pytest.mark.crash, pytest.mark.skipif(binaries() is None, reason=MISSING)]

# Planted fault: what happens meanwhile, seconds and operations that it takes to show, and as what it does.
PLANTED: dict[str, tuple[tuple[str, ...], float, int, frozenset[Kind]]] = {
    "stale-read": (("stop", "stop"), 16, 800, frozenset({"history"})),
    "slow-clock": (("stop", "stop"), 16, 800, frozenset({"history"})),
    "append-without-epoch": (("stop", "stop"), 16, 800, frozenset({"history", "lost", "doubled", "money"})),
    "answer-before-the-commit": (("kill", "crash"), 12, 200, frozenset({"history", "lost"})),
    "old-home": (("stop", "stop"), 16, 800, frozenset({"history"})),
}
ATTEMPTS = 4  # the moment at which a process is stopped decides whether a planted fault shows


@pytest.mark.long
def test_a_payment_is_there_for_every_process_as_soon_as_one_has_said_so(tmp_path: Path, store_url: str) -> None:
    """With 10 ms on the way to PostgreSQL, and readers at each process meanwhile."""
    with cluster(tmp_path, store_url) as running:
        assert running.proxy is not None
        running.proxy.delay = 0.01
        first = running.nodes[0]
        session = control(first.url, "POST", "sessions", {"tpp": "demo", "nationalId": KARI})
        over = threading.Event()

        def client(node: Node) -> TppClient:
            tpp = TppClient(node.url, running.demo)
            tpp.use_session(session)
            return tpp

        def read(node: Node) -> None:
            tpp = client(node)
            while not over.is_set():
                tpp.get("/v1/accounts")

        readers = [threading.Thread(target=read, args=[node]) for node in running.nodes for _ in range(2)]
        for reader in readers:
            reader.start()
        try:
            statuses: Counter[int] = Counter()
            clients = [client(node) for node in running.nodes]
            for number in range(40):
                payment = clients[number % 3].post(DOMESTIC, json=BODY).json()["paymentId"]
                statuses.update(each.get(f"{DOMESTIC}/{payment}").status for each in clients)
        finally:
            over.set()
            for reader in readers:
                reader.join()
        assert statuses == {200: 120}


@pytest.mark.long
@pytest.mark.skipif(shutil.which("pgbouncer") is None, reason="missing tool: pgbouncer")
def test_nothing_is_wrong_through_pgbouncer_in_transaction_mode() -> None:
    notes = jepsen.run(20, faults=("kill", "cut", "crash"), clients=6, least=300, pooled=True)
    assert notes.problems == [], jepsen.report(notes)


@pytest.mark.long
def test_nothing_is_wrong_whatever_fails() -> None:
    notes = jepsen.run(45)
    assert notes.problems == [], jepsen.report(notes)
    assert {fault for fault, _ in notes.recoveries} == set(jepsen.FAULTS)


@pytest.mark.long
def test_nothing_is_wrong_whichever_statements_fail() -> None:
    """In a process of its own, whose limits are small."""
    inside = [sys.executable, "-m", "tests.postgres.inside", "--seconds", "8"]
    ran = subprocess.run(inside, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.long
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str) -> None:
    faults, seconds, least, kinds = PLANTED[fault]
    seen = []
    for _ in range(ATTEMPTS):
        notes = jepsen.run(seconds, faults=faults, fault=fault, least=least)
        # a process that refuses the bank since a change is missing has found it, too
        if any(problem.kind in kinds or "is damaged: " in problem.text for problem in notes.problems):
            return
        seen.append(jepsen.report(notes))
    raise AssertionError("\n".join(seen))
