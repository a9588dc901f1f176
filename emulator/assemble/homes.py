"""Banks that processes share: each request is answered by the home of its bank, whichever process it reaches.

`leases.py` says who is the home and why there is only one; `forwarding.py` is the way there. A request takes the first
of these ways that is open, until one of them gives an answer:

1. This process is the home: it answers, in a turn as always. If it turns out to have lost the bank, what it has
   computed is thrown away (`ELSEWHERE`), as it was not stored.
2. Another process is: the request is passed on.
3. Nobody is: this process takes the lease, loads the bank and is the home.

Nothing is answered twice: a change that was computed here and not stored is undone, and one whose outcome is unknown
ends in a closed connection. PATIENCE bounds the search, which takes longer than a look only while a home is ending.

Two tasks go on while nobody asks: one renews the leases each second, the other takes over banks whose home has gone,
so that their notifications and due steps go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from emulator.api import render, stored_log
from emulator.api.headers import Headers
from emulator.api.messages import ELSEWHERE, HANG_UP, Answered, Request, Response, Steps, Stream, Unfinished
from emulator.api.service import BankService, finish
from emulator.assemble.forwarding import Broken, Entrance, NotDelivered, Ways
from emulator.assemble.registry import DEFAULT, BankRegistry, bank_of
from emulator.assemble.storage import New
from emulator.assemble.stored_authority import StoredAuthority
from emulator.bank import notifications
from emulator.bank.errors import BankError
from emulator.bank.kinds import KINDS
from emulator.bank.payment import progression
from emulator.bank.snapshots import LARGE, SavedSnapshot, Snapshots
from emulator.bank.threads import in_thread
from emulator.ca import TppExists
from emulator.scenario.rules import RuleSet
from emulator.store import Image, Store, StoreError, StoreLost, StoreUnwritable
from emulator.store.postgres.connection import LOADING, Server
from emulator.store.postgres.errors import StoredDataDamaged, StoreUnreachable
from emulator.store.postgres.leases import BankRow, Elsewhere, Leases
from emulator.store.postgres.log import EMPTY, Commits, PostgresLog, content_of, opened, sweep
from emulator.store.snapshot import image_from_bytes, snapshot_bytes
from emulator.web.application import Answering, Watching

logger = logging.getLogger(__name__)

RENEWING = 1.0  # seconds between two renewals
PATIENCE = 5.0  # seconds in which the home of a bank is looked for, while one is ending
LOOKS = 3  # at a home that cannot be reached
PAUSE = 0.05  # seconds between two looks
AT_ONCE = 20  # banks without a home that are taken over at a time
GIVEN_BACK = 50  # banks that are given back with one statement

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_DIRECTORY = "SELECT name, address FROM {schema}.bank WHERE sequence > 0"
_DELETE = (
    "WITH gone AS (UPDATE {schema}.bank SET sequence = 0, checkpoint = 0, made = made + 1, memory = NULL, home = NULL,"
    " until = now() - interval '1 microsecond' WHERE name = %s AND epoch = %s RETURNING name),"
    " a AS (DELETE FROM {schema}.change c USING gone g WHERE c.bank = g.name),"
    " b AS (DELETE FROM {schema}.checkpoint c USING gone g WHERE c.bank = g.name),"
    " c AS (DELETE FROM {schema}.snapshot s USING gone g WHERE s.bank = g.name) SELECT name FROM gone"
)
_SNAPSHOTS = "SELECT name, created FROM {schema}.snapshot WHERE bank = %s ORDER BY created, name"
_SNAPSHOT = "SELECT body FROM {schema}.snapshot WHERE bank = %s AND name = %s"
_SAVE_SNAPSHOT = (
    "INSERT INTO {schema}.snapshot (bank, name, created, body)"
    " SELECT name, %s, %s, %b FROM {schema}.bank WHERE name = %s AND epoch = %s"
    " ON CONFLICT (bank, name) DO UPDATE SET created = excluded.created, body = excluded.body RETURNING 1"
)
_DROP_SNAPSHOT = "DELETE FROM {schema}.snapshot WHERE bank = %s AND name = %s"


class Homes:
    """The part of a process in the service: the banks that it is the home of, and the way to the others."""

    registry: BankRegistry
    refuses: Callable[[Request], bool]
    """Whether a request lacks the right to create a bank; set by the application."""

    def __init__(self, server: Server, leases: Leases, authority: StoredAuthority) -> None:
        self.server = server
        self.leases = leases
        self.authority = authority
        self.commits = Commits(server, leases, self._lost)
        self.rows: dict[str, BankRow] = {}  # as they were taken
        self.snapshots: dict[str, StoredSnapshots] = {}
        self.directory: dict[str, str | None] = {}  # every bank, as of the last look: the address of its home
        self.owed: list[Coroutine[Any, Any, object]] = []  # what the answer of a turn waits for besides its changes
        self._seen: dict[str, Elsewhere] = {}  # homes that have answered
        self._taking: dict[str, asyncio.Lock] = {}
        self._looked = False  # the directory was read
        self._ending = False
        self._away: str | None = None  # why the store could not be used when it was tried last
        self._tasks: set[asyncio.Task[None]] = set()
        self._ways: Ways | None = None
        self._entrance: Entrance | None = None
        self._local: Answering

    # Requests

    def around(
        self, local: Answering, watching: Watching, *, entrance: Callable[..., Entrance], ways: Ways
    ) -> Answering:
        """What answers the requests of clients; `local` does so in turns."""
        self._local = local
        self._ways = ways
        ways.is_home = self.leases.is_home
        self._entrance = entrance(self._for_others, watching)
        return self.answer

    async def answer(self, request: Request) -> Response | Stream:
        """The answer to a request of a client."""
        if request.target.startswith("/v1/") and self._serves(DEFAULT):  # nearly every one: without the search below
            answer = await self._local(request)
            if isinstance(answer, Response) and answer.delivery is not ELSEWHERE:
                return answer
            request = replace(request, unfinished=None, prepared=None)
        name, new = bank_of(request)
        if name is None:
            return await self._local(request)
        try:
            if request.target.partition("?")[0] == "/ready":
                return await self._ready(request)
            return await self._anywhere(name, request, new=new and not self.refuses(request))
        except (StoreError, NotDelivered) as error:
            return _refused(request, str(error))
        except Broken:
            return Response(503, delivery=HANG_UP)

    async def _anywhere(self, name: str, request: Request, *, new: bool = False) -> Response | Stream:
        """The answer of the home of the bank; NotDelivered, Broken, StoreError."""
        loop = asyncio.get_running_loop()
        until, looks = loop.time() + PATIENCE, 0
        while True:
            if not self._serves(name, new=new):
                where = self._seen.get(name) or await self.locate(name, new=new)
                if where is not None and where.address is not None:
                    try:
                        answer = await self._passed_on(where, name, request)
                        self._seen[name] = where
                        return answer
                    except NotDelivered as error:
                        self._seen.pop(name, None)
                        looks += not error.moved
                        if looks > LOOKS or loop.time() > until:
                            raise
                    except Broken:
                        self._seen.pop(name, None)
                        if request.method not in _READS or loop.time() > until:
                            raise
                    if looks > 1 or loop.time() > until - PATIENCE + PAUSE:  # the first look again is at once
                        await asyncio.sleep(PAUSE)
                    continue
            self._seen.pop(name, None)
            answered = await self.here(name, request)
            if answered is not None:
                return answered
            if loop.time() > until:
                raise NotDelivered(f"bank {name} has no home at the moment", moved=True)
            if self._serves(name):  # it was told by the store, and does not know its leases any more
                await self.renew()
            request = replace(request, unfinished=None, prepared=None)

    def _serves(self, name: str, *, new: bool = False) -> bool:
        """Whether this process is the home, and may say so."""
        documents = self.registry.documents(name)
        if documents is not None:
            return documents.log.owned
        return new and name in self.rows and self.rows[name].lease.valid

    async def here(self, name: str, request: Request) -> Response | Stream | None:
        """The answer of this process; None if it is not the home of the bank, or has lost it while it answered."""
        if self._ending:
            return None
        known = self.registry.documents(name)
        if known is not None and not known.log.owned:
            return None
        try:
            if _is_about_all(request):
                await self.refresh()
            answer = await self._local(request)
            if self.authority.pending:
                await self.authority.keep(self.server)
            while self.owed:
                await self.owed.pop()
        except TppExists as error:
            return render.refusal(BankError("CONFLICT", f"The TPP {error} was issued by another process.", "name"))
        except StoreUnreachable as error:
            return _refused(request, str(error))
        # a bank that was not created in the end
        if bank_of(request)[1] and name in self.rows and self.registry.documents(name) is None:
            self.commits.spawn(self._give_back([name]))
        if isinstance(answer, Stream):
            documents = self.registry.documents(name)
            return answer if documents is None or documents.log.owned else None
        return None if answer.delivery is ELSEWHERE else answer

    async def _for_others(self, name: str, request: Request) -> Response | Stream | None:
        """The answer to a request that another process has passed on; None if this one is not the home any more.

        A bank that was deleted here may have been created again at another process: this one cannot say that there is
        none.
        """
        if not self._serves(name, new=True):
            return None
        try:
            return await self.here(name, request)
        except StoreError as error:
            return _refused(request, str(error))

    async def _passed_on(self, where: Elsewhere, name: str, request: Request) -> Response | Stream:
        if self._ways is None or where.address is None or where.home is None:
            raise NotDelivered(f"bank {name} has no home at the moment", moved=True)
        self.registry.counts.passed_on += 1
        return await self._ways.send(where.address, where.home, name, request)

    async def _ready(self, request: Request) -> Response | Stream:
        """Whether this process and the store can be used, and the banks that it is the home of."""
        await self.server.rows("SELECT 1", within=2.0)
        answer = await self._anywhere(DEFAULT, request)
        if not isinstance(answer, Response) or answer.status != 200 or not answer.body:
            return answer
        body = {**orjson.loads(answer.body), "banks": sorted(service.bank.name for service in self.registry.services())}
        return render.json_response(200, body, [pair for pair in answer.headers if pair[0] != "Content-Type"])

    def asking(self, control: Callable[[BankService, Request], Answered]) -> Callable[[BankService, Request], Answered]:
        """The control interface for the console: what is about another bank than its own goes to that bank's home."""

        def elsewhere(request: Request) -> Steps:
            asked = self.answer(replace(request, unfinished=None))
            return (yield from in_thread(lambda: self.server.from_thread(asked)))

        def answer(service: BankService, request: Request) -> Answered:
            if bank_of(request)[0] in (service.bank.name, None):
                return control(service, request)
            return Unfinished(elsewhere(request)).step()

        return answer

    # Taking banks

    async def locate(self, name: str, *, new: bool = False) -> Elsewhere | None:
        """Where the home of a bank is; None if that is this process by now.

        Elsewhere(None): nobody, as the bank does not exist. StoreUnreachable, StoredDataDamaged.
        """
        async with self._taking.setdefault(name, asyncio.Lock()):
            if self._ending:
                raise StoreUnwritable("this process is ending")
            if self._serves(name, new=new):
                return None
            if self.registry.documents(name) is not None:  # the lease was not renewed in time; perhaps nobody took it
                await self.renew()
                if self._serves(name):
                    return None
                self._drop(name)
            row = await self.leases.take(name, new=new)
            if isinstance(row, Elsewhere):
                if row.address is None:
                    self.directory.pop(name, None)
                return row
            self.rows[name] = row
            if not row.sequence:
                return None if new else Elsewhere(None, None)
            try:
                await self._open(row)
            except BaseException:
                self.commits.spawn(self._give_back([name]))
                raise
            return None

    async def _open(self, row: BankRow) -> None:
        """Load a bank that was taken."""
        name = row.lease.name
        content = await content_of(self.server, name, row.sequence, row.checkpoint)
        saved = await self.server.rows(_SNAPSHOTS, name)
        self.commits.spawn(sweep(self.server, row, content))
        loop = asyncio.get_running_loop()
        documents = await loop.run_in_executor(None, opened, row, content, self.commits, KINDS)
        if not row.lease.valid or self.rows.get(name) is not row:
            raise StoreLost(f"bank {name} took too long to load")
        self.snapshots[name] = StoredSnapshots(self, name, dict(saved))
        service = self.registry.adopt(name, documents)
        self.directory[name] = self.leases.address
        if row.memory is not None:
            _remember(service, row.memory)

    def _lost(self, log: PostgresLog) -> None:
        documents, lease = self.registry.documents(log.name), self.leases.held.get(log.name)
        if documents is None or documents.log is log:
            has_lease = log.ended is None and lease is log.lease  # a new bank that the store refused
            self._drop(log.name)
            if has_lease:
                self.leases.held[log.name] = log.lease
                self.commits.spawn(self._give_back([log.name]))

    def _drop(self, name: str) -> None:
        """Forget a bank of which this process is not the home any more."""
        service = self.registry.opened(name)
        self.leases.held.pop(name, None)
        self.rows.pop(name, None)
        self.snapshots.pop(name, None)
        if service is not None:
            service.bank.dismiss()
            self.registry.forget(name).discard()

    async def _give_back(self, names: list[str]) -> None:
        """End the leases of banks; they have been closed, or are by this."""
        left = {}
        for name in names:
            service = self.registry.opened(name)
            left[name] = (b"", False) if service is None else (_memory(service), _is_active(service))
            self.rows.pop(name, None)
        await self.leases.give_back({name: (memory or b"{}", active) for name, (memory, active) in left.items()})

    # What goes on while nobody asks

    def start(self) -> None:
        """Begin to renew and to take over, and to be reached by the others."""
        self.server.open()
        for work in (self._renewing(), self._taking_over()):
            self._spawn(work)
        if self._entrance is not None:
            self._spawn(self._entrance.open())

    @asynccontextmanager
    async def renewed(self) -> AsyncIterator[None]:
        """A `with` block before `start`, in which a large bank may be loaded."""
        renewing = asyncio.get_running_loop().create_task(self._renewing())
        try:
            yield
        finally:
            renewing.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _renewing(self) -> None:
        while True:
            async with self._going_on():
                await self.renew()
            await asyncio.sleep(RENEWING)

    async def renew(self) -> None:
        """Renew all leases, and drop the banks that are lost; StoreUnreachable."""
        for name in await self.leases.renew():
            logger.info("another process is the home of bank %s now", name)
            self._drop(name)

    async def _taking_over(self) -> None:
        while True:
            await asyncio.sleep(RENEWING)
            async with self._going_on():
                for name in await self.leases.orphans(AT_ONCE):
                    try:
                        await self.locate(name)
                    except StoredDataDamaged as error:  # it is given back at rest, and the others go on
                        logger.error("%s", error)
                self.authority.adopt()
                if self.authority.pending:
                    await self.authority.keep(self.server)
                if self.registry.watched():
                    await self.refresh()
                else:
                    await self.authority.refresh(self.server)
                closed = [name for name in self.leases.held if self._is_closed(name)]
                if closed:
                    await self._give_back(closed)

    def _is_closed(self, name: str) -> bool:
        """Whether a bank was closed for want of requests, and is not being taken, nor created."""
        taking = self._taking.get(name)
        in_use = taking is not None and taking.locked()
        return self.registry.documents(name) is None and name in self.directory and not in_use

    @asynccontextmanager
    async def _going_on(self) -> AsyncIterator[None]:
        """A `with` block whose failure is logged when it begins."""
        try:
            yield
        except StoreError as error:
            if self._away != str(error):
                self._away = str(error)
                logger.error("%s", error)
        except Exception:
            logger.exception("the store cannot be followed")
        else:
            if self._away is not None:
                self._away = None
                logger.info("the store can be used again")

    async def refresh(self) -> None:
        """Read which banks there are and which TPPs others have issued, and tell watchers of what is new."""
        present = dict(await self.server.rows(_DIRECTORY))
        before, self.directory = self.directory, present
        for name in await self.authority.refresh(self.server):
            self.registry.publish_to_all("tpps", name, "issued")
        if self._looked:
            for name in present.keys() - before.keys():
                self.registry.publish_to_all("banks", name, "created")
            for name in before.keys() - present.keys():
                self.registry.publish_to_all("banks", name, "deleted")
        self._looked = True

    async def leave(self) -> None:
        """Give every bank back, with what is in memory of it, and end all connections."""
        self._ending = True
        for task in list(self._tasks):
            task.cancel()
        await self.commits.settled()
        names = [name for name in self.leases.held if self.registry.documents(name) is not None]
        with suppress(StoreError):  # the leases run out by themselves
            for at in range(0, len(names), GIVEN_BACK):
                await self._give_back(names[at : at + GIVEN_BACK])
        if self._entrance is not None:
            await self._entrance.close()
        if self._ways is not None:
            self._ways.close()
        await self.server.close()


