"""The journal: files of sealed records that follow on a snapshot, `journal-<number of the first change>.jsonl`."""

from __future__ import annotations

import re
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


@dataclass(slots=True)
class Segment:
    """One journal file: its first change's number, its size in bytes as far as it is sound."""

    path: Path
    first: int
    size: int


class Journal:
    """The open journal of a directory; the last of `segments` takes the next record."""

    def __init__(self, directory: Path, disk: Disk, segments: list[Segment], *, following: int) -> None:
        self._directory = directory
        self._disk = disk
        self.segments = segments or [Segment(directory / segment_name(following), following, 0)]
        self._file = disk.open_to_append(self.segments[-1].path)
        # a failed write may have left part of a record
        self._spoilt = False
        # the directory may not have the newest file's name on the medium yet
        self._new_name = not segments

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def file(self) -> int:
        return self._file

    def append(self, line: bytes) -> None:
        """Write one line whole or leave the journal as it was; raises OSError."""
        if self._spoilt:
            self._cut_off()
        try:
            write_whole(self._disk, self._file, line)
        except BaseException:
            self._spoilt = True
            # where this fails too, the next append tries again before it writes
            with suppress(OSError):
                self._cut_off()
            raise
        self.segments[-1].size += len(line)

    def _cut_off(self) -> None:
        self._disk.cut(self._file, self.segments[-1].size)
        self._spoilt = False

    def begin_segment(self, following: int) -> None:
        """Let the next records, from change `following` on, go to a file of their own; raises OSError."""
        if self._spoilt:
            self._cut_off()
        if self.segments[-1].first == following:
            return
        path = self._directory / segment_name(following)
        file = self._disk.open_to_append(path)
        self._disk.close(self._file)
        self._file = file
        self._new_name = True
        self.segments.append(Segment(path, following, 0))

    def forget(self, gone: list[Segment]) -> None:
        """These segments are contained in the snapshot now."""
        self.segments = [segment for segment in self.segments if segment not in gone]

    def close(self) -> None:
        self._disk.close(self._file)
