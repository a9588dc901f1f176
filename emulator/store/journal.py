"""The journal: files of sealed records that follow on a snapshot, `journal-<number of the first change>.jsonl`.

A line is one change: `{"crc":"<8 hex>","size":"<8 hex>","change":<payload>}` and a line end: size of and CRC-32 over
the payload (see `tx.payload`). Every byte of a line is either fixed by this form or covered by the checksum.
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
    """The line for a change."""
    return b'{"crc":"%08x","size":"%08x","change":%b}\n' % (crc32(payload), len(payload), payload)


def _unsealed(data: bytes, offset: int) -> tuple[bytes, int] | None:
    """The payload of the record at `offset` and the offset after it; None when there is no whole and sound one."""
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
    """The sound records of a journal file from front to back, as (offset, payload); `end`: where they end so far.

    Afterwards `torn` tells whether something stands behind them, and `sound_after` the sound records behind that.
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read = read
        self.size = size
        self.end = 0
        self.sound_after: list[tuple[int, bytes]] = []

    @classmethod
    def of(cls, data: bytes) -> Records:
        """Those of a file's content."""
        return cls(lambda offset, size: data[offset : offset + size], len(data))

    @property
    def torn(self) -> bool:
        return self.end < self.size

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        window, base = b"", 0
        while self.end < self.size:
            record = _unsealed(window, self.end - base)
            if record is None and base + len(window) < self.size:  # it may only be cut off by the window
                base, window = self.end, self._read(self.end, max(_WINDOW, _size_at(self._read, self.end)))
                record = _unsealed(window, 0)
            if record is None:
                self.sound_after = _sound_records_after(self._read(0, self.size), self.end)
                return
            offset, self.end = self.end, base + record[1]
            yield offset, record[0]


def _size_at(read: Callable[[int, int], bytes], offset: int) -> int:
    """How large the record at `offset` says it is, 0 where none begins."""
    head = _HEAD.match(read(offset, _HEAD_SIZE))
    return 0 if head is None else _HEAD_SIZE + int(head[2], 16) + len(_END)


def _sound_records_after(data: bytes, offset: int) -> list[tuple[int, bytes]]:
    """The sound records behind the bad one at `offset`, as (offset, payload).

    Only where a line begins, or where the bad record says that it ends (its line end may be what is bad): inside a
    line a document may hold something that looks like a record.
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
    """The file whose first record is change number `first`."""
    return f"journal-{first:012d}.jsonl"


def segment_first(name: str) -> int | None:
    """The number of the first change of the file with this name; None for another file."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


class Segment:
    """One journal file: its first change's number and its size in bytes as far as it is sound.

    `following`: the number after that of the last change that was read in it.
    """

    __slots__ = ("first", "following", "path", "size")

    def __init__(self, path: Path, first: int, size: int) -> None:
        self.path = path
        self.first = first
        self.following = first
        self.size = size


class Journal:
    """The open journal of a directory; the last of `segments` takes the next record."""

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
        """Write one line whole or leave the journal as it was; raises OSError."""
        if self._spoilt:
            self._cut_off()
        size = len(line)
        try:
            written = self._disk.write(self.file, line)
            if written != size:
                write_rest(self._disk, self.file, line, written)
        except BaseException:
            self._spoilt = True
            # where this fails too, the next append tries again before it writes
            with suppress(OSError):
                self._cut_off()
            raise
        self.last.size += size
        self.size += size

    def _cut_off(self) -> None:
        self._disk.cut(self.file, self.last.size)
        self._spoilt = False

    def begin_segment(self, following: int) -> list[Segment]:
        """Let the records from change `following` on go to a file of their own; the segments before. Raises OSError."""
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

    def forget(self, gone: list[Segment]) -> None:
        """These segments are contained in the snapshot now."""
        self.segments = [segment for segment in self.segments if segment not in gone]
        self.size = sum(segment.size for segment in self.segments)

    def moved(self, directory: Path) -> None:
        """The files are in this directory now."""
        self._directory = directory
        for segment in self.segments:
            segment.path = directory / segment.path.name

    def cut_back(self, size: int) -> None:
        """Shorten the last segment to `size`, if the system lets us; nothing may be appended any more."""
        with suppress(OSError):
            self._disk.cut(self.file, size)

    def close(self) -> None:
        self._disk.close(self.file)
