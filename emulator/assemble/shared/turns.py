"""Turns over a shared store (see `web.application.Turn`): those of one bank one behind the other, others meanwhile.

A turn fetches the banks that its requests name, with what other processes have changed since, and answers the requests;
what they changed is appended and committed before any answer leaves. Where a request may change something the banks are
locked first, so that no other process appends to them; reads come without a lock. A read of banks that nobody else has
changed of late is answered from memory, and one statement sees afterwards that this was all that is stored. A turn that
turns out to need more, the lock or something that is not in memory, is undone and run again with it.

Answering is synchronous, so that two turns never answer at the same time; they wait for the store at the same time. A
turn that changes the service (which banks and TPPs there are) concerns every other: from its answers to the end of its
commit nobody else answers.

What takes long (see `Unfinished`) is a turn for each step: the lock is given back after it, and the next step sees what
other processes have changed. A step that needs more begins the request again, unless something of it was done before.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from time import monotonic, thread_time
from typing import TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakValueDictionary

from emulator.api import render
from emulator.api.headers import Headers
from emulator.api.log import KEPT
from emulator.api.messages import Answered, Delivery, Request, Response, Unfinished
from emulator.api.pipeline import finish
from emulator.assemble.registry import DEFAULT
from emulator.assemble.shared.authority import SharedAuthority
from emulator.assemble.shared.open_bank import OpenBank
from emulator.assemble.shared.registry import Scope, SharedRegistry
from emulator.assemble.turns import rests
from emulator.bank.errors import BankError
from emulator.store import NotFetched, Part, StoreError, StoreUnwritable
from emulator.store.journal_log import Abandoned
from emulator.store.postgres import (
    SERVICE,
    Database,
    Head,
    Outcome,
    Pool,
    Position,
    StoreUnreachable,
    Transaction,
    Work,
)
from emulator.store.snapshot import as_bytes

logger = logging.getLogger(__name__)

T = TypeVar("T")
Waiting = tuple[Request, "asyncio.Future[Answered]"]

LONGEST = 64  # requests of a turn
ROUNDS = 24  # times that a turn is run again with more
LOOKING = 5.0  # seconds in which the outcome of a commit is to be found
PAUSE = 0.25  # seconds between two looks at what other processes have done
COLLECTING = 8  # looks after which what others have answered is fetched for the conformance report
REPEATS = 2  # times that a turn is run again which has lost its connection, the last time with a longer lock
SLOW = 1.0  # seconds of work after which that is so the first time
_NAMED_BANK = re.compile(r"/banks/([a-z0-9][a-z0-9-]{0,62})(?=/|$)")
_READS = frozenset({"GET", "HEAD", "OPTIONS"})


class Unanswered(Exception):
    """Nobody knows whether the changes of the turn were stored: its requests must not be answered."""


class _Replaced(Exception):
    """A bank of something that takes long is another one by now, or deleted."""


class _BeginAgain(Exception):
    """A step that needs more than those before, which have done nothing of the request itself."""


@dataclass(slots=True)
class _Needs:
    """What a turn fetches; it grows as it turns out to need more."""

    names: set[str]
    write: bool
    numbers: int = 0
    drawn: list[int] = field(default_factory=list)
    service: bool = False
    busy: bool = False
    parts: set[Part] = field(default_factory=set)
    snapshots: set[tuple[str, str]] = field(default_factory=set)
    banks: dict[str, OpenBank] = field(default_factory=dict)  # as the last run had them
    seconds: float = 0.0  # of processor time that the last run took to act
    lost: int = 0  # runs that have lost their connection
    left: deque[int] = field(default_factory=deque)  # numbers that it has not used
    step: bool = False  # not the first one: what it does cannot be repeated
    fetch: bool = False  # what is in memory is not what is stored

    def add(self, missing: NotFetched) -> None:
        """Fetch this as well."""
        self.numbers += 4 * missing.numbers
        if missing.bank == SERVICE:
            self.service = self.write = True
        elif missing.bank is not None:
            self.names.add(missing.bank)
            if missing.part is not None:
                self.parts.add(missing.part)
            if missing.snapshot is not None:
                self.snapshots.add((missing.bank, missing.snapshot))

    def next_step(self) -> _Needs:
        """What the next step needs; one whose request has no number yet takes one of those that are left."""
        drawn = [self.left.popleft()] if self.left else []
        return _Needs(
            set(self.names),
            write=True,
            numbers=len(drawn),
            drawn=drawn,
            service=self.service,
            busy=self.seconds > SLOW / 2,
            parts=set(self.parts),
            banks=self.banks,
            step=True,
        )

    def again(self) -> _Needs:
        """What the first step needs where a later one turned out to need this."""
        return _Needs(self.names, True, self.numbers, service=self.service, parts=self.parts, snapshots=self.snapshots)

    @property
    def order(self) -> frozenset[str]:
        """What no other turn of this process may use meanwhile."""
        return frozenset(self.names | {SERVICE} if self.service else self.names)


class _Order:
    """Turns that use the same bank come one behind the other."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, names: Iterable[str]) -> AsyncIterator[None]:
        """A `with` block that has these banks to itself, within this process."""
        async with AsyncExitStack() as held:
            for name in sorted(names):
                lock = self._locks.get(name)
                if lock is None:
                    lock = self._locks[name] = asyncio.Lock()
                await held.enter_async_context(lock)
            yield


