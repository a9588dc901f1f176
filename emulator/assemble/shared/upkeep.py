"""Background work of a process over a shared store: it follows other processes and writes checkpoints."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from threading import Event

from emulator.api.log import MOST_EXCHANGES
from emulator.assemble.shared.authority import SharedAuthority
from emulator.assemble.shared.needs import Needs
from emulator.assemble.shared.open_bank import OpenBank
from emulator.assemble.shared.registry import SharedRegistry
from emulator.assemble.shared.running import TurnRunner, Unanswered
from emulator.assemble.turns import rests
from emulator.store import StoreError
from emulator.store.journal_log import Abandoned
from emulator.store.postgres import Pool, Work
from emulator.store.snapshot import snapshot_bytes

logger = logging.getLogger(__name__)

PAUSE = 0.25  # seconds between two checks for changes of other processes
COLLECTING = 8  # checks after which the exchanges of others are fetched for the conformance report


class SharedUpkeep:
    """The upkeep of one process."""

    def __init__(self, pool: Pool, registry: SharedRegistry, authority: SharedAuthority, runner: TurnRunner) -> None:
        self._pool = pool
        self._registry = registry
        self._authority = authority
        self._runner = runner
        runner.done = self._look_after
        self._tasks: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._checkpoints: set[str] = set()
        self._entered: Counter[str] = Counter()  # exchanges since the last trim
        self._ending = Event()
        self._looks = 0

    def start(self) -> None:
        """Start to follow other processes."""
        self._pool.open()
        self._watching = self.spawn(self._watch())

    def stop(self) -> None:
        """Stop following, and leave checkpoints unwritten; turns that have begun end by themselves."""
        self._ending.set()
        if self._watching is not None:
            self._watching.cancel()

    def spawn(self, work: Awaitable[None]) -> asyncio.Task[None]:
        """Run `work` as a task that is not garbage collected before its end."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _watch(self) -> None:
        """Publish the changes of other processes to the watchers of this one, and store what waits for a turn."""
        try:
            while True:
                await asyncio.sleep(PAUSE)
                await self._look()
        finally:
            await self._pool.close()

    async def _look(self) -> None:
        """Follow each watched bank by itself, so that a slow one delays no other.

        From time to time also each bank with observations that the conformance report does not have yet.
        """
        watched = {opened.name for opened in self._registry.watched_banks()}
        self._looks += 1
        if self._looks % COLLECTING == 0:
            watched |= {opened.name for opened in self._registry.open_banks.values() if opened.observer.waits}
        waiting = {opened.name for opened in self._registry.open_banks.values() if opened.requests.waiting}
        turns: list[Needs] = []
        for name in watched | waiting:
            turns.append(Needs({name}, write=False))
            if name in watched:
                turns[-1].parts.add("exchanges")
        if not turns:
            turns.append(Needs(set(), write=False))
        await asyncio.gather(*map(self._look_at, turns))
        if self._authority.new_folders():
            await self._look_at(Needs(set(), write=True, service=True), self._authority.adopt)
        for name in self._registry.idle():
            async with self._runner.order.of([name]):  # no turn uses it
                self._registry.unload(name)

    async def _look_at(self, needs: Needs, act: Callable[[], None] = lambda: None) -> None:
        try:
            await self._runner.run(act, needs)
        except (StoreError, Unanswered) as error:
            self._runner.note(error if isinstance(error, StoreError) else None)
        except Exception:
            logger.exception("what other processes do cannot be seen")

    def _look_after(self, work: Work, due: Iterable[str]) -> None:
        """Write the checkpoints that are due, delete former ones and trim request logs, while turns run."""
        for name in due:
            if name in self._registry.open_banks and name not in self._checkpoints:
                self._checkpoints.add(name)
                self.spawn(self._checkpoint(self._registry.open_banks[name]))
        for bank in {content.bank for content in work.contents}:
            self.spawn(self._drop_checkpoints(bank))
        for exchange in work.exchanges:
            self._entered[exchange.bank] += 1
        for name in [name for name, entered in self._entered.items() if entered >= MOST_EXCHANGES]:
            del self._entered[name]
            self.spawn(self._trim(name))

    async def _checkpoint(self, opened: OpenBank) -> None:
        """Write a bank as it stands between two turns."""
        documents = opened.documents
        async with self._runner.order.of([opened.name]):
            position, tables = opened.position, documents.freeze()
        try:
            loop = asyncio.get_running_loop()
            snapshot = await loop.run_in_executor(None, snapshot_bytes, tables, position.sequence, rests(self._ending))
            opened.weight = len(snapshot)
            async with self._pool.database() as database:
                await database.checkpoint(opened.name, position.incarnation, position.sequence, snapshot)
        except Abandoned:
            pass
        except StoreError as error:
            logger.warning("the checkpoint of bank %s is not written: %s", opened.name, error)
        finally:
            documents.thaw()
            self._checkpoints.discard(opened.name)

    async def _drop_checkpoints(self, name: str) -> None:
        try:
            async with self._pool.database() as database:
                await database.drop_checkpoints(name)
        except StoreError as error:
            logger.warning("the former checkpoints of bank %s are not deleted yet: %s", name, error)

    async def _trim(self, name: str) -> None:
        try:
            async with self._pool.database() as database:
                await database.trim_exchanges(name, MOST_EXCHANGES)
        except StoreError as error:
            logger.warning("the request log of bank %s is not trimmed: %s", name, error)
