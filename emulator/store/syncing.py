"""Durability `power`: one fsync for all changes that wait for it."""

from __future__ import annotations

from pathlib import Path

from emulator.store.disk import Disk
from emulator.store.journal import Mark


class SyncTicket:
    """An fsync that covers every change up to `sequence`: made and finished by the store's thread, `run` by any."""

    def __init__(self, disk: Disk, directory: Path | None, files: list[int], *, sequence: int, mark: Mark) -> None:
        self._disk = disk
        # None once the newest journal file's name is known to be on the medium
        self._directory = directory
        # duplicates, so that a compaction may close the journal's own meanwhile
        self._files = files
        self.sequence = sequence
        self.mark = mark
        self.done = False
        self.failed: Exception | None = None

    def run(self) -> None:
        """Sync; never raises: see `failed`."""
        try:
            for file in self._files:
                self._disk.sync(file)
            if self._directory is not None:
                self._disk.sync_directory(self._directory)
        except Exception as failed:
            self.failed = failed
        finally:
            for file in self._files:
                self._disk.close(file)
            self._files = []
            self.done = True
