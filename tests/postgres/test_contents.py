"""A reset to a large content: it is stored between turns, and the change of the reset only says which one it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from emulator.api.messages import Response
from emulator.assemble.stored_service import StoredService, check
from emulator.bank import fixtures, snapshots
from emulator.store.log import content_name
from emulator.store.postgres import log
from tests.postgres.leased import has, over, taken
from tests.postgres.process import Process, deletions, execute

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(autouse=True)
def every_content_is_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as large:
        large.setattr(snapshots, "LARGE", 0)
        large.setattr(fixtures, "_IMAGES", type(fixtures._IMAGES)())
        yield


async def problems(one: Process, bank: str) -> list[str]:
    checked = await asyncio.to_thread(check, StoredService(one.url, "bank_emulator"))
    return [problem for each in checked if each.name == bank for problem in each.problems]


async def restored(one: Process, bank: str) -> None:
    await one.control("PUT", "settings", {"progression": "manual"}, bank=bank)
    await one.control("PUT", "snapshots/first", bank=bank, status=201)
    await one.control("PUT", "settings", {"progression": "immediate"}, bank=bank)
    await one.control("POST", "snapshots/first/restore", bank=bank)


async def progression(one: Process, bank: str) -> Any:
    return (await one.control("GET", "settings", bank=bank))["progression"]


async def moved(one: Process, two: Process, bank: str) -> None:
    """The second process becomes the home."""
    with pytest.MonkeyPatch.context() as stopped:
        await taken(one, two, bank, stopped)
    one.homes.drop(bank)


STAGED = "SELECT DISTINCT sequence FROM {schema}.checkpoint WHERE bank = %s ORDER BY sequence"


async def test_a_restore_names_its_content_and_the_next_home_has_it(one: Process, two: Process, bank: str) -> None:
    await restored(one, bank)
    await one.control("PUT", "settings", {"conformance": False}, bank=bank)
    [(content,), (snapshot,)] = await execute(one.url, STAGED, bank)
    assert content < 0
    bodies = [body for (body,) in await execute(one.url, "SELECT body FROM {schema}.change WHERE bank = %s", bank)]
    assert len([body for body in bodies if b'"content":"content-%d.json"' % -content in body]) == 1
    assert max(map(len, bodies)) < 2000
    assert await problems(one, bank) == []
    await moved(one, two, bank)
    assert await progression(two, bank) == "manual"
    assert await execute(one.url, STAGED, bank) == [(content,), (snapshot,)]


async def test_a_checkpoint_takes_the_place_of_the_content(one: Process, two: Process, bank: str) -> None:
    await restored(one, bank)
    await one.log(bank).compaction(lambda: None)
    [(snapshot,), (checkpoint,)] = await execute(one.url, STAGED, bank)
    assert snapshot < 0 < checkpoint
    await one.control("PUT", "settings", {"conformance": False}, bank=bank)
    assert await problems(one, bank) == []
    await moved(one, two, bank)
    assert await progression(two, bank) == "manual"


async def test_a_content_that_was_restored_during_a_checkpoint_stays(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, stage = one.log(bank), log.PostgresLog.stage
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def slowly(self: log.PostgresLog, file: str, body: bytes) -> int:
        if self is own and not begun.is_set():
            begun.set()
            await goes_on.wait()
        return await stage(self, file, body)

    monkeypatch.setattr(log.PostgresLog, "stage", slowly)
    compacting = asyncio.ensure_future(own.compaction(lambda: None))
    await begun.wait()
    await restored(one, bank)
    goes_on.set()
    await compacting
    assert await problems(one, bank) == []
    await moved(one, two, bank)
    assert await progression(two, bank) == "manual"


async def test_a_bank_begins_with_a_large_fixture_and_leaves_nothing_behind(
    one: Process, two: Process, bank: str
) -> None:
    name = f"{bank}-large"
    await one.control("PUT", f"banks/{name}", {"fixtures": "household"}, status=201)
    people = await one.control("GET", "people", bank=name)
    assert people["people"]
    await moved(one, two, name)
    assert await two.control("GET", "people", bank=name) == people
    await one.control("POST", "reset", {"fixtures": "empty"}, bank=name)
    assert (await two.control("GET", "people", bank=name))["people"] == []
    await one.control("DELETE", f"banks/{name}", status=204)
    assert await execute(one.url, STAGED, name) == []


async def test_what_a_killed_home_has_staged_is_deleted_by_the_next_one(one: Process, two: Process, bank: str) -> None:
    await restored(one, bank)
    [(content,), (snapshot,)] = await execute(one.url, STAGED, bank)
    left = await one.log(bank).stage(content_name(), b"{}")
    assert await execute(one.url, STAGED, bank) == [(left,), (content,), (snapshot,)]
    await moved(one, two, bank)
    await deletions(two)
    assert await execute(one.url, STAGED, bank) == [(content,), (snapshot,)]
    await one.control("GET", "clock", bank=bank)


async def test_a_content_of_a_former_home_is_not_stored(one: Process, two: Process, bank: str) -> None:
    await one.control("PUT", "snapshots/first", bank=bank, status=201)
    with pytest.MonkeyPatch.context() as stopped:
        await taken(one, two, bank, stopped)
    answer = await one.ask("POST", "snapshots/first/restore", bank=bank)
    assert isinstance(answer, Response)
    assert answer.status == 200
    assert (has(one, bank), has(two, bank)) == (False, True)
    assert await problems(one, bank) == []


async def test_a_content_that_is_gone_is_named(one: Process, two: Process, bank: str) -> None:
    await restored(one, bank)
    [(content,), _] = await execute(one.url, STAGED, bank)
    await one.homes._give_back([bank])
    one.homes.drop(bank)
    await execute(one.url, "DELETE FROM {schema}.checkpoint WHERE bank = %s", bank)
    answer = await two.control("GET", "clock", bank=bank, status=503)
    assert f"content content-{-content}.json of bank {bank} is damaged: it is missing" in str(answer)
    assert f"content content-{-content}.json of bank {bank} is damaged: it is missing" in str(await problems(one, bank))
    await over(two, bank)
    await execute(one.url, "DELETE FROM {schema}.bank WHERE name = %s", bank)