class SharedTurns:
    """The turns of one process."""

    waits = True

    def __init__(self, pool: Pool, registry: SharedRegistry, authority: SharedAuthority) -> None:
        self._pool = pool
        self._registry = registry
        self._authority = authority
        self.answers: Callable[[Request], Answered]
        """What answers a request within a turn, or does the next step of it; set by whoever serves."""
        self._order = _Order()
        self._settled = asyncio.Event()  # no change of the service waits for its commit
        self._settled.set()
        self._taking = asyncio.Lock()  # what others have changed of the service
        self._waiting: dict[str, deque[Waiting]] = {}  # by bank
        self._unfinished: WeakKeyDictionary[Unfinished, _Needs] = WeakKeyDictionary()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._checkpoints: set[str] = set()
        self._entered: Counter[str] = Counter()  # exchanges since the last trim
        self._ending = Event()
        self._reachable = True
        self._looks = 0
        self.count = 0  # requests so far

    # Requests

    def begin(self, requests: Sequence[Request]) -> Sequence[asyncio.Future[Answered]]:
        """The answers, each once all that it tells of is stored."""
        loop = asyncio.get_running_loop()
        answers: list[asyncio.Future[Answered]] = []
        for request in requests:
            answer: asyncio.Future[Answered] = loop.create_future()
            answers.append(answer)
            if request.target.partition("?")[0] == "/health":
                answer.set_result(self.handle(request))  # it asks no bank
                continue
            awaited = None if request.unfinished is None else request.unfinished.awaits
            if awaited is None or awaited.done():
                self._wait((request, answer))
            else:  # without a turn, which others would have to wait for
                asyncio.wrap_future(awaited).add_done_callback(partial(self._wait, (request, answer)))
        self.count += len(requests)
        return answers

    def _wait(self, one: Waiting, _awaited: object = None) -> None:
        """Let a request wait for a turn of its bank."""
        name = _bank_of(one[0])
        waiting = self._waiting.get(name)
        if waiting is None:
            waiting = self._waiting[name] = deque()
            self._spawn(self._work(name, waiting))
        waiting.append(one)

    def end(self) -> None:
        """A turn that is awaited ends by itself."""

    async def _work(self, name: str, waiting: deque[Waiting]) -> None:
        """Run the turns of a bank until nobody waits for one."""
        try:
            while waiting:
                taken = _next_of(waiting)
                requests = [request for request, _ in taken]
                try:
                    unfinished = requests[0].unfinished
                    if unfinished is None:
                        answers = await self._answers(requests, _needs_of(name, requests))
                    else:
                        answers = [await self._step(requests[0], unfinished)]
                except Exception as error:
                    logger.exception("a turn has failed")
                    answers = [render.refusal(render.failed(request, error)) for request in requests]
                for (_, future), answer in zip(taken, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)
        finally:
            del self._waiting[name]

    async def _answers(self, requests: Sequence[Request], needs: _Needs) -> Sequence[Answered]:
        """Answer requests about a bank in one turn."""
        answers: list[Answered] = []

        def act() -> Sequence[Answered]:
            _abandon(answers)  # those of a run that was undone
            answers[:] = map(self.handle, requests)
            return answers

        try:
            await self.run(act, needs)
        except Unanswered:
            _abandon(answers)
            return [_HANG_UP for _ in requests]
        except StoreError as error:
            _abandon(answers)
            self._note(error)
            return [_refused(request, error) for request in requests]
        for answer in answers:
            if isinstance(answer, Unfinished):
                self._unfinished[answer] = needs.next_step()
        return answers

    async def _step(self, request: Request, unfinished: Unfinished) -> Answered:
        """Do the next step of what takes long, as a turn of its own.

        Where it cannot be stored the work hears of it in one more step, so that it can say what it has done before.
        """
        needs = self._unfinished[unfinished]
        banks, failed = needs.banks, unfinished.failed

        def act() -> Answered:
            if any(self._registry.open_banks.get(name) is not opened for name, opened in banks.items()):
                raise _Replaced
            return self.handle(request)

        try:
            answer = await self.run(act, needs)
        except _BeginAgain:
            if unfinished.begun:
                raise RuntimeError("a step needs what none before has needed") from None
            request.unfinished = None
            return (await self._answers([request], needs.again()))[0]
        except _Replaced:
            unfinished.abandon()
            return render.refusal(BankError("CONFLICT", "The bank was deleted or created again meanwhile."))
        except Unanswered:
            unfinished.abandon()
            return _HANG_UP
        except StoreError as error:
            self._note(error)
            if failed is None:
                unfinished.failed = StoreUnwritable(str(error))
                self._unfinished[unfinished] = needs.next_step()
                return unfinished
            unfinished.abandon()
            return _refused(request, error)
        if isinstance(answer, Unfinished):
            self._unfinished[answer] = needs.next_step()
        return answer

    def handle(self, request: Request) -> Answered:
        """Answer a request within a turn, or do the next step of it."""
        return self._grouped(lambda: self.answers(request))

    def _grouped(self, act: Callable[[], T]) -> T:
        """What `act` gives; its changes are written by the end of the turn."""
        group = self._registry.group
        group.open = True
        try:
            return act()
        finally:
            group.open = False

    def _note(self, error: StoreError | None) -> None:
        """Log once that the store is away, and once that it is back."""
        if error is None and not self._reachable:
            logger.info("the store answers again")
        elif error is not None and self._reachable:
            logger.error("the store cannot be used: %s", error)
        self._reachable = error is None

    # Turns

    async def act(self, act: Callable[[], T], names: Iterable[str] = (DEFAULT,), *, write: bool = True) -> T:
        """Do something as a turn of its own; StoreError with nothing changed, Unanswered."""
        return await self.run(lambda: self._grouped(act), _Needs(set(names), write))

    async def change(self, change: Callable[[], T], name: str) -> T:
        """Let `change` change a bank, as a turn of its own; StoreUnwritable, with nothing changed or nobody knowing."""
        try:
            return await self.act(change, [name])
        except (StoreError, Unanswered) as error:
            raise StoreUnwritable(str(error)) from error

    async def settle(self) -> None:
        """Apply what has fallen due in the banks that somebody watches."""
        await asyncio.gather(*(self._settle(opened) for opened in self._watched()))

    async def _settle(self, opened: OpenBank) -> None:
        pieces = opened.service.settling()
        try:
            while await self.act(lambda: next(pieces, self)) is None:  # there are more
                pass
        except (StoreError, Unanswered) as error:
            logger.error("what is due could not be stored: %s", error)

    def _watched(self) -> list[OpenBank]:
        return [opened for opened in self._registry.open_banks.values() if opened.service.bank.watchers]

    async def run(self, act: Callable[[], T], needs: _Needs) -> T:
        """Run a turn; StoreError with nothing changed, Unanswered."""
        rounds = 0
        while rounds < ROUNDS:
            order = needs.order
            async with self._order.of(order), self._pool.database() as database:
                while order == needs.order and rounds < ROUNDS:
                    rounds += 1
                    result = await self._attempt(database, act, needs)
                    if result is not None:
                        return result[0]
        raise StoreError("a turn needs ever more")

    async def _attempt(self, database: Database, act: Callable[[], T], needs: _Needs) -> tuple[T] | None:
        """What `act` gives, or None where it is to be run again with what `needs` has by now."""
        registry = self._registry
        known = registry.service
        names = needs.names & registry.stored.keys() if known.sequence >= 0 else set()
        beyond = needs.write or needs.fetch or needs.parts or needs.snapshots or needs.drawn
        if not beyond and registry.are_still(names):
            return await self._read(database, act, needs, names)
        transaction = await database.begin(
            registry.positions(names),
            lock=(names | {SERVICE} if needs.service else names) if needs.write else (),
            numbers=max(0, needs.numbers + registry.waiting(names) - len(needs.drawn)),
            busy=needs.busy,
        )
        needs.drawn += transaction.numbers
        try:
            if not await self._caught_up(database, transaction, needs, names, known):
                await database.end()
                return None
            while not self._settled.is_set():  # from then on to the end of `_acted` nothing is awaited
                await self._settled.wait()
        except BaseException:
            await database.end()
            raise
        scope = registry.enter(names, needs.drawn, service=needs.service, parts=needs.parts)
        if scope.service:
            self._settled.clear()
        try:
            acted = self._acted(scope, act, needs)
            stored = None if acted is None else await self._stored(database, scope, acted[1], needs)
            if acted is None or stored is None:
                await database.end()
                return None
        except BaseException:
            await database.end()
            raise
        finally:
            if scope.service:
                self._settled.set()
        self._note(None)
        self._look_after(acted[1], stored)
        return (acted[0],)

    async def _read(self, database: Database, act: Callable[[], T], needs: _Needs, names: set[str]) -> tuple[T] | None:
        """What `act` gives, answered from memory: one statement sees afterwards that this was all that is stored.

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
        registry.number(scope, numbers)
        registry.confirm(scope, work)
        self._note(None)
        self._look_after(work, ())
        return (result,)

    def _acted(self, scope: Scope, act: Callable[[], T], needs: _Needs) -> tuple[T, Work] | None:
        """What `act` gives and what it has changed; None where it needs more, and then it is undone."""
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
                raise _BeginAgain from missing
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

    def _undo(self, scope: Scope) -> None:
        self._registry.undo(scope)
        if scope.service:
            self._authority.undo()

    async def _stored(self, database: Database, scope: Scope, work: Work, needs: _Needs) -> list[str] | None:
        """Commit and confirm; the banks whose checkpoint is due, None where the turn is to be run again."""
        due: list[str] | None = []
        try:
            if work.needs_lock or work.exchanges:
                due = await self._committed(database, work, needs)
            elif needs.write:
                await database.end()
        except BaseException:
            self._undo(scope)
            raise
        if due is None:
            self._undo(scope)
            return None
        self._registry.confirm(scope, work)
        if scope.service:
            self._authority.confirm()
        return due

    async def _caught_up(
        self, database: Database, transaction: Transaction, needs: _Needs, names: set[str], known: Position
    ) -> bool:
        """Bring everything that was fetched up to date; False where that has to begin again.

        `known`: how far this process was with the service when the transaction began.
        """
        registry = self._registry
        head = transaction.heads.get(SERVICE)
        if head is None:
            raise StoreUnreachable("the tables of the store are gone")
        if head.position.sequence != known.sequence:
            await self._take_service(database, head, known)
            if needs.names & registry.stored.keys() != names:
                return False
        behind = []
        for name in names:
            opened, here = registry.open_banks.get(name), transaction.heads.get(name)
            if opened is None or here is None or not opened.catch_up(here):
                behind.append(name)
        if behind:
            await database.end()  # nobody waits while a whole bank is read
            for name in behind:
                content = await database.load(name)
                if content is not None:
                    registry.load(name, content)
            return False
        if needs.parts:
            for opened in [registry.open_banks[name] for name in names]:
                await self._fetch(database, opened, needs.parts)
        for name, snapshot in needs.snapshots:
            image = await database.snapshot(name, snapshot)
            if image is not None and name in registry.open_banks:
                registry.open_banks[name].snapshots.fetched(snapshot, image)
        return True

    async def _take_service(self, database: Database, head: Head, known: Position) -> None:
        """Take what others have changed of the service, unless another turn has done so or has a later change."""
        registry = self._registry
        async with self._taking:
            while (here := registry.service) is known or here.sequence < head.position.sequence:
                stored = await database.banks()
                secrets = await database.secrets(here.sequence)
                if registry.service is here and self._settled.is_set():
                    registry.take_service(head, stored)
                    self._authority.take(secret for secret in secrets if here.sequence >= 0)
                    return
                await self._settled.wait()

    async def _fetch(self, database: Database, opened: OpenBank, parts: Iterable[Part]) -> None:
        """Bring what there is of a bank besides its documents up to date."""
        if "exchanges" in parts:
            rows = await database.exchanges(opened.name, opened.requests.known(), KEPT)
            opened.fetched(rows, KEPT)
        if "snapshots" in parts:
            opened.snapshots.stored(await database.snapshots(opened.name))

    async def _committed(self, database: Database, work: Work, needs: _Needs) -> list[str] | None:
        """Commit; the banks whose checkpoint is due, None where the turn lost its lock and is to be run again.

        StoreError: nothing was stored; Unanswered.
        """
        try:
            return await database.commit(work)
        except ConnectionError as lost:
            outcome = await self._outcome(database, work)
            if outcome is Outcome.WRITTEN:
                return []
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
        """What became of a commit; sought until the store answers, but not for ever."""
        until = monotonic() + LOOKING
        while True:
            try:
                return await database.outcome(work)
            except StoreError:
                if monotonic() > until:
                    return Outcome.UNKNOWN
                await asyncio.sleep(PAUSE)

    # Upkeep

    def start(self) -> None:
        """Look from now on what other processes do."""
        self._pool.open()
        self._watching = self._spawn(self._watch())

    def stop(self) -> None:
        """Look no more, and leave checkpoints unwritten; turns that have begun end by themselves."""
        self._ending.set()
        if self._watching is not None:
            self._watching.cancel()

    def _spawn(self, work: Awaitable[None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _watch(self) -> None:
        """Bring what others do to those who watch at this process, and store what waits for a turn."""
        try:
            while True:
                await asyncio.sleep(PAUSE)
                await self._look()
        finally:
            await self._pool.close()

    async def _look(self) -> None:
        """Look at each bank by itself: one that takes long holds up no other; at none, where nobody watches.

        Now and then also at those of which this process has seen something that is not in the report yet.
        """
        watched = {opened.name for opened in self._watched()}
        self._looks += 1
        if self._looks % COLLECTING == 0:
            watched |= {opened.name for opened in self._registry.open_banks.values() if opened.observer.waits}
        waiting = {opened.name for opened in self._registry.open_banks.values() if opened.requests.waiting}
        turns: list[_Needs] = []
        for name in watched | waiting:
            turns.append(_Needs({name}, write=False))
            if name in watched:
                turns[-1].parts.add("exchanges")
        if not turns:
            turns.append(_Needs(set(), write=False))
        await asyncio.gather(*map(self._look_at, turns))

    async def _look_at(self, needs: _Needs) -> None:
        try:
            await self.run(lambda: None, needs)
        except (StoreError, Unanswered) as error:
            self._note(error if isinstance(error, StoreError) else None)
        except Exception:
            logger.exception("what other processes do cannot be seen")

    def _look_after(self, work: Work, due: Iterable[str]) -> None:
        """Write the checkpoints that are due and trim request logs, beside everything else."""
        for name in due:
            if name in self._registry.open_banks and name not in self._checkpoints:
                self._checkpoints.add(name)
                self._spawn(self._checkpoint(self._registry.open_banks[name]))
        for exchange in work.exchanges:
            self._entered[exchange.bank] += 1
        for name in [name for name, entered in self._entered.items() if entered >= KEPT]:
            del self._entered[name]
            self._spawn(self._trim(name))

    async def _checkpoint(self, opened: OpenBank) -> None:
        """Write a bank as it stands between two turns."""
        documents = opened.documents
        async with self._order.of([opened.name]):
            position, tables = opened.position, documents.freeze()
        try:
            loop = asyncio.get_running_loop()
            snapshot = await loop.run_in_executor(None, as_bytes, tables, position.sequence, rests(self._ending))
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

    async def _trim(self, name: str) -> None:
        try:
            async with self._pool.database() as database:
                await database.trim_exchanges(name, KEPT)
        except StoreError as error:
            logger.warning("the request log of bank %s is not trimmed: %s", name, error)


_HANG_UP = Response(503, delivery=Delivery(disconnect="after"))


def _next_of(waiting: deque[Waiting]) -> list[Waiting]:
    """The requests of the next turn; the next step of what takes long is one by itself."""
    taken = [waiting.popleft()]
    if taken[0][0].unfinished is None:
        while waiting and len(taken) < LONGEST and waiting[0][0].unfinished is None:
            taken.append(waiting.popleft())
    return taken


def _abandon(answers: Iterable[Answered]) -> None:
    for answer in answers:
        if isinstance(answer, Unfinished):
            answer.abandon()


def _needs_of(name: str, requests: Iterable[Request]) -> _Needs:
    """What a turn needs to answer these requests, as far as can be seen from them."""
    needs = _Needs({name}, not all(request.method in _READS for request in requests))
    needs.numbers = sum("/v1/" in request.target for request in requests)
    return needs


def _bank_of(request: Request) -> str:
    named = _NAMED_BANK.match(request.target)
    return DEFAULT if named is None else named[1]


def _refused(request: Request, error: StoreError) -> Response:
    changed = "nothing was changed" if request.unfinished is None else "the changes made so far remain"
    text = f"The bank's store cannot be used at the moment, {changed}: {error}."
    response = render.refusal(BankError("SYSTEM_ERROR", text, status=503))
    finish(response, Headers(request.headers))
    return response
