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
    StoreLost: another process has the bank  ELSEWHERE: `homes` asks the new home; if a part is stored already HANG_UP,
                                             or 409 where this process deletes the bank
    StoreUncertain: nobody knows             HANG_UP: the connection is closed without an answer
    long work, whatever failed               its next step raises the error
    work outside of a turn (`change`)        only logged

With `--durability power` the end of a turn also waits for the fsync of its changes, and with `--store` for its commit;
the next turn is computed meanwhile. Fsyncs and compactions run in a thread, so that no other request waits for the
disk. As Python runs one thread at a time, a compaction pauses after each piece of work.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from threading import Event
from time import perf_counter
from typing import TypeVar

from emulator.api import render
from emulator.api.messages import AT_ONCE, ELSEWHERE, HANG_UP, Answered, Request, Response, Stream, Unfinished
from emulator.api.outcomes import Ended
from emulator.api.service import BankService
from emulator.assemble.registry import BankRegistry, address_of, bank_of, part_of
from emulator.bank.errors import BankError
from emulator.store import Documents, StoreDeleted, StoreLost, StoreUncertain, StoreUnwritable, StoreVoid
from emulator.store.journal_log import Abandoned

T = TypeVar("T")

logger = logging.getLogger(__name__)

PAUSE = 0.008  # seconds between two pieces of a compaction, each of which takes a twentieth of that

Handled = list[tuple[Request, Answered, Documents | None]]
"""Requests with their answers, and the documents that these show; None where nothing but a failed write undoes them."""


class Turns:
    """The turns over the banks of a registry: `handle` for each request, then `end`; the next may begin at once.

    `answers` answers a request within a turn, or does its next step; `unwritable` gives the page for one that fails.
    """

    def __init__(
        self,
        registry: BankRegistry,
        answers: Callable[[Request], Answered],
        unwritable: Callable[[Request, BankError], Response | None],
    ) -> None:
        self.answers = answers
        self._unwritable = unwritable
        self._waits = registry.storage.confirms
        self.count = 0  # requests so far
        self._registry = registry
        self._group = registry.group
        self._outcomes = registry.outcomes
        self._counts = registry.counts
        self._handled: Handled = []
        self._compactions: set[asyncio.Task[None]] = set()
        self._ending = Event()

    def handle(self, request: Request) -> Answered:
        """The answer to a request, or its next step; it may be sent after `end`."""
        group = self._group
        group.open = True
        try:
            answer = self.answers(request)
        finally:
            group.open = False
        shown = None
        if self._waits:  # now: a bank that is lost leaves the registry before the end of the turn
            shown = self._documents_of(request)
            if isinstance(answer, Unfinished) and answer.documents is None:
                answer.documents = shown
        self._handled.append((request, answer, shown))
        self.count += 1
        return answer

    def end(self) -> Awaitable[Exception | None] | Exception | None:
        """Write the changes of the turn; returns the error if that fails.

        Then the answers of the turn about undone changes have become 503.
        """
        handled, self._handled = self._handled, []
        failed: dict[Documents, Exception] = {}
        ended = self._outcomes.take() if self._outcomes.followers else ()
        began = perf_counter() if self._counts.on else 0.0
        if began:
            self._counts.turns.add(len(handled))
        written = self._group.waiting
        if written:
            self._group.waiting = []
            for store in written:
                try:
                    store.flush()
                except Exception as error:  # no request may wait forever, whatever the error is
                    if not isinstance(error, StoreUnwritable):
                        logger.exception("the changes of a turn could not be written")
                    failed[store] = error
        if self._waits and (waiting := self._waiting(handled, written, failed)):
            concluded = partial(self._concluded, handled, written, failed, ended, began)
            return self._lasting(waiting, failed, concluded)
        return self._concluded(handled, written, failed, ended, began)

    def _waiting(
        self, handled: Handled, written: Iterable[Documents], failed: dict[Documents, Exception]
    ) -> dict[Documents, Awaitable[None]]:
        """The documents that answers of the turn may show and whose last change does not last yet, and what waits for
        that. It begins now: if the change is undone, a later one may get its number.

        An answer about other documents is true as long as nobody else can have changed the bank; else it `failed`.
        """
        waiting: dict[Documents, Awaitable[None]] = {}
        for store in dict.fromkeys([*written, *[shown for _, _, shown in handled]]):
            if store is None:
                continue
            if store.log.sync_needed:
                waiting[store] = store.log.durable(store.sequence)
            elif not store.log.owned:
                failed.setdefault(store, StoreLost("another process has the bank"))
        return waiting

    async def _lasting(
        self,
        waiting: dict[Documents, Awaitable[None]],
        failed: dict[Documents, Exception],
        concluded: Callable[[], Exception | None],
    ) -> Exception | None:
        outcomes = await asyncio.gather(*waiting.values(), return_exceptions=True)
        for store, outcome in zip(waiting, outcomes, strict=True):
            if isinstance(outcome, StoreUnwritable):
                failed[store] = outcome
            elif outcome is not None:
                raise outcome
        return concluded()

    def _concluded(
        self,
        handled: Handled,
        written: Sequence[Documents],
        failed: dict[Documents, Exception],
        ended: Sequence[Ended],
        began: float,
    ) -> Exception | None:
        """Make the answers of a turn final; returns the error that some have become."""
        if written:
            if began:
                self._counts.commits.add(perf_counter() - began)
            self._compact(written)
        error = self._refuse(handled, failed) if failed else None
        if ended:
            self._outcomes.tell(ended)
        if self._counts.on:
            for request, answer, _ in handled:
                if isinstance(answer, Response | Stream) and not request.target.startswith("/v1/"):
                    self._counts.answered(part_of(address_of(request.target)[2]), answer.status)
        return error

    def _refuse(self, handled: Handled, failed: dict[Documents, Exception]) -> Exception:
        refused: Counter[Documents] = Counter()
        for request, answer, shown in handled:
            documents = self._documents_of(request) if shown is None else shown
            if documents is not None and documents in failed:
                refuse(request, answer, failed[documents], self._unwritable)
                refused[documents] += 1
        for documents, count in refused.items():
            if not isinstance(failed[documents], StoreLost):
                logger.error("503 to %d requests: %s", count, failed[documents])
        return next(iter(failed.values()))

    def _documents_of(self, request: Request) -> Documents | None:
        """The documents that a request may have read or changed, if their bank is open."""
        if request.target.startswith("/v1/"):
            return self._registry.documents()
        name = bank_of(request)[0]
        return None if name is None else self._registry.documents(name)

    def start(self) -> None:
        """Compact journals that took a start long."""
        self._compact(service.bank.documents for service in self._registry.services())

    def stop(self) -> None:
        """Abandon compactions; closing the documents compacts them."""
        self._ending.set()

    async def change(self, service: BankService, work: Callable[[], T]) -> T:
        """Change documents of a bank by `work`, outside of a turn; returns its result once the change is durable, or
        was undone, which is only logged: who needs to know looks at the documents afterwards.
        """
        result = work()
        await self._last([service])
        return result

    def apply_due(self) -> Awaitable[None] | None:
        """Apply what is due in watched banks, with requests between the steps; None: it is done."""
        services = self._registry.watched()
        pieces = chain.from_iterable(service.settling() for service in services)
        if next(pieces, self) is not None and not self._waits:
            self._compact(service.bank.documents for service in services)
            return None

        async def rest() -> None:
            for _ in pieces:
                await asyncio.sleep(0)
            await self._last(services)

        return rest()

    async def _last(self, services: Iterable[BankService]) -> None:
        """Make the changes of these banks last; a failure is logged, as no answer waits for it."""
        for store in filter(None, [self._registry.documents(service.bank.name) for service in services]):
            try:
                if store.log.sync_needed:
                    await store.log.durable(store.sequence)
            except StoreLost:
                pass  # its new home applies them
            except StoreUnwritable as error:
                logger.error("changes that fell due could not be stored: %s", error)
            self._compact([store])

    def _compact(self, stores: Iterable[Documents]) -> None:
        """Begin to write the snapshots that are due; never raises, as answers may already have been sent."""
        for store in stores:
            if not store.log.compaction_due or store.discarded:
                continue
            try:
                # it begins now, so that another request does not start it too
                task = asyncio.get_running_loop().create_task(store.log.compaction(self._pause))
            except Exception as error:
                unknown = None if isinstance(error, StoreUnwritable) else error
                logger.warning("the snapshot could not be written: %s", error, exc_info=unknown)
            else:
                self._counts.compactions += 1
                self._compactions.add(task)
                task.add_done_callback(self._compactions.discard)

    def _pause(self) -> None:
        """Let other threads run, as the thread of a compaction; raises Abandoned at the end of the process."""
        if self._ending.wait(PAUSE):
            raise Abandoned


