"""The log in a bank's own directory (its files: journal.py): a journal of the changes, made durable, and compacted.

A change survives a crash of the process once the system has accepted the write, and with `power` a power failure once
an fsync has covered it (`begin_sync`, `finish_sync`).

A journal that has outgrown the snapshot is compacted: new changes go to a new journal file while a thread writes a new
snapshot beside the old one. Until the rename the state is the old snapshot with all journal files; after it, the new
snapshot with the newest file, while older files, and the contents that they name, are of no use any more. So a crash
between any two system calls loses nothing.

A write that failed is cut off again, at the latest before the next one. After a failed fsync what is not
synced is undone, and every change refused until a restart (`refusal`). A failed compaction leaves the old files valid,
and is tried again after as much has been written.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from threading import Lock as ThreadLock
from typing import Any, Literal
from uuid import uuid4

from emulator.store.disk import Disk, Lock, closing
from emulator.store.documents import Documents
from emulator.store.errors import StoreExhausted, StoreUnwritable
from emulator.store.journal import (
    SNAPSHOT,
    Journal,
    Progress,
    Recovered,
    content_in,
    journal_first,
    journal_name,
    sealed,
)
from emulator.store.kinds import Kind
from emulator.store.loaded import LoadedDocuments
from emulator.store.log import Log, content_name
from emulator.store.snapshot import write_snapshot
from emulator.store.table import Change, Image, Rows, StoredContent

logger = logging.getLogger(__name__)

Durability = Literal["process", "power"]

# A journal is left alone until it is a twelfth as large as the snapshot, and this large at least: a start replays it
# five to six times as slowly as it loads a snapshot, and after a kill it is to take at most half as long again as
# after a stop.
SMALL_JOURNAL = 16 << 20
# One that is this large at a start is compacted soon: the next start need not read it again.
SLOW_JOURNAL = 1 << 20


class Abandoned(Exception):
    """Raised by the `pause` of a compaction to cancel it."""


@dataclass(slots=True, eq=False)
class SyncTicket:
    """An fsync that covers every change up to `sequence`, at byte `end` of `journal`: `run` it in any thread.

    `failed`: why it has failed.
    """

    disk: Disk
    journal: Journal
    sequence: int
    end: int
    failed: Exception | None = None

    def run(self) -> None:
        """Sync; never raises."""
        try:
            self.disk.sync(self.journal.file)
        except Exception as failed:
            self.failed = failed


@dataclass(slots=True, eq=False)
class Compaction:
    """The writing of one snapshot: begun and finished in the documents' thread, `run` in any.

    `sequence`: the last change in it; `needless`: the files that it replaces, with `replaced` bytes; `size` in bytes;
    `placed`: it is the snapshot now. A failure is logged, and the old files remain valid.
    """

    directory: Path
    disk: Disk
    rows: Rows
    sequence: int
    needless: list[Path]
    replaced: int
    size: int = 0
    placed: bool = False
    abandoned: bool = False
    placing: ThreadLock = field(default_factory=ThreadLock)

    def run(self, pause: Callable[[], None] = lambda: None) -> None:
        """Write, sync, rename, sync the directory, remove the old journal files. Never raises.

        `pause` is called every few hundred documents; it may sleep, so that other threads run, or cancel the compaction
        by raising Abandoned.
        """
        unfinished = self.directory / f"{SNAPSHOT}.{uuid4().hex}.new"
        try:
            self.size = write_snapshot(self.disk, unfinished, self.rows, self.sequence, pause)
            with self.placing:
                if self.abandoned:
                    raise Abandoned
                self.disk.rename(unfinished, self.directory / SNAPSHOT)
                self.disk.sync_directory(self.directory)
                self.placed = True
                for path in self.needless:
                    self.disk.remove(path)
        except Exception as failed:
            # the directory of an abandoned compaction may not exist any more
            if not (self.abandoned or isinstance(failed, Abandoned)):
                logger.warning("%s: the snapshot could not be renewed: %s", self.directory, failed)
            if not self.placed:
                with suppress(OSError):
                    self.disk.remove(unfinished)


class JournalLog(Log):
    """The directory of one bank, locked for this process from construction to `close`.

    `synced`: with `power`, the last change that survives a power failure. Construction and `load` raise StoreDamaged,
    StoreTooNew, StoreLocked and OSError.
    """

    _documents: Documents
    _journal: Journal

    def __init__(
        self, directory: Path, *, power: bool = False, disk: Disk | None = None, progress: Progress | None = None
    ) -> None:
        self.directory = directory
        self.confirms = power
        self.refusal: str | None = None  # why changes are refused
        self.compacting: Compaction | None = None
        self._progress = progress
        self._syncing = asyncio.Lock()
        self._disk = disk or Disk()
        self._disk.make_directory(directory, sync=power)
        self._lock: Lock | None = Lock(directory)

    def load(self, documents: LoadedDocuments) -> None:
        """Read the directory into `documents`, and remove unfinished files of a killed process."""
        if isinstance(documents, Documents):
            self._documents = documents
        elif self._lock is None:
            raise StoreUnwritable("the documents are closed")
        self._abandon_compaction()
        recovered, disk = Recovered(self.directory, documents, self._progress), self._disk
        # first, since an empty file after a torn record would not follow the shortened one
        for path in recovered.stale:
            if documents is self._documents or journal_first(path.name) is not None:  # else it may be being written
                disk.remove(path)
        if recovered.torn is not None:
            path, offset, size = recovered.torn
            logger.warning("%s: dropped %d bytes at %d, a last record that is torn or damaged", path, size, offset)
            with closing(disk, disk.open_to_append(path)) as file:
                disk.cut(file, offset)
        if self.confirms:  # changes that a killed process wrote will be served, so they must be durable too
            for path in recovered.journals:
                with closing(disk, disk.open_to_append(path)) as file:
                    disk.sync(file)
        path = recovered.journals[-1] if recovered.journals else self.directory / journal_name(documents.sequence + 1)
        self._journal = self._continued(path, recovered.end)
        self._contents = recovered.contents  # the files that changes of the journal name
        self.size = recovered.size
        sources = [self.directory / SNAPSHOT, *recovered.journals]
        self.written = max((path.stat().st_mtime for path in sources if path.exists()), default=0.0)
        self.synced, self._synced_end = documents.sequence, recovered.end
        self._snapshot_size = recovered.snapshot_size
        self._tried_at = -inf if self.size > SLOW_JOURNAL else 0.0  # the size at the last compaction, if that failed

    def _continued(self, path: Path, end: int = 0) -> Journal:
        """A journal file to append to, whose name is durable with `power`; OSError."""
        journal = Journal(self._disk, path, end)
        if self.confirms:
            self._disk.sync_directory(self.directory)
        return journal

    def append(self, change: Change) -> None:
        """Append one record; raises StoreUnwritable, with nothing changed."""
        if self.refusal is not None:
            raise StoreUnwritable(self.refusal)
        payload = change.payload
        if self.confirms:  # with the number of the last change that was synced when it was written
            head = b'{"sequence":%d,' % change.sequence
            payload = b'%b"synced":%d,%b' % (head, self.synced, payload[len(head) :])
        line = sealed(payload)
        size, content = self.size + len(line), change.content  # nothing may fail after the line is written
        if content is not None:
            self._contents.add(content.file)
            size += content.size
        try:
            self._journal.append(line)
        except OSError as failed:
            raise StoreUnwritable(f"the change cannot be written: {failed}") from failed
        self.size = size
        if content is not None:
            content.kept = True

    def store_content(self, image: Image) -> StoredContent:
        """Write a content file; may run in any thread. Raises StoreUnwritable."""
        name = content_name()
        try:
            size = write_snapshot(self._disk, self.directory / name, image.rows, 0)
            if self.confirms:
                self._disk.sync_directory(self.directory)
        except OSError as failed:
            self.remove_content(name)
            raise StoreUnwritable(f"the content cannot be written: {failed}") from failed
        return self.stored(name, size)

    def content(self, file: str) -> Image:
        """Read a content file; for any thread. StoreDamaged, StoreTooNew, FileNotFoundError, OSError."""
        return content_in(self.directory, file, self._documents.kinds)

    def remove_content(self, file: str) -> None:
        """Remove a content file, now or at the next start."""
        with suppress(OSError):
            self._disk.remove(self.directory / file)

    # Durability `power`: an answer may be sent once `synced` has reached the change that it reports

    @property
    def sync_needed(self) -> bool:
        return self.confirms and self._documents.sequence > self.synced and self.refusal is None

    def begin_sync(self) -> SyncTicket:
        """An fsync for all changes so far: `run` it in any thread, then `finish_sync`."""
        return SyncTicket(self._disk, self._journal, self._documents.sequence, self._journal.end)

    def finish_sync(self, ticket: SyncTicket) -> None:
        """Confirm the changes covered by an fsync that has run; not within a transaction.

        If it failed, undo every change that is not synced and raise StoreUnwritable; from then on every change raises
        StoreUnwritable until a restart.
        """
        if self.refusal is None and ticket.failed is not None:
            # The system may have dropped the unwritten pages, so a second fsync would prove nothing.
            self.refusal = f"an fsync failed, changes are refused until a restart: {ticket.failed}"
            self._journal.cut_back(self._synced_end)
            self._documents.revert(self.synced, StoreUnwritable(self.refusal))
        if self.refusal is not None and (ticket.failed is not None or ticket.sequence > self.synced):
            raise StoreUnwritable(self.refusal)
        if ticket.journal is self._journal and ticket.sequence > self.synced:
            self.synced, self._synced_end = ticket.sequence, ticket.end
        self._documents.confirm(self.synced)

    async def durable(self, sequence: int) -> None:
        """Wait for an fsync that covers the changes up to this one; StoreUnwritable if they were undone.

        One fsync runs at a time, in a thread, and covers all changes written before it, so that the next caller often
        needs none. If the bank is deleted meanwhile it returns too.
        """
        async with self._syncing:
            if self.synced >= sequence or not self.confirms or self._documents.discarded:
                return
            if self._documents.sequence < sequence:
                raise StoreUnwritable("an earlier fsync failed, and the changes were undone")
            ticket = self.begin_sync()
            await asyncio.get_running_loop().run_in_executor(None, ticket.run)
            if not self._documents.discarded:
                self.finish_sync(ticket)

    def sync(self) -> None:
        """Make every change so far durable; raises as `finish_sync` does."""
        self._documents.write_waiting()
        if self.sync_needed:
            ticket = self.begin_sync()
            ticket.run()
            self.finish_sync(ticket)

    # Compaction

    @property
    def compaction_due(self) -> bool:
        """Whether the journal, with the content files it names, has outgrown the snapshot."""
        outgrown = self.size > self._tried_at + max(SMALL_JOURNAL, self._snapshot_size // 12)
        return outgrown and self.compacting is None and self.refusal is None

    def compaction(self, pause: Callable[[], None]) -> Coroutine[Any, Any, None]:
        """Begin a compaction; the coroutine writes the snapshot in a thread. StoreUnwritable if it cannot begin."""
        compaction = self.begin_compaction()

        async def write() -> None:
            await asyncio.get_running_loop().run_in_executor(None, compaction.run, pause)
            self.finish_compaction(compaction)

        return write()

    def begin_compaction(self) -> Compaction:
        """A new snapshot of the present content: `run` it in any thread, then `finish_compaction`.

        With `power` it syncs first, so best call it when nothing waits. Raises StoreUnwritable.
        """
        if self._documents.depth or self.compacting is not None:
            raise RuntimeError("a compaction begins outside of transactions, and not while one is in progress")
        self.sync()  # or a power cut could leave the new journal file without the end of the old one
        if self.refusal is not None:
            raise StoreUnwritable(self.refusal)
        sequence, journal = self._documents.sequence, self._journal
        try:
            needless = [
                self.directory / name
                for name in os.listdir(self.directory)
                if name in self._contents or (journal_first(name) or sequence + 1) <= sequence
            ]
            journal.mend()
            if journal.first != sequence + 1:
                self._journal = self._continued(self.directory / journal_name(sequence + 1))
        except OSError as failed:
            self._tried_at = self.size
            raise StoreUnwritable(f"the journal cannot be continued in a new file: {failed}") from failed
        self._synced_end = self._journal.end
        compaction = Compaction(self.directory, self._disk, self._documents.freeze(), sequence, needless, self.size)
        self.compacting = compaction
        return compaction

    def finish_compaction(self, compaction: Compaction) -> None:
        """Finish a compaction that has run."""
        if self.compacting is not compaction:
            return
        self.compacting = None
        if compaction.placed:
            self._snapshot_size = compaction.size
            self._contents -= {path.name for path in compaction.needless}
            self.size -= compaction.replaced
        self._tried_at = 0 if compaction.placed else self.size

    def _abandon_compaction(self) -> None:
        """Prevent a snapshot from being placed if it is not yet; waits for a rename in progress."""
        if self.compacting is not None:
            with self.compacting.placing:
                self.compacting.abandoned = True
            self.finish_compaction(self.compacting)

    def compact(self, pause: Callable[[], None] = lambda: None) -> None:
        """Renew the snapshot; if that fails, it is logged. StoreUnwritable if it cannot begin.

        `pause` may cancel it, as in `Compaction.run`.
        """
        compaction = self.begin_compaction()
        compaction.run(pause)
        self.finish_compaction(compaction)

    # The end

    def close(self, pause: Callable[[], None] = lambda: None) -> None:
        """Renew the snapshot if that makes the next start faster, unless `pause` cancels it; release the directory."""
        self._abandon_compaction()
        try:
            self.sync()
            if self.size > 0 and self.refusal is None:
                pause()
                self.compact(pause)
        except Abandoned:
            pass
        except StoreUnwritable as failed:  # the journal has every acknowledged change
            logger.warning("%s: %s", self.directory, failed)
        self.discard()

    def discard(self) -> None:
        """Release the directory without changing it."""
        self._abandon_compaction()
        if self._lock is not None:
            if self.refusal is not None:  # an fsync failed, and the disk may have prevented it then
                self._journal.cut_back(self._synced_end)
            self.refusal = self.refusal or "the documents are closed"
            self.__dict__.pop("_journal", None)  # its file is closed, unless an fsync still needs it
            self._lock.release()
            self._lock = None


def open_store(
    directory: Path,
    kinds: Sequence[Kind[Any]],
    durability: Durability = "process",
    *,
    disk: Disk | None = None,
    progress: Progress | None = None,
) -> Documents:
    """The documents of a directory, which is created (0700) if missing; their `log` is a JournalLog.

    `durability`: `process` survives the death of the process, `power` also that of the machine (see `sync`).
    Raises StoreDamaged, StoreExhausted, StoreTooNew, StoreLocked, OSError.
    """
    log = JournalLog(directory, power=durability == "power", disk=disk, progress=progress)
    try:
        return Documents(log, kinds)
    except BaseException as error:
        log.discard()
        if isinstance(error, MemoryError):
            raise StoreExhausted(directory) from error
        raise
