"""Turns over a shared store (see `web.application.Turn`), one after the other.

A turn fetches the banks that its requests name, with what other processes have changed since, and answers the requests;
what they changed is appended and committed before any answer leaves. Where a request may change something the banks are
locked first, so that no other process appends to them; reads come without a lock. A turn that turns out to need more,
the lock or something that is not in memory, is taken back and run again with it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Event
from time import monotonic, thread_time
from typing import TypeVar
from uuid import uuid4

from emulator.api import render
from emulator.api.headers import Headers
from emulator.api.log import KEPT
from emulator.api.messages import Delivery, Request, Response, Stream
from emulator.api.pipeline import finish
from emulator.api.service import BankService
from emulator.assemble.registry import DEFAULT
from emulator.assemble.shared.authority import SharedAuthority
from emulator.assemble.shared.registry import OpenBank, SharedRegistry
from emulator.assemble.turns import rests
from emulator.bank.errors import BankError
from emulator.store import NotFetched, StoreError, StoreUnwritable
from emulator.store.journal_log import Abandoned
from emulator.store.postgres import SERVICE, Database, Outcome, StoreUnreachable, Transaction, Work
from emulator.store.snapshot import as_bytes

logger = logging.getLogger(__name__)

Handled = Response | Stream
T = TypeVar("T")

LONGEST = 64  # requests of a turn
ROUNDS = 24  # times that a turn is run again with more
LOOKING = 5.0  # seconds in which the outcome of a commit is to be found
PAUSE = 0.25  # seconds between two looks at what other processes have done
SLOW = 1.0  # seconds of work after which a turn that lost its lock is given a longer one
_NAMED_BANK = re.compile(r"/banks/([a-z0-9][a-z0-9-]{0,62})(?=/|$)")
_READS = frozenset({"GET", "HEAD", "OPTIONS"})


class Unanswered(Exception):
    """Nobody knows whether the changes of the turn were stored: its requests must not be answered."""


@dataclass(slots=True)
class _Needs:
    """What a turn fetches; it grows as it turns out to need more."""

    names: set[str]
    write: bool
    numbers: int = 0
    drawn: list[int] = field(default_factory=list)
    service: bool = False
    busy: bool = False
    beside: bool = False  # request log and snapshots too
    snapshots: set[tuple[str, str]] = field(default_factory=set)

    def add(self, missing: NotFetched) -> None:
        """Fetch this as well."""
        self.numbers += 4 * missing.numbers
        if missing.bank == SERVICE:
            self.service = self.write = True
        elif missing.bank is not None:
            self.names.add(missing.bank)
            if missing.snapshot is not None:
                self.snapshots.add((missing.bank, missing.snapshot))


class SharedTurns:
    """The turns of one process."""

    waits = True

    def __init__(
        self,
        database: Database,
        registry: SharedRegistry,
        authority: SharedAuthority,
    ) -> None:
        self._database = database
        self._registry = registry
        self._authority = authority
        self.answers: Callable[[Request], Handled]
        """What answers a request within a turn; set by whoever serves."""
        self._lock = asyncio.Lock()
        self._waiting: deque[tuple[Request, asyncio.Future[Handled]]] = deque()
        self._working: asyncio.Task[None] | None = None
        self._upkeep: set[asyncio.Task[None]] = set()
        self._checkpoints: set[str] = set()
        self._entered: Counter[str] = Counter()  # exchanges since the last trim
        self._ending = Event()
        self._reachable = True
        self.count = 0  # requests so far

    # Requests

    def begin(self, requests: Sequence[Request]) -> Awaitable[Sequence[Handled]]:
        """The answers, once all that they tell of is stored."""
        loop = asyncio.get_running_loop()
        answers: list[asyncio.Future[Handled]] = []
        for request in requests:
            answer: asyncio.Future[Handled] = loop.create_future()
            answers.append(answer)
            if request.target.partition("?")[0] == "/health":
                answer.set_result(self.handle(request))  # it asks no bank
            else:
                self._waiting.append((request, answer))
        self.count += len(requests)
        if self._waiting and self._working is None:
            self._working = loop.create_task(self._work())
        return asyncio.gather(*answers)

    def end(self) -> None:
        """A turn that is awaited ends by itself."""

    async def _work(self) -> None:
        """Run turns until nobody waits."""
        waiting = self._waiting
        try:
            while waiting:
                taken = [waiting.popleft() for _ in range(min(len(waiting), LONGEST))]
                try:
                    answers = await self._answers([request for request, _ in taken])
                except Exception as error:
                    logger.exception("a turn has failed")
                    answers = [render.refusal(render.failed(request, error)) for request, _ in taken]
                for (_, future), answer in zip(taken, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)
        finally:
            self._working = None

    async def _answers(self, requests: Sequence[Request]) -> Sequence[Handled]:
        needs = _Needs({_bank_of(request) for request in requests}, not all(r.method in _READS for r in requests))
        needs.numbers = sum("/v1/" in request.target for request in requests)
        needs.beside = any("/v1/" not in request.target for request in requests)
        try:
            return await self.run(lambda: [self.handle(request) for request in requests], needs)
        except Unanswered:
            return [Response(503, delivery=Delivery(disconnect="after")) for _ in requests]
        except StoreError as error:
            self._note(error)
            return [_refused(request, error) for request in requests]

    def handle(self, request: Request) -> Handled:
        """Answer a request within a turn."""
        group = self._registry.group
        group.open = True
        try:
            return self.answers(request)
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

        def grouped() -> T:
            group = self._registry.group
            group.open = True
            try:
                return act()
            finally:
                group.open = False

        return await self.run(grouped, _Needs(set(names), write, beside=write))

    async def change(self, change: Callable[[], T], name: str) -> T:
        """Let `change` change a bank, as a turn of its own; StoreUnwritable, with nothing changed or nobody knowing."""
        try:
            return await self.act(change, [name])
        except (StoreError, Unanswered) as error:
            raise StoreUnwritable(str(error)) from error

    async def settle(self) -> None:
        """Apply what has fallen due in the banks that somebody watches."""
        services = {opened.name: opened.service for opened in self._watched()}
        try:
            await self.act(lambda: deque(map(BankService.settle, services.values())), services)
        except (StoreError, Unanswered) as error:
            logger.error("what is due could not be stored: %s", error)

    def _watched(self) -> list[OpenBank]:
        return [opened for opened in self._registry.open_banks.values() if opened.service.bank.watchers]

    async def run(self, act: Callable[[], T], needs: _Needs) -> T:
        """Run a turn; StoreError with nothing changed, Unanswered."""
        async with self._lock:
            for _ in range(ROUNDS):
                result = await self._attempt(act, needs)
                if result is not None:
                    return result[0]
            raise StoreError("a turn needs ever more")

    async def _attempt(self, act: Callable[[], T], needs: _Needs) -> tuple[T] | None:
        """What `act` gives, or None where it is to be run again with what `needs` has by now."""
        database, registry = self._database, self._registry
        names = needs.names & registry.stored.keys() if registry.service.sequence >= 0 else set()
        transaction = await database.begin(
            registry.positions(names),
            lock=(names | {SERVICE} if needs.service else names) if needs.write else (),
            numbers=max(0, needs.numbers + registry.waiting(names) - len(needs.drawn)),
            busy=needs.busy,
        )
        needs.drawn += transaction.numbers
        try:
            if not await self._caught_up(transaction, needs, names):
                await database.end()
                return None
        except BaseException:
            await database.end()
            raise
        began = thread_time()
        registry.enter(names, needs.drawn, service=needs.service)
        try:
            result = act()
            work = registry.work(uuid4())
        except NotFetched as missing:
            needs.add(missing)
            await self._undone()
            return None
        except BaseException:
            await self._undone()
            raise
        if registry.changed or self._authority.pending:
            work.secrets = self._authority.secrets(registry.add_service(work))
        if work.needs_lock and not needs.write:
            needs.write = True
            await self._undone()
            return None
        due: list[str] = []
        if work.needs_lock or work.exchanges:
            stored = await self._committed(work, needs, thread_time() - began)
            if stored is None:
                return None
            due = stored
        elif needs.write:
            await database.end()
        self._note(None)
        registry.confirm(work)
        self._authority.confirm()
        self._look_after(work, due)
        return (result,)

    async def _caught_up(self, transaction: Transaction, needs: _Needs, names: set[str]) -> bool:
        """Bring everything that was fetched up to date; False where that has to begin again."""
        database, registry = self._database, self._registry
        head = transaction.heads.get(SERVICE)
        if head is None:
            raise StoreUnreachable("the tables of the store are gone")
        if head.position.sequence != registry.service.sequence:
            after = registry.service.sequence
            stored = await database.banks()
            secrets = await database.secrets(after)
            registry.take_service(head, stored)
            self._authority.take(secret for secret in secrets if after >= 0)
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
        if needs.beside:
            for name in names:
                await self._fetch_beside(registry.open_banks[name])
        for name, snapshot in needs.snapshots:
            image = await database.snapshot(name, snapshot)
            if image is not None and name in registry.open_banks:
                registry.open_banks[name].snapshots.fetched(snapshot, image)
        return True

    async def _fetch_beside(self, opened: OpenBank) -> None:
        rows = await self._database.exchanges(opened.name, opened.requests.known(), KEPT)
        opened.tell_of(opened.requests.merge(rows))
        opened.snapshots.stored(await self._database.snapshots(opened.name))

    async def _undone(self) -> None:
        self._registry.undo()
        self._authority.undo()
        await self._database.end()

    async def _committed(self, work: Work, needs: _Needs, seconds: float) -> list[str] | None:
        """Commit; the banks whose checkpoint is due, None where the turn lost its lock and is to be run again.

        StoreError, Unanswered: it is undone.
        """
        try:
            return await self._database.commit(work)
        except ConnectionError as lost:
            outcome = await self._outcome(work)
            if outcome is Outcome.WRITTEN:
                return []
            await self._undone()
            if outcome is Outcome.LOST:
                if seconds > SLOW and not needs.busy:
                    needs.busy = True
                    return None
                raise StoreUnreachable(str(lost)) from lost
            for appended in work.appended:
                if appended.name in self._registry.open_banks:
                    self._registry.open_banks[appended.name].forget()
            logger.error("whether changes were stored is not known: %s", lost)
            raise Unanswered from lost
        except BaseException:
            await self._undone()
            raise

    async def _outcome(self, work: Work) -> Outcome:
        """What became of a commit; sought until the store answers, but not for ever."""
        until = monotonic() + LOOKING
        while True:
            try:
                return await self._database.outcome(work)
            except StoreError:
                if monotonic() > until:
                    return Outcome.UNKNOWN
                await asyncio.sleep(PAUSE)

    # Upkeep

    def start(self) -> None:
        """Look from now on what other processes do."""
        self._spawn(self._watch())

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._upkeep.add(task)
        task.add_done_callback(self._upkeep.discard)

    async def _watch(self) -> None:
        """Bring what others do to those who watch at this process, and store what waits for a turn."""
        try:
            while True:
                await asyncio.sleep(PAUSE)
                await self._look()
        finally:
            await self._database.close()

    async def _look(self) -> None:
        registry = self._registry
        watched = {opened.name for opened in self._watched()}
        waiting = {opened.name for opened in registry.open_banks.values() if opened.requests.waiting}
        try:
            await self.run(lambda: None, _Needs(watched | waiting, write=False, beside=bool(watched)))
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
        """Write a bank as it stands now."""
        documents, position = opened.documents, opened.position
        tables = documents.freeze()
        try:
            loop = asyncio.get_running_loop()
            snapshot = await loop.run_in_executor(None, as_bytes, tables, position.sequence, rests(self._ending))
            opened.weight = len(snapshot)
            await self._database.checkpoint(opened.name, position.incarnation, position.sequence, snapshot)
        except Abandoned:
            pass
        except StoreError as error:
            logger.warning("the checkpoint of bank %s is not written: %s", opened.name, error)
        finally:
            documents.thaw()
            self._checkpoints.discard(opened.name)

    async def _trim(self, name: str) -> None:
        try:
            async with self._lock:
                await self._database.trim_exchanges(name, KEPT)
        except StoreError as error:
            logger.warning("the request log of bank %s is not trimmed: %s", name, error)


def _bank_of(request: Request) -> str:
    named = _NAMED_BANK.match(request.target)
    return DEFAULT if named is None else named[1]


def _refused(request: Request, error: StoreError) -> Response:
    text = f"The bank's store cannot be used at the moment, nothing was changed: {error}."
    response = render.refusal(BankError("SYSTEM_ERROR", text, status=503))
    finish(response, Headers(request.headers))
    return response