def refuse(
    request: Request,
    answer: Answered,
    error: Exception,
    unwritable: Callable[[Request, BankError], Response | None] = lambda *_: None,
) -> None:
    """Turn an answer into 503, or 409 where its bank is deleted, in place, as the request log has it too; an unfinished
    one gets the error in its next step. Where another process has the bank it is marked as void; where nobody knows the
    outcome, or nobody may do once more what is stored already, the client is hung up. `unwritable`: as of `Turns`.
    """
    work = request.unfinished
    if isinstance(error, StoreLost) and work is not None and work.begun:
        deleting = work.documents is not None and work.documents.log.deleting
        error = StoreDeleted("the bank is being deleted") if deleting else StoreUncertain("a part is stored")
    if isinstance(answer, Unfinished):
        answer.failed = error if isinstance(error, StoreUnwritable) else StoreUnwritable(str(error))
    if not isinstance(answer, Response) or answer.delivery is HANG_UP:  # which stays so, whoever has the bank by now
        return
    if isinstance(error, StoreDeleted):
        error = BankError("CONFLICT", "The bank is being deleted.")
    if isinstance(error, StoreVoid):
        answer.delivery = ELSEWHERE if isinstance(error, StoreLost) else HANG_UP
        return
    if not isinstance(error, BankError):
        error = render.unwritable(error)
    refusal = unwritable(request, error) or render.refusal(error)
    refusal.headers += [pair for pair in answer.headers if pair[0] == "X-Request-ID"]
    answer.status, answer.headers, answer.body, answer.delivery = refusal.status, refusal.headers, refusal.body, AT_ONCE
    answer.parts = None
