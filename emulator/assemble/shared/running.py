"""Runs one turn: fetches what it needs, acts and commits; if it needs more, it is undone and run again.

A turn goes through these steps, in the order of `TurnRunner._attempt`; nothing is awaited within 4 and within 6.

1. Order. Turns of this process that use the same bank run one after the other (`TurnOrder`), each over a connection
   of its own. A turn that uses several banks takes them by name, so that two turns never wait for each other.
2. Begin. If the turn may change something, a transaction locks the row of each of its banks, by name as well, and of
   the service (the row with the empty name) where banks or TPPs change. With the locks, one statement reads the head
   of each bank and the changes that other processes have appended. A turn that only reads locks nothing.
3. Catch up. The changes of others are applied to the documents in memory. What takes long (a whole bank, a long tail)
   is read without a lock, and the turn begins again. So nobody waits for a process that starts or was stopped.
4. Act. The requests are answered in memory, with nothing awaited: no other turn of this process sees half of it. A
   turn that asks for what was not fetched or locked raises NotFetched; it is undone, and begins again with more in
   its Needs.
5. Commit. All that the turn has changed in all of its banks is appended, its heads are advanced, and the transaction
   is committed. Nobody else can have appended meanwhile: the rows are locked.
6. Confirm. The turn is now part of the service: events are published, and the answers leave. If 5 fails, everything
   in memory is undone instead.

Steps 5 and 6 of one turn overlap with other banks' turns. The exception is a change of the service: from step 4 to
its commit no other turn acts (`_settled`), as it would see banks that may never be stored.

A read of banks that no other process has changed recently skips 2 and 3 (`_read`): it acts on what is in memory, and
one statement then checks that every head is still at the position that it has read, and stores its log entries. If
one has moved, the answer is thrown away, and the turn begins again with step 2.

Where this ends when something fails:

- The connection breaks, or PostgreSQL does not answer, before COMMIT was sent: nothing is stored; StoreError,
  answered 503. At the first statement a new connection is tried once: the old one may have broken while it was idle.
- It breaks after COMMIT was sent: the outcome is looked up by the turn's UUID, over a new connection, with the
  bank's row locked, which waits for the server to be done with the transaction. WRITTEN: the turn is confirmed. LOST:
  nothing was stored, and the turn is run again. UNKNOWN (nothing answers for LOOKING seconds): Unanswered, the
  clients' connections are closed without an answer, and the bank is loaded again before its next use.
- The server ends the transaction, since the process was stopped in it for longer than IDLE seconds: LOST as well. The
  last repetition asks for a longer lock, so that a busy machine is not taken for a stopped one for ever.
- The process is killed: the server rolls back when the connection ends. Requests without an answer may be stored; the
  client's repetition with its X-Request-ID finds out.
- Anything else that is raised while the turn acts: it is undone, the transaction is rolled back, and the error is
  that of its requests (500).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from time import monotonic, thread_time
from typing import TypeVar
from uuid import uuid4

from emulator.api.log import MOST_EXCHANGES
from emulator.assemble.shared.authority import SharedAuthority
from emulator.assemble.shared.needs import SLOW, Needs, TurnOrder
from emulator.assemble.shared.open_bank import OpenBank, image_of
from emulator.assemble.shared.registry import Scope, SharedRegistry
from emulator.bank.snapshots import is_small
from emulator.store import Image, NotFetched, Part, StoreError
from emulator.store.postgres import (
    NOWHERE,
    SERVICE,
    Committed,
    Content,
    Database,
    Head,
    Outcome,
    Pool,
    Position,
    StoreUnreachable,
    TurnStart,
    Work,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

ROUNDS = 24  # times that a turn is run again with more
LOOKING = 5.0  # seconds in which the outcome of a commit is to be found
PAUSE = 0.25  # seconds between two attempts to find it
REPEATS = 2  # times that a turn is run again after it has lost its connection, the last time with a longer lock


class Unanswered(Exception):
    """It is unknown whether the changes of the turn were stored: its requests must not be answered."""


class BeginAgain(Exception):
    """A step that needs more than those before, which have done nothing of the request itself."""


class TurnRunner:
    """Runs the turns of one process."""

    def __init__(self, pool: Pool, registry: SharedRegistry, authority: SharedAuthority) -> None:
        self._pool = pool
        self._registry = registry
        self._authority = authority
        self.done: Callable[[Work, Iterable[str]], None] = lambda *_: None
        """Called after each turn, with what it has changed and the banks whose checkpoint is due."""
        self.order = TurnOrder()
        self._settled = asyncio.Event()  # no change of the service waits for its commit
        self._settled.set()
        self._taking = asyncio.Lock()  # what others have changed of the service
        self._reachable = True

    def note(self, error: StoreError | None) -> None:
        """Log once that the store is unavailable, and once that it is available again."""
        if error is None and not self._reachable:
            logger.info("the store answers again")
        elif error is not None and self._reachable:
            logger.error("the store cannot be used: %s", error)
        self._reachable = error is None

    async def run(self, act: Callable[[], T], needs: Needs) -> T:
        """Run a turn; StoreError with nothing changed, Unanswered."""
        rounds = 0
        while rounds < ROUNDS:
            order = needs.order
            async with self.order.of(order), self._pool.database() as database:
                while order == needs.order and rounds < ROUNDS:
                    rounds += 1
                    result = await self._attempt(database, act, needs)
                    if result is not None:
                        return result[0]
        raise StoreError("a turn needs ever more")

    async def _attempt(self, database: Database, act: Callable[[], T], needs: Needs) -> tuple[T] | None:
        """The result of `act`, or None if the turn must run again with the extended `needs`."""
        registry = self._registry
        known = registry.service
        names = needs.names & registry.stored.keys() if known.sequence >= 0 else set()
        for name, snapshot in needs.snapshots:  # before the lock: a large one takes long
            await self._fetch_snapshot(database, name, snapshot)
        beyond = needs.write or needs.fetch or needs.parts or needs.snapshots or needs.drawn
        if not beyond and registry.are_still(names):
            return await self._read(database, act, needs, names)
        start = await database.begin(
            registry.positions(names),
            lock=(names | {SERVICE} if needs.service else names) if needs.write else (),
            numbers=max(0, needs.numbers + registry.waiting(names) - len(needs.drawn)) if needs.parts else 0,
            busy=needs.busy,
        )
        needs.drawn += start.numbers
        try:
            if not await self._caught_up(database, start, needs, names, known):
                return None
            while not self._settled.is_set():  # from then on to the end of `_acted` nothing is awaited
                await self._settled.wait()
            # whoever reads the request log sees the numbers of this turn's exchanges; others get theirs as they are
            # stored
            numbers = needs.drawn if needs.parts else None
            scope = registry.enter(names, numbers, service=needs.service, parts=needs.parts)
            if scope.service:
                self._settled.clear()
            try:
                acted = self._acted(scope, act, needs)
                due = None if acted is None else await self._stored(database, scope, acted[1], needs)
            finally:
                if scope.service:
                    self._settled.set()
        finally:
            await database.end()  # without a commit nothing was changed
        if acted is None or due is None:
            return None
        self.note(None)
        self.done(acted[1], due)
        return (acted[0],)

    async def _read(self, database: Database, act: Callable[[], T], needs: Needs, names: set[str]) -> tuple[T] | None:
        """The result of `act` on the documents in memory; one statement then checks that they are up to date.

        None where it was not, or where `act` needs more.
        """
        registry = self._registry
        while not self._settled.is_set():
            await self._settled.wait()
        scope = registry.enter(names, None, service=False)
        acted = self._acted(scope, act, needs)
        if acted is None:
            return None
        result, work = acted
        try:
            numbers = await database.read(registry.positions(names), work.exchanges)
        except BaseException:
            self._undo(scope)
            raise
        if numbers is None:
            needs.fetch = True
            self._undo(scope)
            return None
        self._confirm(scope, work, numbers)
        self.note(None)
        self.done(work, ())
        return (result,)

    def _acted(self, scope: Scope, act: Callable[[], T], needs: Needs) -> tuple[T, Work] | None:
        """The result of `act` and its changes; None if it needs more, and then it is undone."""
        registry = self._registry
        needs.banks, needs.left, began = scope.banks, scope.numbers, thread_time()
        try:
            result = act()
            work = registry.work(scope, uuid4())
            if scope.changed or (scope.service and self._authority.pending):
                work.secrets = self._authority.secrets(registry.add_service(scope, work))
        except NotFetched as missing:
            self._undo(scope)
            needs.add(missing)
            if needs.step:
                raise BeginAgain from missing
            return None
        except BaseException:
            self._undo(scope)
            raise
        finally:
            registry.leave()
            needs.seconds = thread_time() - began
        if work.needs_lock and not needs.write:
            needs.write = True
            self._undo(scope)
            return None
        return result, work

    def _confirm(self, scope: Scope, work: Work, numbers: Iterable[int] | None) -> None:
        self._registry.confirm(scope, work, numbers)
        if scope.service:
            self._authority.confirm()

    def _undo(self, scope: Scope) -> None:
        self._registry.undo(scope)
        if scope.service:
            self._authority.undo()

    async def _stored(self, database: Database, scope: Scope, work: Work, needs: Needs) -> list[str] | None:
        """Commit and confirm; the banks whose checkpoint is due, None where the turn is to be run again."""
        committed: Committed | None = Committed([], [])
        try:
            if work.needs_lock or work.exchanges:
                committed = await self._committed(database, work, needs)
        except BaseException:
            self._undo(scope)
            raise
        if committed is None:
            self._undo(scope)
            return None
        self._confirm(scope, work, committed.numbers)
        return committed.due

    async def _caught_up(
        self, database: Database, start: TurnStart, needs: Needs, names: set[str], known: Position
    ) -> bool:
        """Apply everything that was fetched; False if that must start again.

        `known`: how far this process was with the service when the transaction began.
        """
        registry = self._registry
        head = start.heads.get(SERVICE)
        if head is None:
            raise StoreUnreachable("the tables of the store are gone")
        if head.position.sequence != known.sequence:
            await self._take_service(database, head, known)
            if needs.names & registry.stored.keys() != names:
                return False
        heads, partial = start.heads, any(head.partial for head in start.heads.values())
        if partial:
            await database.end()  # nobody waits while a long tail is read and applied
            heads = await database.whole(registry.positions(names))
        behind = []
        for name in names:
            opened, here = registry.open_banks.get(name), heads.get(name)
            if opened is None or here is None or not opened.catch_up(here):
                behind.append(name)
        if behind:
            await database.end()  # no other turn waits while a whole bank is read
            for name in behind:
                opened = registry.open_banks.get(name)
                content = await database.load(name, NOWHERE.sequence if opened is None else opened.documents.sequence)
                if content is not None:
                    registry.load(name, content, await _image(content))
        if behind or partial:
            return False
        if needs.parts:
            for opened in [registry.open_banks[name] for name in names]:
                await self._fetch(database, opened, needs.parts)
        return True

    async def _take_service(self, database: Database, head: Head, known: Position) -> None:
        """Apply the changes of others to the service, unless another turn has done so or has a later change."""
        registry = self._registry
        async with self._taking:
            while (here := registry.service) is known or here.sequence < head.position.sequence:
                stored = await database.banks()
                secrets = await database.secrets(here.sequence)
                if registry.service is here and self._settled.is_set():
                    self._authority.take(secret for secret in secrets if here.sequence >= 0)
                    registry.take_service(head, stored)
                    return
                await self._settled.wait()

    async def _fetch(self, database: Database, opened: OpenBank, parts: Iterable[Part]) -> None:
        """Update what a bank has besides its documents."""
        if "exchanges" in parts:
            rows = await database.exchanges(opened.name, opened.requests.known(), MOST_EXCHANGES)
            opened.fetched(rows, MOST_EXCHANGES)
        if "snapshots" in parts:
            opened.snapshots.stored(await database.snapshots(opened.name))

    async def _fetch_snapshot(self, database: Database, name: str, snapshot: str) -> None:
        opened = self._registry.open_banks.get(name)
        if opened is not None and not opened.snapshots.is_fetched(snapshot):
            stored = await database.snapshot(name, snapshot)
            if stored is not None:
                await opened.snapshots.fetched(snapshot, *stored)

    async def _committed(self, database: Database, work: Work, needs: Needs) -> Committed | None:
        """Commit; None where the turn lost its lock and is to be run again.

        StoreError: nothing was stored; Unanswered.
        """
        try:
            return await database.commit(work)
        except ConnectionError as lost:
            outcome = await self._outcome(database, work)
            if outcome is Outcome.WRITTEN:
                return Committed([], None)
            if outcome is Outcome.LOST:
                needs.lost += 1
                if needs.step or needs.lost > REPEATS:
                    raise StoreUnreachable(str(lost)) from lost
                needs.busy = needs.seconds > SLOW or needs.lost == REPEATS
                return None
            for appended in work.appended:
                if appended.name in self._registry.open_banks:
                    self._registry.open_banks[appended.name].forget()
            logger.error("whether changes were stored is not known: %s", lost)
            raise Unanswered from lost

    async def _outcome(self, database: Database, work: Work) -> Outcome:
        """The outcome of a commit; repeats the query until the store answers, within a time limit."""
        until = monotonic() + LOOKING
        while True:
            try:
                return await database.outcome(work)
            except StoreError:
                if monotonic() > until:
                    return Outcome.UNKNOWN
                await asyncio.sleep(PAUSE)


async def _image(content: Content) -> Image:
    """The checkpoint of a bank; that of a large one is read in a thread, while the banks of others answer."""
    if content.snapshot is None or is_small(content.snapshot.size):
        return image_of(content)
    return await asyncio.to_thread(image_of, content)