def _is_about_all(request: Request) -> bool:
    """Whether an answer may show banks or TPPs that another process has made."""
    path = request.target.partition("?")[0]
    return "/_emulator" in path or path.endswith("/console") or "/console/" in path


def _refused(request: Request, reason: str) -> Response:
    text = f"The bank cannot be used at the moment, nothing was changed: {reason}."
    response = render.refusal(BankError("SYSTEM_ERROR", text, status=503))
    finish(response, Headers(request.headers))
    return response


# What moves with a bank besides its documents, when its home ends in order


def _is_active(service: BankService) -> bool:
    """Whether something happens in the bank without a request."""
    bank = service.bank
    return notifications.are_to_come(bank) or (bank.clock.mode == "live" and progression.next_due(bank) is not None)


def _memory(service: BankService) -> bytes:
    """Counters of rules and request log, as JSON."""
    rules = service.rules.counters() if isinstance(service.rules, RuleSet) else {}
    requests = [
        (exchange.id, stored_log.as_json(exchange).decode()) for exchange in reversed(list(service.log.newest()))
    ]
    return orjson.dumps({"rules": rules, "requests": requests, "following": service.log.following})


def _remember(service: BankService, memory: bytes) -> None:
    """Continue with what the last home has left; what cannot be read of it is left out."""
    try:
        left = orjson.loads(memory)
        if isinstance(service.rules, RuleSet):
            service.rules.count_from(left.get("rules", {}))
        read = stored_log.reader(service.bank, service.router)
        service.log.continue_from(
            [read(number, body.encode()) for number, body in left.get("requests", ())], left.get("following", 1)
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        logger.warning("bank %s: what its last home had in memory cannot be read: %s", service.bank.name, error)


class StoredSnapshots(Snapshots):
    """The snapshots of a bank in the store; `present`: name and time of each, the oldest first."""

    def __init__(self, homes: Homes, bank: str, present: dict[str, datetime]) -> None:
        super().__init__()
        self._homes = homes
        self._bank = bank
        self._saved = {name: SavedSnapshot(created, None) for name, created in present.items()}

    def _keep(self, name: str, image: Image) -> Generator[object, None, Image | None]:
        server, row = self._homes.server, self._homes.rows.get(self._bank)
        if row is None:
            raise StoreLost("another process has the bank")
        epoch = row.lease.epoch

        def write() -> None:
            body = snapshot_bytes(image.tables)
            values = (name, datetime.now(UTC), body, self._bank, epoch)
            if not server.from_thread(server.rows(_SAVE_SNAPSHOT, *values, within=LOADING)):
                raise StoreLost("another process has the bank")

        try:
            yield from in_thread(write)
        except StoreUnreachable as error:
            raise StoreUnwritable(str(error)) from error
        return None

    def _drop(self, name: str) -> None:
        self._homes.owed.append(self._homes.server.rows(_DROP_SNAPSHOT, self._bank, name))

    def _size(self, _name: str) -> int:
        return LARGE + 1  # it is read in a thread

    def _read(self, name: str) -> Image:
        server = self._homes.server
        try:
            rows = server.from_thread(server.rows(_SNAPSHOT, self._bank, name, within=LOADING))
            if not rows:
                raise BankError("RESOURCE_UNKNOWN", f"There is no snapshot {name}.")
            return image_from_bytes(rows[0][0], KINDS, file=Path(name))
        except StoreUnreachable as error:
            raise StoreUnwritable(str(error)) from error
        except StoreError as error:
            raise BankError("CONFLICT", f"The snapshot {name} cannot be read: {error}") from None


class HomeStorage:
    """The store as the registry sees it: banks are taken and opened before a turn begins."""

    opens_default = False
    confirms = keeps = True

    def __init__(self, homes: Homes) -> None:
        self._homes = homes

    def names(self) -> set[str]:
        """Every bank, as of the last look."""
        return set(self._homes.directory)

    def has(self, name: str) -> bool:
        """Whether there was such a bank at the last look."""
        return name in self._homes.directory

    def home(self, name: str) -> str | None:
        """The address of the bank's home."""
        return self._homes.directory.get(name)

    def number(self, name: str) -> int:
        """How many banks of this name there were, this one included."""
        row = self._homes.rows.get(name)
        return 1 if row is None else row.made + 1

    def _row(self, name: str) -> BankRow:
        row = self._homes.rows.get(name)
        if row is None:
            raise StoreLost("another process has the bank")
        return row

    def open(self, _name: str) -> Store:
        """It would be open if this process were its home."""
        raise StoreLost("another process has the bank")

    @contextmanager
    def creating(self, name: str) -> Iterator[New]:
        """Empty documents, which are stored with their first changes."""
        row = self._row(name)
        documents = opened(row, EMPTY, self._homes.commits, KINDS)
        with ExitStack() as undo:
            undo.callback(documents.discard)

            def place() -> None:
                self._homes.directory[name] = self._homes.leases.address
                self._homes.rows[name] = row._replace(sequence=documents.sequence)
                undo.pop_all()

            yield documents, place

    def delete(self, name: str) -> Generator[object, None, None]:
        """Delete a bank of which this process is the home."""
        homes, row = self._homes, self._row(name)
        server = homes.server
        work = server.rows(_DELETE, name, row.lease.epoch, within=LOADING)
        try:
            gone = yield from in_thread(lambda: server.from_thread(work))
        except StoreUnreachable as error:
            raise StoreUnwritable(str(error)) from error
        if not gone:
            raise StoreLost("another process has the bank")
        homes.directory.pop(name, None)
        homes.leases.held.pop(name, None)
        homes.rows.pop(name, None)
        homes.snapshots.pop(name, None)

    @contextmanager
    def put_aside(self, _name: str) -> Iterator[None]:
        """Damaged data in the store is left for its owner to restore."""
        yield

    def snapshots(self, name: str) -> Snapshots:
        """The snapshots in the store."""
        return self._homes.snapshots.setdefault(name, StoredSnapshots(self._homes, name, {}))

    def sweep(self) -> None:
        """Each bank is swept when it is loaded."""
