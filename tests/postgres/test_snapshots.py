"""Snapshots and checkpoints of a bank that changes its home, and those whose statement is unanswered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

import pytest

from emulator.api.messages import Answered, Unfinished
from emulator.bank import snapshots
from emulator.store.postgres import log
from tests.postgres.leased import Sent, commits_of, now, over, refused, taken
from tests.postgres.process import Process, deletions, eventually, execute, request

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_checkpoint_and_a_snapshot_of_a_former_home_are_not_stored(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = one.registry.documents(bank)
    assert documents is not None
    with monkeypatch.context() as stopped:
        await taken(one, two, bank, stopped)
        await documents.log.compaction(lambda: None)
    await one.control("PUT", "snapshots/late", bank=bank, status=201)  # passed on
    stored = "SELECT count(*) FROM {schema}.checkpoint WHERE bank = %s AND sequence > 0"
    assert await execute(one.url, stored, bank) == [(0,)]
    assert [each["name"] for each in (await two.control("GET", "snapshots", bank=bank))["snapshots"]] == ["late"]


STAGED = "SELECT DISTINCT sequence FROM {schema}.checkpoint WHERE bank = %s AND sequence < 0"


async def listed(one: Process, bank: str) -> list[str]:
    return [each["name"] for each in (await one.control("GET", "snapshots", bank=bank))["snapshots"]]


async def stored(one: Process, bank: str) -> int:
    """How many contents of the bank are stored, once what is deleted is."""
    await deletions(one)
    return len(await execute(one.url, STAGED, bank))


@pytest.mark.parametrize("executed", [True, False])
async def test_a_content_that_was_stored_without_an_answer_is_no_snapshot_and_is_deleted_by_the_next_home(
    one: Process, two: Process, bank: str, executed: bool
) -> None:
    before = await now(one, bank)
    await one.control("PUT", "snapshots/kept", bank=bank, status=201)
    await one.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
    for path in ("snapshots/kept", "snapshots/other"):
        async with commits_of(one, Sent(executed), (log._STAGE,)):
            await one.control("PUT", path, bank=bank, status=503)
    assert await stored(one, bank) == (3 if executed else 1)
    one.homes.drop(bank)
    await over(one, bank)
    for each in (one, two):
        assert await listed(each, bank) == ["kept"]
        await each.control("POST", "snapshots/kept/restore", bank=bank)
        assert await now(each, bank) == before
    await eventually(lambda: not any(each.homes.commits._tasks for each in (one, two)))
    assert await stored(one, bank) == 1


@pytest.mark.parametrize("executed", [True, False])
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_a_snapshot_that_was_saved_or_deleted_without_an_answer_is_what_is_stored(
    one: Process, two: Process, bank: str, method: str, executed: bool
) -> None:
    """Not one thing at this home, and another one at the next: the commit is looked up."""
    before = await now(one, bank)
    await one.control("PUT", "snapshots/kept", bank=bank, status=201)
    await one.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
    async with commits_of(one, Sent(executed)):
        answer = await one.ask(method, "snapshots/kept", bank=bank)
        assert answer.status == (200 if method == "PUT" else 204)
    for each in (one, two):
        assert await listed(each, bank) == (["kept"] if method == "PUT" else [])
        await each.control("POST", "snapshots/kept/restore", bank=bank, status=200 if method == "PUT" else 404)
        if method == "PUT":
            assert await now(each, bank) == before + timedelta(hours=1)
    assert await stored(one, bank) == (method == "PUT")


async def test_snapshots_stay_as_they_are_where_a_change_of_the_same_turn_is_taken_back(
    one: Process, two: Process, bank: str
) -> None:
    """One that is saved may have it in it. A bank that is replaced loses its snapshots with that."""
    for name in ("first", "second"):
        await one.control("PUT", f"snapshots/{name}", bank=bank, status=201)
    async with commits_of(one, refused):
        together = [
            request("POST", "clock/advance", {"by": "PT1H"}, bank=bank),
            request("PUT", "snapshots/third", bank=bank),
            request("DELETE", "snapshots/first", bank=bank),
            request("PUT", f"banks/{bank}", {"fixtures": "empty"}),
        ]
        asked = [one.handler.in_turn(each) for each in together]
        answers = [await answer for answer in asked]
        assert [(answer.status, answer.delivery.disconnect) for answer in answers] == [(503, None)] * 4
    assert await listed(two, bank) == ["second", "first"]
    one.homes.drop(bank)
    await over(one, bank)
    assert await listed(one, bank) == ["second", "first"]
    await two.control("POST", "snapshots/first/restore", bank=bank)
    await one.control("PUT", f"banks/{bank}", {"fixtures": "empty"})
    assert (await listed(two, bank), await stored(one, bank)) == ([], 0)


@pytest.mark.parametrize("later", [0, 1])
async def test_a_checkpoint_whose_placing_is_carried_out_twice_is_there(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    """As where the connection ends before the answer: at once, or after the next checkpoint."""
    documents, rows = one.registry.documents(bank), one.homes.server.rows
    assert documents is not None
    placings = list[Any]()

    async def noted(statement: str, *values: Any, **options: Any) -> Any:
        if statement == log._PLACE:
            placings.append((statement, *values))
        return await rows(statement, *values, **options)

    monkeypatch.setattr(one.homes.server, "rows", noted)
    for _ in range(1 + later):
        await one.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
        await documents.log.compaction(lambda: None)
    before = await now(one, bank)
    await rows(*placings[0])
    one.homes.drop(bank)
    assert await now(one, bank) == before


async def test_what_a_former_home_has_left_is_deleted_and_nothing_else_however_late(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As over a slow line: the bank has been in use since, and the content of a reset was stored beside that."""
    staged = "SELECT sequence FROM {schema}.checkpoint WHERE bank = %s AND sequence < 0"
    await execute(one.url, "INSERT INTO {schema}.checkpoint VALUES (%s, -5, 0, '')", bank)
    in_use = asyncio.Event()

    async def late(deletion: Awaitable[Any]) -> Any:
        await in_use.wait()
        return await deletion

    monkeypatch.setattr(snapshots, "LARGE", 0)
    async with commits_of(one, late, (log.SWEEP,)):
        one.homes.drop(bank)
        await one.control("POST", "reset", {"fixtures": "known-state"}, bank=bank)
        assert len(await execute(one.url, staged, bank)) == 2
        in_use.set()
        await asyncio.wait(one.homes.commits._tasks)
    assert (-5,) not in await execute(one.url, staged, bank)
    one.homes.drop(bank)
    assert (await one.control("GET", "people", bank=bank))["people"]


async def test_a_snapshot_has_no_change_that_was_taken_back(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is saved once the commit of what it shows has ended."""
    saving, step = asyncio.Event(), Unfinished.step
    service = one.registry.opened(bank)
    assert service is not None

    def stepped(work: Unfinished) -> Answered:
        answer = step(work)
        if answer is work:
            saving.set()
        return answer

    monkeypatch.setattr(Unfinished, "step", stepped)

    async def refused_then(commit: Any) -> Any:
        await saving.wait()
        await refused(commit)

    async with commits_of(one, refused_then):
        changed = one.ask("PUT", "settings", {"progression": "manual"}, bank=bank)
        await eventually(lambda: service.bank.settings.progression == "manual")
        saved = one.ask("PUT", "snapshots/kept", bank=bank)
        assert [(await changed).status, (await saved).status] == [503, 503]
    assert (await listed(one, bank), await stored(one, bank)) == ([], 0)
