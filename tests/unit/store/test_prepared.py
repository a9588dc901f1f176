"""A content that is prepared beside and taken over in a moment: the change names its file, whatever its size."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from emulator.store import (
    Documents,
    Image,
    StoreUnwritable,
    memory_store,
    open_store,
)
from emulator.store.check import repair, verify
from emulator.store.journal_log import JournalLog
from tests.unit.effort import calls
from tests.unit.store.making import (
    BOOK,
    KINDS,
    NOTE,
    TroubledDisk,
    answers,
    book,
    copy_of,
    failing,
    image_of,
    some_books,
)


@pytest.fixture
def store(directory: Path, disk: TroubledDisk) -> Documents:
    store = open_store(directory, KINDS, disk=disk)
    store.put(NOTE, {"id": "before"})
    return store


def images(count: int) -> Image:
    return image_of(KINDS, {BOOK: some_books(count)})


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("content-*"))


def taken_over(store: Documents, prepared: Image) -> None:
    with store.transaction():
        store.put(NOTE, {"id": "lost with all before"})
        store.restore(prepared)
        store.put(BOOK, book("b1", author="changed then"))


def test_it_is_one_change_that_a_restart_repeats_with_what_came_before_and_after(
    store: Documents, directory: Path
) -> None:
    number = store.sequence
    prepared = store.prepare(images(9))
    store.put(NOTE, {"id": "meanwhile"})
    store.put(BOOK, book("b2", author="gone", tags=["gone"], year=1))
    taken_over(store, prepared)
    store.put(NOTE, {"id": "after"})
    store.delete(BOOK, "b3")
    assert store.sequence == number + 5
    assert (store.count(BOOK), [note["id"] for note in store.all(NOTE)]) == (8, ["after"])
    assert answers(open_store(copy_of(directory), KINDS)) == answers(store)


def test_taking_over_takes_the_same_work_however_much_there_is(store: Documents) -> None:
    before, few, many = store.prepare(images(10)), store.prepare(images(10)), store.prepare(images(1000))
    store.restore(before)
    first = calls(lambda: store.restore(few))
    assert calls(lambda: store.restore(many)) <= first
    memory = memory_store(KINDS)
    prepared = memory.prepare(images(1000))
    assert calls(lambda: memory.restore(prepared)) <= first


def test_the_file_goes_with_a_failure_and_with_the_next_snapshot(
    store: Documents, directory: Path, disk: TroubledDisk
) -> None:
    before = answers(store)
    prepared = store.prepare(images(9))
    disk.trouble = failing("write")
    with suppress(StoreUnwritable):
        taken_over(store, prepared)
    assert len(files(directory)) == 1
    del prepared
    assert (answers(store), files(directory)) == (before, [])
    with pytest.raises(StoreUnwritable):
        store.prepare(images(9))
    disk.trouble = lambda _: None
    assert files(directory) == [], "nor does what could not be written stay"
    store.prepare(images(9))
    assert files(directory) == [], "nor what nobody wants any more"
    taken_over(store, store.prepare(images(9)))
    assert len(files(directory)) == 1
    killed = copy_of(directory)
    for place, one in (directory, store), (killed, open_store(killed, KINDS)):
        assert isinstance(one.log, JournalLog)
        one.log.compact()
        assert files(place) == []
    assert answers(open_store(copy_of(directory), KINDS)) == answers(store)


def test_a_large_one_lets_the_journal_be_compacted(store: Documents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.store.journal_log.SMALL_JOURNAL", 10_000)
    assert isinstance(store.log, JournalLog)
    store.log.compact()
    assert not store.log.compaction_due
    store.restore(store.prepare(images(200)))
    assert store.log.compaction_due
    store.log.compact()
    assert not store.log.compaction_due


def test_what_no_change_names_is_cleared_away_by_a_start(store: Documents, directory: Path) -> None:
    prepared = store.prepare(images(9))
    killed = copy_of(directory)
    del prepared
    assert files(killed)
    again = open_store(killed, KINDS)
    assert (files(killed), answers(again)) == ([], answers(store))


@pytest.mark.parametrize("missing", [True, False])
def test_damage_to_it_is_told_and_repaired_to_what_was_before(store: Documents, directory: Path, missing: bool) -> None:
    before = answers(store)
    store.restore(store.prepare(images(9)))
    killed = copy_of(directory)
    (name,) = files(killed)
    if missing:
        (killed / name).unlink()
    else:
        (killed / name).write_bytes((directory / name).read_bytes().replace(b"Title 003", b"Title 004"))
    (finding,) = verify(killed, KINDS).findings
    assert name in finding.reason
    assert repair(killed, KINDS).sound
    assert answers(open_store(killed, KINDS)) == before
