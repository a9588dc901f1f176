"""A reset to a large content: it is stored between turns, and the turn of the reset only says which one it is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from emulator.assemble.shared import open_bank, upkeep
from emulator.assemble.shared.shared_store import SharedStore, check

from emulator.api.messages import Request, Response, Unfinished
from emulator.bank import fixtures, snapshots
from emulator.store import StoreUnwritable
from emulator.store.postgres import Pool, pool
from tests.postgres.process import HEADERS, Process, process
from tests.postgres.server import own_folder, running
from tests.postgres.test_events import watched, weathers
from tests.postgres.test_turns import SCHEMA, customers
from tests.postgres.wire import Loop, Proxy


@pytest.fixture
async def one(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Process]:
    """A process to which every content is large."""
    monkeypatch.setattr(upkeep, "PAUSE", 3600)
    monkeypatch.setattr(snapshots, "LARGE", 0)
    monkeypatch.setattr(fixtures, "LARGE", 0)
    monkeypatch.setattr(fixtures, "_IMAGES", type(fixtures._IMAGES)())
    async with process(store_url, tmp_path / "one") as one:
        yield one


async def rows(store_url: str, statement: str) -> list[Any]:
    async with await psycopg.AsyncConnection.connect(store_url) as connection:
        return await (await connection.execute(statement.replace("{schema}", SCHEMA))).fetchall()


def contents(one: Process) -> dict[str, list[bytes]]:
    """The documents of the default bank in memory, by kind."""
    return {
        name: list(table.rows.values()) for name, table in one.registry.open_banks["default"].documents.tables.items()
    }


async def rested(one: Process) -> None:
    """Wait until nothing is done after the answers."""
    await asyncio.gather(*(task for task in one.turns._upkeep._tasks if task is not one.turns._upkeep._watching))


async def problems(store_url: str) -> list[str]:
    checked = await asyncio.to_thread(check, SharedStore(store_url, SCHEMA))
    return [problem for bank in checked for problem in bank.problems]


async def progression(one: Process) -> str:
    name: str = (await one.control("GET", "settings"))["progression"]
    return name


async def changed_and_restored(one: Process) -> None:
    await weathers(one, "manual")
    await one.control("PUT", "snapshots/first", status=201)
    await weathers(one, "immediate")
    await one.control("POST", "snapshots/first/restore")


async def test_a_restore_writes_the_name_of_its_content_and_every_process_has_it(
    store_url: str, tmp_path: Path, one: Process
) -> None:
    async with process(store_url, tmp_path / "two") as two:
        await two.control("GET", "clock")
        await changed_and_restored(one)
        await one.control("PUT", "settings", {"conformance": False})
        await rested(one)
        [(sequence, checkpoint)] = await rows(
            store_url, "SELECT sequence, checkpoint FROM {schema}.bank WHERE name = 'default'"
        )
        assert checkpoint == sequence - 2
        restore, _ = await rows(
            store_url, f"SELECT body FROM {{schema}}.change WHERE bank = 'default' AND sequence > {checkpoint}"
        )
        assert b'"content":"-' in restore[0]
        assert len(restore[0]) < 2000
        assert await rows(store_url, "SELECT DISTINCT sequence FROM {schema}.checkpoint") == [(checkpoint,)]
        assert await problems(store_url) == []
        async with process(store_url, tmp_path / "three") as three:
            for each in (one, two, three):
                assert await progression(each) == "manual"
                assert contents(each) == contents(one)


async def test_a_checkpoint_of_the_content_before_gives_way(
    store_url: str, tmp_path: Path, one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number may be that which the new content gets."""
    await weathers(one, "manual")
    await one.control("PUT", "snapshots/first", status=201)
    await weathers(one, "immediate")
    monkeypatch.setattr(open_bank, "CHECKPOINT", 1)
    request = Request("POST", "/_emulator/snapshots/first/restore", HEADERS, b"{}")
    latest = False
    while isinstance(answer := await one.go_on(request), Unfinished):
        one.registry.open_banks["default"].weight = 0
        await rested(one)
        [(latest,)] = await rows(store_url, "SELECT sequence = checkpoint FROM {schema}.bank WHERE name = 'default'")
    assert latest, "there was none of the last change before the restore"
    assert isinstance(answer, Response)
    assert answer.status == 200
    async with process(store_url, tmp_path / "two") as two:
        assert await progression(two) == await progression(one) == "manual"
    assert await problems(store_url) == []


async def test_a_bank_begins_with_a_large_fixture(store_url: str, tmp_path: Path, one: Process) -> None:
    await one.control("PUT", "banks/red", {"fixtures": "household"}, status=201)
    count = await customers(one, bank="red")
    async with process(store_url, tmp_path / "two") as two:
        assert await customers(two, bank="red") == count
        assert count > 0
        await one.control("POST", "reset", {"fixtures": "empty"}, bank="red")
        assert await customers(two, bank="red") == 0
        await two.control("DELETE", "banks/red", status=204)
    names = await rows(store_url, "SELECT DISTINCT bank FROM {schema}.checkpoint ORDER BY bank")
    assert ("red",) not in names
    assert await problems(store_url) == []


