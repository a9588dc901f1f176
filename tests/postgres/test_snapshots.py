"""Snapshots and checkpoints of a bank that changes its home, and those whose statement is unanswered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

import pytest

from emulator.api.messages import Answered, Response, Unfinished
from emulator.assemble import home_storage
from emulator.bank import snapshots
from emulator.store.postgres import log
from emulator.store.postgres.connection import OutcomeUnknown
from tests.postgres.leased import Sent, commits_of, now, over, refused, taken
from tests.postgres.process import Process, eventually, execute, request

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
    stored = "SELECT count(*) FROM {schema}.checkpoint WHERE bank = %s"
    assert await execute(one.url, stored, bank) == [(0,)]
    assert [each["name"] for each in (await two.control("GET", "snapshots", bank=bank))["snapshots"]] == ["late"]


@pytest.mark.parametrize("executed", ["at once", "late", "never"])
async def test_a_snapshot_that_was_saved_without_an_answer_is_from_then_on_what_is_stored(
    one: Process, two: Process, bank: str, executed: str
) -> None:
    """Not one thing at this home, and another one at the next."""
    before = await now(one, bank)
    await one.control("PUT", "snapshots/kept", bank=bank, status=201)
    await one.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
    late: list[Any] = []

    async def lost(statement: Any) -> Any:
        if executed == "at once":
            await statement
        else:
            late.append(statement)
        raise OutcomeUnknown("the connection is lost")

    for path in ("snapshots/kept", "snapshots/other"):
        async with commits_of(one, lost, (home_storage._SAVE_SNAPSHOT,)):
            answer = await one.ask("PUT", path, bank=bank)
            assert isinstance(answer, Response)
            assert answer.delivery.disconnect == "after"

    async def shown(each: Process) -> Any:
        await each.control("POST", "clock/advance", {"by": "PT5H"}, bank=bank)
        restored = await each.ask("POST", "snapshots/kept/restore", bank=bank)
        listed = (await each.control("GET", "snapshots", bank=bank))["snapshots"]
        return restored.status, await now(each, bank), [one["name"] for one in listed]

    saved = executed == "at once"
    expected = (200, before + timedelta(hours=saved), ["other", "kept"] if saved else ["kept"])
    assert await shown(one) == expected
    for statement in late:
        if executed == "late":
            await statement
        statement.close()
    assert await shown(one) == expected
    one.homes.drop(bank)
    await over(one, bank)
    assert await shown(two) == expected


@pytest.mark.parametrize("executed", [False, True])
async def test_a_snapshot_that_was_deleted_without_an_answer_is_there_if_it_is_stored(
    one: Process, two: Process, bank: str, executed: bool
) -> None:
    await one.control("PUT", "snapshots/kept", bank=bank, status=201)
    async with commits_of(one, Sent(executed), (home_storage._DROP_SNAPSHOTS,)):
        await one.ask("DELETE", "snapshots/kept", bank=bank)
    for each in (one, two):
        listed = (await each.control("GET", "snapshots", bank=bank))["snapshots"]
        assert [one["name"] for one in listed] == ([] if executed else ["kept"])
        await each.control("POST", "snapshots/kept/restore", bank=bank, status=404 if executed else 200)


async def test_snapshots_stay_as_they_are_where_a_change_of_the_same_turn_is_taken_back(
    one: Process, two: Process, bank: str
) -> None:
    """One that is saved may have it in it. A bank that is replaced loses its snapshots after that."""
    for name in ("first", "second"):
        await one.control("PUT", f"snapshots/{name}", bank=bank, status=201)

    async def snapshots(each: Process) -> list[str]:
        return [one["name"] for one in (await each.control("GET", "snapshots", bank=bank))["snapshots"]]

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
    async with commits_of(one, refused, (home_storage._DROP_SNAPSHOTS,)):
        await two.control("DELETE", "snapshots/first", bank=bank, status=503)
        replaced = await two.ask("PUT", f"banks/{bank}", {"fixtures": "empty"})
        assert (replaced.status, replaced.delivery.disconnect) == (503, "after"), "the bank is, but has snapshots"
    assert await snapshots(two) == ["second", "first"]
    one.homes.drop(bank)
    assert await snapshots(one) == ["second", "first"]


async def test_a_snapshot_stays_where_the_bank_has_another_home_by_now(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stored in place of an earlier one."""
    await one.control("PUT", "snapshots/kept", bank=bank, status=201)

    async def late(statement: Any) -> Any:
        with monkeypatch.context() as stopped:
            await taken(one, two, bank, stopped)
        await statement
        raise OutcomeUnknown("the connection is lost")

    async with commits_of(one, late, (home_storage._TAKE_SNAPSHOT_BACK,)):
        await one.ask("PUT", "snapshots/kept", bank=bank)
    await two.control("POST", "snapshots/kept/restore", bank=bank)


async def test_a_snapshot_of_the_next_home_is_not_deleted_by_a_request_to_the_last_one(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await one.control("PUT", "snapshots/kept", bank=bank, status=201)

    async def late(deletion: Any) -> Any:
        with monkeypatch.context() as stopped:
            await taken(one, two, bank, stopped)
        await two.control("PUT", "snapshots/kept", bank=bank, status=200)
        return await deletion

    async with commits_of(one, late, (home_storage._DROP_SNAPSHOTS,)):
        await one.control("DELETE", "snapshots/kept", bank=bank, status=204)  # at the next home, after it was saved
    assert (await two.control("GET", "snapshots", bank=bank))["snapshots"] == []


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


@pytest.mark.parametrize("kinds", [("DELETE", "DELETE"), ("PUT", "DELETE"), ("DELETE", "PUT")])
async def test_a_snapshot_is_saved_and_deleted_one_after_the_other(
    one: Process, bank: str, kinds: tuple[str, str]
) -> None:
    await one.control("PUT", "snapshots/kept", bank=bank)
    asked = [one.ask(kind, "snapshots/kept", bank=bank) for kind in kinds]
    assert sorted([(await answer).status for answer in asked])[1] == 409
    stored = await execute(one.url, "SELECT name FROM {schema}.snapshot WHERE bank = %s", bank)
    shown = (await one.control("GET", "snapshots", bank=bank))["snapshots"]
    assert [snapshot["name"] for snapshot in shown] == [name for (name,) in stored]


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
    assert await one.control("GET", "snapshots", bank=bank) == {"snapshots": []}
    assert await execute(one.url, "SELECT name FROM {schema}.snapshot WHERE bank = %s", bank) == []
