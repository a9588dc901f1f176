"""A snapshot is written beside the requests: it rests between bits of work, unless the server waits for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event

import pytest

from emulator.assemble import turns
from emulator.assemble.turns import Upkeep
from emulator.store import Document, Kind, Store, journal_log, open_store
from emulator.store.recovery import SNAPSHOT

NOTE = Kind[Document]("note")


@pytest.fixture
def documents(tmp_path: Path) -> Store:
    store = open_store(tmp_path, (NOTE,))
    with store.transaction():
        for number in range(2000):
            store.put(NOTE, {"id": str(number)})
    return store


async def test_a_compaction_rests_and_is_left_when_the_server_ends(
    documents: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resting = Event()
    monkeypatch.setattr(turns, "WORK", 0.0)
    work = Upkeep()
    wait = work._ending.wait

    def rest(seconds: float | None = None) -> bool:
        resting.set()
        return wait(None if not work._ending.is_set() else seconds)

    monkeypatch.setattr(work._ending, "wait", rest)
    documents.log._compact_at = 0
    work._compact_if_due(documents)
    (task,) = work._compactions
    assert await asyncio.get_running_loop().run_in_executor(None, resting.wait, 10)
    documents.put(NOTE, {"id": "meanwhile"})
    assert not (tmp_path / SNAPSHOT).exists()
    work.end()
    await task
    assert not (tmp_path / SNAPSHOT).exists()
    documents.close()
    assert [path.name for path in tmp_path.glob("documents*")] == [SNAPSHOT]
    assert open_store(tmp_path, (NOTE,)).get(NOTE, "meanwhile")


def test_a_compaction_pauses_briefly_while_the_process_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    worked = used = now = 0.0
    pauses: list[float] = []

    class Ending(Event):
        def wait(self, timeout: float | None = None) -> bool:
            nonlocal used, now
            assert timeout is not None
            pauses.append(timeout)
            now += timeout
            used += timeout * next(busy)
            return False

    monkeypatch.setattr(turns, "thread_time", lambda: worked)
    monkeypatch.setattr(turns, "process_time", lambda: used)
    monkeypatch.setattr(turns, "monotonic", lambda: now)
    busy = iter((0.9, 0.0, 0.01, 0.5, 0.0))  # of a core, during each pause
    pause = turns.pauses(Ending())
    pause()
    for _ in range(5):
        worked += turns.WORK
        pause()
    pauses = [round(pause / turns.WORK) for pause in pauses]
    assert pauses == [turns.PAUSE, turns.PAUSE, turns.IDLE_PAUSE, turns.IDLE_PAUSE, turns.PAUSE]


async def test_who_waits_for_the_fsync_of_a_bank_that_is_deleted_meanwhile_is_answered(tmp_path: Path) -> None:
    documents = open_store(tmp_path, (NOTE,), durability="power")
    work = Upkeep()
    documents.put(NOTE, {"id": "1"})
    first = asyncio.ensure_future(work.durable(documents, 1))
    second = asyncio.ensure_future(work.durable(documents, 1))
    await asyncio.sleep(0)  # the first has begun its fsync, the second waits for its turn
    documents.put(NOTE, {"id": "2"})
    third = asyncio.ensure_future(work.durable(documents, 2))
    documents.discard()
    assert await asyncio.gather(first, second, third) == [None, None, None]


async def test_with_power_a_compaction_begins_behind_an_fsync_and_not_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure is told once: to the fsync of the compaction, or to the one beside it."""
    monkeypatch.setattr(journal_log, "SMALL_JOURNAL", 0)
    documents = open_store(tmp_path, (NOTE,), durability="power")
    work = Upkeep()
    documents.put(NOTE, {"id": "1"})
    waiting = asyncio.ensure_future(work.durable(documents, 1))
    await asyncio.sleep(0)
    assert (documents.log.compaction_due, documents.log.synced) == (True, 0)
    await waiting
    assert not documents.log.compaction_due
    await asyncio.gather(*work._compactions)
    assert (tmp_path / SNAPSHOT).exists()
    documents.put(NOTE, {"id": "2", "text": "x" * 1000})
    assert documents.log.compaction_due  # the one that has ended stands in no other's way
    documents.close()
