"""The log in a bank's own directory: a snapshot of the documents, and a journal of every later change.

    documents.json                 the snapshot (snapshot.py)
    journal-<first change>.jsonl   the changes after it, one record each; more than one after a compaction
    content-<id>.json              a whole content that a change refers to, so that the change itself stays small
    lock                           names the process that has the directory open (disk.py)

A change survives a crash of the process once the system has accepted the write, and with `power` a power failure once
an fsync has covered it (`begin_sync`, `finish_sync`).

A journal that has outgrown the snapshot is compacted: new changes go to a new journal file while a thread writes a new
snapshot beside the old one. Until the rename the state is the old snapshot with all journal files; after it, the new
snapshot with the newest file, while older files, and the contents that they name, are of no use any more. So a crash
between any two system calls loses nothing.

A write that failed is cut off again, at the latest before the next one. After a failed fsync what is not
synced is undone, and every change refused until a restart (`refusal`). A failed compaction leaves the old files valid,
and is tried again after as much has been written.

A record is a line, `{"crc":"<8 hex>","change":<change>}`, with the CRC-32 of the change (`documents.Change`). Every
byte of it is either fixed by this form or covered by the checksum. With `power` the change states in `synced` which one
was synced before it, by which a start tells a torn end from damage.

The directory of a killed process may contain, besides what is written in this order: a snapshot that was not finished;
journal files whose changes the snapshot has; a content that no change names; an incomplete last record; and, after a
power failure, missing pages anywhere in the records that were not synced. All of this is dropped, as none of it was
acknowledged (`Recovered`). Anything else that cannot be read is damage, and nothing is dropped for it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock as ThreadLock
from typing import Any, Literal
from uuid import uuid4
from zlib import crc32

from emulator.store.disk import Disk, Lock, closing, pieces, write_whole
from emulator.store.documents import Change, Documents, Log, content_named
from emulator.store.errors import StoreDamaged, StoreExhausted, StoreUnwritable
from emulator.store.kinds import Kind
from emulator.store.snapshot import Tables, load, write_snapshot
from emulator.store.table import Image, StoredContent

logger = logging.getLogger(__name__)

SNAPSHOT = "documents.json"
_SYNCED = re.compile(rb'\{"sequence":\d{1,18},"synced":(\d{1,18}),')
_SEQUENCE = re.compile(rb'\{"sequence":(\d{1,18}),')
_JOURNAL = re.compile(r"journal-(\d{12,})\.jsonl")
_UNFINISHED = re.compile(rf"{re.escape(SNAPSHOT)}\..*\.new")
_CONTENT = re.compile(r"content-.*\.json")
_HEAD = re.compile(rb'\{"crc":"([0-9a-f]{8})","change":')

Progress = Callable[[int, int], None]
"""Called after each file and record with the number of bytes read so far, and the total."""

Record = tuple[int, bytes]
"""The offset of a record in its file, and the change."""

Durability = Literal["process", "power"]

# A journal is left alone until it is a twelfth as large as the snapshot, and this large at least: a start replays it
# five to six times as slowly as it loads a snapshot, and after a kill it is to take at most half as long again as
# after a stop.
SMALL_JOURNAL = 16 << 20
# One that is this large at a start is compacted soon: the next start need not read it again.
SLOW_JOURNAL = 1 << 20


def sealed(payload: bytes) -> bytes:
    """The line for a change."""
    return b'{"crc":"%08x","change":%b}\n' % (crc32(payload), payload)


def _unsealed(data: bytes, offset: int) -> tuple[bytes | None, int]:
    """The change of the record at `offset`, and the offset after it; None if it is not valid."""
    head, end = _HEAD.match(data, offset), data.find(b"}\n", offset)
    if head is None or end < 0 or crc32(change := data[head.end() : end]) != int(head[1], 16):
        return None, 0
    return change, end + 2


def records(data: bytes) -> tuple[list[Record], int]:
    """The valid records in a journal file, and the offset after the last of them."""
    read: list[Record] = []
    offset = 0
    while True:
        change, end = _unsealed(data, offset)
        if change is None:
            return read, offset
        read.append((offset, change))
        offset = end


def records_after(data: bytes, offset: int) -> Iterator[Record]:
    """The valid records after the damaged one at `offset`, wherever they begin: its line end may be the damage.

    Inside a line a document may contain what looks like one, but it does not end with the line.
    """
    for head in _HEAD.finditer(data, offset + 1):
        change, _ = _unsealed(data, head.start())
        if change is not None:
            yield head.start(), change


def journal_name(first: int) -> str:
    """The name of the file whose first record is change number `first`."""
    return f"journal-{first:012d}.jsonl"


def journal_first(name: str) -> int | None:
    """The number of the first change in the file with this name; None if it is not a journal."""
    match = _JOURNAL.fullmatch(name)
    return int(match[1]) if match else None


def unfinished_name(sequence: int, unique: int) -> str:
    """The file of a snapshot that is being written; an unfinished one is removed at the next start."""
    return f"{SNAPSHOT}.{sequence}-{unique:x}.new"


class Abandoned(Exception):
    """Raised by the `pause` of a compaction to cancel it."""


class Journal:
    """The journal file that changes are appended to: it begins with change `first`, and ends after `end` bytes.

    It is closed when nobody needs it any more, an fsync under way included.
    """

    def __init__(self, disk: Disk, path: Path, end: int = 0) -> None:
        self._disk = disk
        self.first = journal_first(path.name)
        self.end = end
        self.file = disk.open_to_append(path)
        self.spoilt = False  # a failed write may have left part of a record

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):  # it could not be opened
            self._disk.close(self.file)

    def append(self, line: bytes) -> None:
        """Write one line completely, or leave the journal unchanged and raise OSError."""
        if self.spoilt:
            self.mend()
        end = self.end + len(line)
        try:
            write_whole(self._disk, self.file, line)
        except BaseException:
            self.spoilt = True
            # if this fails too, the next append tries again before it writes
            with suppress(OSError):
                self.mend()
            raise
        self.end = end

    def mend(self) -> None:
        """Cut off what a failed write may have left; OSError."""
        self._disk.cut(self.file, self.end)
        self.spoilt = False

    def cut_back(self, end: int) -> None:
        """Shorten it to `end` bytes, ignoring errors; nothing may be appended afterwards."""
        with suppress(OSError):
            self._disk.cut(self.file, end)


@dataclass(slots=True, eq=False)
class SyncTicket:
    """An fsync that covers every change up to `sequence`, at byte `end` of `journal`: `run` it in any thread.

    `failed`: why it has failed; `names`: the directory, if the name of the journal file may not be durable yet.
    """

    disk: Disk
    journal: Journal
    sequence: int
    end: int
    names: Path | None
    failed: Exception | None = None

    def run(self) -> None:
        """Sync; never raises."""
        try:
            self.disk.sync(self.journal.file)
            if self.names is not None:
                self.disk.sync_directory(self.names)
        except Exception as failed:
            self.failed = failed


@dataclass(slots=True, eq=False)
class Compaction:
    """The writing of one snapshot: begun and finished in the documents' thread, `run` in any.

    `sequence`: the last change in it; `needless`: the files that it replaces, with `replaced` bytes; `size` in bytes;
    `placed`: it is the snapshot now; `failed`: why it is not, or why those files stay.
    """

    directory: Path
    disk: Disk
    tables: Tables
    sequence: int
    needless: list[Path]
    replaced: int
    size: int = 0
    placed: bool = False
    failed: Exception | None = None
    _abandoned: bool = False
    _placing: ThreadLock = field(default_factory=ThreadLock)

    def run(self, pause: Callable[[], None] = lambda: None) -> None:
        """Write, sync, rename, sync the directory, remove the old journal files. Never raises: see `failed`.

        `pause` is called every few hundred documents; it may sleep, so that other threads run, or cancel the compaction
        by raising Abandoned.
        """
        unfinished = self.directory / unfinished_name(self.sequence, id(self))
        try:
            self.size = write_snapshot(self.disk, unfinished, self.tables, self.sequence, pause)
            with self._placing:
                if self._abandoned:
                    raise Abandoned
                self.disk.rename(unfinished, self.directory / SNAPSHOT)
                self.disk.sync_directory(self.directory)
                self.placed = True
                for path in self.needless:
                    self.disk.remove(path)
        except Exception as failed:
            # the directory of an abandoned compaction may not exist any more
            if not (self._abandoned or isinstance(failed, Abandoned)):
                self.failed = failed
            if not self.placed:
                with suppress(OSError):
                    self.disk.remove(unfinished)

    def abandon(self) -> None:
        """Prevent it from becoming the snapshot if it is not yet; waits for a rename in progress."""
        with self._placing:
            self._abandoned = True


class Recovered:
    """A directory, read into the empty `documents` without changing a file; raises StoreDamaged and StoreTooNew.

    The journal goes on after byte `end` of the last one of `journals`; `contents`: the files that changes refer to;
    `size` of all these and `snapshot_size` in bytes; `torn`: (file, offset, bytes) of an incomplete or damaged last
    record; `stale`: files to remove.
    """

    def __init__(self, directory: Path, documents: Documents, progress: Progress | None = None) -> None:
        self.snapshot_size = self.size = self.end = 0
        self.journals: list[Path] = []
        self.contents: set[str] = set()
        self.stale: list[Path] = []
        self.torn: tuple[Path, int, int] | None = None
        self._directory = directory
        self._documents = documents
        self._progress = progress
        self._done = 0
        names = sorted(os.listdir(directory))
        firsts = {directory / name: first for name in names if (first := journal_first(name)) is not None}
        journals = sorted(firsts, key=firsts.__getitem__)
        snapshot = [directory / SNAPSHOT] if SNAPSHOT in names else []
        self._total = sum(path.stat().st_size for path in (*snapshot, *journals))
        self._advance(0)
        for file in snapshot:
            sequence, image = load(pieces(file), file, documents.kinds)
            documents.replace(image, sequence)
            self.snapshot_size = file.stat().st_size
            self._advance(self.snapshot_size)
        # a journal is not needed if the next one begins no later than the first change that the snapshot does not have
        while len(journals) > 1 and firsts[journals[1]] <= documents.sequence + 1:
            self.stale.append(journals.pop(0))
        while journals and self.torn is None:
            path = journals.pop(0)
            self._read(path, firsts[path], journals)
        self.stale += journals
        for name in names:
            if _UNFINISHED.fullmatch(name) or (_CONTENT.fullmatch(name) and name not in self.contents):
                self.stale.append(directory / name)

    def _advance(self, size: int) -> None:
        self._done += size
        if self._progress is not None:
            self._progress(self._done, self._total)

    def _read(self, path: Path, first: int, later: list[Path]) -> None:
        """Apply the changes of a journal file that the documents do not have yet."""
        documents, known = self._documents, self._documents.sequence
        if first > known + 1:
            raise StoreDamaged(path, 0, f"changes {known + 1} to {first - 1} are missing before this file")
        data = path.read_bytes()
        valid, end = records(data)
        following = first
        for offset, change in valid:
            self._apply(path, offset, change, following)
            following += 1
        if end < len(data):
            self._examine_tear(path, data, end, following, later)
            self.torn = (path, end, len(data) - end)
        if following == documents.sequence + 1:
            self.journals.append(path)
            self.size, self.end = self.size + end, end
        else:  # the snapshot goes beyond its end
            self.stale.append(path)

    def _apply(self, path: Path, offset: int, change: bytes, expected: int) -> None:
        """Apply the change of the record at `offset`, unless the snapshot has it."""
        documents = self._documents
        numbered = _SEQUENCE.match(change)
        if numbered is None:
            raise StoreDamaged(path, offset, "a valid record without a change")
        sequence = int(numbered[1])
        if sequence != expected:
            raise StoreDamaged(path, offset, f"change {sequence} where change {expected} is expected")
        self._advance(len(change))
        if sequence <= documents.sequence:
            return
        try:
            if (content := content_named(change)) is not None:
                file = self._directory / content
                documents.replace(load(pieces(file), file, documents.kinds)[1], documents.sequence)
                self.contents.add(content)
                self.size += file.stat().st_size
            documents.apply(change)
        except FileNotFoundError:
            raise StoreDamaged(path, offset, f"{content}, which it names, is missing") from None
        except StoreDamaged as wrong:
            raise StoreDamaged(path, offset, f"{content}, which it names, is damaged: {wrong.reason}") from wrong
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise StoreDamaged(path, offset, f"a change that cannot be applied: {wrong}", intact=True) from wrong

    def _examine_tear(self, path: Path, data: bytes, end: int, following: int, later: list[Path]) -> None:
        """Raise StoreDamaged unless the end of a journal is torn: no acknowledged change is lost by dropping it.

        With `power` the last batch, which was never synced, may lose any of its pages. The records after such a page
        are valid, and state that the lost ones were not synced when they were written. None of them was acknowledged. A
        valid record that states that the lost ones were synced proves damage.
        """
        for offset, change in records_after(data, end):
            synced = _SYNCED.match(change)
            if synced is None or int(synced[1]) >= following:
                raise StoreDamaged(path, end, f"a valid record follows at byte {offset}")
        for other in later:  # a new file is created after all earlier records were synced
            more = other.read_bytes()
            if next(records_after(more, -1), None) is not None:
                raise StoreDamaged(path, end, f"valid records follow in {other.name}")


class JournalLog(Log):
    """The directory of one bank, locked for this process from construction to `close`.

    Construction and `load` raise StoreDamaged, StoreTooNew, StoreLocked and OSError.
    """

    _documents: Documents
    _journal: Journal

    def __init__(
        self, directory: Path, *, power: bool = False, disk: Disk | None = None, progress: Progress | None = None
    ) -> None:
        self.directory = directory
        self.confirms = power
        self.refusal: str | None = None  # why changes are refused
        self.compacted: Compaction | None = None  # in progress
        self._progress = progress
        self._syncing = asyncio.Lock()
        self._disk = disk or Disk()
        self._disk.make_directory(directory, sync=power)
        self._lock: Lock | None = Lock(directory)

    def load(self, documents: Documents) -> None:
        """Read the directory into `documents`, and remove unfinished files of a killed process."""
        if documents.log is self:
            self._documents = documents
        elif self._lock is None:
            raise StoreUnwritable("the documents are closed")
        self._abandon_compaction()
        recovered, disk = Recovered(self.directory, documents, self._progress), self._disk
        # first, since an empty file after a torn record would not follow the shortened one
        for path in recovered.stale:
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
        self._journal = Journal(disk, path, recovered.end)
        self._contents = recovered.contents  # the files that changes of the journal name
        self.size = recovered.size
        sources = [self.directory / SNAPSHOT, *recovered.journals]
        self.written = max((path.stat().st_mtime for path in sources if path.exists()), default=0.0)
        self._synced, self._synced_end = documents.sequence, recovered.end
        self._new_name = True  # the name of the newest journal file may not be durable yet
        self._snapshot_size = recovered.snapshot_size
        self._compact_at = -1 if self.size > SLOW_JOURNAL else self._threshold()

    def append(self, change: Change) -> None:
        """Append one record; raises StoreUnwritable, with nothing changed."""
        if self.refusal is not None:
            raise StoreUnwritable(self.refusal)
        payload = change.payload
        if self.confirms:  # with the number of the last change that was synced when it was written
            head = b'{"sequence":%d,' % change.sequence
            payload = b'%b"synced":%d,%b' % (head, self._synced, payload[len(head) :])
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
            content.sequence = change.sequence

    def store_content(self, image: Image) -> StoredContent:
        """Write a content file that a change can refer to; may run in any thread. Raises StoreUnwritable."""
        name = f"content-{uuid4().hex}.json"
        path = self.directory / name

        def remove() -> None:
            with suppress(OSError):
                self._disk.remove(path)

        try:
            size = write_snapshot(self._disk, path, image.tables, 0)
            if self.confirms:
                self._disk.sync_directory(self.directory)
        except OSError as failed:
            remove()
            raise StoreUnwritable(f"the content cannot be written: {failed}") from failed
        return StoredContent(name, size, remove)

    # Durability `power`: an answer may be sent once `synced` has reached the change that it reports

    @property
    def synced(self) -> int:
        """The last change with the configured durability."""
        return self._synced if self.confirms else self._documents.sequence

    @property
    def sync_needed(self) -> bool:
        """Whether changes wait for an fsync."""
        return self.confirms and self._documents.sequence > self._synced and self.refusal is None

    def begin_sync(self) -> SyncTicket:
        """An fsync for all changes so far: `run` it in any thread, then `finish_sync`."""
        names, journal = self.directory if self._new_name else None, self._journal
        return SyncTicket(self._disk, journal, self._documents.sequence, journal.end, names)

    def finish_sync(self, ticket: SyncTicket) -> None:
        """Confirm the changes covered by an fsync that has run; not within a transaction.

        If it failed, undo every change that is not synced and raise StoreUnwritable; from then on every change raises
        StoreUnwritable until a restart.
        """
        if self.refusal is None and ticket.failed is not None:
            # The system may have dropped the unwritten pages, so a second fsync would prove nothing.
            self.refusal = f"an fsync failed, changes are refused until a restart: {ticket.failed}"
            self._journal.cut_back(self._synced_end)
            self._documents.revert(self._synced, self.refusal)
        if self.refusal is not None and (ticket.failed is not None or ticket.sequence > self._synced):
            raise StoreUnwritable(self.refusal)
        if ticket.journal is self._journal:
            self._new_name = False
            if ticket.sequence > self._synced:
                self._synced, self._synced_end = ticket.sequence, ticket.end
        self._documents.confirm(self._synced)

    async def durable(self, sequence: int) -> None:
        """Wait for an fsync that covers the changes up to this one; StoreUnwritable if they were undone.

        One fsync runs at a time, in a thread, and covers all changes written before it, so that the next caller often
        needs none. If the bank is deleted meanwhile it returns too.
        """
        async with self._syncing:
            if self.synced >= sequence or self._documents.discarded:
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

    def _threshold(self) -> int:
        return max(SMALL_JOURNAL, self._snapshot_size // 12)

    @property
    def compaction_due(self) -> bool:
        """Whether the journal, with the content files it names, has outgrown the snapshot."""
        return self.size > self._compact_at and self.compacted is None and self.refusal is None

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
        if self._documents.depth or self.compacted is not None:
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
            if journal.spoilt:
                journal.mend()
            if journal.first != sequence + 1:
                self._journal = Journal(self._disk, self.directory / journal_name(sequence + 1))
        except OSError as failed:
            self._compact_at = self.size + self._threshold()
            raise StoreUnwritable(f"the journal cannot be continued in a new file: {failed}") from failed
        self._new_name, self._synced_end = True, self._journal.end
        compaction = Compaction(self.directory, self._disk, self._documents.freeze(), sequence, needless, self.size)
        self.compacting, self.compacted = True, compaction
        return compaction

    def finish_compaction(self, compaction: Compaction) -> None:
        """Finish a compaction that has run; a failed one is logged, and the old files remain valid."""
        if compaction.failed is not None:
            logger.warning("%s: the snapshot could not be renewed: %s", self.directory, compaction.failed)
        if self.compacted is not compaction:
            return
        self.compacting, self.compacted = False, None
        if compaction.placed:
            self._snapshot_size = compaction.size
            self._contents -= {path.name for path in compaction.needless}
            self.size -= compaction.replaced
        self._compact_at = self._threshold() + (0 if compaction.placed else self.size)

    def _abandon_compaction(self) -> None:
        if self.compacted is not None:
            self.compacted.abandon()
            self.finish_compaction(self.compacted)

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
