"""With `--durability power` an answer leaves after the fsync that covers it (flags.md)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest

from emulator.api.messages import Request, Response
from emulator.store import Document, Documents, Kind, open_store
from emulator.store.disk import Disk
from tests.e2e.serving import MadeUpSite, Served, both_loops, get, serving

NOTE = Kind[Document]("note")
KINDS = (NOTE,)


class WatchedDisk(Disk):
    """Counts fsyncs of files, holds them back while `open` is clear, and fails them on demand."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.began = threading.Event()
        self.syncs = 0
        self.failing = False
        self.let_go = True

    def sync(self, file: int) -> None:
        self.began.set()
        self.let_go &= self.open.wait(5)
        self.syncs += 1
        if self.failing:
            self.failing = False  # the disk says so once and forgets what it lost
            raise OSError(5, "Input/output error")
        super().sync(file)


@asynccontextmanager
async def writing(
    folder: Path, disk: WatchedDisk, durability: Literal["process", "power"] = "power"
) -> AsyncIterator[tuple[MadeUpSite, Documents, Served]]:
    application = MadeUpSite()
    store = application.store = open_store(folder, KINDS, durability, disk=disk)

    def write(request: Request) -> Response:
        store.put(NOTE, {"id": str(len(application.requests)), "text": "x" * 200})
        return Response(201, [("X-Request-ID", "7")], b"written")

    def count(request: Request) -> Response:
        return Response(200, [], str(store.count(NOTE)).encode())

    application.answers.update({"/write": write, "/count": count})
    async with serving(application) as served:
        yield application, store, served
    store.close()


@both_loops
async def test_one_fsync_serves_all_that_wait_for_it(tmp_path: Path) -> None:
    disk = WatchedDisk()
    async with writing(tmp_path, disk) as (application, _, served):
        clients = [await served.connect() for _ in range(20)]
        disk.open.clear()
        before = disk.syncs
        for client in clients:
            await client.send(get("/write"))
        while len(application.requests) < 20:
            await asyncio.sleep(0)
        assert all(not client.reader._buffer for client in clients)
        disk.open.set()
        answers = [await client.answer() for client in clients]
        assert {answer.status for answer in answers} == {201}
        assert 1 <= disk.syncs - before <= 3


@both_loops
async def test_a_head_that_grows_too_large_behind_an_owed_answer_is_read_no_further(tmp_path: Path) -> None:
    disk = WatchedDisk()
    async with writing(tmp_path, disk) as (application, _, served):
        client, other = await served.connect(), await served.connect()
        disk.open.clear()
        await client.send(get("/write"))
        while not application.requests:
            await asyncio.sleep(0)
        await client.send(b"GET / HTTP/1.1\r\n" + (b"X-A: " + b"a" * 15000 + b"\r\n") * 50)
        for _ in range(20):  # the server has read what was sent before these
            assert (await other.ask(get("/"))).status == 200
        disk.open.set()
        assert [(await client.answer()).status for _ in range(2)] == [201, 431]
        assert await client.until_closed() == b""
    assert disk.let_go


@both_loops
async def test_process_durability_waits_for_no_disk(tmp_path: Path) -> None:
    disk = WatchedDisk()
    async with writing(tmp_path, disk, "process") as (_, _, served):
        before = disk.syncs
        client = await served.connect()
        assert (await client.ask(get("/write"))).status == 201
        assert disk.syncs == before


@both_loops
async def test_after_a_failed_fsync_nothing_is_acknowledged_and_reads_go_on(tmp_path: Path) -> None:
    disk = WatchedDisk()
    async with writing(tmp_path, disk) as (application, _, served):
        clients = [await served.connect() for _ in range(5)]
        disk.failing = True
        disk.open.clear()
        for client in clients:
            await client.send(get("/write"))
        while len(application.requests) < 5:
            await asyncio.sleep(0)
        disk.open.set()
        for client in clients:
            answer = await client.answer()
            assert (answer.status, answer.header("X-Request-ID")) == (503, "7")
            assert answer.json()["tppMessages"][0]["code"] == "SYSTEM_ERROR"
        await clients[0].send(get("/count"))
        assert (await clients[0].answer()).body == b"0"


@both_loops
@pytest.mark.parametrize("durability", ["process", "power"])
async def test_a_compaction_holds_up_no_request(tmp_path: Path, durability: Literal["process", "power"]) -> None:
    disk = WatchedDisk()
    async with writing(tmp_path, disk, durability) as (application, store, served):
        client = await served.connect()
        n = 0
        while not store.log.compaction_due:
            n += 1
            store.put(NOTE, {"id": str(n % 7), "text": f"{n:1000000}"})
        store.log.sync()
        disk.began.clear()
        disk.open.clear()
        application.turn().start()
        await client.send(get("/count") * 9)
        assert {(await client.answer()).status for _ in range(9)} == {200}
        await asyncio.get_running_loop().run_in_executor(None, disk.began.wait, 10)
        assert (await client.ask(get("/count"))).status == 200
        disk.open.set()
        assert (await client.ask(get("/count"))).body == str(min(n, 7)).encode()
    assert disk.let_go
    assert not store.log.compaction_due
