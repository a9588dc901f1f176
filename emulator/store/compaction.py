"""Compaction: a new snapshot takes the place of the old one and of the journal after it.

New changes go to a new journal file while a thread writes a new snapshot beside the old one. Until the rename the state
is the old snapshot with all journal files; after it, the new snapshot with the newest file, while older files only
contain changes that the snapshot has. So a crash between any two system calls loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock as ThreadLock

from emulator.store.disk import Disk
from emulator.store.journal import Segment
from emulator.store.recovery import SNAPSHOT, unfinished_name
from emulator.store.snapshot import Tables, write_snapshot


class Abandoned(Exception):
    """Raised by the `pause` of a compaction to cancel it."""


class Compaction:
    """The writing of one snapshot: created and finished in the store's thread, `run` in any.

    `sequence`: the last change in it; `superseded`: the journal files that it makes needless, and `contents` those that
    they name; `placed`: it is the snapshot now; `failed`: why it is not, or why the old files stay.
    """

    def __init__(
        self,
        directory: Path,
        disk: Disk,
        tables: Tables,
        *,
        sequence: int,
        superseded: list[Segment],
        contents: list[str],
    ) -> None:
        self._directory = directory
        self._disk = disk
        self._tables: Tables | None = tables
        self.sequence = sequence
        self.superseded = superseded
        self.contents = contents
        self.size = 0
        self.placed = False
        self.failed: Exception | None = None
        self._abandoned = False
        self._placing = ThreadLock()

    def run(self, pause: Callable[[], None] | None = None) -> None:
        """Write, sync, rename, sync the directory, remove the old journal files. Never raises: see `failed`.

        `pause` is called every few hundred documents; it may sleep, so that other threads run, or cancel the compaction
        by raising Abandoned.
        """
        tables, self._tables = self._tables, None
        if tables is None:
            raise RuntimeError("a compaction runs once")
        unfinished = self._directory / unfinished_name(self.sequence, id(self))
        try:
            self.size = write_snapshot(self._disk, unfinished, tables, self.sequence, pause)
            with self._placing:
                if self._abandoned:
                    self._disk.remove(unfinished)
                    return
                self._disk.rename(unfinished, self._directory / SNAPSHOT)
                self._disk.sync_directory(self._directory)
                self.placed = True
                for segment in self.superseded:
                    self._disk.remove(segment.path)
                for name in self.contents:
                    self._disk.remove(self._directory / name)
        except Exception as failed:
            # the directory of an abandoned compaction may not exist any more
            if not (self._abandoned or isinstance(failed, Abandoned)):
                self.failed = failed
            if not self.placed:
                with suppress(OSError):
                    self._disk.remove(unfinished)

    def abandon(self) -> None:
        """Prevent it from becoming the snapshot if it is not yet; waits for a rename in progress."""
        with self._placing:
            self._abandoned = True
