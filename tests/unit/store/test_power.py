"""Durability `power`: an answer may leave once an fsync has covered its change."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from emulator.store import Documents, StoreDamaged, StoreUnwritable, memory_store, open_store
from tests.unit.store.making import BOOK, KINDS, TroubledDisk, answers, book, copy_of, failing, some_books


@pytest.fixture
def store(directory: Path, disk: TroubledDisk) -> Documents:
    return open_store(directory, KINDS, "power", disk=disk)


def test_process_durability_needs_no_fsync(directory: Path) -> None:
    disk = TroubledDisk()
    store = open_store(directory, KINDS, "process", disk=disk)
    store.put(BOOK, book("b1"))
    assert not store.log.sync_needed
    store.log.sync()
    assert "sync" not in disk.calls


def test_one_fsync_covers_all_that_wait_when_it_begins(store: Documents, disk: TroubledDisk) -> None:
    assert not store.log.sync_needed
    for document in some_books(3):
        store.put(BOOK, document)
    assert store.log.sync_needed
    assert store.log.synced == 0
    ticket = store.log.begin_sync()
    assert ticket.sequence == 3
    store.put(BOOK, book("after"))
    disk.watch()
    ticket.run()
    assert disk.calls == ["sync"]
    store.log.finish_sync(ticket)
    assert store.log.synced == 3
    assert store.log.sync_needed, "the change after it waits"
    disk.watch()
    store.log.sync()
    assert disk.calls == ["sync"]
    assert not store.log.sync_needed


def test_a_failed_fsync_undoes_what_it_should_have_covered_and_stops_writing(
    store: Documents, disk: TroubledDisk, directory: Path
) -> None:
    for document in some_books():
        store.put(BOOK, document)
    store.log.sync()
    before, number = answers(store), store.sequence
    store.put(BOOK, book("b1", author="changed", year=1))
    store.delete(BOOK, "b2")
    store.restore(memory_store(KINDS).image())
    store.put(BOOK, book("new"))
    disk.trouble = failing("sync", error=errno.EIO)
    ticket = store.log.begin_sync()
    ticket.run()
    store.put(BOOK, book("begun before the failure was known"))
    with pytest.raises(StoreUnwritable, match="until a restart"):
        store.log.finish_sync(ticket)
    assert (answers(store), store.sequence) == (before, number)
    disk.trouble = lambda _: None
    for _ in range(2):
        with pytest.raises(StoreUnwritable, match="until a restart"):
            store.put(BOOK, book("new"))
        assert not store.log.sync_needed
        assert not store.log.compaction_due
    assert answers(store) == before
    store.log.sync()
    store.close()
    again = open_store(directory, KINDS, "power")
    assert (answers(again), again.sequence) == (before, number)
    again.put(BOOK, book("new"))
    again.log.sync()
    again.close()


def test_a_compaction_begins_with_what_waits_synced(store: Documents, disk: TroubledDisk) -> None:
    """Or a power cut could leave the new journal file without the end of the old one."""
    for document in some_books():
        store.put(BOOK, document)
    disk.watch()
    compaction = store.log.begin_compaction()
    assert disk.calls == ["sync", "open_to_append", "sync_directory"], "no change is in a file without a durable name"
    assert store.log.synced == 5
    store.put(BOOK, book("after"))
    disk.watch()
    store.log.sync()
    assert disk.calls == ["sync"]
    compaction.run()
    store.log.finish_compaction(compaction)
    store.put(BOOK, book("later"))
    disk.watch()
    store.log.sync()
    assert disk.calls == ["sync"]
    assert store.log.synced == 7


def test_a_ticket_from_before_a_compaction_is_finished_after_it_began(store: Documents) -> None:
    store.put(BOOK, book("b1"))
    ticket = store.log.begin_sync()
    compaction = store.log.begin_compaction()
    store.put(BOOK, book("b2"))
    ticket.run()
    store.log.finish_sync(ticket)
    assert store.log.synced == 1
    compaction.run()
    store.log.finish_compaction(compaction)
    store.log.sync()
    assert store.log.synced == 2


def test_a_compaction_that_cannot_sync_does_not_begin(store: Documents, disk: TroubledDisk, directory: Path) -> None:
    store.put(BOOK, book("b1"))
    store.log.sync()
    store.put(BOOK, book("b2"))
    ticket = store.log.begin_sync()
    disk.trouble = failing("sync", error=errno.EIO)
    with pytest.raises(StoreUnwritable):
        store.log.begin_compaction()
    disk.trouble = lambda _: None
    ticket.run()
    with pytest.raises(StoreUnwritable):
        store.log.finish_sync(ticket)
    with pytest.raises(StoreUnwritable, match="until a restart"):
        store.put(BOOK, book("b3"))
    assert [b["id"] for b in store.all(BOOK)] == ["b1"]
    store.close()
    assert [b["id"] for b in open_store(directory, KINDS).all(BOOK)] == ["b1"]


@pytest.mark.parametrize("placed_before", [False, True])
def test_a_failed_fsync_beside_a_compaction_leaves_one_truth(
    store: Documents, disk: TroubledDisk, directory: Path, placed_before: bool
) -> None:
    store.put(BOOK, book("b1"))
    compaction = store.log.begin_compaction()
    store.put(BOOK, book("b2"))
    if placed_before:
        compaction.run()
    disk.trouble = failing("sync", error=errno.EIO)
    with pytest.raises(StoreUnwritable):
        store.log.sync()
    disk.trouble = lambda _: None
    if not placed_before:
        compaction.run()
    assert compaction.placed
    store.log.finish_compaction(compaction)
    assert [b["id"] for b in store.all(BOOK)] == ["b1"]
    assert store.sequence == store.log.synced == 1
    assert [b["id"] for b in open_store(copy_of(directory), KINDS).all(BOOK)] == ["b1"]
    store.close()
    assert [b["id"] for b in open_store(directory, KINDS).all(BOOK)] == ["b1"]


def test_what_a_killed_process_wrote_is_synced_at_the_next_start(store: Documents, directory: Path) -> None:
    store.put(BOOK, book("b1"))
    disk = TroubledDisk()
    again = open_store(copy_of(directory), KINDS, "power", disk=disk)
    assert "sync" in disk.calls
    assert again.log.synced == again.sequence == 1


def test_close_syncs_what_waits(store: Documents, disk: TroubledDisk) -> None:
    store.put(BOOK, book("b1"))
    disk.trouble = failing("rename")
    disk.watch()
    store.close()
    assert disk.calls.index("sync") < disk.calls.index("rename")
    assert store.log.synced == 1


def test_close_with_a_failing_fsync_lets_go_all_the_same(
    store: Documents, disk: TroubledDisk, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store.put(BOOK, book("b1"))
    store.log.sync()
    store.put(BOOK, book("never acknowledged"))
    disk.trouble = failing("sync", error=errno.EIO)
    store.close()
    assert "an fsync failed" in caplog.text
    again = open_store(directory, KINDS)
    assert [b["id"] for b in again.all(BOOK)] == ["b1"]
    again.close()


def test_an_fsync_under_way_is_of_the_file_that_it_began_with(store: Documents, directory: Path) -> None:
    """A closed file's number may be that of another one by then."""
    store.put(BOOK, book("b1"))
    ticket = store.log.begin_sync()
    store.log.compact()
    assert [path.name for path in directory.glob("journal-*")] == ["journal-000000000002.jsonl"]
    assert "(deleted)" in str(Path(f"/proc/self/fd/{ticket.journal.file}").readlink())
    store.close()
    ticket.run()
    assert ticket.failed is None


