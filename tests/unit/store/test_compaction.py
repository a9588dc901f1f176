"""Renewing the snapshot while changes go on."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from emulator.store import (
    Documents,
    StoreUnwritable,
    journal_log,
    memory_store,
    open_store,
    snapshot,
)
from emulator.store.snapshot import snapshot_bytes
from tests.unit.store.making import (
    BOOK,
    KINDS,
    NOTE,
    TroubledDisk,
    answers,
    book,
    copy_of,
    failing,
    image_from_bytes,
    some_books,
)


@pytest.fixture
def store(directory: Path, disk: TroubledDisk) -> Documents:
    """More books than are written at once."""
    store = open_store(directory, KINDS, disk=disk)
    with store.transaction():
        for document in some_books(300):
            store.put(BOOK, document)
    return store


def stored(directory: Path) -> dict[str, dict[str, dict[str, object]]]:
    tables: dict[str, dict[str, dict[str, object]]] = json.loads((directory / "documents.json").read_bytes())
    return tables


def test_the_snapshot_is_the_content_at_its_beginning(store: Documents, directory: Path) -> None:
    before = list(store.all(BOOK))
    compaction = store.log.begin_compaction()
    store.put(BOOK, book("b1", author="changed"))
    store.put(BOOK, book("b1", author="changed again"))
    store.delete(BOOK, "b2")
    store.put(BOOK, book("b2", author="reborn"))
    with suppress(ZeroDivisionError), store.transaction():
        store.delete(BOOK, "b3")
        store.put(BOOK, book("b4", author="undone"))
        raise ZeroDivisionError
    store.put(NOTE, {"id": "new"})
    compaction.run()
    assert list(stored(directory)["book"].values()) == before
    assert stored(directory)["note"] == {}
    store.log.finish_compaction(compaction)
    store.put(NOTE, {"id": "newer"})
    assert answers(open_store(copy_of(directory), KINDS)) == answers(store)


def test_the_old_journal_goes_and_the_new_one_stays(store: Documents, directory: Path) -> None:
    compaction = store.log.begin_compaction()
    store.put(NOTE, {"id": "n"})
    compaction.run()
    store.log.finish_compaction(compaction)
    assert [path.name for path in directory.glob("journal-*")] == ["journal-000000000002.jsonl"]


def test_it_is_due_when_the_journal_has_outgrown_the_snapshot(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = 1 << 16
    monkeypatch.setattr(journal_log, "SMALL_JOURNAL", small)
    store = open_store(directory, KINDS)
    store.put(NOTE, {"id": "half", "text": "x" * (small // 2)})
    assert not store.log.compaction_due
    store.put(NOTE, {"id": "more", "text": "x" * (small // 2)})
    assert store.log.compaction_due
    compaction = store.log.begin_compaction()
    assert not store.log.compaction_due, "it is in progress"
    with pytest.raises(RuntimeError, match="in progress"):
        store.log.begin_compaction()
    compaction.run()
    store.log.finish_compaction(compaction)
    assert not store.log.compaction_due
    store.put(NOTE, {"id": "large", "text": "x" * (20 * small)})
    store.log.compact()
    store.put(NOTE, {"id": "large", "text": "y" * (3 * small // 2)})
    assert not store.log.compaction_due, "the snapshot is more than twelve times as large as this"
    store.put(NOTE, {"id": "large", "text": "z" * (3 * small // 2)})
    assert store.log.compaction_due
    store.close()


@pytest.mark.parametrize("call", ["create", "write", "write_at", "sync", "rename", "sync_directory", "remove"])
def test_a_failed_compaction_leaves_everything_valid(
    disk: TroubledDisk, directory: Path, call: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(directory, KINDS, disk=disk)
    for document in some_books(9):
        store.put(BOOK, document)
    compaction = store.log.begin_compaction()
    disk.trouble = failing(call)
    compaction.run()
    disk.trouble = lambda _: None
    store.log.finish_compaction(compaction)
    assert "could not be renewed" in caplog.text
    assert not list(directory.glob("*.new")) or call == "remove"
    store.put(NOTE, {"id": "n"})
    assert answers(open_store(copy_of(directory), KINDS)) == answers(store)
    store.log.compact()
    assert answers(open_store(copy_of(directory), KINDS)) == answers(store)


def test_after_a_failure_the_next_attempt_waits_for_more_journal(
    directory: Path, disk: TroubledDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = 1 << 16
    monkeypatch.setattr(journal_log, "SMALL_JOURNAL", small)
    store = open_store(directory, KINDS, disk=disk)
    store.put(NOTE, {"id": "n", "text": "x" * small})
    disk.trouble = failing("rename")
    store.log.compact()
    assert not store.log.compaction_due
    store.put(NOTE, {"id": "n", "text": "y" * small})
    assert store.log.compaction_due
    disk.trouble = failing("open_to_append")
    with pytest.raises(StoreUnwritable):
        store.log.begin_compaction()
    assert not store.log.compaction_due
    disk.trouble = lambda _: None
    store.log.compact()
    assert answers(open_store(copy_of(directory), KINDS)) == answers(store)


def test_close_overtakes_a_compaction(store: Documents, directory: Path) -> None:
    compaction = store.log.begin_compaction()
    store.put(NOTE, {"id": "n"})
    before = answers(store)
    store.close()
    compaction.run()
    assert not compaction.placed
    store.log.finish_compaction(compaction)
    again = open_store(directory, KINDS)
    assert answers(again) == before
    assert not list(directory.glob("*.new"))
    again.close()


def test_a_compaction_begins_outside_of_transactions(store: Documents) -> None:
    with store.transaction(), pytest.raises(RuntimeError):
        store.log.begin_compaction()


@pytest.mark.parametrize("seed", range(4))
def test_whatever_changes_while_it_is_written_the_snapshot_is_that_of_its_beginning(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "AT_ONCE", 9)
    random = Random(seed)
    store = memory_store(KINDS)

    def put() -> None:
        number = random.randrange(90)
        store.put(BOOK, some_books(90)[number] | {"year": random.randrange(99), "author": f"a{random.randrange(30)}"})

    def undo() -> None:
        with suppress(ZeroDivisionError), store.transaction():
            put()
            store.delete(BOOK, f"b{random.randrange(90)}")
            raise ZeroDivisionError

    def change() -> None:
        random.choices(changes, weights)[0]()

    changes = [
        put,
        lambda: store.delete(BOOK, f"b{random.randrange(90)}"),
        undo,
        lambda: store.delete_several(BOOK, [f"b{random.randrange(90)}" for _ in range(60)]),
        lambda: store.restore(content),
        lambda: store.apply(b'{"sequence":1,"clear":["book"],"put":[["book",3,{"id":"b3","tags":["all"]}]]}'),
    ]
    weights = (60, 25, 10, 1, 1, 0)
    for _ in range(150):
        put()
    content = store.image()
    for _ in range(50):
        change()
    weights = (60, 25, 10, 1, 1, seed % 3)
    before = answers(store)
    written = snapshot_bytes(store.freeze(), pause=change)
    again = memory_store(KINDS)
    again.restore(image_from_bytes(written, KINDS))
    assert answers(again) == before
    assert answers(store) != before
    for document in some_books(90):  # the indexes can be changed further
        again.put(BOOK, document)
        again.delete(BOOK, document["id"])
    assert answers(again)["dump"]["book"] == []


def test_a_snapshot_beside_which_nothing_changes_is_that_of_an_image(store: Documents) -> None:
    store.delete(BOOK, "b7")
    store.put(BOOK, book("b9", author="changed"))
    assert snapshot_bytes(store.freeze()) == snapshot_bytes(store.image().rows)


def test_a_slow_start_is_followed_by_a_compaction(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_log, "SLOW_JOURNAL", 1000)
    store = open_store(directory, KINDS)
    for number in range(20):
        store.put(NOTE, {"id": str(number), "text": "x" * 100})
    assert not store.log.compaction_due
    again = open_store(copy_of(directory), KINDS)
    assert again.log.compaction_due
    again.log.compact()
    assert not again.log.compaction_due
