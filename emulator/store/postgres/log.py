"""The log of a bank in the database, and the commits that carry what the logs of a process have recorded.

`PostgresLog.append` records a change; `Commits` stores it soon, with those of all other banks of the process, in one
statement. While that is under way the next turn is computed, and its changes are in the next commit: a commit is to the
turns what an fsync is with `--durability power`. The statement names the epoch of each bank and the change that it
follows, so that it stores nothing of a bank that another process has taken (leases.py).

    bank        a row each: its home, lease and epoch, and the number of its last change and of its checkpoint
    change      the changes after the checkpoint, as the journal in a directory has them
    checkpoint  a snapshot file in parts; a negative `sequence` names one that is being written, or a whole content:
                a snapshot of the bank, or what a change refers to, as to a content file in a directory

What can go wrong with a commit:

- The server refuses it, or cannot be reached: nothing was stored. The changes are undone, and their requests answered
  with 503.
- It stores nothing of a bank: another process is the home. The bank is dropped, and its requests are passed on.
- The connection is lost after it was sent: the lease is taken again, which shows whether it was stored, and keeps it
  from being stored later. If it was not, it is sent again. If that fails for UNKNOWN seconds, or another process has
  taken the bank, the requests get no answer, and the bank is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import count
from pathlib import Path
from time import time
from typing import Any, NamedTuple

import orjson
import psycopg

from emulator.store.documents import Documents
from emulator.store.errors import StoreDamaged, StoreError, StoreLost, StoreUncertain, StoreUnwritable
from emulator.store.journal_log import Abandoned
from emulator.store.kinds import Kind
from emulator.store.loaded import LoadedDocuments
from emulator.store.log import Log, content_name
from emulator.store.postgres.connection import (
    LOADING,
    OutcomeUnknown,
    Server,
    StoredDataDamaged,
    StoreUnreachable,
)
from emulator.store.postgres.leases import Lease, Leases
from emulator.store.snapshot import load, snapshot_bytes
from emulator.store.table import Change, Image, StoredContent

logger = logging.getLogger(__name__)

UNKNOWN = 5.0  # seconds in which the outcome of a commit is looked up
COMMITTING = 2.0  # seconds for a commit, and one more for each SECOND bytes, which a slow line carries in that time
SECOND = 32 << 10
TRIES = 3  # commits that were lost on their way, one after the other
CHECKPOINT = 4 << 20  # bytes of changes after which a checkpoint is written, or a quarter of the size of the last one
PART = 1 << 20  # bytes of a snapshot in one row
AT_ONCE = 8  # such rows that are read with one statement

_COMMIT = (
    "WITH advanced AS ("
    " UPDATE {schema}.bank b SET sequence = v.last, written = greatest(b.written, %s)"
    " FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[]) v (name, epoch, first, last)"
    " WHERE b.name = v.name AND b.epoch = v.epoch AND b.sequence = v.first - 1 RETURNING b.name),"
    " stored AS (INSERT INTO {schema}.change (bank, sequence, body)"
    " SELECT c.bank, c.sequence, c.body FROM unnest(%s::text[], %s::bigint[], %b::bytea[]) c (bank, sequence, body)"
    " JOIN advanced a ON a.name = c.bank)"
    " SELECT name FROM advanced"
)
# the same for one change of one bank, which is nearly always what there is: the server takes half as long
_COMMIT_ONE = (
    "WITH advanced AS ("
    " UPDATE {schema}.bank SET sequence = %s, written = greatest(written, %s)"
    " WHERE name = %s AND epoch = %s AND sequence = %s RETURNING name, sequence)"
    " INSERT INTO {schema}.change (bank, sequence, body) SELECT name, sequence, %b FROM advanced RETURNING bank"
)
# What a statement deletes is what was there when it began: a commit or a snapshot that was under way leaves its rows
# behind. The new epoch lets nothing come after that, and _REPLACE deletes them when there is another bank of this name.
DELETE = (
    "WITH gone AS (UPDATE {schema}.bank SET sequence = 0, checkpoint = 0, made = made + 1, memory = NULL, home = NULL,"
    " epoch = epoch + 1, until = now() - interval '1 microsecond' WHERE name = %s AND epoch = %s RETURNING name),"
    " a AS (DELETE FROM {schema}.change c USING gone g WHERE c.bank = g.name),"
    " b AS (DELETE FROM {schema}.checkpoint c USING gone g WHERE c.bank = g.name) SELECT name FROM gone"
)
# the first changes of a bank in place of another one of its name, which is there until they are stored
_REPLACE = (
    "WITH own AS (UPDATE {schema}.bank SET sequence = %s, checkpoint = 0, memory = NULL,"
    " written = greatest(written, %s), made = made + CASE WHEN sequence > 0 THEN 1 ELSE 0 END"
    " WHERE name = %s AND epoch = %s RETURNING name),"
    " a AS (DELETE FROM {schema}.change c USING own o WHERE c.bank = o.name RETURNING 1),"
    " b AS (DELETE FROM {schema}.checkpoint c USING own o WHERE c.bank = o.name"
    " AND c.sequence NOT IN (SELECT json_array_elements_text(%s::json)::bigint))"
    " INSERT INTO {schema}.change (bank, sequence, body) SELECT o.name, v.sequence, v.body"
    " FROM own o, unnest(%s::bigint[], %b::bytea[]) v (sequence, body),"
    " (SELECT count(*) FROM a) deleted"  # before: the numbers are the same
    " RETURNING bank"
)
_STAGE = (
    "INSERT INTO {schema}.checkpoint (bank, sequence, part, body)"
    " SELECT name, %s, %s, %b FROM {schema}.bank WHERE name = %s AND epoch = %s RETURNING 1"
)
_UNSTAGE = "DELETE FROM {schema}.checkpoint WHERE bank = %s AND sequence = %s"
# once, and never after a later one, however late it is carried out: what it would delete is then the checkpoint itself
_PLACE = (
    "WITH placed AS (UPDATE {schema}.bank SET checkpoint = %s WHERE name = %s AND epoch = %s AND checkpoint < %s"
    " RETURNING name),"
    " former AS (DELETE FROM {schema}.checkpoint c USING placed p WHERE c.bank = p.name"
    " AND (c.sequence >= 0 OR c.sequence IN (SELECT json_array_elements_text(%s::json)::bigint))),"
    " trimmed AS (DELETE FROM {schema}.change c USING placed p WHERE c.bank = p.name AND c.sequence <= %s),"
    " named AS (UPDATE {schema}.checkpoint c SET sequence = %s FROM placed p WHERE c.bank = p.name AND c.sequence = %s)"
    " SELECT name FROM placed"
)
PARTS = (
    "SELECT body FROM {schema}.checkpoint WHERE bank = %s AND sequence = %s AND part >= %s AND part < %s ORDER BY part"
)
CHANGES = "SELECT sequence, body FROM {schema}.change WHERE bank = %s AND sequence > %s ORDER BY sequence"
_STAGED = "SELECT DISTINCT sequence FROM {schema}.checkpoint WHERE bank = %s AND sequence < 0"
SWEEP = "DELETE FROM {schema}.checkpoint WHERE bank = %s AND sequence = ANY(%s)"


def row_of(file: str) -> int:
    """The number, in `checkpoint`, of the content with this name; layout 2 named it by the number."""
    return -int("".join(filter(str.isdigit, file)))


class Content(NamedTuple):
    """What is stored of a bank: its snapshot files, of which `parts` gives one by its number, and the changes after the
    checkpoint. Of a new one there are none.
    """

    bank: str
    parts: Callable[[int], Iterator[bytes]]
    sequence: int = 0
    checkpoint: int = 0
    changes: Sequence[tuple[int, bytes]] = ()

    def image(self, kinds: Mapping[str, Kind[Any]], file: str | None = None) -> tuple[Image, int]:
        """A content, or the checkpoint, and its size in bytes; StoredDataDamaged."""
        number, what = (self.checkpoint, "the checkpoint") if file is None else (row_of(file), f"content {file}")
        size = 0

        def counted() -> Iterator[bytes]:
            nonlocal size
            for part in self.parts(number):
                size += len(part)
                yield part

        what = f"{what} of bank {self.bank}"
        try:
            _, image = load(counted(), Path(what), kinds)
        except StoreDamaged as error:
            raise StoredDataDamaged(what, error.reason if size else "it is missing") from error
        return image, size

    def fill(self, documents: LoadedDocuments) -> tuple[int, dict[str, int]]:
        """Load all into empty documents; StoredDataDamaged.

        Returns the size of the checkpoint in bytes, and that of each content that changes refer to.
        """
        weight, sizes = 0, dict[str, int]()

        def content(file: str) -> Image:
            image, sizes[file] = self.image(documents.kinds, file)
            return image

        try:
            if self.checkpoint:
                image, weight = self.image(documents.kinds)
                documents.replace(image, self.checkpoint)
            for sequence, body in self.changes:
                if sequence != documents.sequence + 1:
                    break
                documents.apply(body, content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoredDataDamaged(f"change {documents.sequence + 1} of bank {self.bank}", error) from error
        if documents.sequence != self.sequence:
            raise StoredDataDamaged(f"bank {self.bank}", f"changes after {documents.sequence} are missing")
        return weight, sizes


async def content_of(server: Server, name: str, sequence: int, checkpoint: int) -> Content:
    """Read a bank, its snapshot files later; nobody changes it meanwhile. StoreUnreachable."""
    changes = await server.rows(CHANGES, name, checkpoint, within=LOADING)
    return Content(name, partial(parts_of, server, name), sequence, checkpoint, changes)


def parts_of(server: Server, name: str, number: int) -> Iterator[bytes]:
    """The parts of a snapshot file, for a thread; some are on their way while those before them are used."""

    def some(at: int) -> Future[list[Any]]:
        return server.submit(server.rows(PARTS, name, number, at, at + AT_ONCE, within=LOADING))

    ahead = some(0)
    for at in count(AT_ONCE, AT_ONCE):
        rows = ahead.result()
        if len(rows) == AT_ONCE:
            ahead = some(at)
        for (body,) in rows:
            yield body
        if len(rows) < AT_ONCE:
            return


class PostgresLog(Log):
    """The log of a bank of which this process is the home."""

    confirms = True

    def __init__(self, lease: Lease, commits: Commits, content: Content) -> None:
        self.name = lease.name
        self.lease = lease
        self.pending: list[Change] = []
        self.synced = content.sequence
        self.committing: Sequence[Change] = ()  # of which a commit is under way, or being looked up
        self.written = lease.written / 1e6
        self.replaces = lease.replaces  # the first commit deletes what is there of another bank of its name
        self.size = 0
        self.compacting = False
        self.ended: StoreUnwritable | None = None  # why changes are refused, and answers are worth nothing
        self._commits = commits
        self._content = content
        self._loaded = False
        self._weight = 0
        self.contents: dict[str, int] = {}  # those that changes refer to, with their sizes
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def load(self, store: LoadedDocuments) -> None:
        """Load the bank as it is stored; once only, then the next request takes it again, which loads it."""
        content, self._content = self._content, self._content._replace(changes=())  # which are not needed any more
        if self._loaded or not isinstance(store, Documents):
            lost = StoreLost("the bank is to be loaded anew")
            self._commits.drop(self, lost)
            raise lost
        self._loaded, self._store = True, store
        self._weight, self.contents = content.fill(store)
        self.size = sum(len(body) for _, body in content.changes) + sum(self.contents.values())

    @property
    def owned(self) -> bool:
        return self.ended is None and self.lease.valid

    @property
    def deleting(self) -> bool:
        return self.lease.deleting

    @property
    def sync_needed(self) -> bool:
        return bool(self.pending)

    def append(self, change: Change) -> None:
        """Record a change, which is committed soon."""
        if self.ended is not None:
            raise self.ended
        self.pending.append(change)
        self.size += len(change.payload)
        if (content := change.content) is not None:
            self.contents[content.file], content.kept = content.size, True
            self.size += content.size
        self._commits.note(self)

    def durable(self, sequence: int) -> Awaitable[None]:
        """Wait for the commit of the changes up to this one, which are appended or were stored before."""
        stored = asyncio.get_running_loop().create_future()
        if sequence <= self.synced:
            stored.set_result(None)
        elif self.ended is not None:
            stored.set_exception(self.ended)
        else:
            self._waiting.append((sequence, stored))
        return stored

    def sync(self) -> None:
        """Do nothing: answers wait for `durable`."""

    # Called by the commits

    def confirmed(self, sequence: int) -> None:
        """The changes up to this one are stored."""
        if self.ended is None:
            self.synced, self.replaces = sequence, False
            self.pending = [change for change in self.pending if change.sequence > sequence]
            self._store.confirm(sequence)
        self._wake(lambda change: change <= sequence, lambda stored: stored.set_result(None))

    def refused(self, error: StoreUnwritable) -> None:
        """The changes that are not stored will not be: undo them."""
        self._take_back(error)
        self._wake(lambda _: True, lambda stored: stored.set_exception(error))

    def end(self, error: StoreUnwritable) -> None:
        """This process has the bank no more. What a commit carries that is under way may be stored all the same: who
        waits for that hears of its outcome, as a request that was carried out must not be passed on.
        """
        if self.ended is None:
            self._take_back(error)
            self.ended = error
            last = self.committing[-1].sequence if self.committing else 0
            self._wake(lambda change: change > last, lambda stored: stored.set_exception(error))

    def _take_back(self, error: StoreUnwritable) -> None:
        if self.ended is None:
            self.pending.clear()
            self._store.revert(self.synced, error)

    def _wake(self, these: Callable[[int], bool], tell: Callable[[asyncio.Future[None]], None]) -> None:
        """Tell those who wait for one of these changes."""
        waiting, self._waiting = self._waiting, []
        for change, stored in waiting:
            if not these(change):
                self._waiting.append((change, stored))
            elif not stored.done():
                tell(stored)

    # Checkpoints, and contents that a change refers to

    @property
    def compaction_due(self) -> bool:
        return self.size > max(CHECKPOINT, self._weight // 4) and not self.compacting and self.ended is None

    def compaction(self, pause: Callable[[], None]) -> Coroutine[Any, Any, None]:
        """Begin a checkpoint of the present content; the coroutine writes it."""
        self.compacting = True
        sequence, rows, used, size = self._store.sequence, self._store.freeze(), list(self.contents), self.size
        stored = self.durable(sequence)

        async def write() -> None:
            try:
                await stored  # a checkpoint must not be ahead of what is stored
                body = await asyncio.get_running_loop().run_in_executor(None, snapshot_bytes, rows, sequence, pause)
                staged = await self.stage(content_name(), body)
                former = orjson.dumps(list(map(row_of, used))).decode()
                values = (sequence, self.name, self.lease.epoch, sequence, former, sequence, sequence, staged)
                await self._commits.server.rows(_PLACE, *values, within=LOADING)
                for file in used:
                    del self.contents[file]
                self.size -= size
                self._weight = len(body)
            except Abandoned:
                pass
            except StoreError as error:
                if self.ended is None:
                    logger.warning("the checkpoint of bank %s is not written: %s", self.name, error)
            finally:
                self.compacting = False

        return write()

    async def sweep(self) -> None:
        """Delete what former homes have staged and nothing refers to; StoreUnreachable.

        Before this home stages anything: a deletion by name may be carried out however late.
        """
        staged = [name for (name,) in await self._commits.server.rows(_STAGED, self.name)]
        named = {row_of(file) for file in (*self.contents, *self._store.contents())}
        if left := [name for name in staged if name not in named]:
            self._commits.spawn(self._commits.server.rows(SWEEP, self.name, left))

    async def stage(self, file: str, body: bytes) -> int:
        """Store a snapshot file under a name of its own; its number in `checkpoint`. StoreError."""
        name = row_of(file)
        for part, at in enumerate(range(0, len(body), PART)):
            values = (name, part, body[at : at + PART], self.name, self.lease.epoch)
            if not await self._commits.server.rows(_STAGE, *values, within=LOADING, again=False):
                raise StoreLost("another process has the bank")
        return name

    def store_content(self, image: Image) -> StoredContent:
        """Store a whole content; for a thread. StoreUnwritable."""
        file, body = content_name(), snapshot_bytes(image.rows)
        try:
            self._commits.server.submit(self.stage(file, body)).result()
        except StoreUnreachable as error:
            raise StoreUnwritable(str(error)) from error  # nothing refers to it, if it is there
        return self.stored(file, len(body))

    def content(self, file: str) -> Image:
        """A stored content; for a thread. StoredDataDamaged, StoreUnwritable if the server cannot be reached."""
        try:
            return self._content.image(self._store.kinds, file)[0]
        except StoreUnreachable as error:
            raise StoreUnwritable(str(error)) from error

    def remove_content(self, file: str) -> None:
        """Delete a content, now or when the bank has its next home."""
        server = self._commits.server
        if not server.closed:
            server.submit(_attempted(server.rows(_UNSTAGE, self.name, row_of(file))))

    def close(self, _pause: Callable[[], None] = lambda: None) -> None:
        """Refuse changes; the lease is given back by who has taken it."""
        self.end(StoreUnwritable("the bank is closed"))

    def discard(self) -> None:
        """Refuse changes: the bank is deleted, or lost."""
        self.end(StoreLost("another process has the bank"))


class Commits:
    """The commits of a process, one at a time; `lost` is called for a log whose bank another process has."""

    def __init__(self, server: Server, leases: Leases, lost: Callable[[PostgresLog], None]) -> None:
        self.server = server
        self._leases = leases
        self._lost = lost
        self._noted: dict[PostgresLog, None] = {}
        self._running: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def note(self, log: PostgresLog) -> None:
        """A change waits in this log."""
        self._noted[log] = None
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run what nobody waits for; a failure is of no consequence."""
        task = asyncio.get_running_loop().create_task(_attempted(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Return once nothing waits to be stored."""
        while self._running is not None:
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        try:
            tries = 0
            batches: deque[list[PostgresLog]] = deque()  # each is one commit
            while batches or self._noted:
                if not batches:
                    logs, self._noted = list(self._noted), {}
                    batches += [[log] for log in logs if log.replaces]
                    batches.append([log for log in logs if not log.replaces])
                batch = [log for log in batches.popleft() if log.pending and log.ended is None]
                if not batch:
                    continue
                for log in batch:
                    log.committing = tuple(log.pending)
                try:
                    await self._store(batch)
                    tries = 0
                except OutcomeUnknown as error:
                    tries += 1
                    await self._look_up(batch, error, again=tries < TRIES)
                except StoreUnreachable as error:
                    if len(batch) > 1 and isinstance(error.__cause__, psycopg.IntegrityError):
                        batches.extend([log] for log in batch)  # the others need not suffer from the rows of one
                        continue
                    for log in batch:
                        self._refuse(log, error)
                finally:
                    for log in batch:
                        log.committing = ()
        finally:
            self._running = None

    async def _store(self, batch: Sequence[PostgresLog]) -> None:
        """Store the changes; StoreUnreachable."""
        now = int(time() * 1e6)
        bodies = [change.payload for log in batch for change in log.committing]
        within = COMMITTING + sum(map(len, bodies)) / SECOND
        log, changes = batch[0], batch[0].committing
        if log.replaces:
            staged, numbers = (
                orjson.dumps(list(map(row_of, log.contents))).decode(),
                [change.sequence for change in changes],
            )
            new = (numbers[-1], now, log.name, log.lease.epoch, staged, numbers, bodies)
            stored = await self.server.rows(_REPLACE, *new, within=LOADING, again=False)
        elif len(bodies) == 1:
            change = changes[0]
            one = (change.sequence, now, log.name, log.lease.epoch, change.sequence - 1, change.payload)
            stored = await self.server.rows(_COMMIT_ONE, *one, within=within, again=False, urgent=True)
        else:
            heads = [
                (one.name, one.lease.epoch, one.committing[0].sequence, one.committing[-1].sequence) for one in batch
            ]
            rows = [(log.name, change.sequence, change.payload) for log in batch for change in log.committing]
            values = (now, *map(list, zip(*heads, strict=True)), *map(list, zip(*rows, strict=True)))
            stored = await self.server.rows(_COMMIT, *values, within=within, again=False, urgent=True)
        names = {name for (name,) in stored}
        for log in batch:
            if log.name in names:
                log.confirmed(log.committing[-1].sequence)
            else:
                self._give_up(log, StoreLost("another process has the bank"))

    async def _look_up(self, batch: Sequence[PostgresLog], error: OutcomeUnknown, *, again: bool) -> None:
        """Find out what became of a commit without an answer."""
        logger.warning("a commit got no answer (%s), and is looked up", error)
        until = asyncio.get_running_loop().time() + UNKNOWN
        present: dict[str, int] | None = None
        while present is None and asyncio.get_running_loop().time() < until:
            try:
                present = await self._leases.take_again(log.name for log in batch)
            except StoreUnreachable:
                await asyncio.sleep(0.1)
        for log in batch:
            # the change of this number may be that of another home, if the bank was dropped meanwhile, or bank
            last = None if present is None or log.ended is not None or log.replaces else present.get(log.name)
            if last == log.committing[-1].sequence:
                log.confirmed(last)
            elif last == log.committing[0].sequence - 1:
                if again:
                    self._noted[log] = None
                else:
                    self._refuse(log, error)
            else:
                self._give_up(log, StoreUncertain("nobody knows whether the change was stored"))

    def _refuse(self, log: PostgresLog, error: StoreUnreachable) -> None:
        """Do without changes that are not stored, and without a bank of which nothing is."""
        log.refused(StoreUnwritable(str(error)))
        if not log.synced and log.ended is None:
            self._lost(log)

    def drop(self, log: PostgresLog, error: StoreUnwritable) -> None:
        """Do without a bank from now on."""
        if log.ended is None:
            log.end(error)
            self._lost(log)

    def _give_up(self, log: PostgresLog, error: StoreUnwritable) -> None:
        """Do without a bank, and without what the commit has carried."""
        log.committing = ()
        self.drop(log, error)
        log.refused(error)  # for those who have waited for the outcome, if the log has ended before


async def _attempted(work: Coroutine[Any, Any, Any]) -> None:
    try:
        await work
    except StoreError as error:
        logger.info("left for later: %s", error)
