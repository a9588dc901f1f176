"""The log in a bank's own directory: a snapshot of the documents, and a journal of every later change.

    documents.json                 the snapshot (snapshot.py)
    journal-<first change>.jsonl   the changes after it, one record each; more than one after a compaction
    content-<id>.json              a whole content that a change refers to, so that the change itself stays small
    lock                           names the process that has the directory open (disk.py)

`Store` calls `append` with each change. It survives a crash of the process once the system has accepted the write, and
with `power` a power failure once an fsync has covered it (`begin_sync`, `finish_sync`); a record states which changes
were synced before it, by which a start tells a torn end from damage (recovery.py).

A journal that has outgrown the snapshot is compacted: new changes go to a new journal file while a thread writes a new
snapshot beside the old one. Until the rename the state is the old snapshot with all journal files; after it, the new
snapshot with the newest file, while older files only contain changes that the snapshot has. So a crash between any two
system calls loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import weakref
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock as ThreadLock
from typing import Any, Literal
from uuid import uuid4

from emulator.store.db import Change, Store
from emulator.store.disk import Disk, Lock, closing, write_rest
from emulator.store.documents import Image, StoredContent
from emulator.store.errors import StoreExhausted, StoreUnwritable
from emulator.store.kinds import Kind
from emulator.store.recovery import (
    SNAPSHOT,
    Progress,
    Recovery,
    Segment,
    content_name,
    recover,
    sealed,
    segment_name,
    unfinished_name,
)
from emulator.store.snapshot import Tables, write_snapshot

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


class Journal:
    """The open journal of a directory; records are appended to the last of `segments`."""

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
        """Write one line completely, or leave the journal unchanged and raise OSError."""
        if self._spoilt:
            self._cut_off()
        size = len(line)
        sizes = self.last.size + size, self.size + size  # now, as nothing may fail after the line is written
        try:
            written = self._disk.write(self.file, line)
            if written != size:
                write_rest(self._disk, self.file, line, written)
        except BaseException:
            self._spoilt = True
            # if this fails too, the next append tries again before it writes
            with suppress(OSError):
                self._cut_off()
            raise
        self.last.size, self.size = sizes

    def _cut_off(self) -> None:
        self._disk.cut(self.file, self.last.size)
        self._spoilt = False

    def begin_segment(self, following: int) -> list[Segment]:
        """Continue with change `following` in a new file; returns the earlier segments. Raises OSError."""
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

    def forget(self, sequence: int) -> None:
        """Remove the segments with changes up to this one, which the snapshot contains now."""
        self.segments = [segment for segment in self.segments if segment.first > sequence]
        self.size = sum(segment.size for segment in self.segments)

    def moved(self, directory: Path) -> None:
        """Update the paths after the directory was renamed."""
        self._directory = directory
        for segment in self.segments:
            segment.path = directory / segment.path.name

    def cut_back(self, size: int) -> None:
        """Shorten the last segment to `size`, ignoring errors; nothing may be appended afterwards."""
        with suppress(OSError):
            self._disk.cut(self.file, size)

    def close(self) -> None:
        self._disk.close(self.file)


class SyncTicket:
    """An fsync that covers every change up to `sequence`: created and finished in the store's thread, `run` in any."""

    def __init__(self, disk: Disk, directory: Path | None, file: int, *, sequence: int, segment: Segment) -> None:
        self._disk = disk
        self._directory = directory  # None once the name of the journal file is durable
        self.sequence = sequence
        self.segment = segment
        self.size = segment.size
        self.done = False
        self.failed: Exception | None = None
        self._duplicate: int | None = None
        try:
            # so that a compaction may close the journal's file meanwhile
            self._duplicate = disk.duplicate(file)
        except OSError:  # no descriptor is free: sync at once, in the store's thread
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


class Compaction:
    """The writing of one snapshot: created and finished in the store's thread, `run` in any.

    `sequence`: the last change in it; `needless`: the files that it replaces; `placed`: it is the snapshot now;
    `failed`: why it is not, or why those files stay.
    """

    def __init__(self, directory: Path, disk: Disk, tables: Tables, *, sequence: int, needless: list[Path]) -> None:
        self._directory = directory
        self._disk = disk
        self._tables = tables
        self._needless = needless
        self.sequence = sequence
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
        unfinished = self._directory / unfinished_name(self.sequence, id(self))
        try:
            self.size = write_snapshot(self._disk, unfinished, self._tables, self.sequence, pause)
            with self._placing:
                if self._abandoned:
                    self._disk.remove(unfinished)
                    return
                self._disk.rename(unfinished, self._directory / SNAPSHOT)
                self._disk.sync_directory(self._directory)
                self.placed = True
                for path in self._needless:
                    self._disk.remove(path)
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


