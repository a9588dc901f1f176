"""What the documents ask of the disk between requests: fsyncs that answers wait for, and compactions that none does.

Both run in a thread, so that no other request waits for the disk.
"""

from __future__ import annotations

import asyncio
import logging
from weakref import WeakKeyDictionary

from emulator.store import Store, StoreUnwritable
from emulator.store.compaction import Compaction

log = logging.getLogger(__name__)


class Upkeep:
    """The upkeep of all stores of a site."""

    def __init__(self) -> None:
        self._turns: WeakKeyDictionary[Store, asyncio.Lock] = WeakKeyDictionary()
        self._compactions: set[asyncio.Task[None]] = set()

    async def synced(self, store: Store) -> None:
        """Return once everything that `store` holds now is as durable as asked for; raises StoreUnwritable.

        Those who wait take turns, and an fsync covers all that was written when it began: whoever is next mostly
        finds its own changes safe already.
        """
        seen = store.sequence
        turn = self._turns.get(store)
        if turn is None:
            turn = self._turns[store] = asyncio.Lock()
        async with turn:
            if store.synced >= seen:
                return
            if store.sequence < seen:
                raise StoreUnwritable("an earlier fsync failed, the changes were undone")
            ticket = store.begin_sync()
            await asyncio.get_running_loop().run_in_executor(None, ticket.run)
            store.finish_sync(ticket)

    def compact(self, store: Store) -> None:
        """Renew the snapshot of `store`; a failure is logged and changes nothing."""
        try:
            compaction = store.begin_compaction()  # before another request finds it due
        except StoreUnwritable as error:
            log.warning("the snapshot is not renewed: %s", error)
            return
        task = asyncio.get_running_loop().create_task(_compact(store, compaction))
        self._compactions.add(task)
        task.add_done_callback(self._compactions.discard)


async def _compact(store: Store, compaction: Compaction) -> None:
    await asyncio.get_running_loop().run_in_executor(None, compaction.run)
    store.finish_compaction(compaction)
