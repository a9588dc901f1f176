"""The start of a process that shares banks: tables, flags, CA, the default bank and scenarios, then the application.

All processes need some flags alike; the store has those of the last start. Another seed is refused: the ids and random
numbers of a bank come from one seed in all processes. Other flags that differ are logged.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import socket
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from errno import EADDRNOTAVAIL
from threading import Thread
from time import monotonic
from typing import Any, TypeVar
from uuid import uuid4

import orjson
import psycopg

from emulator.assemble.application import BankApplication
from emulator.assemble.composition import application_of, apply_flags, registry_for
from emulator.assemble.home_storage import HomeStorage
from emulator.assemble.homes import Homes
from emulator.assemble.registry import DEFAULT
from emulator.assemble.stored_authority import FORGET, KEEP, READ, StoredAuthority
from emulator.bank import fixtures
from emulator.bank.clock import Beginning, real_now
from emulator.control.operation import BankSpec
from emulator.settings import ServeSettings, schema_of
from emulator.store import StoreUnwritable
from emulator.store.postgres import layout
from emulator.store.postgres.connection import Server, StoredDataDamaged, StoreSession, StoreUnusable, session, unusable
from emulator.store.postgres.leases import Leases
from emulator.web.console.handler import LIFETIME
from emulator.web.handler import Answering, Watchers
from emulator.web.wire import Limits

logger = logging.getLogger(__name__)

SHARED = ("fixtures", "ids", "links", "profile", "seed", "weather")
SERVICE, ENTRANCE = "service", "entrance"  # kinds of secrets: flags and scenarios; what internal requests must know

Flags = Mapping[str, Any]
"""The values of SHARED by name, as JSON has them."""

T = TypeVar("T")

BACKLOG = 1024
_HOST_PORT = re.compile(r"(?P<host>\[[^\]]+\]|[^:]+)(?::(?P<port>[0-9]+))?")


class SharedApplication(BankApplication):
    """The application of a process that shares banks: requests are answered by the homes of their banks."""

    homes: Homes
    _answers_until = 0.0

    def around(self, local: Answering, watchers: Watchers) -> Answering:
        return self.homes.around(local, watchers)

    def start(self) -> None:
        super().start()
        self.homes.start()
        # a bank may be handed over at any time, and its requests are not to wait for imports then
        Thread(target=self.warm_up, name="warm-up", daemon=True).start()

    def stop(self) -> None:
        super().stop()
        self._answers_until = monotonic() + Limits().drain_seconds

    async def leave(self) -> None:
        await self.homes.leave(self._answers_until)


def assembled(settings: ServeSettings, begins: Beginning) -> BankApplication:
    """Everything that `serve` needs; raises as `assemble.assemble` does, StoreShared for the store."""
    fixtures.check(settings.fixture)
    try:
        return asyncio.run(_assembled(settings, begins))
    except StoreUnwritable as error:
        raise StoreUnusable(str(error)) from error


async def _assembled(settings: ServeSettings, begins: Beginning) -> BankApplication:
    if settings.store is None:
        raise ValueError("there is no store")
    server = Server(settings.store, schema_of(settings.store, settings.store_schema), settings.store_connections)
    server.open()
    with ExitStack() as undo:
        try:
            with session(server.url, server.schema) as starting:
                layout.prepare(starting)
                authority, settings, secret, begun = await _joined(starting, server, settings)
                bound, address = _listening(settings.advertise, starting)
                undo.callback(bound.close)
            homes = Homes(server, Leases(server, uuid4().hex, address), authority, bound=bound, secret=secret)
            registry = homes.registry = registry_for(settings, authority, begins, storage=HomeStorage(homes))
            registry.counts.leases = lambda: len(homes.leases.held)
            application = application_of(registry, SharedApplication, homes.asking, authority)
            application.homes = homes
            homes.refuses, homes.unwritable = application.refusal, application.unwritable
            async with homes.renewed():
                await _begin(homes, application, settings, begun)
        except psycopg.Error as error:
            raise unusable(error, server.schema) from error
        finally:
            await server.close()  # the loop that serves has connections of its own
        undo.pop_all()
    return application


def _listening(advertise: str | None, starting: StoreSession) -> tuple[socket.socket, str]:
    """The socket at which the other processes reach this one, and the address that they use.

    A name or address that is not one of this machine is that of a gateway or of the machine around a container, which
    passes connections on: they may come in anywhere.
    """
    with socket.socket(fileno=socket.dup(starting.connection.fileno())) as own:
        reaching = "127.0.0.1" if own.family == socket.AF_UNIX else own.getsockname()[0]
    named = _HOST_PORT.fullmatch(advertise or reaching.join("[]"))
    assert named is not None
    host, port = named["host"].strip("[]"), int(named["port"] or 0)
    try:
        try:
            bound = _bound(host, port)
        except OSError as error:
            if not isinstance(error, socket.gaierror) and error.errno != EADDRNOTAVAIL:
                raise
            bound = _bound("", port)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StoreUnusable(f"--advertise {advertise or host}: this process cannot listen there: {reason}") from error
    return bound, f"{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}"


def _bound(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0] if host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


async def _begin(
    homes: Homes, application: SharedApplication, settings: ServeSettings, begun: list[str] | None
) -> None:
    """Have the default bank, if no other process has it, and apply the scenarios, once for the service.

    A process that joins or comes back leaves the bank as it is.
    """
    registry = homes.registry
    where = await homes.locate_living(DEFAULT)
    if where is not None:
        if settings.scenario and begun != list(settings.scenario):
            logger.warning("--scenario is not applied: another process has the default bank; use `scenario apply`")
        return
    if registry.opened(DEFAULT) is None:
        await _run(registry.making(DEFAULT, BankSpec()))
    apply_flags(settings, application.scenario_target(registry.default), applied=begun)
    documents = registry.documents()
    if documents is not None:
        await documents.log.durable(documents.sequence)
    if settings.scenario and begun != list(settings.scenario):
        await homes.server.rows(KEEP, SERVICE, "", _about(_flags_of(settings), settings.scenario), True)


async def _run(steps: Generator[object, None, T]) -> T:
    """Run all steps; the event loop goes on while a thread works."""
    while True:
        try:
            awaited = next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        if isinstance(awaited, Future):
            await asyncio.wait([asyncio.wrap_future(awaited)])


async def _joined(
    starting: StoreSession, server: Server, settings: ServeSettings
) -> tuple[StoredAuthority, ServeSettings, bytes, list[str] | None]:
    """The CA of the service, the settings with its seed, the internal secret, and the scenarios that were applied.

    What is new is stored before others can join it.
    """

    async def rows(statement: str, *values: Any, **_: Any) -> list[Any]:
        return starting.rows(statement, *values)

    with starting.connection.transaction():
        starting.rows("SELECT news FROM {schema}.layout FOR UPDATE")
        known: dict[str, bytes] = dict(
            starting.rows("SELECT kind, body FROM {schema}.secret WHERE kind IN (%s, %s)", SERVICE, ENTRANCE)
        )
        service = about(known.get(SERVICE, b"{}"))
        settings = _with_seed(settings, service.get("flags", {}))
        _compare(_flags_of(settings), service.get("flags", {}))
        starting.rows(FORGET, str(int(real_now().timestamp() - LIFETIME.total_seconds())))
        authority = StoredAuthority(settings.state, starting.rows(READ, -1), server, clock=real_now)
        authority.adopt()
        authority.demo()
        await authority.keep(rows)
        secret = known.get(ENTRANCE)
        if secret is None:
            secret = secrets.token_hex(32).encode()
            starting.rows(KEEP, ENTRANCE, "", secret, False)
        if SERVICE not in known or service.get("flags") != _flags_of(settings):
            starting.rows(KEEP, SERVICE, "", _about(_flags_of(settings), service.get("scenarios", ())), True)
    return authority, settings, secret, service.get("scenarios")


def about(body: bytes) -> dict[str, Any]:
    """What the service remembers; StoredDataDamaged."""
    try:
        service = orjson.loads(body)
        if not isinstance(service, dict) or not isinstance(service.get("flags", {}), dict):
            raise ValueError("it is not an object with flags")
        if not isinstance(service.get("scenarios", []), list):
            raise ValueError("its scenarios are not a list")
        if not isinstance(service.get("flags", {}).get("seed"), int | None):
            raise ValueError("flags.seed is not a number")
    except ValueError as error:
        raise StoredDataDamaged("the secret service", error) from error
    return service


def _about(flags: Flags, scenarios: Sequence[str]) -> bytes:
    return orjson.dumps({"flags": flags, "scenarios": list(scenarios)})


def _flags_of(settings: ServeSettings) -> Flags:
    """What a process was started with."""
    return {name: settings.fixture if name == "fixtures" else getattr(settings, name) for name in SHARED}


def _with_seed(settings: ServeSettings, stored: Flags) -> ServeSettings:
    """The settings with the seed of the store, if it has one; StoreUnusable if another one is requested."""
    if "seed" not in stored:
        return settings
    seed = stored["seed"]
    if settings.seed not in (None, seed):
        theirs = "have no --seed" if seed is None else f"share --seed {seed}"
        raise StoreUnusable(
            f"its processes {theirs}, and this one has --seed {settings.seed}: leave the flag out, or name another"
            " --store-schema"
        )
    return replace(settings, seed=seed)


def _compare(own: Flags, others: Flags) -> None:
    """Log which flags of another process differ."""
    for name in SHARED:
        if name in others and own[name] != others[name]:
            here, there = ("(none)" if flags[name] is None else flags[name] for flags in (own, others))
            text = "this process has --%s %s, another one of the store --%s %s: give all of them the same"
            logger.warning(text, name, here, name, there)
