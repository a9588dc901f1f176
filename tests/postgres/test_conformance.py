"""The report on TPPs is one for all processes: each judges what all of them have seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emulator.client import Identity, TppClient
from tests.crash.test_kill import BODY
from tests.known_state import DOMESTIC, KARI
from tests.postgres.cluster import Node, cluster, control


def verdicts(node: Node) -> dict[str, tuple[str, int]]:
    """By check: its verdict and how many requests it names."""
    report = control(node.url, "GET", "conformance")
    return {row["check"]: (row["verdict"], len(row["requests"])) for row in report["checks"]}


def act(nodes: Sequence[Node], identity: Identity) -> None:
    """What a TPP does, each request at the next process: some of it right, some wrong."""
    turn = 0

    def client() -> TppClient:
        nonlocal turn
        turn += 1
        client = TppClient(nodes[turn % len(nodes)].url, identity)
        client.use_session(psu)
        return client

    def ask(method: str, path: str, **options: Any) -> Any:
        with client() as tpp:
            answer = tpp.request(method, path, **options)
            return answer.json() if answer.text else None

    psu = control(nodes[0].url, "POST", "sessions", {"tpp": "demo", "nationalId": KARI})
    accounts = ask("GET", "/v1/accounts")["accounts"]
    path = f"{accounts[0]['_links']['transactions']['href']}?limit=1"
    for _ in range(3):
        path = ask("GET", path)["transactions"]["_links"]["next"]["href"]
    payment = ask("POST", DOMESTIC, json=BODY, headers={"X-Request-ID": "5f2a1c8e-0000-4000-8000-000000000001"})
    ask("POST", DOMESTIC, json=BODY, headers={"X-Request-ID": "5f2a1c8e-0000-4000-8000-000000000001"})
    control(nodes[-1].url, "POST", f"sca/{payment['paymentId']}/approve")
    for _ in range(3):
        ask("GET", f"{DOMESTIC}/{payment['paymentId']}/status")
    ask("GET", "/v1/accounts", headers={"Signature": None})
    ask("GET", f"/v1/accounts/{accounts[0]['resourceId'][:-1]}0/transactions")


def test_several_processes_judge_as_one_does(tmp_path: Path, store_url: str) -> None:
    (tmp_path / "alone").mkdir()
    with cluster(tmp_path / "alone", None, "--ephemeral", nodes=1) as alone:
        act(alone.nodes, alone.demo)
        expected = verdicts(alone.nodes[0])
    assert {"pass", "fail"} <= {verdict for verdict, _ in expected.values()}
    with cluster(tmp_path, store_url, nodes=2) as running:
        act(running.nodes, running.demo)
        for node in running.nodes:
            assert verdicts(node) == expected
        control(running.nodes[0].url, "DELETE", "conformance")
        for node in running.nodes:
            assert {verdict for verdict, _ in verdicts(node).values()} == {"not-seen"}