class JournalLog:
    """The directory of one bank, locked for this process from construction to `close`.

    `written`: the time of the last loaded change, in real seconds since 1970, 0 for none. Construction and `load` raise
    StoreDamaged, StoreTooNew, StoreLocked and OSError.
    """

    owned = True  # the lock of the directory

    def __init__(
        self, directory: Path, *, power: bool = False, disk: Disk | None = None, progress: Progress | None = None
    ) -> None:
        self.directory = directory
        self._progress = progress
        self.confirms = power
        self.compacted: Compaction | None = None  # in progress
        self._syncing = asyncio.Lock()
        self.refusal: str | None = None  # why changes are refused
        self._disk = disk or Disk()
        self._disk.make_directory(directory, sync=power)
        self._lock = Lock(directory)
        self._gave_up = False
        self.written = 0.0
        self._journal: Journal | None = None
        self._contents: dict[str, StoredContent] = {}  # by file: those that a change names or is about to name
        _open_logs.add(self)

    def load(self, store: Store) -> None:
        """Read the directory into `store`, and remove unfinished files of a killed process."""
        self._store = store
        recovered = recover(self.directory, self._disk, store, self._progress)
        self.written = max((self._disk.written(path) for path in recovered.sources), default=0.0)
        self._journal = self._open_journal(recovered)
        self._contents = recovered.contents
        self._synced = store.sequence
        self._synced_size = self._journal.last.size
        self._new_name = True  # the name of the newest journal file may not be durable yet
        self._snapshot_size = recovered.snapshot_size
        self._compact_at = -1 if self._journal.size > SLOW_JOURNAL else self._threshold()

    def _open_journal(self, recovered: Recovery) -> Journal:
        # first, since an empty file after a torn record would not follow the shortened one
        for path in recovered.stale:
            self._disk.remove(path)
        if recovered.torn is not None:
            path, offset, size = recovered.torn
            logger.warning("%s: dropped %d bytes at %d, a last record that is torn or damaged", path, size, offset)
            with closing(self._disk, self._disk.open_to_append(path)) as file:
                self._disk.cut(file, offset)
        if self.confirms:
            # changes that a killed process wrote will be served, so they must be durable too
            for segment in recovered.segments:
                with closing(self._disk, self._disk.open_to_append(segment.path)) as file:
                    self._disk.sync(file)
        return Journal(self.directory, self._disk, recovered.segments, following=self._store.sequence + 1)

    @property
    def journal(self) -> Journal:
        """The open journal."""
        if self._journal is None:
            raise RuntimeError("the log has not been loaded")
        return self._journal

    def append(self, change: Change) -> None:
        """Append one record; raises StoreUnwritable, with nothing changed."""
        if self.refusal is not None:
            raise StoreUnwritable(self.refusal)
        try:
            self.journal.append(sealed(self._stating_synced(change) if self.confirms else change.payload))
        except OSError as failed:
            raise StoreUnwritable(f"the change cannot be written: {failed}") from failed
        # the change is stored: no lack of memory may have it undone now
        with suppress(Exception):
            if self._contents and not self.confirms:
                self._drop_contents(change.sequence)
            group = self._store.group
            if group is not None and self.compaction_due:
                group.overgrown.add(self._store)

    def store_content(self, image: Image) -> StoredContent:
        """Write a content file that a change can refer to; may run in any thread. Raises StoreUnwritable."""
        name = content_name(uuid4().hex)
        path = self.directory / name
        try:
            size = write_snapshot(self._disk, path, image.tables, 0)
            if self.confirms:
                self._disk.sync_directory(self.directory)
        except OSError as failed:
            with suppress(OSError):
                self._disk.remove(path)
            raise StoreUnwritable(f"the content cannot be written: {failed}") from failed

        def remove() -> None:
            self._contents.pop(name, None)
            with suppress(OSError):
                self._disk.remove(path)

        stored = self._contents[name] = StoredContent(name, size=size, remove=remove)
        return stored

    def _drop_contents(self, sequence: int) -> None:
        """Remove the contents that a later one has replaced in the changes up to this one."""
        contents = list(self._contents.items())  # a thread may add one
        last = max((stored.sequence for _, stored in contents if stored.sequence <= sequence), default=0)
        for name, stored in contents:
            if 0 < stored.sequence < last:
                del self._contents[name]
                with suppress(OSError):
                    self._disk.remove(self.directory / name)

    def _stating_synced(self, change: Change) -> bytes:
        """The payload, with the number of the last change that was synced when it was written."""
        head = b'{"sequence":%d,' % change.sequence
        return b'%b"synced":%d,%b' % (head, self._synced, change.payload[len(head) :])

    # Durability `power`: an answer may be sent once `synced` has reached the change that it reports

    @property
    def synced(self) -> int:
        """The last change with the configured durability."""
        return self._synced if self.confirms else self._store.sequence

    @property
    def sync_needed(self) -> bool:
        """Whether changes wait for an fsync."""
        return self.confirms and self._store.sequence > self._synced and self.refusal is None

    def begin_sync(self) -> SyncTicket:
        """An fsync for all changes so far: `run` it in any thread, then `finish_sync`."""
        names = self.directory if self._new_name else None
        journal = self.journal
        return SyncTicket(self._disk, names, journal.file, sequence=self._store.sequence, segment=journal.last)

    def finish_sync(self, ticket: SyncTicket) -> None:
        """Confirm the changes covered by an fsync that has run.

        If it failed, undo every change that is not synced and raise StoreUnwritable; from then on every change raises
        StoreUnwritable until a restart.
        """
        if self._store.marks or not ticket.done:
            raise RuntimeError("an fsync is finished after it ran and outside of transactions")
        if ticket.failed is None and (ticket.sequence <= self._synced or self.refusal is None):
            if ticket.segment is self.journal.last:
                self._new_name = False
                if ticket.sequence > self._synced:
                    self._synced, self._synced_size = ticket.sequence, ticket.size
            self._store.confirm(self._synced)
            self._drop_contents(self._synced)
            return
        if self.refusal is None:
            # The system may have dropped the unwritten pages, so a second fsync would prove nothing.
            self.refusal = f"an fsync failed, changes are refused until a restart: {ticket.failed}"
            self.journal.cut_back(self._synced_size)
            self._gave_up = True
            self._store.revert(self._synced, self.refusal)
        raise StoreUnwritable(self.refusal)

    async def durable(self, sequence: int) -> None:
        """Wait for an fsync that covers the changes up to this one; StoreUnwritable if they were undone.

        One fsync runs at a time, in a thread, and covers all changes written before it, so that the next caller often
        needs none. If the bank is deleted meanwhile it returns too.
        """
        async with self._syncing:
            if self.synced >= sequence or self._store.discarded:
                return
            if self._store.sequence < sequence:
                raise StoreUnwritable("an earlier fsync failed, and the changes were undone")
            ticket = self.begin_sync()
            await asyncio.get_running_loop().run_in_executor(None, ticket.run)
            if not self._store.discarded:
                self.finish_sync(ticket)

    def sync(self) -> None:
        """Make every change so far durable; raises StoreUnwritable as `finish_sync` does."""
        self._store.write_waiting()
        if self.sync_needed:
            ticket = self.begin_sync()
            ticket.run()
            self.finish_sync(ticket)

    # Compaction

    def _threshold(self) -> int:
        return max(SMALL_JOURNAL, self._snapshot_size // 12)

    @property
    def compaction_due(self) -> bool:
        """Whether the journal, with the content files it names, has outgrown the snapshot."""
        size = self.journal.size
        if self._contents:
            size += sum(stored.size for stored in list(self._contents.values()) if stored.sequence)
        return size > self._compact_at and self.compacted is None and self.refusal is None

    @property
    def size(self) -> int:
        """Bytes of the journal."""
        return 0 if self._journal is None else self._journal.size

    @property
    def compacting(self) -> bool:
        """Whether a snapshot is being written."""
        return self.compacted is not None

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
        if self._store.marks:
            raise RuntimeError("a compaction begins outside of transactions")
        if self.compacted is not None:
            raise RuntimeError("a compaction is in progress")
        self.sync()  # or a power cut could leave the new journal file without the end of the old one
        if self.refusal is not None:
            raise StoreUnwritable(self.refusal)
        sequence, journal = self._store.sequence, self.journal
        try:
            needless = [segment.path for segment in journal.begin_segment(sequence + 1)]
        except OSError as failed:
            self._compact_at = journal.size + self._threshold()
            raise StoreUnwritable(f"the journal cannot be continued in a new file: {failed}") from failed
        self._new_name, self._synced_size = True, journal.last.size
        needless += [
            self.directory / name for name, stored in list(self._contents.items()) if 0 < stored.sequence <= sequence
        ]
        self.compacted = Compaction(
            self.directory, self._disk, self._store.freeze(), sequence=sequence, needless=needless
        )
        return self.compacted

    def finish_compaction(self, compaction: Compaction) -> None:
        """Finish a compaction that has run; a failed one is logged, and the old files remain valid."""
        self._end_compaction(compaction)
        if compaction.failed is not None:
            logger.warning("%s: the snapshot could not be renewed: %s", self.directory, compaction.failed)

    def _end_compaction(self, compaction: Compaction) -> None:
        if self.compacted is not compaction:
            return
        self.compacted = None
        if compaction.placed:
            self._snapshot_size = compaction.size
            self.journal.forget(compaction.sequence)
            for name, stored in list(self._contents.items()):
                if 0 < stored.sequence <= compaction.sequence:
                    del self._contents[name]
            self._compact_at = self._threshold()
        else:
            self._compact_at = self.journal.size + self._threshold()

    def _abandon_compaction(self) -> None:
        if self.compacted is not None:
            self.compacted.abandon()
            self._end_compaction(self.compacted)

    def compact(self, pause: Callable[[], None] | None = None) -> None:
        """Renew the snapshot; raises StoreUnwritable if that fails, and the old files remain valid.

        `pause` may cancel it, as in `Compaction.run`.
        """
        compaction = self.begin_compaction()
        compaction.run(pause)
        self._end_compaction(compaction)
        if not compaction.placed:
            raise StoreUnwritable(f"the snapshot could not be renewed: {compaction.failed or 'there was no time'}")

    def moved(self, directory: Path) -> None:
        """Update the paths after the directory was renamed; not during a compaction."""
        if self.compacted is not None:
            raise RuntimeError("a compaction is in progress")
        self.directory = directory
        self.journal.moved(directory)

    # The end

    def close(self, pause: Callable[[], None] | None = None) -> None:
        """Renew the snapshot if that makes the next start faster, unless `pause` cancels it; release the directory.

        Once `pause` has cancelled it, the disk is not used for anything that can be left out: it may be slow, and
        thousands of banks may be closed.
        """
        self._abandon_compaction()
        hurried = False
        try:
            try:
                if pause is not None:
                    pause()
                if self._journal is not None and self.refusal is None and self._journal.size > 0:
                    self._attempt(lambda: self.compact(pause))
            except Abandoned:
                hurried = True
            if self._journal is not None:
                self._attempt(self.sync)
        finally:
            self._release(hurried=hurried)

    def _attempt(self, last_step: Callable[[], None]) -> None:
        try:
            last_step()
        except StoreUnwritable as failed:
            # the journal has every acknowledged change
            logger.warning("%s: %s", self.directory, failed)

    def discard(self) -> None:
        """Release the directory without changing it."""
        self._abandon_compaction()
        self._release()

    def _release(self, *, hurried: bool = False) -> None:
        if self in _open_logs:
            _open_logs.discard(self)
            self.refusal = self.refusal or "the documents are closed"
            if self._journal is not None:
                if self._gave_up:  # the failing disk may have prevented it before
                    self._journal.cut_back(self._synced_size)
                self._journal.close()
            self._lock.release(hurried=hurried)

    def leave_to_parent(self) -> None:
        """In a forked child: stop using the directory, which belongs to the parent."""
        self.refusal = "the documents belong to the process that this one was forked from"
        self.compacted = None  # its lock may be held by a thread that does not exist in this process
        if self._journal is not None:
            self._journal.close()
        self._lock.abandon()


_open_logs: weakref.WeakSet[JournalLog] = weakref.WeakSet()


def _after_fork() -> None:
    for log in list(_open_logs):
        log.leave_to_parent()
    _open_logs.clear()


os.register_at_fork(after_in_child=_after_fork)


def open_store(
    directory: Path,
    kinds: Sequence[Kind[Any]],
    durability: Durability = "process",
    *,
    disk: Disk | None = None,
    progress: Progress | None = None,
) -> Store:
    """The store of a directory, which is created (0700) if missing; its `log` is a JournalLog.

    `durability`: `process` survives the death of the process, `power` also that of the machine (see `sync`).
    Raises StoreDamaged, StoreExhausted, StoreTooNew, StoreLocked, OSError.
    """
    log = JournalLog(directory, power=durability == "power", disk=disk, progress=progress)
    try:
        return Store(log, kinds)
    except MemoryError as error:
        log.discard()
        raise StoreExhausted(directory) from error
    except BaseException:
        log.discard()
        raise
