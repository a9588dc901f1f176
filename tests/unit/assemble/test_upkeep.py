"""A snapshot is written beside the requests: it rests between bits of work, unless the server waits for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event

import pytest

from emulator.api.messages import Request, Response
from emulator.assemble.turns import Turns
from emulator.store import Document, Documents, Kind, journal_log, open_store
from emulator.store.journal import SNAPSHOT
from tests.e2e.serving import MadeUpSite

NOTE = Kind[Document]("note")


def turns_over(documents: Documents) -> Turns:
    """Turns in which each request adds a note."""
    site = MadeUpSite()
    site.store = documents

    def write(_request: Request) -> Response:
        documents.put(NOTE, {"id": f"n{documents.sequence}"})
        return Response(201)

    site.answers["/write"] = write
    return site.turn()


async def test_a_compaction_rests_and_is_left_when_the_server_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_log, "SMALL_JOURNAL", 0)
    documents = open_store(tmp_path, (NOTE,))
    with documents.transaction():
        for number in range(2000):
            documents.put(NOTE, {"id": str(number)})
    turns, resting = turns_over(documents), Event()
    wait = turns._ending.wait

    def rest(seconds: float | None = None) -> bool:
        resting.set()
        return wait(None if not turns._ending.is_set() else seconds)

    monkeypatch.setattr(turns._ending, "wait", rest)
    turns.handle(Request("GET", "/write"))
    turns.end()
    (task,) = turns._compactions
    assert await asyncio.get_running_loop().run_in_executor(None, resting.wait, 10)
    documents.put(NOTE, {"id": "meanwhile"})
    assert not (tmp_path / SNAPSHOT).exists()
    turns.stop()
    await task
    assert not (tmp_path / SNAPSHOT).exists()
    documents.close()
    assert [path.name for path in tmp_path.glob("documents*")] == [SNAPSHOT]
    assert open_store(tmp_path, (NOTE,)).get(NOTE, "meanwhile")


async def test_who_waits_for_the_fsync_of_a_bank_that_is_deleted_meanwhile_is_answered(tmp_path: Path) -> None:
    documents = open_store(tmp_path, (NOTE,), durability="power")
    documents.put(NOTE, {"id": "1"})
    first = asyncio.ensure_future(documents.log.durable(1))
    second = asyncio.ensure_future(documents.log.durable(1))
    await asyncio.sleep(0)  # the first has begun its fsync, the second waits for its turn
    documents.put(NOTE, {"id": "2"})
    third = asyncio.ensure_future(documents.log.durable(2))
    documents.discard()
    assert await asyncio.gather(first, second, third) == [None, None, None]


async def test_with_power_a_compaction_begins_behind_an_fsync_and_not_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure is told once: to the fsync of the compaction, or to the one beside it."""
    monkeypatch.setattr(journal_log, "SMALL_JOURNAL", 0)
    documents = open_store(tmp_path, (NOTE,), durability="power")
    turns = turns_over(documents)
    turns.handle(Request("GET", "/write"))
    ended = turns.end()
    assert asyncio.iscoroutine(ended)
    waiting = asyncio.ensure_future(ended)
    await asyncio.sleep(0)
    assert (documents.log.compaction_due, documents.log.synced) == (True, 0)
    await waiting
    assert not documents.log.compaction_due
    await asyncio.gather(*turns._compactions)
    assert (tmp_path / SNAPSHOT).exists()
    documents.put(NOTE, {"id": "2", "text": "x" * 1000})
    assert documents.log.compaction_due  # the one that has ended stands in no other's way
    documents.close()


async def test_what_falls_due_compacts_and_so_does_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bank to which nobody writes has a journal all the same."""
    monkeypatch.setattr(journal_log, "SMALL_JOURNAL", 0)
    documents = open_store(tmp_path, (NOTE,))
    turns = turns_over(documents)
    [service] = turns._registry.services()
    await turns.change(service, lambda: documents.put(NOTE, {"id": "due"}))
    assert not documents.log.compaction_due
    await asyncio.gather(*turns._compactions)
    assert (tmp_path / SNAPSHOT).exists()
    documents.close()
