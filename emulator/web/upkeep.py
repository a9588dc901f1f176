"""What the documents ask of the disk between requests: fsyncs that answers wait for, and compactions that none does.

Both run in a thread, so that no other request waits for the disk. Python runs one thread at a time, so a compaction
rests after each bit of work: requests get most of the time, and a snapshot takes as long as it takes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from threading import Event
from time import thread_time
from weakref import WeakKeyDictionary

from emulator.store import Store, StoreUnwritable
from emulator.store.compaction import Abandoned, Compaction

logger = logging.getLogger(__name__)

WORK = 0.0005  # seconds of processor time before a rest
REST = 9.0  # times as long


class Upkeep:
    """The upkeep of all stores of an application."""

    def __init__(self) -> None:
        self._turns: WeakKeyDictionary[Store, asyncio.Lock] = WeakKeyDictionary()
        self._compactions: set[asyncio.Task[None]] = set()
        self._ending = Event()

    def end(self) -> None:
        """Leave compactions unfinished: the server ends, and who closes a store writes its last snapshot."""
        self._ending.set()

    async def synced(self, store: Store, change: int) -> None:
        """Return once the change of this number is as durable as asked for; StoreUnwritable when it was undone.

        Of a bank that is deleted meanwhile nothing has to be durable but that.
        Those who wait take turns, and an fsync covers all that was written when it began: whoever is next mostly
        finds its own changes safe already. Between two of them a compaction begins, which does an fsync of its own.
        """
        turn = self._turns.get(store)
        if turn is None:
            turn = self._turns[store] = asyncio.Lock()
        async with turn:
            if store.synced >= change or store.discarded:
                return
            if store.sequence < change:
                raise StoreUnwritable("an earlier fsync failed, the changes were undone")
            ticket = store.begin_sync()
            await asyncio.get_running_loop().run_in_executor(None, ticket.run)
            if not store.discarded:
                store.finish_sync(ticket)
                self.look_after(store)

    def look_after(self, store: Store) -> None:
        """Renew the snapshot of `store` if the journal has outgrown it; never raises, for answers may have gone."""
        if store.compaction_due:
            try:
                self.compact(store)
            except Exception:
                logger.exception("the snapshot is not renewed")

    def compact(self, store: Store) -> None:
        """Renew the snapshot of `store`; a failure is logged and changes nothing."""
        try:
            compaction = store.begin_compaction()  # before another request finds it due
        except StoreUnwritable as error:
            logger.warning("the snapshot is not renewed: %s", error)
            return
        task = asyncio.get_running_loop().create_task(self._compact(store, compaction))
        self._compactions.add(task)
        task.add_done_callback(self._compactions.discard)

    async def _compact(self, store: Store, compaction: Compaction) -> None:
        await asyncio.get_running_loop().run_in_executor(None, compaction.run, self._rests())
        store.finish_compaction(compaction)

    def _rests(self) -> Callable[[], None]:
        since: float | None = None

        def pause() -> None:
            nonlocal since
            if since is None:  # in the thread that works
                since = thread_time()
            worked = thread_time() - since
            if worked >= WORK:
                if self._ending.wait(worked * REST):
                    raise Abandoned
                since = thread_time()

        return pause