async def test_a_bank_is_created_though_another_of_its_name_came_and_went_meanwhile(
    store_url: str, tmp_path: Path, one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged, goes_on = threading.Event(), threading.Event()
    stage = Pool.stage_content

    def first_waits(own: Pool, bank: str, content: bytes) -> str:
        name = stage(own, bank, content)
        if not staged.is_set():
            staged.set()
            goes_on.wait(60)
        return name

    monkeypatch.setattr(Pool, "stage_content", first_waits)
    async with process(store_url, tmp_path / "two") as two:
        creation = asyncio.ensure_future(one.control("PUT", "banks/red", {"fixtures": "household"}, status=201))
        assert await asyncio.to_thread(staged.wait, 60)
        await two.control("PUT", "banks/red", {"fixtures": "empty"}, status=201)
        await two.control("DELETE", "banks/red", status=204)
        goes_on.set()
        await creation
        assert await customers(two, bank="red") == await customers(one, bank="red") > 0
    assert await problems(store_url) == []


async def test_others_see_the_events_of_a_restore_and_of_what_came_before(
    store_url: str, tmp_path: Path, one: Process
) -> None:
    async with process(store_url, tmp_path / "two") as two:
        here, there = await watched(one), await watched(two)
        await changed_and_restored(one)
        await weathers(one, "immediate")
        await two.turns._upkeep._look()
        assert there == [event for event in here if event[0] != "request"]
        assert ("settings", "changed") in there


async def test_others_have_the_bank_while_a_content_is_stored(
    store_url: str, tmp_path: Path, one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    stage = Pool.stage_content

    def when_allowed(own: Pool, bank: str, content: bytes) -> str:
        goes_on.wait(60)
        return stage(own, bank, content)

    monkeypatch.setattr(Pool, "stage_content", when_allowed)
    await one.control("PUT", "snapshots/first", status=201)
    async with process(store_url, tmp_path / "two") as two:
        request = Request("POST", "/_emulator/snapshots/first/restore", HEADERS, b"{}")
        assert isinstance(await one.go_on(request), Unfinished)
        restored = one.go_on(request)
        await weathers(two, "manual")
        assert await progression(one) == "manual"
        assert not restored.done()
        goes_on.set()
        while isinstance(answer := await restored, Unfinished):
            restored = one.go_on(request)
        assert isinstance(answer, Response)
        assert answer.status == 200
        assert await progression(two) == await progression(one) != "manual"


async def test_a_content_that_is_gone_is_a_refusal_and_changes_nothing(
    store_url: str, one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    await one.control("PUT", "snapshots/first", status=201)
    await weathers(one, "manual")
    with monkeypatch.context() as gone:
        gone.setattr(Pool, "stage_content", lambda *_: "-7")
        await one.control("POST", "snapshots/first/restore", status=503)
    assert await progression(one) == "manual"
    assert await problems(store_url) == []
    await one.control("POST", "snapshots/first/restore")
    assert await progression(one) != "manual"


async def test_contents_that_no_turn_has_placed_are_deleted_after_a_day(
    store_url: str, one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process leaves them that is killed before its turn."""
    documents = "SELECT * FROM {schema}.document ORDER BY kind, id"
    before = await rows(store_url, documents)
    own = Pool(store_url, SCHEMA)
    older = await asyncio.to_thread(own.stage_content, "default", b"{}")
    later = await asyncio.to_thread(own.stage_content, "default", b"{}")
    staged = "SELECT sequence FROM {schema}.checkpoint WHERE sequence < 0 ORDER BY sequence DESC"
    assert await rows(store_url, staged) == [(int(older),), (int(later),)]
    assert await rows(store_url, documents) == before
    await changed_and_restored(one)
    await rested(one)
    assert await rows(store_url, staged) == [(int(older),), (int(later),)]
    monkeypatch.setattr(pool, "_STAYS", 0)
    last = await asyncio.to_thread(own.stage_content, "default", b"{}")
    assert await rows(store_url, staged) == [(int(last),)]


async def test_a_content_is_given_up_where_the_server_does_not_answer_any_more(
    store_url: str, one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Loop()) as loop:
        proxy = Proxy(loop, int(store_url.rpartition("/")[0].rpartition(":")[2])).start()
        through = Pool(store_url.replace(f":{proxy.target}/", f":{proxy.port}/"), SCHEMA)
        monkeypatch.setattr(pool, "BUSY", 0.5)
        monkeypatch.setattr(pool, "_given_up", stalled(proxy, pool._given_up))
        for stage in (through.stage_content, through.stage_snapshot):
            with pytest.raises(StoreUnwritable):
                await asyncio.wait_for(asyncio.to_thread(stage, "default", b"{}"), 20)
            proxy.flow()
        proxy.stop()
    assert await rows(store_url, "SELECT * FROM {schema}.checkpoint WHERE sequence < 0") == []
    assert await problems(store_url) == []


def stalled(proxy: Proxy, block: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`block`, with the way to the server closed from its start."""

    def start(connection: Any) -> Any:
        proxy.stall()
        return block(connection)

    return start


async def test_a_content_is_stored_at_the_server_that_takes_writes(tmp_path: Path) -> None:
    """A URL may name several servers, of which the first is a standby."""
    with running() as primary, own_folder() as folder:
        standby = primary.standby(folder)
        try:
            url = primary.database()
            several = url.replace("@", f"@127.0.0.1:{standby.port},")
            async with process(several, tmp_path / "one"):
                name = await asyncio.to_thread(Pool(several, SCHEMA).stage_content, "default", b"{}")
            staged = "SELECT sequence FROM {schema}.checkpoint WHERE sequence < 0"
            assert await rows(url, staged) == [(int(name),)]
            await asyncio.to_thread(written_to, SharedStore(several, SCHEMA))
        finally:
            standby.crash()


def written_to(stored: SharedStore) -> None:
    """Write as `state copy` does."""
    with stored.open(writes=True):
        stored.query("DELETE FROM {schema}.checkpoint WHERE sequence < 0")
