"""Steps of tests in which banks change their home."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pytest

from emulator.store.postgres import log
from emulator.store.postgres.connection import OutcomeUnknown, StoreUnreachable
from tests.postgres.process import Process, execute

MONDAY = "2026-03-02T09:00:00+01:00"


def has(one: Process, bank: str) -> bool:
    return one.registry.opened(bank) is not None


async def now(one: Process, bank: str) -> datetime:
    """The time of the bank, which stands still."""
    return datetime.fromisoformat((await one.control("GET", "clock", bank=bank))["now"])


async def over(one: Process, bank: str) -> None:
    """The lease of this process is over by the clock of the database; the process does not know it."""
    await execute(one.url, "UPDATE {schema}.bank SET until = now() - interval '1 s' WHERE name = %s", bank)


async def taken(one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second process takes the bank of the first, whose renewals do not arrive until `undo`."""

    async def lost() -> list[str]:
        return []

    monkeypatch.setattr(one.leases, "renew", lost)
    await over(one, bank)
    assert await two.homes.locate(bank) is None
    assert has(two, bank)


@asynccontextmanager
async def commits_of(
    one: Process,
    outcome: Callable[[Awaitable[Any]], Awaitable[Any]],
    statements: Collection[str] = (log._COMMIT, log._COMMIT_ONE),
) -> Any:
    """What becomes of each commit of this process for the time of the block, or of other statements."""
    rows = one.homes.server.rows

    async def changed(statement: str, *values: Any, **options: Any) -> Any:
        sent = rows(statement, *values, **options)
        return await (outcome(sent) if statement in statements else sent)

    one.homes.server.rows = changed  # type: ignore[method-assign]
    try:
        yield
    finally:
        one.homes.server.rows = rows  # type: ignore[method-assign]


class Sent:
    """Commits that get no answer: each is executed or not, as often as it says."""

    def __init__(self, *executed: bool) -> None:
        self.executed = list(executed)

    async def __call__(self, commit: Any) -> Any:
        if not self.executed:
            return await commit
        if self.executed.pop(0):
            await commit
        else:
            commit.close()
        raise OutcomeUnknown("the connection is lost")


async def refused(commit: Any) -> Any:
    commit.close()
    raise StoreUnreachable("PostgreSQL: no room")
