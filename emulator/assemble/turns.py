"""Turns over the documents of banks, whatever their log is, and the fsyncs, commits and compactions between them.

The requests of a turn are handled one after the other, and their changes are written as one record per bank, which
costs a fraction of a record per request. Later requests of a turn see changes that are not written yet, so no answer
leaves before the end of the turn. If the record of a bank cannot be written, all changes of the turn to that bank are
undone and its answers become 503; the changes of that bank are then written one by one until one succeeds.

    failure                                  what becomes of the answers about that bank; others are not touched
    `handle` raises                          that request alone has failed; what its transactions changed is stored
    the record cannot be written             undone; 503 in place (`refuse`), in the request log, too
    an fsync fails                           the same, with the turns computed since; refuses changes until a restart
    a commit is refused                      the same; the next change is tried again
    StoreLost: another process has the bank  ELSEWHERE: `homes` asks the new home; HANG_UP if a part is stored already
    StoreUncertain: nobody knows             HANG_UP: the connection is closed without an answer
    long work, whatever failed               its next step raises the error
    work outside of a turn (`change`)        only logged

With `--durability power` the end of a turn also waits for the fsync of its changes, and with `--store` for its commit;
the next turn is computed meanwhile. Fsyncs and compactions run in a
thread, so that no other request waits for the disk. As Python runs one thread at a time, a compaction pauses after each
piece of work: requests get most of the processor time. While the process does little else its pauses are short, so that
most of a compaction falls where nobody waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import chain
from threading import Event
from time import monotonic, perf_counter, process_time, thread_time
from typing import TypeVar

from emulator.api import render
from emulator.api.messages import AT_ONCE, ELSEWHERE, HANG_UP, Answered, Request, Response, Stream, Unfinished
from emulator.api.outcomes import Ended
from emulator.api.service import BankService
from emulator.assemble.registry import BankRegistry, bank_of, part_of
from emulator.bank.errors import BankError
from emulator.metrics.counts import ProcessCounts
from emulator.store import Store, StoreLost, StoreUncertain, StoreUnwritable, WriteGroup
from emulator.store.journal_log import Abandoned

T = TypeVar("T")

logger = logging.getLogger(__name__)

WORK = 0.0005  # seconds of processor time between two pauses of a compaction
PAUSE = 19.0  # the length of a pause, as a multiple of the work before
IDLE_PAUSE = 3.0  # the same in an idle process
IDLE = 0.1  # a process that used a smaller share of a core during the last pause is idle

Handled = list[tuple[Request, Answered, Store | None]]
"""Requests with their answers, and the documents that these show; None where nothing but a failed write undoes them."""


class Turns:
    """The turns over the banks of a registry: `handle` for each request, then `end`; the next may begin at once."""

    answers: Callable[[Request], Answered]
    """Answers a request within a turn, or does its next step; set by the application."""

    def __init__(self, registry: BankRegistry) -> None:
        self._waits = registry.confirms
        self.count = 0  # requests so far
        self._registry = registry
        self._group = registry.group
        self._outcomes = registry.outcomes
        self._counts = registry.counts
        self._upkeep = Upkeep(registry.counts)
        self._handled: Handled = []

    def handle(self, request: Request) -> Answered:
        """The answer to a request, or its next step; it may be sent after `end`."""
        group = self._group
        group.open = True
        try:
            answer = self.answers(request)
        finally:
            group.open = False
        # now: a bank that is lost leaves the registry before the end of the turn
        self._handled.append((request, answer, self._documents_of(request) if self._waits else None))
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
        ended = self._outcomes.take() if self._outcomes.followers else ()
        began = perf_counter() if self._counts.on else 0.0
        if began:
            self._counts.turns.add(len(handled))
        if group.waiting:
            written, group.waiting = group.waiting, []
            failed = self._write(written)
        if self._waits:
            waiting = self._waiting(handled, written, failed)
            if waiting:
                return self._lasting(handled, failed, waiting, ended, began if written else 0.0)
        if began and written:
            self._counts.commits.add(perf_counter() - began)
        if group.overgrown:
            self._upkeep.compact_overgrown(group)
        return self._concluded(handled, failed, ended)

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

    def _waiting(self, handled: Handled, written: Iterable[Store], failed: dict[Store, Exception]) -> dict[Store, int]:
        """The documents that answers of the turn may show and whose last change, given too, does not last yet.

        An answer about other documents is true as long as nobody else can have changed the bank; else it `failed`.
        """
        concerned = dict.fromkeys(written) | dict.fromkeys(shown for _, _, shown in handled if shown is not None)
        waiting = {store: store.sequence for store in concerned if store.log.sync_needed}
        for store in concerned:
            if not (store in waiting or store.log.owned):
                failed.setdefault(store, StoreLost("another process has the bank"))
        return waiting

    async def _lasting(
        self,
        handled: Handled,
        failed: dict[Store, Exception],
        waiting: dict[Store, int],
        ended: Sequence[Ended],
        began: float,
    ) -> Exception | None:
        # all at once: a bank whose changes were undone may give their numbers to later ones meanwhile
        outcomes = await asyncio.gather(
            *(self._upkeep.durable(store, change) for store, change in waiting.items()), return_exceptions=True
        )
        for store, outcome in zip(waiting, outcomes, strict=True):
            if isinstance(outcome, StoreUnwritable):
                failed[store] = outcome
            elif outcome is not None:
                raise outcome
        if began:
            self._counts.commits.add(perf_counter() - began)
        self._upkeep.compact_overgrown(self._group)
        return self._concluded(handled, failed, ended)

    def _concluded(self, handled: Handled, failed: dict[Store, Exception], ended: Sequence[Ended]) -> Exception | None:
        """Make the answers of a turn final; returns the error that some have become."""
        error = self._refuse(handled, failed) if failed else None
        if ended:
            self._outcomes.tell(ended)
        if self._counts.on:
            for request, answer, _ in handled:
                if isinstance(answer, Response | Stream):
                    self._counts.answered(part_of(request), answer.status)
        return error

    def _refuse(self, handled: Handled, failed: dict[Store, Exception]) -> Exception:
        refused: Counter[Store] = Counter()
        for request, answer, shown in handled:
            documents = self._documents_of(request) if shown is None else shown
            if documents is not None and documents in failed:
                error = failed[documents]
                if isinstance(error, StoreLost) and request.unfinished is not None and request.unfinished.begun:
                    error = StoreUncertain("a part of the work is stored")  # which nobody may do once more
                refuse(answer, error)
                refused[documents] += 1
        for documents, count in refused.items():
            if not isinstance(failed[documents], StoreLost):
                logger.error("503 to %d requests: %s", count, failed[documents])
        return next(iter(failed.values()))

    def _documents_of(self, request: Request) -> Store | None:
        """The documents that a request may have read or changed, if their bank is open."""
        name = bank_of(request)[0]
        return None if name is None else self._registry.documents(name)

    def start(self) -> None:
        """Compact journals that have outgrown their snapshots."""
        self._upkeep.compact_overgrown(self._group)

    def stop(self) -> None:
        """Abandon compactions; closing the documents compacts them."""
        self._upkeep.end()

    async def change(self, work: Callable[[], T], name: str) -> T:
        """Change documents of a bank by `work`; returns its result once the change is durable, or was undone, which is
        only logged: who needs to know looks at the documents afterwards.
        """
        result = work()
        await self._last([name])
        return result

    def apply_due(self, services: Sequence[BankService]) -> Awaitable[None] | None:
        """Apply what is due in these banks, with requests between the steps; None: it is done."""
        pieces = chain.from_iterable(service.settling() for service in services)
        if next(pieces, self) is not None and not self._waits:
            return None

        async def rest() -> None:
            for _ in pieces:
                await asyncio.sleep(0)
            await self._last(service.bank.name for service in services)

        return rest()

    async def _last(self, names: Iterable[str]) -> None:
        """Make the changes of these banks last; a failure is logged, as no answer waits for it."""
        for store in map(self._registry.documents, names):
            if store is None or not store.log.sync_needed:
                continue
            try:
                await self._upkeep.durable(store, store.sequence)
            except StoreLost:
                pass  # its new home applies them
            except StoreUnwritable as error:
                logger.error("changes that fell due could not be stored: %s", error)


def refuse(answer: Answered, error: Exception) -> None:
    """Turn an answer into 503, in place, as the request log has it too; an unfinished one gets the error in its next
    step. Where another process has the bank it is marked as void, where nobody knows the outcome the client is hung up.
    """
    if isinstance(answer, Unfinished):
        answer.failed = error if isinstance(error, StoreUnwritable) else StoreUnwritable(str(error))
    if not isinstance(answer, Response):
        return
    if isinstance(error, StoreLost | StoreUncertain):
        answer.delivery = ELSEWHERE if isinstance(error, StoreLost) else HANG_UP
        return
    text = f"The bank cannot store its documents: {error}."
    refusal = render.refusal(BankError("SYSTEM_ERROR", text, status=503))
    refusal.headers += [pair for pair in answer.headers if pair[0] == "X-Request-ID"]
    answer.status, answer.headers, answer.body, answer.delivery = refusal.status, refusal.headers, refusal.body, AT_ONCE
    answer.parts = None


class Upkeep:
    """What answers wait for until their changes last, and the compactions of all banks of a process."""

    def __init__(self, counts: ProcessCounts | None = None) -> None:
        self._counts = counts or ProcessCounts()
        self._compactions: set[asyncio.Task[None]] = set()
        self._ending = Event()

    def end(self) -> None:
        """Abandon compactions; closing a store writes its last snapshot."""
        self._ending.set()

    async def durable(self, store: Store, change: int) -> None:
        """Return once the change with this number lasts; raises as `Log.durable` does.

        A compaction begins after it, when nothing else waits.
        """
        await store.log.durable(change)
        self._compact_if_due(store)

    def compact_overgrown(self, group: WriteGroup) -> None:
        """Start due compactions; never raises, as answers may already have been sent."""
        for store in list(group.overgrown):
            if not store.log.sync_needed:  # otherwise `durable` does it at its end
                group.overgrown.discard(store)
                self._compact_if_due(store)

    def _compact_if_due(self, store: Store) -> None:
        """Write a new snapshot in a thread, if one is due; later failures are logged."""
        if not store.log.compaction_due or store.discarded:
            return
        try:
            # it begins now, so that another request does not start it too
            task = asyncio.get_running_loop().create_task(store.log.compaction(pauses(self._ending)))
        except StoreUnwritable as error:
            logger.warning("the snapshot could not be written: %s", error)
        except Exception:
            logger.exception("the snapshot could not be written")
        else:
            self._counts.compactions += 1
            self._compactions.add(task)
            task.add_done_callback(self._compactions.discard)


def pauses(ending: Event) -> Callable[[], None]:
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
