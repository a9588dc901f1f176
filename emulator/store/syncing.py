"""Durability `power`: one fsync for all changes that wait for it."""

from __future__ import annotations

from pathlib import Path

from emulator.store.disk import Disk
from emulator.store.journal import Segment


class SyncTicket:
    """An fsync that covers every change up to `sequence`: made and finished by the store's thread, `run` by any."""

    def __init__(self, disk: Disk, directory: Path | None, file: int, *, sequence: int, segment: Segment) -> None:
        self._disk = disk
        # None once the journal file's name is known to be on the medium
        self._directory = directory
        self.sequence = sequence
        self.segment = segment
        self.size = segment.size
        self.done = False
        self.failed: Exception | None = None
        self._duplicate: int | None = None
        try:
            # so that a compaction may close the journal's own meanwhile
            self._duplicate = disk.duplicate(file)
        except OSError:  # no descriptor is free: then everybody waits for this fsync
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