def test_a_page_of_the_last_batch_that_is_lost_is_a_torn_tail(tmp_path: Path) -> None:
    """The medium may take the pages of what was never synced in any order."""
    directory = tmp_path / "bank"
    store = open_store(directory, KINDS, "power")
    for number in range(3):
        store.put(BOOK, book(f"synced {number}"))
    store.log.sync()
    for number in range(6):
        store.put(BOOK, book(f"batch {number}", text="x" * 2000))
    store.log.discard()
    (journal,) = directory.glob("journal-*.jsonl")
    data = journal.read_bytes()
    end = data.index(b"batch 0")
    for page in range(0, len(data), 512):
        lost = data[:page] + bytes(len(data[page : page + 512])) + data[page + 512 :]
        journal.write_bytes(lost)
        if page + 512 <= data.rindex(b"\n", 0, end):
            with pytest.raises(StoreDamaged):
                open_store(directory, KINDS, "power")
        elif page > end:
            store = open_store(directory, KINDS, "power")
            assert [b["id"] for b in store.all(BOOK)][:3] == ["synced 0", "synced 1", "synced 2"]
            assert 3 <= store.count(BOOK) < 9
            store.log.discard()


def test_a_record_that_is_bad_before_what_was_synced_is_damage(tmp_path: Path) -> None:
    directory = tmp_path / "bank"
    store = open_store(directory, KINDS, "power")
    store.put(BOOK, book("b1"))
    store.log.sync()
    store.put(BOOK, book("b2"))
    store.log.sync()
    store.put(BOOK, book("b3"))
    store.log.discard()
    (journal,) = directory.glob("journal-*.jsonl")
    data = journal.read_bytes()
    journal.write_bytes(data.replace(b'"b2"', b'"bX"'))
    with pytest.raises(StoreDamaged, match="a valid record follows"):
        open_store(directory, KINDS, "power")
