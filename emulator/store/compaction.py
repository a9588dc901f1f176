"""Writing a snapshot beside the running bank: a picture is taken, a thread writes it down, the old journal goes.

Until the rename the old snapshot with all journal segments is the state; after it the new snapshot with the newest
segment is, and older segments hold nothing but changes that it has. So the death of the process between any two
system calls loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock

from emulator.store.disk import Disk, write_whole
from emulator.store.journal import Segment
from emulator.store.recovery import SNAPSHOT, unfinished_name
from emulator.store.snapshot import Body, Tables

_BUFFER = 1 << 18


def write_file(disk: Disk, path: Path, tables: Tables, sequence: int, pause: Callable[[], None] | None = None) -> int:
    """Write a snapshot file whole and sync it; its size in bytes. Raises OSError. `pause` is called between pieces."""
    file = disk.open_anew(path)
    try:
        buffer = bytearray()
        size = 0

        def out(piece: bytes) -> None:
            nonlocal size
            buffer.extend(piece)
            if len(buffer) >= _BUFFER:
                write_whole(disk, file, bytes(buffer))
                size += len(buffer)
                buffer.clear()
            if pause is not None:
                pause()

        body = Body(tables, sequence, out)
        # its place is kept until it is known
        buffer += body.head()
        body.write()
        write_whole(disk, file, bytes(buffer))
        size += len(buffer)
        disk.write_at(file, body.head(), 0)
        disk.sync(file)
    finally:
        disk.close(file)
    return size


class Abandoned(Exception):
    """Raised by a pause of a compaction that nobody wants any more."""


class Compaction:
    """One snapshot on its way: made and finished by the store's thread, `run` by any.

    `sequence`: the last change in it; `gone`: the journal segments that it makes needless; `placed`: it is the
    snapshot now; `failed`: why it is not, or why the old segments stay.
    """

    def __init__(self, directory: Path, disk: Disk, tables: Tables, *, sequence: int, gone: list[Segment]) -> None:
        self._directory = directory
        self._disk = disk
        self._tables: Tables | None = tables
        self.sequence = sequence
        self.gone = gone
        self.size = 0
        self.placed = False
        self.failed: Exception | None = None
        self._abandoned = False
        self._placing = Lock()

    def run(self, pause: Callable[[], None] | None = None) -> None:
        """Write, sync, rename, sync the directory, remove the old segments. Never raises: see `failed`.

        `pause` is called every few hundred documents: a place to let others have the processor, or to end it all by
        raising Abandoned.
        """
        tables, self._tables = self._tables, None
        if tables is None:
            raise RuntimeError("a compaction runs once")
        unfinished = self._directory / unfinished_name(self.sequence, id(self))
        try:
            self.size = write_file(self._disk, unfinished, tables, self.sequence, pause)
            with self._placing:
                if self._abandoned:
                    self._disk.remove(unfinished)
                    return
                self._disk.rename(unfinished, self._directory / SNAPSHOT)
                self._disk.sync_directory(self._directory)
                self.placed = True
                for segment in self.gone:
                    self._disk.remove(segment.path)
        except Exception as failed:
            # where nobody wants it, its directory may be gone
            if not (self._abandoned or isinstance(failed, Abandoned)):
                self.failed = failed
            if not self.placed:
                with suppress(OSError):
                    self._disk.remove(unfinished)

    def abandon(self) -> None:
        """Keep it from becoming the snapshot if it is not yet; waits while that is under way."""
        with self._placing:
            self._abandoned = True
