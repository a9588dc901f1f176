"""The journal: files of records with checksums that follow a snapshot, `journal-<number of the first change>.jsonl`.

A line is one change: `{"crc":"<8 hex>","size":"<8 hex>","change":<payload>}`, with the size and the CRC-32 of the
payload (see `tx.payload`). Every byte of a line is either fixed by this form or covered by the checksum.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from emulator.store.disk import Disk, write_rest

_NAME = re.compile(r"journal-(\d{12,})\.jsonl")
_HEAD = re.compile(rb'\{"crc":"([0-9a-f]{8})","size":"([0-9a-f]{8})","change":')
_HEAD_SIZE = len(b'{"crc":"00000000","size":"00000000","change":')
_END = b"}\n"


def sealed(payload: bytes) -> bytes:
    """The line for the payload of a change."""
    return b'{"crc":"%08x","size":"%08x","change":%b}\n' % (crc32(payload), len(payload), payload)


def _unsealed(data: bytes, offset: int) -> tuple[bytes, int] | None:
    """The payload of the record at `offset` and the offset after it; None without a complete and valid record."""
    head = _HEAD.match(data, offset)
    if head is None:
        return None
    start = offset + _HEAD_SIZE
    end = start + int(head[2], 16)
    payload = data[start:end]
    if data[end : end + 2] != _END or crc32(payload) != int(head[1], 16):
        return None
    return payload, end + 2


_WINDOW = 1 << 20


class Records:
    """Iterates the valid records of a journal file as (offset, payload); `end`: the offset after the last one so far.

    After the iteration `torn` is true if more bytes follow, and `sound_after` has the valid records among those.
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read = read
        self.size = size
        self.end = 0
        self.sound_after: list[tuple[int, bytes]] = []

    @classmethod
    def of(cls, data: bytes) -> Records:
        """The records in a file's content."""
        return cls(lambda offset, size: data[offset : offset + size], len(data))

    @property
    def torn(self) -> bool:
        """Whether bytes follow that are no valid record."""
        return self.end < self.size

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        window, base = b"", 0
        while self.end < self.size:
            record = _unsealed(window, self.end - base)
            if record is None and base + len(window) < self.size:  # the window may end within the record
                base, window = self.end, self._read(self.end, max(_WINDOW, _size_at(self._read, self.end)))
                record = _unsealed(window, 0)
            if record is None:
                self.sound_after = _sound_records_after(self._read(0, self.size), self.end)
                return
            offset, self.end = self.end, base + record[1]
            yield offset, record[0]


def _size_at(read: Callable[[int, int], bytes], offset: int) -> int:
    """The size that the record at `offset` states; 0 if no record begins there."""
    head = _HEAD.match(read(offset, _HEAD_SIZE))
    return 0 if head is None else _HEAD_SIZE + int(head[2], 16) + len(_END)


def _sound_records_after(data: bytes, offset: int) -> list[tuple[int, bytes]]:
    """The valid records after the damaged one at `offset`, as (offset, payload).

    They are searched at the beginnings of lines, and at the end that the damaged record states (its line end may be the
    damage). Inside a line, a document may contain text that looks like a record.
    """
    sound: list[tuple[int, bytes]] = []
    head = _HEAD.match(data, offset)
    place = 0 if head is None else offset + _HEAD_SIZE + int(head[2], 16) + len(_END)
    if place == 0 or _unsealed(data, place) is None:
        place = data.find(b"\n", offset) + 1
    while place > 0:
        record = _unsealed(data, place)
        if record is None:
            place = data.find(b"\n", place) + 1
        else:
            sound.append((place, record[0]))
            place = record[1]
    return sound


def segment_name(first: int) -> str:
    """The name of the file whose first record is change number `first`."""
    return f"journal-{first:012d}.jsonl"


def segment_first(name: str) -> int | None:
    """The number of the first change in the file with this name; None if it is not a journal."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


class Segment:
    """One journal file: the number of its first change, and its size in bytes up to the end of the valid records.

    `following`: the number after the last change that was read from it.
    """

    __slots__ = ("first", "following", "path", "size")

    def __init__(self, path: Path, first: int, size: int) -> None:
        self.path = path
        self.first = first
        self.following = first
        self.size = size


class Journal:
    """The open journal of a directory; records are appended to the last of `segments`."""

    def __init__(self, directory: Path, disk: Disk, segments: list[Segment], *, following: int) -> None:
        self._directory = directory
        self._disk = disk
        self.segments = segments or [Segment(directory / segment_name(following), following, 0)]
        self.last = self.segments[-1]
        self.file = disk.open_to_append(self.last.path)
        # bytes of all segments
        self.size = sum(segment.size for segment in self.segments)
        # a failed write may have left part of a record
        self._spoilt = False

    def append(self, line: bytes) -> None:
        """Write one line completely, or leave the journal unchanged and raise OSError."""
        if self._spoilt:
            self._cut_off()
        size = len(line)
        try:
            written = self._disk.write(self.file, line)
            if written != size:
                write_rest(self._disk, self.file, line, written)
        except BaseException:
            self._spoilt = True
            # if this fails too, the next append tries again before it writes
            with suppress(OSError):
                self._cut_off()
            raise
        self.last.size += size
        self.size += size

    def _cut_off(self) -> None:
        self._disk.cut(self.file, self.last.size)
        self._spoilt = False

    def begin_segment(self, following: int) -> list[Segment]:
        """Continue with change `following` in a new file; returns the earlier segments. Raises OSError."""
        if self._spoilt:
            self._cut_off()
        if self.last.first != following:
            path = self._directory / segment_name(following)
            file = self._disk.open_to_append(path)
            self._disk.close(self.file)
            self.file = file
            self.last = Segment(path, following, 0)
            self.segments.append(self.last)
        return self.segments[:-1]

    def forget(self, sequence: int) -> None:
        """Remove the segments with changes up to this one, which the snapshot contains now."""
        self.segments = [segment for segment in self.segments if segment.first > sequence]
        self.size = sum(segment.size for segment in self.segments)

    def moved(self, directory: Path) -> None:
        """Update the paths after the directory was renamed."""
        self._directory = directory
        for segment in self.segments:
            segment.path = directory / segment.path.name

    def cut_back(self, size: int) -> None:
        """Shorten the last segment to `size`, ignoring errors; nothing may be appended afterwards."""
        with suppress(OSError):
            self._disk.cut(self.file, size)

    def close(self) -> None:
        self._disk.close(self.file)


class SyncTicket:
    """An fsync that covers every change up to `sequence`: created and finished in the store's thread, `run` in any."""

    def __init__(self, disk: Disk, directory: Path | None, file: int, *, sequence: int, segment: Segment) -> None:
        self._disk = disk
        self._directory = directory  # None once the name of the journal file is durable
        self.sequence = sequence
        self.segment = segment
        self.size = segment.size
        self.done = False
        self.failed: Exception | None = None
        self._duplicate: int | None = None
        try:
            # so that a compaction may close the journal's file meanwhile
            self._duplicate = disk.duplicate(file)
        except OSError:  # no descriptor is free: sync at once, in the store's thread
            self._sync(file)

    def run(self) -> None:
        """Sync; never raises: see `failed`."""
        if self._duplicate is not None:
            self._sync(self._duplicate)
            self._disk.close(self._duplicate)

    def _sync(self, file: int) -> None:
        try:
            self._disk.sync(file)
            if self._directory is not None:
                self._disk.sync_directory(self._directory)
        except Exception as failed:
            self.failed = failed
        finally:
            self.done = True
