"""Banks that processes share: each request is answered by the home of its bank, whichever process it reaches.

`leases.py` says who is the home and why there is only one; `forwarding.py` is the way there. A request takes the first
of these ways that is open, until one of them gives an answer:

1. This process is the home: it answers, in a turn as always. If it turns out to have lost the bank, what it has
   computed is thrown away (`ELSEWHERE`), as it was not stored.
2. Another process is: the request is passed on.
3. Nobody is: this process takes the lease, loads the bank and is the home.

Nothing is answered twice: a change that was computed here and not stored is undone, and one whose outcome is unknown
ends in a closed connection. PATIENCE bounds the search, which takes longer than a look only while a home is ending; it
is longer than a lease, as a start waits for that of a killed process.

Two tasks go on while nobody asks: one renews the leases each second, the other takes over banks whose home has gone,
so that their notifications and due steps go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from socket import socket
from typing import Any
from weakref import WeakValueDictionary

import orjson

from emulator.api import render
from emulator.api.headers import Headers
from emulator.api.messages import ELSEWHERE, HANG_UP, Answered, Request, Response, Steps, Stream, Unfinished
from emulator.api.service import BankService, finish
from emulator.assemble.forwarding import Broken, Entrance, NotDelivered, Ways
from emulator.assemble.handover import memory_of, remember
from emulator.assemble.registry import DEFAULT, TPP_INTERFACE, BankRegistry, bank_of
from emulator.assemble.stored_authority import READ, StoredAuthority
from emulator.bank import notifications
from emulator.bank.errors import BankError
from emulator.bank.kinds import KINDS
from emulator.bank.payment import progression
from emulator.bank.threads import in_thread
from emulator.ca import TppExists
from emulator.store import Documents, StoreError, StoreLost, StoreUnwritable
from emulator.store.postgres.connection import Server, StoredDataDamaged, StoreUnreachable
from emulator.store.postgres.leases import Lease, Leases, Whereabouts
from emulator.store.postgres.log import Commits, PostgresLog, content_of
from emulator.web.handler import Answering, Watchers

logger = logging.getLogger(__name__)

RENEWING = 1.0  # seconds between two renewals
PATIENCE = 5.0  # seconds in which the home of a bank is looked for, while one is ending
LOOKS = 3  # at a home that cannot be reached
SHORTEST, PAUSE = 0.002, 0.05  # seconds between two looks, of which the first is at once
AT_ONCE = 20  # banks without a home that are taken over at a time
GIVEN_BACK = 50  # banks that are given back with one statement
LEAVING = 1.0  # seconds for all of them, twice: a process ends within ten, whether the store answers or not

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
LOST = "another process has the bank"
NOWHERE = Whereabouts(None, None)
# two lists in one: of banks (NULL, name, 0, NULL, address, home), of secrets (kind, name, version, body, NULL, NULL)
_LOOK = (
    "SELECT NULL, name, 0, NULL, address, CASE WHEN until > now() THEN home END FROM {schema}.bank WHERE sequence > 0"
    f" UNION ALL SELECT kind, name, version, body, NULL, NULL FROM ({READ}) secret"
)


class _HomeSearch(asyncio.Lock):
    """One request at a time looks for the home of a bank; `failed`: why the last one could not."""

    failed: StoreUnreachable | None = None


class Homes:
    """The part of a process in the service: the banks that it is the home of, and the way to the others.

    A request is `about_bank` if it creates, replaces or deletes one: that bank may be new, or damaged.
    """

    registry: BankRegistry
    refuses: Callable[[Request], Response | None]
    """The refusal of a request that lacks the right to see or change a bank; set by the application."""
    unwritable: Callable[[Request, BankError], Response | None]
    """As of `Turns`; set by the application."""

    def __init__(
        self, server: Server, leases: Leases, authority: StoredAuthority, *, bound: socket, secret: bytes
    ) -> None:
        """`bound` is where the others reach this process; `secret`: what the processes of this store know."""
        self.server = server
        self.leases = leases
        self.authority = authority
        self.commits = Commits(server, leases, self._lost)
        self.known: dict[str, Whereabouts] = {}  # every bank, as of the last look: where its home was
        self._taking = WeakValueDictionary[str, _HomeSearch]()  # weak: names may be asked for that no bank has
        self._about_bank = list[str]()  # a name for each request that creates, replaces or deletes a bank here
        self._looked = False  # all banks are known
        self._looking = asyncio.Lock()
        self._next_look: asyncio.Task[None] | None = None
        self._ending = False
        self._hung_up: set[str] = set()  # addresses at which a connection has ended without an answer
        self._tasks: set[asyncio.Task[None]] = set()
        self._bound, self._secret = bound, secret
        self._ways = Ways(secret, leases.is_home)
        self._entrance: Entrance | None = None
        self._local: Answering

    # Requests

    def around(self, local: Answering, watchers: Watchers) -> Answering:
        """What answers the requests of clients; `local` does so in turns."""
        self._local = local
        self._entrance = Entrance(self._bound, self.leases.home, self._secret, self._for_others, watchers)
        return self.answer

    async def answer(self, request: Request) -> Response | Stream:
        """The answer to a request of a client."""
        tpp = TPP_INTERFACE.match(request.target)
        if tpp is not None and self._serves(tpp[1] or DEFAULT):  # nearly every request: without the search below
            answer = await self._local(request)
            if isinstance(answer, Response) and answer.delivery is not ELSEWHERE:
                return answer
            request = _afresh(request)
        name, about_bank = bank_of(request)
        if name is None:
            return await self._local(request)
        # each process keeps what its own flags say, whoever is the home
        if not self._serves(name) and (refusal := self.refuses(request)) is not None:
            return refusal
        try:
            if request.target.partition("?")[0] == "/ready":
                return await self._ready(request)
            return await self._anywhere(name, request, about_bank=about_bank)
        except (StoreError, NotDelivered) as error:
            can_go = isinstance(error, StoredDataDamaged) and name != DEFAULT
            remedy = f", or replace or delete the bank (/_emulator/banks/{name})" if can_go else ""
            return self._refused(request, f"{error}{remedy}")
        except Broken:
            return Response(503, delivery=HANG_UP)

    def _refused(self, request: Request, reason: str) -> Response:
        error = BankError(
            "SYSTEM_ERROR", f"The bank cannot be used at the moment, nothing was changed: {reason}.", status=503
        )
        if (page := self.unwritable(request, error)) is not None:
            return page
        response = render.refusal(error)
        finish(response, Headers(request.headers))
        return response

    async def _anywhere(self, name: str, request: Request, *, about_bank: bool = False) -> Response | Stream:
        """The answer of the home of the bank; NotDelivered, Broken, StoreError."""
        loop = asyncio.get_running_loop()
        until, looks, pause = loop.time() + PATIENCE, 0, 0.0
        while True:
            where = None if self._serves(name, about_bank=about_bank) else self.known.get(name, NOWHERE)
            if where is not None and where.home in (None, self.leases.home):
                where = await self.locate(name, new=about_bank and request.method == "PUT", about_bank=about_bank)
            if where is None or where.address is None:  # this process, or nobody, which any process can say
                answered = await self.here(name, request)
                if answered is not None:
                    return answered
                missed = NotDelivered(f"bank {name} has no home at the moment", moved=True)
                if self._serves(name):  # it was told by the store, and does not know its leases any more
                    await self.renew()
                request = _afresh(request)
            else:
                try:
                    return await self._passed_on(where, name, request)
                except NotDelivered as error:
                    missed = error
                self.known[name] = Whereabouts(where.address, None)
            looks += not missed.moved
            if looks > LOOKS or loop.time() > until:
                raise missed
            await asyncio.sleep(pause)
            pause = min(2 * pause + SHORTEST, PAUSE)

    async def _passed_on(self, where: Whereabouts, name: str, request: Request) -> Response | Stream:
        """The answer of another process; NotDelivered for a request that may be sent again, else Broken."""
        assert where.address is not None
        try:
            self.registry.counts.passed_on += 1
            return await self._ways.send(where.address, where.home or "", name, request)
        except Broken as error:
            if where.address not in self._hung_up:
                self._hung_up.add(where.address)
                logger.warning("bank %s: %s", name, error)
            if not _may_be_repeated(request):
                raise
            raise NotDelivered(str(error), moved=True) from error

    def _serves(self, name: str, *, about_bank: bool = False) -> bool:
        """Whether this process is the home, and may say so; `about_bank`: also of a bank without anything to load."""
        documents = self.registry.documents(name)
        if documents is not None:
            return documents.log.owned
        lease = self.leases.held.get(name)
        return about_bank and lease is not None and lease.valid and lease.empty

    async def here(self, name: str, request: Request) -> Response | Stream | None:
        """The answer of this process; None if it is not the home of the bank, or has lost it while it answered."""
        if self._ending:
            return None
        refused, about_bank = None, bank_of(request)[1]
        if about_bank:
            self._about_bank.append(name)
        try:
            if _is_about_all(request):
                try:
                    await self.refresh()
                except StoreError as error:
                    refused = self._refused(request, str(error))
            answer = refused or await self._local(request)
        finally:
            documents, lease = self.registry.documents(name), self.leases.held.get(name)
            if about_bank:
                self._about_bank.remove(name)
                if name not in self._about_bank and documents is None and lease is not None and lease.empty:
                    self.commits.spawn(self._give_back([name]))  # there is no bank, and none will be made
        if isinstance(answer, Stream):
            return answer if documents is None or documents.log.owned else None
        return None if answer.delivery is ELSEWHERE else answer

    async def _for_others(self, name: str, request: Request) -> Response | Stream | None:
        """The answer to a request that another process has passed on; None if this one is not the home any more.

        A bank that was deleted here may have been created again at another process: this one cannot say that there is
        none, and neither can one that is loading it.
        """
        taking = self._taking.get(name)
        if taking is not None and taking.locked():
            async with taking:
                pass
        return await self.here(name, request) if self._serves(name, about_bank=True) else None

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
            return (yield from in_thread(lambda: self.server.submit(asked).result(), lasts=True))

        def answer(service: BankService, request: Request) -> Answered:
            if bank_of(request)[0] in (service.bank.name, None):
                return control(service, request)
            return Unfinished(elsewhere(request)).step()

        return answer

    # Taking banks

    async def locate(self, name: str, *, new: bool = False, about_bank: bool = False) -> Whereabouts | None:
        """Where the home of a bank is; None if that is this process by now.

        Without an address: nobody, as the bank does not exist. `new`: it may be created; `about_bank`: its content is
        not needed, and may be damaged. StoreUnreachable, StoredDataDamaged.

        Whoever waits while another request looks shares what that has found, but for a bank that does not exist: it may
        have been created since. Over a slow line, or where the server says nothing, they would take turns.
        """
        search = self._taking.setdefault(name, _HomeSearch())
        waited, known = search.locked(), self.known.get(name)
        async with search:
            if self._ending:
                raise StoreUnwritable("this process is ending")
            if self._serves(name, about_bank=about_bank):
                return None
            if waited and search.failed is not None:
                raise search.failed
            latest = self.known.get(name)
            if latest is not known and latest is not None and latest.home not in (None, self.leases.home):
                return latest
            search.failed = None
            try:
                return await self._located(name, new=new, about_bank=about_bank)
            except StoreUnreachable as error:
                search.failed = error
                raise

    async def _located(self, name: str, *, new: bool, about_bank: bool) -> Whereabouts | None:
        held = self.leases.held.get(name)
        if held is not None and held.valid and held.damage is not None:
            raise held.damage  # it is being replaced here, and another lease would end that
        if self.registry.documents(name) is not None:  # the lease was not renewed in time; perhaps nobody took it
            await self.renew()
            if self._serves(name):
                return None
            self.drop(name)
        lease = await self.leases.take(name, new=new)
        if isinstance(lease, Whereabouts):
            if lease.home == self.leases.home:  # it is being created here, and does not exist yet
                return NOWHERE
            self.known[name] = lease
            if lease.address is None:
                del self.known[name]
            return lease
        if not lease.sequence:
            return None
        try:
            await self._load(lease)
        except BaseException as error:
            if not (about_bank and isinstance(error, StoredDataDamaged)):
                self.commits.spawn(self._give_back([name]))
                raise
            lease.damage = error
            self.known[name] = self.leases.here
        return None

    async def locate_living(self, name: str) -> Whereabouts | None:
        """`locate` for a start: of a process that was killed, its lease is waited for.

        So is that of one that had the address of this process, which it has now.
        """
        until = asyncio.get_running_loop().time() + PATIENCE
        while True:
            where = await self.locate(name, new=True)
            if where is None or where.address is None:
                return where
            if where.address != self.leases.address and await self._ways.lead_to(where.address):
                return where
            if asyncio.get_running_loop().time() > until:
                return where
            await asyncio.sleep(PAUSE)

    async def _load(self, lease: Lease) -> None:
        """Load a bank that was taken."""
        name = lease.name
        content = await content_of(self.server, name, lease.sequence, lease.checkpoint)
        log = PostgresLog(lease, self.commits, content)
        documents = await asyncio.get_running_loop().run_in_executor(None, Documents, log, KINDS)
        await log.sweep()
        memory = await self.leases.memory(lease)  # last: reading it deletes it, so nothing may fail after that
        if self.leases.held.get(name) is not lease or not lease.valid:
            raise StoreLost(f"bank {name} took too long to load")
        service = self.registry.open(name, documents)
        self.known[name] = self.leases.here
        if memory is not None:
            remember(service, memory)

    def _lost(self, log: PostgresLog) -> None:
        documents, lease = self.registry.documents(log.name), self.leases.held.get(log.name)
        if documents is None or documents.log is log:
            has_lease = log.ended is None and lease is log.lease  # a new bank that the store refused
            self.drop(log.name)
            if has_lease:
                self.leases.held[log.name] = log.lease
                self.commits.spawn(self._give_back([log.name]))

    def drop(self, name: str) -> None:
        """Forget a bank of which this process is not the home any more."""
        self.leases.held.pop(name, None)
        self.registry.end(name)

    async def _give_back(self, names: list[str]) -> None:
        """End the leases of banks; they have been closed, or are by this."""
        left = dict[str, tuple[bytes | None, bool]]()
        for name in names:
            service = self.registry.opened(name)
            left[name] = (None, False) if service is None else (memory_of(service), _is_active(service))
        await self.leases.give_back(left)

    # What goes on while nobody asks

    def start(self) -> None:
        """Begin to renew and to take over, and to be reached by the others."""
        self.server.open()
        for work in (self._each_second(self.renew), self._each_second(self._look_around, logs=True)):
            self._spawn(work)
        if self._entrance is not None:
            self._spawn(self._entrance.open())

    @asynccontextmanager
    async def renewed(self) -> AsyncIterator[None]:
        """A `with` block before `start`, in which a large bank may be loaded."""
        renewing = asyncio.get_running_loop().create_task(self._each_second(self.renew))
        try:
            yield
        finally:
            renewing.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _each_second(self, work: Callable[[], Awaitable[None]], *, logs: bool = False) -> None:
        """Do this again and again; `logs`: it always asks the store, and says when that begins and ends to fail."""
        away: str | None = None
        while True:
            try:
                await work()
            except StoreError as error:
                if logs and away != str(error):
                    logger.error("%s", error)
                away = str(error)
            except Exception:
                logger.exception("the store cannot be followed")
            else:
                if logs and away is not None:
                    logger.info("the store can be used again")
                away = None
            await asyncio.sleep(RENEWING)

    async def renew(self) -> None:
        """Renew all leases, and drop the banks that are lost; StoreUnreachable."""
        for name in await self.leases.renew():
            logger.info("another process is the home of bank %s now", name)
            self.drop(name)

    async def _look_around(self) -> None:
        """Take over banks whose home has gone, follow what others make, and give back what nobody asks for."""
        # those that are held here are renewed by the other task
        while orphans := [name for name in await self.leases.orphans(AT_ONCE) if name not in self.leases.held]:
            for name in orphans:
                try:
                    await self.locate(name)
                except StoredDataDamaged as error:  # it is given back at rest, and the others go on
                    logger.error("%s", error)
        if self.registry.watched():
            await self.refresh()
        else:
            self.authority.learn(await self.server.rows(READ, self.authority.version))
        self.authority.adopt()  # what is stored is known: a folder may be that of a TPP that could not be replaced
        with suppress(TppExists):  # another process has just issued one of this name
            await self.authority.keep(self.server.rows)
        closed = [name for name, lease in self.leases.held.items() if self._is_closed(lease)]
        if closed:
            await self._give_back(closed)

    def _is_closed(self, lease: Lease) -> bool:
        """Whether a bank was closed for want of requests, and is not being taken, nor created."""
        taking = self._taking.get(lease.name)
        in_use = taking is not None and taking.locked()
        return not lease.empty and self.registry.documents(lease.name) is None and not in_use

    async def refresh(self) -> None:
        """Look which banks there are and which TPPs others have issued, after this call; StoreUnreachable.

        Whoever asks while one look is under way shares the next: over a slow line they would take turns for seconds.
        """
        if self._next_look is None:
            self._next_look = asyncio.get_running_loop().create_task(self._look_up())
            # perhaps nobody waits for it any more
            self._next_look.add_done_callback(lambda look: None if look.cancelled() else look.exception())
        await asyncio.shield(self._next_look)

    async def _look_up(self) -> None:
        async with self._looking:
            self._next_look = None
            rows = await self.server.rows(_LOOK, self.authority.version)
            present = {name: Whereabouts(*where) for kind, name, _, _, *where in rows if kind is None}
            here = self.leases.here  # also of a bank whose creation is being stored
            present |= {name: here for name in self.leases.held if self._serves(name)}
            before, self.known = self.known, present
            issued = self.authority.learn([row[:4] for row in rows if row[0] is not None])
        # watchers hear of what is new
        for name in issued:
            self.registry.publish_to_all("tpps", name, "issued")
        if self._looked:
            for name in present.keys() - before.keys():
                self.registry.publish_to_all("banks", name, "created")
            for name in before.keys() - present.keys():
                self.registry.publish_to_all("banks", name, "deleted")
        self._looked = True

    async def leave(self, until: float = 0.0) -> None:
        """Give every bank back, with what is in memory of it, and end all connections.

        What others have passed on is answered until the moment `until`, as long as what the process's own clients ask.
        """
        self._ending = True
        for task in list(self._tasks):
            task.cancel()
        giving = asyncio.get_running_loop().create_task(self._give_all_back())
        await asyncio.wait([giving], timeout=LEAVING)
        self.server.cut()
        await asyncio.wait([giving], timeout=LEAVING)
        if self._entrance is not None:
            await self._entrance.close(until)
            self._ways.close()
        await self.server.close()

    async def _give_all_back(self) -> None:
        with suppress(StoreError):  # the leases run out by themselves
            await self.commits.settled()
            names = [name for name in self.leases.held if self.registry.documents(name) is not None]
            for at in range(0, len(names), GIVEN_BACK):
                await self._give_back(names[at : at + GIVEN_BACK])


def _afresh(request: Request) -> Request:
    """The request as another process gets it: without what this one has begun for it."""
    return replace(request, unfinished=None, prepared=None)


def _may_be_repeated(request: Request) -> bool:
    """Whether a request does no harm twice: it reads, and not an account without the customer, which is counted."""
    of_account = "/v1/accounts/" in request.target or "/v1/card-accounts/" in request.target
    counted = of_account and "psu-ip-address" not in Headers(request.headers)
    return request.method in _READS and not counted


def _is_about_all(request: Request) -> bool:
    """Whether an answer may show banks or TPPs that another process has made, or that the store is away."""
    path = request.target.partition("?")[0]
    return "/_emulator" in path or path.endswith("/console") or "/console/" in path


def _is_active(service: BankService) -> bool:
    """Whether something happens in the bank without a request: then another process takes it, when this one ends."""
    bank = service.bank
    return notifications.are_to_come(bank) or (bank.clock.mode == "live" and progression.next_due(bank) is not None)
