"""The start of a process that shares a store: tables, CA, default bank, scenarios; then everything else as ever."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from emulator.assemble import application_of, apply_all, registry_config
from emulator.assemble.application import BankApplication
from emulator.assemble.registry import DEFAULT
from emulator.assemble.shared.authority import SharedAuthority
from emulator.assemble.shared.registry import SharedRegistry
from emulator.assemble.shared.turns import SharedTurns
from emulator.bank import fixtures
from emulator.bank.clock import Beginning, real_now
from emulator.settings import ServeSettings
from emulator.store.postgres import NOWHERE, SERVICE, Appended, Database, Pool, Work


def assembled(settings: ServeSettings, begins: Beginning) -> BankApplication:
    """Everything that `serve` needs; raises as `assemble.assemble` does, StoreShared for the store."""
    fixtures.check(settings.fixtures)
    return asyncio.run(_assembled(settings, begins))


async def _assembled(settings: ServeSettings, begins: Beginning) -> BankApplication:
    if settings.store is None:
        raise ValueError("there is no store")
    pool = Pool(settings.store, settings.store_schema)
    try:
        async with pool.database() as database:
            await database.prepare()
            authority = await _authority(database, settings)
        registry = SharedRegistry(registry_config(settings, authority, begins))
        authority.demand = registry.demand_service
        turns = SharedTurns(pool, registry, authority)
        await turns.act(lambda: registry.exists(DEFAULT) or registry.open(DEFAULT))
        await turns.act(lambda: registry.find(DEFAULT), write=False)
        application = application_of(registry, settings, authority, turns)
        if settings.scenario:
            await turns.act(
                lambda: apply_all(settings.scenario, application.scenario_target(registry.default)), write=True
            )
        return application
    finally:
        await pool.close()  # the loop that serves has connections of its own


async def _authority(database: Database, settings: ServeSettings) -> SharedAuthority:
    """The CA of the service; what is new is stored before anybody else can make another, and keys take their time."""
    transaction = await database.begin({SERVICE: NOWHERE}, lock=[SERVICE], busy=True)
    try:
        head = transaction.heads[SERVICE]
        authority = SharedAuthority(settings.state, await database.secrets(-1), clock=real_now)
        authority.demo()
        if not authority.pending:
            return authority
        number = head.position.sequence + 1
        work = Work(uuid4(), secrets=authority.secrets(number))
        work.appended.append(Appended(SERVICE, number, [(b"{}", None)], 0, None))
        await database.commit(work)
        authority.confirm()
        return authority
    finally:
        await database.end()
