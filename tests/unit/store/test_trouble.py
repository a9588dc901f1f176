"""Disks that are full or fail."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.store import Documents, StoreUnwritable, open_store
from tests.unit.store.making import BOOK, KINDS, NOTE, TroubledDisk, answers, book, copy_of, failing, with_books


@pytest.fixture
def store(directory: Path, disk: TroubledDisk) -> Documents:
    return with_books(directory, disk=disk)


def test_a_full_disk_refuses_the_change_and_keeps_reading(
    store: Documents, disk: TroubledDisk, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before, number = answers(store), store.sequence
    disk.trouble = failing("write")
    with pytest.raises(StoreUnwritable, match="No space left"):
        store.put(BOOK, book("b1", author="changed", year=1))
    with pytest.raises(StoreUnwritable):
        store.delete(BOOK, "b1")
    with pytest.raises(StoreUnwritable):
        store.restore(type(store.image())({}))
    assert (answers(store), store.sequence) == (before, number)
    assert answers(open_store(copy_of(directory), KINDS)) == before
    assert not caplog.records, "the half that was written is cut off"
    disk.trouble = lambda _: None
    store.put(BOOK, book("b1", author="changed", year=1))
    assert store.sequence == number + 1
    assert answers(open_store(copy_of(directory), KINDS)) == answers(store)


def test_half_a_record_that_cannot_be_cut_off_stops_writing_until_it_can(
    store: Documents, disk: TroubledDisk, directory: Path
) -> None:
    before = answers(store)
    disk.trouble = failing("write", "cut", error=errno.EIO)
    with pytest.raises(StoreUnwritable):
        store.put(BOOK, book("new"))
    disk.trouble = failing("cut", error=errno.EIO)
    with pytest.raises(StoreUnwritable):
        store.put(BOOK, book("new"))
    assert answers(store) == before
    assert answers(open_store(copy_of(directory), KINDS)) == before
    disk.trouble = lambda _: None
    store.put(BOOK, book("new"))
    assert answers(open_store(copy_of(directory), KINDS)) == answers(store) != before


def test_half_a_record_is_cut_off_before_the_journal_goes_on_in_a_new_file(
    store: Documents, disk: TroubledDisk, directory: Path
) -> None:
    disk.trouble = failing("write", "cut", error=errno.EIO)
    with pytest.raises(StoreUnwritable):
        store.put(BOOK, book("new"))
    with pytest.raises(StoreUnwritable):
        store.log.begin_compaction()
    disk.trouble = lambda _: None
    store.log.begin_compaction()
    store.put(BOOK, book("new"))
    assert answers(open_store(copy_of(directory), KINDS)) == answers(store)


def test_short_writes_are_continued(store: Documents, disk: TroubledDisk, directory: Path) -> None:
    disk.write_at_most = 7
    store.put(BOOK, book("new", title="x" * 100))
    assert answers(open_store(copy_of(directory), KINDS)) == answers(store)
    store.log.compact()
    assert answers(open_store(copy_of(directory), KINDS)) == answers(store)


def test_a_write_that_writes_nothing_is_refused(store: Documents, disk: TroubledDisk) -> None:
    before = answers(store)
    disk.write_at_most = 0
    with pytest.raises(StoreUnwritable, match="wrote nothing"):
        store.put(BOOK, book("new"))
    assert answers(store) == before


def test_close_on_a_full_disk_loses_nothing(
    store: Documents, disk: TroubledDisk, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = answers(store)
    disk.trouble = failing("write")
    store.close()
    assert "could not be renewed" in caplog.text
    again = open_store(directory, KINDS)
    assert answers(again) == before
    again.close()


LIMITED = """
import resource, signal, sys
from pathlib import Path
from emulator.store import StoreUnwritable, open_store
from tests.unit.store.making import BOOK, KINDS, NOTE, book
directory = Path(sys.argv[1])
store = open_store(directory, KINDS)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
acknowledged = 0
try:
    while True:
        store.put(BOOK, book(f"b{acknowledged}", text="x" * 300))
        acknowledged += 1
except StoreUnwritable:
    assert store.count(BOOK) == acknowledged
store.put(NOTE, {"id": "small"})
print(acknowledged, flush=True)
signal.raise_signal(signal.SIGKILL)
"""


def test_a_file_that_cannot_grow_for_real(directory: Path) -> None:
    """The system's own short write and refusal, then a smaller change that still has room, then a kill."""
    done = subprocess.run([sys.executable, "-c", LIMITED, directory], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    again = open_store(directory, KINDS)
    assert again.count(BOOK) == int(done.stdout) > 5
    assert again.exists(NOTE, "small")
    again.close()
