"""The start of a process that shares a store: tables, flags, CA, default bank and scenarios, then the application.

All processes need some flags alike; the service's row has those of the last start. Another seed is refused: the ids and
random numbers of a bank come from one seed in all processes. Other flags are logged, at the process that starts and at
those that serve, so that they can be changed by restarting one process after another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

import orjson

from emulator.assemble.application import BankApplication
from emulator.assemble.composition import application_of, apply_all, registry_config
from emulator.assemble.registry import DEFAULT
from emulator.assemble.shared.authority import SharedAuthority
from emulator.assemble.shared.open_bank import about_service
from emulator.assemble.shared.registry import SharedRegistry
from emulator.assemble.shared.turns import SharedTurns
from emulator.bank import fixtures
from emulator.bank.clock import Beginning, real_now
from emulator.settings import ServeSettings, schema_of
from emulator.store.postgres import (
    NOWHERE,
    SERVICE,
    Appended,
    Database,
    Pool,
    StoredDataDamaged,
    StoreUnreachable,
    StoreUnusable,
    Work,
)

logger = logging.getLogger(__name__)

SHARED = ("fixtures", "ids", "links", "profile", "seed", "weather")

Flags = Mapping[str, Any]
"""The values of SHARED by name, as JSON has them."""


def assembled(settings: ServeSettings, begins: Beginning) -> BankApplication:
    """Everything that `serve` needs; raises as `assemble.assemble` does, StoreShared for the store."""
    fixtures.check(settings.fixtures)
    return asyncio.run(_assembled(settings, begins))


async def _assembled(settings: ServeSettings, begins: Beginning) -> BankApplication:
    if settings.store is None:
        raise ValueError("there is no store")
    pool = Pool(settings.store, schema_of(settings.store, settings.store_schema))
    try:
        async with pool.database() as database:
            await database.prepare()
            authority, settings = await _joined(database, settings)
        compare_flags = partial(_compare, _flags_of(settings))
        registry = SharedRegistry(registry_config(settings, authority, begins), compare_flags, pool)
        authority.demand = registry.demand_service
        turns = SharedTurns(pool, registry, authority)
        await turns.act(lambda: registry.exists(DEFAULT) or registry.open(DEFAULT))
        await turns.act(lambda: registry.find(DEFAULT), write=False)
        application = application_of(registry, settings, authority, turns)

        def begin() -> None:
            if registry.begins_with(settings.scenario):
                apply_all(settings.scenario, application.scenario_target(registry.default))

        if settings.scenario:  # once for the service: a process that joins or comes back leaves the bank as it is
            await turns.act(begin)
        return application
    finally:
        await pool.close()  # the loop that serves has connections of its own


async def _joined(database: Database, settings: ServeSettings) -> tuple[SharedAuthority, ServeSettings]:
    """The CA of the service, and the settings with its seed; what is new is stored before others can join it."""
    start = await database.begin({SERVICE: NOWHERE}, lock=[SERVICE], busy=True)  # generating keys takes long
    try:
        head = start.heads.get(SERVICE)
        if head is None:
            raise StoredDataDamaged("the row of the service", "it is missing")
        about = about_service(head.counts or b"{}")
        stored = about.get("flags", {})
        settings = _with_seed(settings, stored)
        flags = _flags_of(settings)
        _compare(flags, stored)
        authority = SharedAuthority(settings.state, await database.secrets(-1), clock=real_now)
        authority.adopt()
        authority.demo()
        if not authority.pending and flags == stored:
            return authority, settings
        number = head.position.sequence + 1
        work = Work(uuid4(), secrets=authority.secrets(number))
        counts = orjson.dumps({**about, "flags": flags})
        work.appended.append(Appended(SERVICE, number, [(b"{}", None)], 0, counts))
        try:
            await database.commit(work)
        except ConnectionError as error:  # another start takes what was stored, if it was
            raise StoreUnreachable(f"PostgreSQL: {error}: start again") from error
        authority.confirm()
        return authority, settings
    finally:
        await database.end()


def _flags_of(settings: ServeSettings) -> Flags:
    """What a process was started with."""
    return {name: getattr(settings, name) for name in SHARED}


def _with_seed(settings: ServeSettings, stored: Flags) -> ServeSettings:
    """The settings with the seed of the store, if it has one; StoreUnusable if another one is requested."""
    seed = stored.get("seed")
    if seed is None:
        return settings
    if settings.seed not in (None, seed):
        raise StoreUnusable(
            f"its processes share --seed {seed}, and this one has --seed {settings.seed}: leave the flag out, or name"
            " another --store-schema"
        )
    return replace(settings, seed=seed)


def _compare(own: Flags, others: Flags) -> None:
    """Log which flags of another process differ."""
    for name in SHARED:
        if name in others and own[name] != others[name]:
            logger.warning(
                "this process has --%s %s, another one of the store --%s %s: give all of them the same",
                name,
                "(none)" if own[name] is None else own[name],
                name,
                "(none)" if others[name] is None else others[name],
            )
