"""What one process does is told to those who watch at another one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psycopg
import pytest
from emulator.assemble.shared import open_bank, running, upkeep

from emulator.api.messages import Request, Stream
from emulator.client import TppClient
from emulator.store.postgres import Database, StoreUnreachable, Work, database
from tests.crash.test_kill import BODY
from tests.known_state import DOMESTIC, KARI
from tests.postgres.cluster import Cluster, Node, cluster, control
from tests.postgres.process import HEADERS, Process, process

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
    with TppClient(node.url, running.demo) as client:
        client.use_session(control(node.url, "POST", "sessions", {"tpp": "demo", "nationalId": KARI}))
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


MISSED = ("events", "missed")


@pytest.fixture
def no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process looks by itself what others do."""
    monkeypatch.setattr(upkeep, "PAUSE", 3600)


async def watched(one: Process) -> list[tuple[str, Any]]:
    """Type and status of the events of the default bank from now on, as a stream of this process shows them."""
    stream = await one.answer("GET", "events")
    assert isinstance(stream, Stream)
    seen: list[tuple[str, Any]] = []

    def push(chunk: bytes | None) -> None:
        if chunk is not None and not chunk.startswith(b":"):
            event = json.loads(chunk.partition(b"data: ")[2])
            seen.append((event["type"], event.get("status")))

    stream.subscribe(push)
    return seen


async def weathers(one: Process, *names: str) -> None:
    """Changes that each have an event."""
    for name in names:
        await one.control("PUT", "settings", {"progression": name})


@pytest.mark.usefixtures("no_looks")
async def test_a_stream_says_where_its_process_has_missed_events(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with process(store_url, tmp_path / "one") as one, process(store_url, tmp_path / "two") as two:
        seen = await watched(two)
        await weathers(one, "manual", "immediate")
        await two.turns._upkeep._look()
        assert seen == [("settings", "changed")] * 2
        monkeypatch.setattr(open_bank, "CHECKPOINT", 1)
        monkeypatch.setattr(database, "TAIL_KEPT", 0)
        await weathers(one, "manual")
        await checkpointed(store_url, one)
        monkeypatch.setattr(open_bank, "CHECKPOINT", 1 << 30)
        await weathers(one, "immediate")
        await two.turns._upkeep._look()
        assert seen[2:] == [MISSED, ("settings", "changed")]
        assert two.registry.default.bank.settings == one.registry.default.bank.settings
        await weathers(one, "manual")
        await two.turns._upkeep._look()
        assert seen[4:] == [("settings", "changed")]


@pytest.mark.usefixtures("no_looks")
async def test_a_process_that_loads_its_bank_again_tells_no_event_twice(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a commit of which nobody knows whether it was stored; here it was."""

    async def stored(commit: Callable[[Database, Work], Awaitable[list[str]]], own: Database, work: Work) -> list[str]:
        await commit(own, work)
        raise ConnectionError("lost")

    async def unknown(_: Database, __: Work) -> None:
        raise StoreUnreachable("away")

    async with process(store_url, tmp_path / "one") as one:
        seen = await watched(one)
        await weathers(one, "manual")
        commit = Database.commit
        with monkeypatch.context() as lost:
            lost.setattr(running, "LOOKING", 0)
            lost.setattr(Database, "commit", lambda own, work: stored(commit, own, work))
            lost.setattr(Database, "outcome", unknown)
            await one.answer("PUT", "settings", {"progression": "immediate"})
        await weathers(one, "manual")
        assert seen == [("settings", "changed")] * 3


@pytest.mark.usefixtures("no_looks")
async def test_a_stream_shows_requests_from_its_begin_on_and_says_where_some_are_missing(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MOST_EXCHANGES", 3)
    async with process(store_url, tmp_path / "one") as one, process(store_url, tmp_path / "two") as two:
        await requests(one, 1)
        seen = await watched(two)
        await two.turns._upkeep._look()
        assert seen == []
        await requests(one, 2)
        await two.turns._upkeep._look()
        assert seen == [("request", 400)] * 2
        await requests(one, 4)
        await two.turns._upkeep._look()
        assert seen[2:] == [MISSED, *[("request", 400)] * 3]


async def requests(one: Process, count: int) -> None:
    for _ in range(count):
        await one.go_on(Request("GET", "/v1/consents/none", HEADERS))


async def checkpointed(store_url: str, one: Process) -> None:
    """Wait until the checkpoint that is due is written and the changes before it are deleted."""
    await asyncio.gather(*(task for task in one.turns._upkeep._tasks if task is not one.turns._upkeep._watching))
    async with await psycopg.AsyncConnection.connect(store_url) as connection:
        cursor = await connection.execute("SELECT count(*) FROM bank_emulator.change WHERE bank = 'default'")
        assert await cursor.fetchone() == (0,)
