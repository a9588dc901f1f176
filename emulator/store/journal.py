"""The journal: files of sealed records that follow on a snapshot, `journal-<number of the first change>.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from emulator.store.disk import Disk, write_whole

_NAME = re.compile(r"journal-(\d{12,})\.jsonl")


def segment_name(first: int) -> str:
    """The file whose first record is change number `first`."""
    return f"journal-{first:012d}.jsonl"


def segment_first(name: str) -> int | None:
    """The number of the first change of the file with this name; None for another file."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


@dataclass(slots=True, eq=False)
class Segment:
    """One journal file: its first change's number, its size in bytes as far as it is sound, its open file."""

    path: Path
    first: int
    size: int
    file: int = -1


Mark = tuple[Segment, int]
"""A place in the journal: everything before it was there at some moment."""


class Journal:
    """The open journal of a directory; the last of `segments` takes the next record."""

    def __init__(self, directory: Path, disk: Disk, segments: list[Segment], *, following: int) -> None:
        self._directory = directory
        self._disk = disk
        self.segments = segments or [Segment(directory / segment_name(following), following, 0)]
        self.segments[-1].file = disk.open_to_append(self.segments[-1].path)
        # a failed write may have left part of a record
        self._spoilt = False

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    def mark(self) -> Mark:
        """The present end."""
        return self.segments[-1], self.segments[-1].size

    def append(self, line: bytes) -> None:
        """Write one line whole or leave the journal as it was; raises OSError."""
        last = self.segments[-1]
        if self._spoilt:
            self._cut_off()
        try:
            write_whole(self._disk, last.file, line)
        except BaseException:
            self._spoilt = True
            # where this fails too, the next append tries again before it writes
            with suppress(OSError):
                self._cut_off()
            raise
        last.size += len(line)

    def _cut_off(self) -> None:
        self._disk.cut(self.segments[-1].file, self.segments[-1].size)
        self._spoilt = False

    def begin_segment(self, following: int) -> list[Segment]:
        """Let the records from change `following` on go to a file of their own; the segments before. Raises OSError."""
        if self._spoilt:
            self._cut_off()
        if self.segments[-1].first != following:
            path = self._directory / segment_name(following)
            self.segments.append(Segment(path, following, 0, self._disk.open_to_append(path)))
        return self.segments[:-1]

    def close_where(self, done: Callable[[Segment], bool]) -> None:
        """Close the files of those segments that take no more records and need no more fsync."""
        for segment in self.segments[:-1]:
            if segment.file >= 0 and done(segment):
                self._disk.close(segment.file)
                segment.file = -1

    def forget(self, gone: list[Segment]) -> None:
        """These segments are contained in the snapshot now."""
        self.close_where(gone.__contains__)
        self.segments = [segment for segment in self.segments if segment not in gone]

    def cut_back(self, mark: Mark) -> None:
        """Remove what was written after `mark`, newest first, as far as the system lets us.

        Where it stops, what is left still follows on without a gap. Nothing may be appended any more.
        """
        kept, size = mark
        with suppress(OSError):
            for segment in reversed(self.segments):
                if segment is kept:
                    self._disk.cut(segment.file, size)
                    return
                self._disk.remove(segment.path)

    def close(self) -> None:
        for segment in self.segments:
            if segment.file >= 0:
                self._disk.close(segment.file)
                segment.file = -1
