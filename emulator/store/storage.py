"""TinyDB storages: a directory with journal and snapshot, and one that keeps nothing."""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from tinydb.storages import Storage

from emulator.store.disk import Disk
from emulator.store.errors import StoreUnwritable
from emulator.store.journal import Journal
from emulator.store.kinds import Kind
from emulator.store.lock import Lock
from emulator.store.records import sealed
from emulator.store.recovery import Found, read_directory

logger = logging.getLogger(__name__)

Tables = dict[str, dict[str, Any]]


class VolatileStorage(Storage):
    """Keeps nothing: the documents live as long as the process."""

    def read(self) -> Tables | None:
        return None

    def write(self, data: Tables) -> None:
        """The tables hold what there is; there is nothing to write."""


class JournalStorage(Storage):
    """A directory with a journal and a snapshot, locked for this process from construction to `close`."""

    def __init__(self, directory: Path, kinds: Mapping[str, Kind], disk: Disk | None = None) -> None:
        self._disk = disk or Disk()
        self.directory = directory
        self._kinds = kinds
        self._disk.make_directory(directory)
        self._lock = Lock(directory)
        try:
            found = read_directory(directory, kinds, self._disk)
            self.journal = self._taken_over(found)
        except BaseException:
            self._lock.release()
            raise
        self.sequence = found.sequence
        self.snapshot_size = found.snapshot.size
        self._found: Found | None = found
        self._owner = os.getpid()
        _open_storages.add(self)

    def _taken_over(self, found: Found) -> Journal:
        """Clear away what a killed process left, then open the journal."""
        for path in found.stale:
            self._disk.remove(path)
        if found.torn is not None:
            path, offset, size = found.torn
            logger.warning("%s: dropped %d bytes at %d, a record that was not written whole", path, size, offset)
            file = self._disk.open_to_append(path)
            try:
                self._disk.cut(file, offset)
            finally:
                self._disk.close(file)
        return Journal(self.directory, self._disk, found.segments, following=found.sequence + 1)

    def hand_over(self) -> Found:
        """What the directory held at the start; can be had once, so that it need not stay in memory."""
        found, self._found = self._found, None
        if found is None:
            raise RuntimeError("the start was handed over before")
        return found

    def append(self, payload: bytes) -> None:
        """Keep one change; raises StoreUnwritable in a forked child and OSError."""
        if self._owner != os.getpid():
            raise StoreUnwritable("the documents belong to the process that this one was forked from")
        self.journal.append(sealed(payload))
        self.sequence += 1

    def read(self) -> Tables | None:
        """All tables as the directory holds them now, decoded, or None when there is nothing."""
        found = read_directory(self.directory, self._kinds, self._disk)
        tables = {
            kind: {str(number): orjson.loads(raw) for number, raw in table.rows.items()}
            for kind, table in found.snapshot.image.tables.items()
        }
        return tables or None

    def write(self, data: Tables) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self.journal.close()
        self._lock.release()
        _open_storages.discard(self)

    def let_go(self) -> None:
        """In a forked child: the lock stays the parent's alone."""
        self._lock.abandon()


_open_storages: weakref.WeakSet[JournalStorage] = weakref.WeakSet()


def _after_fork() -> None:
    for storage in list(_open_storages):
        storage.let_go()
    _open_storages.clear()


os.register_at_fork(after_in_child=_after_fork)
