"""The journal: files of sealed records that follow on a snapshot, `journal-<number of the first change>.jsonl`."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from emulator.store.disk import Disk, write_rest

_NAME = re.compile(r"journal-(\d{12,})\.jsonl")


def segment_name(first: int) -> str:
    """The file whose first record is change number `first`."""
    return f"journal-{first:012d}.jsonl"


def segment_first(name: str) -> int | None:
    """The number of the first change of the file with this name; None for another file."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


class Segment:
    """One journal file: its first change's number and its size in bytes as far as it is sound."""

    __slots__ = ("first", "path", "size")

    def __init__(self, path: Path, first: int, size: int) -> None:
        self.path = path
        self.first = first
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
