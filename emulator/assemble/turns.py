"""Turns over documents in journals, and the fsyncs and compactions between them.

The requests of a turn are handled one after the other, and their changes are written as one record per bank, which
costs a fraction of a record per request. Later requests of a turn see changes that are not written yet, so no answer
leaves before the end of the turn. If the record of a bank cannot be written, all changes of the turn to that bank are
undone and its answers become 503; the changes of that bank are then written one by one until one succeeds.

With `--durability power` the end of a turn also waits for the fsync of its changes. Fsyncs and compactions run in a
thread, so that no other request waits for the disk. As Python runs one thread at a time, a compaction pauses after each
piece of work: requests get most of the processor time. While the process does little else its pauses are short, so that
most of a compaction falls where nobody waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import chain
from threading import Event
from time import monotonic, process_time, thread_time
from typing import Protocol, TypeVar
from weakref import WeakKeyDictionary

from emulator.api import render
from emulator.api.messages import AT_ONCE, Answered, Request, Response, Unfinished
from emulator.api.service import BankService
from emulator.assemble.registry import NAMED_BANK, BankRegistry
from emulator.bank.errors import BankError
from emulator.store import JournalLog, Store, StoreUnwritable, WriteGroup, journal_of
from emulator.store.journal_log import Abandoned, Compaction
from emulator.web.application import Turn

T = TypeVar("T")

logger = logging.getLogger(__name__)

WORK = 0.0005  # seconds of processor time between two pauses of a compaction
PAUSE = 19.0  # the length of a pause, as a multiple of the work before
IDLE_PAUSE = 3.0  # the same in an idle process
IDLE = 0.1  # a process that used a smaller share of a core during the last pause is idle

Handled = list[tuple[Request, Answered]]


class BankTurns(Turn, Protocol):
    """The turns of a process, and the changes of its banks outside of them."""

    answers: Callable[[Request], Answered]
    """Answers a request within a turn, or does its next step; set by the application."""

    count: int
    """The number of requests so far."""

    def start(self) -> None:
        """Start background work, within a running loop."""
        ...

    def stop(self) -> None:
        """Stop background work, after the last request."""
        ...

    def change(self, work: Callable[[], T], name: str, /) -> Awaitable[T]:
        """Change documents of a bank by `work`; its result once the change is durable. Raises StoreUnwritable."""
        ...

    def settle(self) -> Awaitable[None] | None:
        """Apply what is due in watched banks."""
        ...


class JournalTurns:
    """The turns over the banks of a registry: `begin`, `handle` for each request, `end`; the next may begin at once."""

    answers: Callable[[Request], Answered]

    def __init__(self, registry: BankRegistry) -> None:
        self._waits = registry.power
        self.count = 0
        self._registry = registry
        self._group = registry.group
        self._upkeep = Upkeep()
        self._handled: Handled = []

    def begin(self, _requests: Sequence[Request]) -> None:
        """Does nothing: only this process has the documents."""

    def handle(self, request: Request) -> Answered:
        """The answer to a request, or its next step; it may be sent after `end`."""
        group = self._group
        group.open = True
        try:
            answer = self.answers(request)
        finally:
            group.open = False
        self._handled.append((request, answer))
        self.count += 1
        return answer

    def end(self) -> Awaitable[Exception | None] | Exception | None:
        """Write the changes of the turn; returns the error if that fails.

        Then the answers of the turn about undone changes have become 503.
        """
        handled, self._handled = self._handled, []
        group = self._group
        failed: dict[Store, Exception] = {}
        written: list[Store] = []
        if group.waiting:
            written, group.waiting = group.waiting, []
            failed = self._write(written)
        if self._waits and (unsynced := self._unsynced(handled, written)):
            return self._synced(handled, failed, unsynced)
        if group.overgrown:
            self._upkeep.compact_overgrown(group)
        return self._refuse(handled, failed) if failed else None

    def _write(self, waiting: Iterable[Store]) -> dict[Store, Exception]:
        failed: dict[Store, Exception] = {}
        for store in waiting:
            try:
                store.flush()
            except Exception as error:  # no request may wait forever, whatever the error is
                if not isinstance(error, StoreUnwritable):
                    logger.exception("the changes of a turn could not be written")
                failed[store] = error
        return failed

    def _unsynced(self, handled: Handled, written: Iterable[Store]) -> list[tuple[Store, int]]:
        """The documents with unsynced changes that answers of the turn may show, each with its last change."""
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
        self._upkeep.compact_overgrown(self._group)
        return self._refuse(handled, failed) if failed else None

    def _refuse(self, handled: Handled, failed: dict[Store, Exception]) -> Exception:
        refused: Counter[Store] = Counter()
        for request, answer in handled:
            documents = self._documents_of(request)
            if documents is not None and documents in failed:
                refuse(answer, failed[documents])
                refused[documents] += 1
        for documents, count in refused.items():
            logger.error("503 to %d requests: %s", count, failed[documents])
        return next(iter(failed.values()))

    def _documents_of(self, request: Request) -> Store | None:
        """The documents that a request may have read or changed; None if its bank is not open."""
        named = NAMED_BANK.match(request.target)
        return self._registry.documents() if named is None else self._registry.documents(named[1])

    def start(self) -> None:
        """Compact journals that have outgrown their snapshots."""
        self._upkeep.compact_overgrown(self._group)

    def stop(self) -> None:
        """Abandon compactions; closing the documents compacts them."""
        self._upkeep.end()

    async def change(self, work: Callable[[], T], name: str) -> T:
        """Change documents of a bank by `work`; returns its result once the change is durable."""
        result = work()
        await self._upkeep.sync(self._upkeep.unsynced([self._registry.documents(name)]))
        return result

    def settle(self) -> Awaitable[None] | None:
        """Apply what is due in watched banks."""
        watched = self._registry.watched()
        pieces = chain.from_iterable(service.settling() for service in watched)
        if next(pieces, self) is None:  # there are more
            return self._settle(pieces, watched)
        unsynced = self._unsynced_of(watched)
        return self._upkeep.sync(unsynced) if unsynced else None

    async def _settle(self, pieces: Iterator[None], watched: Sequence[BankService]) -> None:
        """Apply the rest, with requests between the steps."""
        for _ in pieces:
            await asyncio.sleep(0)
        await self._upkeep.sync(self._unsynced_of(watched))

    def _unsynced_of(self, services: Iterable[BankService]) -> list[tuple[Store, int]]:
        return self._upkeep.unsynced(self._registry.documents(service.bank.name) for service in services)


def refuse(answer: Answered, error: Exception) -> None:
    """Turn an answer into 503; in place, as the request log has it too.

    An unfinished one gets the error in its next step.
    """
    if isinstance(answer, Unfinished):
        answer.failed = error if isinstance(error, StoreUnwritable) else StoreUnwritable(str(error))
    if not isinstance(answer, Response):
        return
    text = f"The bank cannot store its documents: {error}."
    refusal = render.refusal(BankError("SYSTEM_ERROR", text, status=503))
    refusal.headers += [pair for pair in answer.headers if pair[0] == "X-Request-ID"]
    answer.status, answer.headers, answer.body, answer.delivery = refusal.status, refusal.headers, refusal.body, AT_ONCE
    answer.parts = None


class Upkeep:
    """The fsyncs, which answers wait for, and compactions of all banks of a process."""

    def __init__(self) -> None:
        self._syncing: WeakKeyDictionary[Store, asyncio.Lock] = WeakKeyDictionary()
        self._compactions: set[asyncio.Task[None]] = set()
        self._ending = Event()

    def end(self) -> None:
        """Abandon compactions; closing a store writes its last snapshot."""
        self._ending.set()

    def unsynced(self, stores: Iterable[Store | None]) -> list[tuple[Store, int]]:
        """The stores with unsynced changes, each with its last change."""
        return [(s, s.sequence) for s in stores if s is not None and (log := journal_of(s)) and log.sync_needed]

    async def sync(self, unsynced: Iterable[tuple[Store, int]]) -> None:
        """Make these changes durable; a failure is logged, as no answer waits for it."""
        for store, change in unsynced:
            try:
                await self.synced(store, change)
            except StoreUnwritable as error:
                logger.error("changes that fell due could not be stored: %s", error)

    async def synced(self, store: Store, change: int) -> None:
        """Return once the change with this number is durable; raises StoreUnwritable if it was undone.

        If the bank is deleted meanwhile, it returns too. One fsync of a store runs at a time and covers all changes
        written before it, so the next caller often needs none. A compaction starts between two fsyncs, and does its
        own.
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
                raise StoreUnwritable("an earlier fsync failed, and the changes were undone")
            ticket = log.begin_sync()
            await asyncio.get_running_loop().run_in_executor(None, ticket.run)
            if not store.discarded:
                log.finish_sync(ticket)
                self._compact_if_due(store, log)

    def compact_overgrown(self, group: WriteGroup) -> None:
        """Start due compactions; never raises, as answers may already have been sent."""
        for store in list(group.overgrown):
            log = journal_of(store)
            if log is None or not log.sync_needed:  # otherwise the end of that fsync does it
                group.overgrown.discard(store)
                self._compact_if_due(store, log)

    def _compact_if_due(self, store: Store, log: JournalLog | None) -> None:
        if log is not None and log.compaction_due and not store.discarded:
            try:
                self.compact(log)
            except StoreUnwritable as error:
                logger.warning("the snapshot could not be written: %s", error)
            except Exception:
                logger.exception("the snapshot could not be written")

    def compact(self, log: JournalLog) -> None:
        """Write a new snapshot in a thread; raises StoreUnwritable if that cannot begin, later failures are logged."""
        compaction = log.begin_compaction()  # now, so that another request does not start it too
        task = asyncio.get_running_loop().create_task(self._compact(log, compaction))
        self._compactions.add(task)
        task.add_done_callback(self._compactions.discard)

    async def _compact(self, log: JournalLog, compaction: Compaction) -> None:
        await asyncio.get_running_loop().run_in_executor(None, compaction.run, rests(self._ending))
        log.finish_compaction(compaction)


def rests(ending: Event) -> Callable[[], None]:
    """A function that a thread calls between pieces of work: it pauses, and raises Abandoned when the process ends."""
    since: float | None = None
    idle = False

    def pause() -> None:
        nonlocal since, idle
        if since is None:  # the first call, in the working thread
            since = thread_time()
        worked = thread_time() - since
        if worked >= WORK:
            began, used = monotonic(), process_time()
            if ending.wait(worked * (IDLE_PAUSE if idle else PAUSE)):
                raise Abandoned
            idle = process_time() - used < IDLE * (monotonic() - began)
            since = thread_time()

    return pause
