"""What one process does is told to those who watch at another one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from emulator.client import TppClient
from tests.crash.test_kill import BODY, DOMESTIC, KARI
from tests.postgres.cluster import Cluster, Node, cluster, control

PATIENCE = 20.0  # seconds until an event is missing


def events(node: Node) -> Iterator[dict[str, Any]]:
    """The events of one process, from the call on."""
    connection = HTTPConnection("127.0.0.1", node.target.port, timeout=PATIENCE)
    connection.request("GET", "/_emulator/events")
    stream = connection.getresponse()
    stream.readline()  # it comes when events do

    def read() -> Iterator[dict[str, Any]]:
        with closing(connection):
            for line in stream:
                if line.startswith(b"data:"):
                    yield json.loads(line[5:])

    return read()


def paid(running: Cluster, node: Node) -> list[tuple[str, str]]:
    """Make two payments at a process, and cancel one of them; what events of them there must be."""
    psu = control(node.url, "POST", "sessions", {"tpp": "demo", "nationalId": KARI})
    with TppClient(node.url, running.demo) as client:
        client.psu_id, client.session_id = psu["psuId"], psu["tppSessionId"]
        first, second = (client.post(DOMESTIC, json=BODY).json()["paymentId"] for _ in range(2))
        client.delete(f"{DOMESTIC}/{first}")
    return [(first, "RCVD"), (second, "RCVD"), (first, "CANC")]


def test_every_change_is_told_at_a_process_that_has_not_made_it(tmp_path: Path, store_url: str) -> None:
    with cluster(tmp_path, store_url, nodes=2) as running:
        watching = events(running.nodes[1])
        expected = paid(running, running.nodes[0])
        shown = []
        while expected[-1] not in shown:
            event = next(watching)
            if event["type"] == "payment":
                shown.append((event["id"], event["status"]))
        assert shown == expected
