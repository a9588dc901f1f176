"""TinyDB storages: a directory with journal and snapshot, and one that keeps nothing."""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
from tinydb.storages import Storage

from emulator.store.compaction import Compaction
from emulator.store.disk import Disk
from emulator.store.errors import StoreUnwritable
from emulator.store.image import TableImage
from emulator.store.journal import Journal
from emulator.store.kinds import Kind
from emulator.store.lock import Lock
from emulator.store.records import sealed
from emulator.store.recovery import Found, read_directory
from emulator.store.snapshot import Tables as Contents
from emulator.store.syncing import SyncTicket
from emulator.store.table import DocumentTable, encoded

logger = logging.getLogger(__name__)

Tables = dict[str, dict[str, Any]]

# A journal is left alone until it is as large as the snapshot, and this large at least.
SMALL_JOURNAL = 8 << 20


class VolatileStorage(Storage):
    """Keeps nothing: the documents live as long as the process."""

    def read(self) -> Tables | None:
        return None

    def write(self, data: Tables) -> None:
        """The tables hold what there is; there is nothing to write."""


class JournalStorage(Storage):
    """A directory with a journal and a snapshot, locked for this process from construction to `close`.

    `sequence`: the last change written; `synced`: the last one known to survive the machine (with `power`).
    Raises StoreDamaged, StoreTooNew, StoreLocked and OSError.
    """

    def __init__(
        self, directory: Path, kinds: Mapping[str, Kind[Any]], *, power: bool = False, disk: Disk | None = None
    ) -> None:
        self.directory = directory
        self.power = power
        self._disk = disk or Disk()
        self._kinds = kinds
        self._disk.make_directory(directory, sync=power)
        self._lock = Lock(directory)
        try:
            found = read_directory(directory, kinds, self._disk)
            self.journal = self._taken_over(found)
        except BaseException:
            self._lock.release()
            raise
        self.sequence = self.synced = found.sequence
        self._synced_size = self.journal.last.size
        # the name of the newest journal file may not be on the medium yet
        self._new_name = True
        self.snapshot_size = found.snapshot.size
        self._compact_at = self._threshold()
        # a snapshot without fitting indexes makes the next start slow
        self._outdated = not found.snapshot.fits
        self._found: Found | None = found
        self.compaction: Compaction | None = None
        self.refusal: str | None = None
        self._gave_up = False
        _open_storages.add(self)

    def _taken_over(self, found: Found) -> Journal:
        """Clear away what a killed process left, then open the journal."""
        # first, for an empty file after a torn record would not follow on the cut one
        for path in found.stale:
            self._disk.remove(path)
        if found.torn is not None:
            path, offset, size = found.torn
            logger.warning("%s: dropped %d bytes at %d, a last record that is torn or damaged", path, size, offset)
            file = self._disk.open_to_append(path)
            try:
                self._disk.cut(file, offset)
            finally:
                self._disk.close(file)
        if self.power:
            self._sync_found(found)
        return Journal(self.directory, self._disk, found.segments, following=found.sequence + 1)

    def _sync_found(self, found: Found) -> None:
        """What a killed process wrote is served from now on, so it must be on the medium too."""
        for segment in found.segments:
            file = self._disk.open_to_append(segment.path)
            try:
                self._disk.sync(file)
            finally:
                self._disk.close(file)

    def hand_over(self) -> Found:
        """What the directory held at the start; can be had once, so that it need not stay in memory."""
        found, self._found = self._found, None
        if found is None:
            raise RuntimeError("the start was handed over before")
        return found

    def append(self, payload: bytes) -> None:
        """Keep one change; raises StoreUnwritable, with nothing changed."""
        if self.refusal is not None:
            raise StoreUnwritable(self.refusal)
        try:
            self.journal.append(sealed(payload))
        except OSError as failed:
            raise StoreUnwritable(f"the change cannot be written: {failed}") from failed
        self.sequence += 1

    # Durability `power`

    @property
    def sync_needed(self) -> bool:
        return self.power and self.sequence > self.synced and self.refusal is None

    def begin_sync(self) -> SyncTicket:
        """An fsync of all that is written so far."""
        names = self.directory if self._new_name else None
        return SyncTicket(self._disk, names, self.journal.file, sequence=self.sequence, segment=self.journal.last)

    def synced_by(self, ticket: SyncTicket) -> None:
        """Note that the fsync succeeded."""
        if ticket.segment is self.journal.last:
            self._new_name = False
            if ticket.sequence > self.synced:
                self.synced, self._synced_size = ticket.sequence, ticket.size

    def give_up(self, reason: str) -> None:
        """After a failed fsync nothing that was not synced counts, and nothing is accepted until a restart.

        The system may have dropped the unwritten pages, so a second fsync would prove nothing.
        """
        self.journal.cut_back(self._synced_size)
        self.sequence = self.synced
        self._gave_up = True
        self.refusal = reason

    # Compaction

    def _threshold(self) -> int:
        return max(SMALL_JOURNAL, self.snapshot_size)

    @property
    def compaction_due(self) -> bool:
        return self.journal.size > self._compact_at and self.compaction is None and self.refusal is None

    @property
    def compaction_useful(self) -> bool:
        """The next start would be quicker for a compaction."""
        return (self.journal.size > 0 or self._outdated) and self.refusal is None

    def begin_compaction(self, tables: Callable[[], Contents]) -> Compaction:
        """Direct new changes to a new journal file; `tables` gives the present content. Raises StoreUnwritable."""
        if self.compaction is not None:
            raise RuntimeError("a compaction is under way")
        if self.refusal is not None:
            raise StoreUnwritable(self.refusal)
        try:
            gone = self.journal.begin_segment(self.sequence + 1)
        except OSError as failed:
            self._compact_at = self.journal.size + self._threshold()
            raise StoreUnwritable(f"the journal cannot be continued in a new file: {failed}") from failed
        # with `power` all that is in the segments before was synced first
        self._new_name, self._synced_size = True, self.journal.last.size
        self.compaction = Compaction(self.directory, self._disk, tables(), sequence=self.sequence, gone=gone)
        return self.compaction

    def end_compaction(self, compaction: Compaction) -> None:
        """Take note of how it went; failed or abandoned, everything is as valid as before."""
        self.compaction = None
        if compaction.placed:
            self.snapshot_size = compaction.size
            self.journal.forget(compaction.gone)
            self._outdated = False
            self._compact_at = self._threshold()
        else:
            self._compact_at = self.journal.size + self._threshold()

    def abandon_compaction(self) -> None:
        """Leave one that is under way unfinished."""
        if self.compaction is not None:
            self.compaction.abandon()
            self.end_compaction(self.compaction)

    def moved(self, directory: Path) -> None:
        """The directory has this name now."""
        if self.compaction is not None:
            raise RuntimeError("a compaction is under way")
        self.directory = directory
        self.journal.moved(directory)

    # TinyDB's protocol

    def read(self) -> Tables | None:
        """All tables as the directory holds them now, decoded, or None when there is nothing."""
        tables: dict[str, DocumentTable] = {}

        def table_of(kind: str) -> DocumentTable:
            if kind not in tables:
                tables[kind] = DocumentTable(VolatileStorage(), kind)
            return tables[kind]

        read_directory(self.directory, self._kinds, self._disk).fill(table_of)
        return {
            kind: {str(number): orjson.loads(raw) for number, raw in table.sorted_rows().items()}
            for kind, table in tables.items()
        } or None

    def write(self, data: Tables) -> None:
        """Make `data` the whole content, for TinyDB's own tables; ValueError for a document without an id."""
        tables = {}
        for kind, documents in data.items():
            rows = {int(number): encoded(document) for number, document in documents.items()}
            tables[kind] = TableImage.bare(rows)
        compaction = self.begin_compaction(lambda: tables)
        compaction.run()
        self.end_compaction(compaction)
        if not compaction.placed:
            raise StoreUnwritable(f"the documents cannot be written: {compaction.failed}")

    def close(self) -> None:
        """Let go of the directory; further changes raise StoreUnwritable."""
        if self in _open_storages:
            _open_storages.discard(self)
            if self._gave_up:
                # what the failing disk did not let happen then
                self.journal.cut_back(self._synced_size)
            self.refusal = self.refusal or "the documents are closed"
            self.journal.close()
            self._lock.release()

    def let_go(self) -> None:
        """In a forked child: the directory stays the parent's alone."""
        self.refusal = "the documents belong to the process that this one was forked from"
        # its lock may be held by a thread that this process does not have
        self.compaction = None
        self.journal.close()
        self._lock.abandon()


_open_storages: weakref.WeakSet[JournalStorage] = weakref.WeakSet()


def _after_fork() -> None:
    for storage in list(_open_storages):
        storage.let_go()
    _open_storages.clear()


os.register_at_fork(after_in_child=_after_fork)
