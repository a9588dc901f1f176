"""A journal cut at every byte, and every byte of it flipped: dropped or refused, never believed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.store import Document, StoreDamaged, StoreTooNew, open_store
from emulator.store.snapshot import snapshot_bytes
from tests.unit.store.making import BOOK, KINDS, NOTE, book, copy_of, image_from_bytes, image_of, records, some_books

State = dict[str, list[Document]]


class Written:
    """A directory as a kill left it, and the states that it passed through."""

    def __init__(self, directory: Path) -> None:
        store = open_store(directory, KINDS)
        for document in some_books(2):
            store.put(BOOK, document)
        store.log.compact()
        self.states: list[State] = [store.dump()]
        store.put(NOTE, {"id": "n1", "amount": "100.00"})
        self.states.append(store.dump())
        with store.transaction():
            store.put(BOOK, book("b1", author="changed", text='"}\n{"crc":"'))
            store.delete(BOOK, "b0")
            store.put(NOTE, {"id": "n1", "amount": "250.00"})
        self.states.append(store.dump())
        with store.transaction():
            for document in some_books(5):
                store.put(BOOK, document)
        self.states.append(store.dump())
        store.restore(image_of(KINDS, {BOOK: [book("b1", author="alone")], NOTE: [{"id": "n1"}]}))
        self.states.append(store.dump())
        store.delete(NOTE, "n1")
        self.states.append(store.dump())
        self.directory = copy_of(directory)
        store.close()
        (self.journal,) = self.directory.glob("journal-*")
        self.data = self.journal.read_bytes()
        self.ends = [*(offset for offset, _ in records(self.data)), len(self.data)]

    def start_with(self, data: bytes) -> tuple[State, int]:
        """The state and change number of a start with this journal."""
        self.journal.write_bytes(data)
        store = open_store(self.directory, KINDS)
        state, number = store.dump(), store.sequence
        # the lock alone: closing would renew the snapshot
        store.log.discard()
        return state, number


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path / "bank")


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING):
        yield caplog


# In every run each byte of the heads of records and of their ends, and every seventh of what they hold.
every_byte = pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
HEAD = 40  # bytes


def places(written: Written, step: int) -> list[int]:
    at = {*range(0, len(written.data), step)}
    for end in written.ends:
        at |= {*range(max(end - 3, 0), min(end + HEAD, len(written.data)))}
    return sorted(at)


@every_byte
def test_a_journal_cut_at_every_byte_gives_the_last_whole_change(
    written: Written, warnings: pytest.LogCaptureFixture, step: int
) -> None:
    for size in [*places(written, step), len(written.data)]:
        warnings.clear()
        whole = max(place for place, end in enumerate(written.ends) if end <= size)
        assert written.start_with(written.data[:size]) == (written.states[whole], 2 + whole)
        assert len(warnings.records) == (0 if size in written.ends else 1)
        assert written.journal.read_bytes() == written.data[: written.ends[whole]]


@every_byte
def test_a_flipped_byte_is_refused_or_dropped_with_the_last_record(
    written: Written, warnings: pytest.LogCaptureFixture, step: int
) -> None:
    """One bit of every other byte, all bits of those between: a number in the head of a record has both."""
    last = written.ends[-2]
    for offset in places(written, step):
        warnings.clear()
        data = bytearray(written.data)
        data[offset] ^= 0xFF if offset % 2 else 0x01
        if offset < last:
            with pytest.raises(StoreDamaged) as damaged:
                written.start_with(bytes(data))
            assert damaged.value.file == written.journal
            assert damaged.value.offset == max(end for end in written.ends if end <= offset)
            assert not warnings.records
        else:
            assert written.start_with(bytes(data)) == (written.states[-2], 6)
            assert len(warnings.records) == 1


def test_more_than_the_last_record_is_never_dropped(written: Written) -> None:
    """The one before the last was acknowledged, as by then the last was begun; line ends may all have been replaced."""
    for first in range(len(written.ends) - 2):
        data = bytearray(written.data)
        for end in written.ends[first + 1 :]:
            data[end - 10] ^= 0x01
        with pytest.raises(StoreDamaged, match="another record begins") as damaged:
            written.start_with(bytes(data))
        assert damaged.value.offset == written.ends[first]
    with pytest.raises(StoreDamaged) as damaged:
        written.start_with(written.data.replace(b"\n", b"\r\n"))
    assert damaged.value.offset == 0


@pytest.mark.parametrize("content", [b"null", b"{}", b"\n", "{".encode("utf-16"), b"x" * 5000])
def test_a_journal_that_is_something_else_is_refused(written: Written, content: bytes) -> None:
    with pytest.raises(StoreDamaged, match="does not begin with a record") as damaged:
        written.start_with(content)
    assert damaged.value.offset == 0


def test_a_tail_of_zeros_after_a_power_cut_is_dropped(written: Written, warnings: pytest.LogCaptureFixture) -> None:
    for size in (1, 100, 5000):
        warnings.clear()
        assert written.start_with(written.data + bytes(size)) == (written.states[-1], 7)
        assert len(warnings.records) == 1


def test_a_removed_doubled_or_moved_record_is_refused(written: Written) -> None:
    ends = zip(written.ends, written.ends[1:], strict=False)
    first, second, third, *_ = (written.data[begin:end] for begin, end in ends)
    for data in (first + third, second + third, first + second + second, third + first + second, first + first):
        with pytest.raises(StoreDamaged):
            written.start_with(data)


def test_every_flipped_byte_of_a_snapshot_is_refused() -> None:
    data = snapshot_bytes(image_of(KINDS, {BOOK: some_books(2)}).rows)
    for flip in (0x01, 0xFF):
        for offset in range(len(data)):
            changed = bytearray(data)
            changed[offset] ^= flip
            with pytest.raises((StoreDamaged, StoreTooNew)):
                image_from_bytes(bytes(changed), KINDS)


def test_a_snapshot_cut_at_every_byte_is_refused() -> None:
    """A rename never leaves half a file, so half a file is damage."""
    data = snapshot_bytes(image_of(KINDS, {BOOK: some_books(2)}).rows)
    for size in range(len(data)):
        with pytest.raises(StoreDamaged):
            image_from_bytes(data[:size], KINDS)
