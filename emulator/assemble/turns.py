"""Turns over documents in journals, and what the journals need between requests.

The requests of a turn are answered one after the other, and what they change is kept as one record for each bank: a
fraction of the cost of a record for each request. What is not written yet is seen by the requests that follow in the
same turn, so no answer leaves before the end of the turn. A bank whose record cannot be written takes back all that
the turn has changed in it; the answers of the turn about that bank become 503, and the bank's changes are written one
by one until one succeeds.

With `--durability power` the end of a turn also waits for the fsync that covers its changes. Fsyncs and compactions run
in a thread, so that no other request waits for the disk. Python runs one thread at a time, so a compaction rests after
each bit of work: requests get most of the time, and a snapshot takes as long as it takes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from threading import Event
from time import thread_time
from weakref import WeakKeyDictionary

from emulator.api import render
from emulator.api.messages import AT_ONCE, Answered, Request, Response, Unfinished
from emulator.bank.errors import BankError
from emulator.store import JournalLog, Store, StoreUnwritable, WriteGroup, journal_of
from emulator.store.journal_log import Abandoned, Compaction

logger = logging.getLogger(__name__)

WORK = 0.0005  # seconds of processor time before a rest
REST = 19.0  # times as long

Handled = list[tuple[Request, Answered]]


class JournalTurn:
    """The turns of one process: `begin`, `handle` for each request, `end`; the next one may begin at once.

    `documents_of`: the documents that a request may have read or changed; `waits`: whether `end` may be awaited.
    """

    def __init__(
        self,
        handle: Callable[[Request], Answered],
        group: WriteGroup,
        upkeep: Upkeep,
        *,
        documents_of: Callable[[Request], Store | None],
        waits: bool,
    ) -> None:
        self.waits = waits
        self._handle = handle
        self._group = group
        self._upkeep = upkeep
        self._documents_of = documents_of
        self._handled: Handled = []
        self.count = 0  # requests so far

    def begin(self, _requests: Sequence[Request]) -> None:
        """Nothing has to be waited for: this process alone has the documents."""

    def handle(self, request: Request) -> Answered:
        """The answer to a request, or the next step of it, good once `end` is through."""
        group = self._group
        group.open = True
        try:
            answer = self._handle(request)
        finally:
            group.open = False
        self._handled.append((request, answer))
        self.count += 1
        return answer

    def end(self) -> Awaitable[Exception | None] | Exception | None:
        """Keep what the turn has changed; the failure, where something could not be kept.

        By then every answer of the turn that tells of what was taken back has become 503.
        """
        handled, self._handled = self._handled, []
        group = self._group
        failed: dict[Store, Exception] = {}
        written: list[Store] = []
        if group.waiting:
            written, group.waiting = group.waiting, []
            failed = self._write(written)
        if self.waits and (unsynced := self._unsynced(handled, written)):
            return self._synced(handled, failed, unsynced)
        if group.overgrown:
            self._upkeep.look_after(group)
        return self._refuse(handled, failed) if failed else None

    def _write(self, waiting: Iterable[Store]) -> dict[Store, Exception]:
        failed: dict[Store, Exception] = {}
        for store in waiting:
            try:
                store.flush()
            except Exception as error:  # whatever it is, nobody may wait for ever
                if not isinstance(error, StoreUnwritable):
                    logger.exception("the changes of a turn could not be written")
                failed[store] = error
        return failed

    def _unsynced(self, handled: Handled, written: Iterable[Store]) -> list[tuple[Store, int]]:
        """The documents whose changes the turn may tell of and that are not synced, each with its last change."""
        concerned = dict.fromkeys(written)
        for request, _ in handled:
            documents = self._documents_of(request)
            if documents is not None:
                concerned[documents] = None
        return self._upkeep.unsynced(concerned)

    async def _synced(
        self, handled: Handled, failed: dict[Store, Exception], unsynced: list[tuple[Store, int]]
    ) -> Exception | None:
        for store, change in unsynced:
            try:
                await self._upkeep.synced(store, change)
            except StoreUnwritable as error:
                failed[store] = error
        self._upkeep.look_after(self._group)
        return self._refuse(handled, failed) if failed else None

    def _refuse(self, handled: Handled, failed: dict[Store, Exception]) -> Exception:
        for request, answer in handled:
            documents = self._documents_of(request)
            if documents in failed:
                refuse(answer, failed[documents])
        return next(iter(failed.values()))


def refuse(answer: Answered, error: Exception) -> None:
    """Make an answer 503; in place, for the request log must show what was answered in the end.

    One that is not finished hears of it in its next step.
    """
    if isinstance(answer, Unfinished):
        answer.failed = error if isinstance(error, StoreUnwritable) else StoreUnwritable(str(error))
    if not isinstance(answer, Response):
        return
    text = f"The bank cannot keep its documents: {error}."
    refusal = render.refusal(BankError("SYSTEM_ERROR", text, status=503))
    refusal.headers += [pair for pair in answer.headers if pair[0] == "X-Request-ID"]
    answer.status, answer.headers, answer.body, answer.delivery = refusal.status, refusal.headers, refusal.body, AT_ONCE
    answer.parts = None


class Upkeep:
    """Fsyncs that answers wait for, and compactions that none waits for, of all banks of a process."""

    def __init__(self) -> None:
        self._syncing: WeakKeyDictionary[Store, asyncio.Lock] = WeakKeyDictionary()
        self._compactions: set[asyncio.Task[None]] = set()
        self._ending = Event()

    def end(self) -> None:
        """Leave compactions unfinished: closing a store writes its last snapshot."""
        self._ending.set()

    def unsynced(self, stores: Iterable[Store | None]) -> list[tuple[Store, int]]:
        """Those of the stores that have changes which are not synced, each with its last change."""
        return [(s, s.sequence) for s in stores if s is not None and (log := journal_of(s)) and log.sync_needed]

    async def sync(self, unsynced: Iterable[tuple[Store, int]]) -> None:
        """Make these changes durable; a failure is logged, for nobody waits for an answer."""
        for store, change in unsynced:
            try:
                await self.synced(store, change)
            except StoreUnwritable as error:
                logger.error("what was due could not be kept: %s", error)

    async def synced(self, store: Store, change: int) -> None:
        """Return once the change of this number is as durable as asked for; StoreUnwritable when it was undone.

        Of a bank that is deleted meanwhile nothing has to be durable but that.
        One fsync of a store runs at a time and covers all that was written when it began: whoever is next mostly finds
        its own changes safe already. Between two of them a compaction begins, which does an fsync of its own.
        """
        log = journal_of(store)
        if log is None:
            return
        lock = self._syncing.get(store)
        if lock is None:
            lock = self._syncing[store] = asyncio.Lock()
        async with lock:
            if log.synced >= change or store.discarded:
                return
            if store.sequence < change:
                raise StoreUnwritable("an earlier fsync failed, the changes were undone")
            ticket = log.begin_sync()
            await asyncio.get_running_loop().run_in_executor(None, ticket.run)
            if not store.discarded:
                log.finish_sync(ticket)
                self._compact_if_due(store, log)

    def look_after(self, group: WriteGroup) -> None:
        """Renew the snapshots that their journals have outgrown; never raises, for answers may have gone."""
        for store in list(group.overgrown):
            log = journal_of(store)
            if log is None or not log.sync_needed:  # else the end of that fsync does it
                group.overgrown.discard(store)
                self._compact_if_due(store, log)

    def _compact_if_due(self, store: Store, log: JournalLog | None) -> None:
        if log is not None and log.compaction_due and not store.discarded:
            try:
                self.compact(log)
            except Exception:
                logger.exception("the snapshot is not renewed")

    def compact(self, log: JournalLog) -> None:
        """Renew a snapshot; a failure is logged and changes nothing."""
        try:
            compaction = log.begin_compaction()  # before another request finds it due
        except StoreUnwritable as error:
            logger.warning("the snapshot is not renewed: %s", error)
            return
        task = asyncio.get_running_loop().create_task(self._compact(log, compaction))
        self._compactions.add(task)
        task.add_done_callback(self._compactions.discard)

    async def _compact(self, log: JournalLog, compaction: Compaction) -> None:
        await asyncio.get_running_loop().run_in_executor(None, compaction.run, rests(self._ending))
        log.finish_compaction(compaction)


def rests(ending: Event) -> Callable[[], None]:
    """What a thread calls between pieces of its work: it rests, and Abandoned ends it when the process does."""
    since: float | None = None

    def pause() -> None:
        nonlocal since
        if since is None:  # in the thread that works
            since = thread_time()
        worked = thread_time() - since
        if worked >= WORK:
            if ending.wait(worked * REST):
                raise Abandoned
            since = thread_time()

    return pause
