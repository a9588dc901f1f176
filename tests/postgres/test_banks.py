"""Banks that one process creates, replaces, deletes or finds damaged, while others ask for them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest

from emulator.api.messages import HANG_UP, Request, Response
from emulator.assemble import homes
from emulator.bank import fixtures, snapshots
from emulator.store.postgres import leases, log
from emulator.store.postgres.connection import OutcomeUnknown, StoreUnreachable
from tests.postgres.leased import MONDAY, Sent, commits_of, has, over, refused
from tests.postgres.process import HEADERS, Process, eventually, execute, process

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_bank_whose_creation_could_not_be_stored_was_never_there(one: Process, two: Process) -> None:
    async def refused(commit: Any) -> Any:
        commit.close()
        raise StoreUnreachable("PostgreSQL: no room")

    async with commits_of(one, refused):
        await one.control("PUT", "banks/green", {"fixtures": "empty"}, status=503)
    for each in (one, two):
        assert "green" not in [entry["name"] for entry in (await each.control("GET", "banks"))["banks"]]
        await each.control("GET", "clock", bank="green", status=404)
    await two.control("PUT", "banks/green", {"fixtures": "empty"}, status=201)
    assert [has(each, "green") for each in (one, two)] == [False, True]


@pytest.mark.parametrize("how", ["not-looked", "not-stored", "lost", "given-up"])
async def test_a_bank_that_could_not_be_created_does_not_exist(one: Process, two: Process, bank: str, how: str) -> None:
    """Nobody goes on to have its lease, and be asked for it."""
    name, asked = f"{bank}-new", list[asyncio.Task[Any]]()
    lost = Sent(*[False] * log.TRIES)

    async def fails(sent: Any) -> Any:
        if how == "given-up":
            asked[0].cancel()
        await (lost(sent) if how == "lost" else refused(sent))

    async with commits_of(one, fails, (log._COMMIT_ONE if how in ("not-stored", "lost") else homes._LOOK,)):
        asked.append(one.ask("PUT", f"banks/{name}", {"fixtures": "empty"}))
        await asyncio.wait(asked)
        await eventually(lambda: name not in one.leases.held)
    for each in (one, two):
        await each.control("GET", "clock", bank=name, status=404)
        await each.control("DELETE", f"banks/{name}", status=404)


async def test_a_bank_that_is_deleted_at_one_process_and_created_at_another_is_found_by_a_third(
    one: Process, two: Process, tmp_path: Path
) -> None:
    async with process(one.url, tmp_path / "three") as three:
        for made_by in (one, three, one):
            await made_by.control("PUT", "banks/again", {"fixtures": "empty"}, status=201)
            answer = await two.send(Request("GET", "/banks/again/v1/accounts", HEADERS))
            assert answer.status == 400  # of the bank: it is not signed
            await two.control("DELETE", "banks/again", status=204)


async def test_a_bank_is_deleted_through_its_own_interface(one: Process, two: Process) -> None:
    for each in (one, two):
        await one.control("PUT", "banks/leaving", {"fixtures": "empty"}, status=201)
        await each.control("DELETE", "banks/leaving", bank="leaving", status=204)
        await two.control("GET", "clock", bank="leaving", status=404)


async def test_any_bank_is_made_and_deleted_through_the_interface_of_any_other(
    one: Process, two: Process, bank: str
) -> None:
    """Whichever processes are their homes."""
    new, other = {"fixtures": "empty"}, f"{bank}-other"
    await two.control("PUT", f"banks/{other}", new, status=201)
    for each in (one, two):
        await each.control("PUT", f"banks/{other}", new, bank=bank, status=200)
        await each.control("PUT", f"banks/{bank}-new", new, bank="missing", status=404)
        await each.control("PUT", f"banks/{bank}-new", new, bank=bank, status=201)
        await each.control("DELETE", f"banks/{bank}-new", bank=other, status=204)


async def test_a_bank_that_could_not_be_deleted_goes_on(one: Process, bank: str) -> None:
    await one.control("GET", "clock", bank=bank)
    before = await one.control("GET", "requests", bank=bank)
    async with commits_of(one, refused, (log.DELETE,)):
        await one.control("DELETE", f"banks/{bank}", status=503)
    assert await one.control("GET", "requests", bank=bank) == before


async def test_who_asks_for_a_bank_that_is_being_created_does_not_disturb_that(one: Process, two: Process) -> None:
    """It does not exist before that is done, whichever process is asked."""
    name = "unborn"
    assert isinstance(await one.leases.take(name, new=True), leases.Lease)  # as `PUT` does at first
    for each in (one, two):
        await each.control("GET", "clock", bank=name, status=404)
    assert not one.registry.exists(name)
    await one.control("PUT", f"banks/{name}", {"fixtures": "empty"}, status=201)


async def test_who_deletes_a_bank_that_is_being_created_does_not_disturb_that(
    one: Process, two: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is none to delete yet; no other process may create it meanwhile."""
    begun, goes_on, build = Event(), Event(), fixtures.build

    def slowly(*arguments: Any, **options: Any) -> Any:
        begun.set()
        goes_on.wait()
        return build(*arguments, **options)

    monkeypatch.setattr(fixtures, "_IMAGES", OrderedDict())
    monkeypatch.setattr(snapshots, "LARGE", 0)
    monkeypatch.setattr(fixtures, "build", slowly)
    created = one.ask("PUT", "banks/growing", {"fixtures": "household"})
    await eventually(begun.is_set)
    lease = one.leases.held["growing"]
    for each in (one, two):
        await each.control("DELETE", "banks/growing", status=404)
    assert one.leases.held.get("growing") is lease
    goes_on.set()
    assert [answer.status for answer in [await created] if isinstance(answer, Response)] == [201]
    await two.control("DELETE", "banks/growing", status=204)
    assert "growing" not in one.leases.held


async def test_who_asks_for_a_damaged_bank_that_is_being_replaced_does_not_disturb_that(
    one: Process, two: Process, bank: str
) -> None:
    await damage(one, bank)
    assert await one.homes.locate(bank, new=True, about_bank=True) is None  # as `PUT` does at first
    lease = one.leases.held[bank]
    for each in (one, two):
        await each.control("GET", "clock", bank=bank, status=503)
    assert one.leases.held.get(bank) is lease
    await one.control("PUT", f"banks/{bank}", {"fixtures": "empty"}, status=200)


async def test_a_bank_whose_creation_is_being_stored_is_deleted_after_that(one: Process, two: Process) -> None:
    """Else the creation would not be stored, and be carried out again after the deletion that has seen its bank."""
    goes_on = asyncio.Event()

    async def held(commit: Awaitable[Any]) -> Any:
        await goes_on.wait()
        return await commit

    async with commits_of(one, held):
        created = one.ask("PUT", "banks/brief", {"fixtures": "empty"})
        await eventually(lambda: has(one, "brief"))
        deleted = one.ask("DELETE", "banks/brief")
        for _ in range(20):  # the deletion has begun, and has had the time to be carried out
            await execute(one.url, "SELECT 1")
        goes_on.set()
        statuses = [answer.status for answer in (await created, await deleted) if isinstance(answer, Response)]
    assert statuses == [201, 204]
    for each in (one, two):
        await each.control("GET", "clock", bank="brief", status=404)


@pytest.mark.parametrize("first", ["load", "deletion"])
async def test_a_bank_that_is_being_loaded_is_deleted_after_that(one: Process, bank: str, first: str) -> None:
    """Whoever loads it would take what is gone by then for damage; also where the deletion has come before."""
    loading, goes_on, looking, looked = [asyncio.Event() for _ in range(4)]

    async def late(statement: Awaitable[Any]) -> Any:
        loading.set()
        await goes_on.wait()
        return await statement

    async def look(statement: Awaitable[Any]) -> Any:
        looking.set()
        await looked.wait()
        return await statement

    async with commits_of(one, late, (log.CHANGES,)), commits_of(one, look, (homes._LOOK,)):
        if first == "deletion":
            deleted = one.ask("DELETE", f"banks/{bank}")
            await looking.wait()
        one.homes.drop(bank)
        read = one.send(Request("GET", f"/banks/{bank}/v1/accounts", HEADERS))
        await loading.wait()
        looked.set()
        if first == "load":
            deleted = one.ask("DELETE", f"banks/{bank}")
        for _ in range(20):  # the deletion has begun, and has had the time to be carried out
            await execute(one.url, "SELECT 1")
        goes_on.set()
        statuses = [answer.status for answer in (await read, await deleted) if isinstance(answer, Response)]
    assert statuses in ([400, 204], [404, 204]), "not signed, or not there any more"


async def test_a_bank_that_was_made_again_is_not_closed_by_the_deletion_before(one: Process, bank: str) -> None:
    deleted = asyncio.Event()

    async def late(deletion: Awaitable[Any]) -> Any:
        rows = await deletion
        await deleted.wait()
        return rows

    async with commits_of(one, late, (log.DELETE,)):
        asked = one.ask("DELETE", f"banks/{bank}")
        await eventually(lambda: bank not in one.leases.held or one.leases.held[bank].deleting)
        one.homes.drop(bank)  # as the next renewal does, or has done
        created = one.ask("PUT", f"banks/{bank}", {"fixtures": "empty"})
        await eventually(lambda: has(one, bank))
        again = one.registry.opened(bank)
        deleted.set()
        assert (await asked).status == 204
    await created
    assert one.registry.opened(bank) is again


@pytest.mark.parametrize("own", [False, True], ids=["from-outside", "through-its-own-interface"])
async def test_a_deletion_that_was_carried_out_is_answered_so_whatever_happens_meanwhile(
    one: Process, own: bool
) -> None:
    """The changes of its turn are refused, and the next renewal finds that this process has no such bank."""
    name = "leaving-late"
    await one.control("PUT", f"banks/{name}", {"fixtures": "empty"}, status=201)
    carried_out, goes_on = asyncio.Event(), asyncio.Event()

    async def late(deletion: Awaitable[Any]) -> Any:
        rows = await deletion
        carried_out.set()
        await goes_on.wait()
        return rows

    async def refused_then(commit: Any) -> Any:
        await carried_out.wait()
        await refused(commit)

    async with commits_of(one, late, (log.DELETE,)), commits_of(one, refused_then):
        asked = [
            one.ask("PUT", "settings", {"progression": "manual"}, bank=name),
            one.ask("DELETE", f"banks/{name}", bank=name if own else ""),
        ]
        await carried_out.wait()
        assert (await asked[0]).status == 503
        await one.homes.renew()
        goes_on.set()
        assert (await asked[1]).status == 204
    await one.control("GET", "clock", bank=name, status=404)


@pytest.mark.parametrize("answered", [False, True])
async def test_a_process_does_not_answer_for_a_bank_of_which_others_know_that_it_is_deleted(
    one: Process, two: Process, bank: str, answered: bool
) -> None:
    """Before it hears of that, or where it never does."""

    async def gone(deletion: Any) -> Any:
        rows = await deletion
        for each in (two, one):
            await each.control("GET", "clock", bank=bank, status=404)
        if not answered:
            raise OutcomeUnknown("the connection is lost")
        return rows

    async with commits_of(one, gone, (log.DELETE,)):
        answer = await one.ask("DELETE", f"banks/{bank}")
    assert isinstance(answer, Response)
    assert answer.delivery.disconnect == (None if answered else "after")
    for each in (two, one):
        await each.control("GET", "clock", bank=bank, status=404)


async def test_a_deletion_that_arrives_when_nobody_waits_for_it_any_more_deletes_nothing(
    one: Process, two: Process, bank: str
) -> None:
    late: list[Any] = []

    async def delayed(deletion: Any) -> Any:
        late.append(deletion)
        raise OutcomeUnknown("the connection is lost")

    async with commits_of(one, delayed, (log.DELETE,)):
        answer = await one.ask("DELETE", f"banks/{bank}")
    assert isinstance(answer, Response)
    assert answer.delivery is HANG_UP
    await two.control("GET", "clock", bank=bank)
    assert await late[0] == []
    for each in (one, two):
        await each.control("GET", "clock", bank=bank)


async def test_a_deleted_bank_leaves_nothing_to_the_next_one_of_its_name(
    one: Process, two: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a change whose commit was under way, nor a snapshot that was being written."""
    first = {"fixtures": "empty", "now": MONDAY, "clock": "frozen"}
    await one.control("PUT", "banks/reborn", first, status=201)
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"

    async def waiting(number: int) -> None:
        while (await execute(one.url, waits))[0][0] < number:
            await asyncio.sleep(0.005)

    async with await psycopg.AsyncConnection.connect(one.url) as holder:
        await holder.execute("SELECT 1 FROM bank_emulator.bank WHERE name = 'reborn' FOR UPDATE")
        changing = one.ask("POST", "clock/advance", {"by": "PT1S"}, bank="reborn")
        await waiting(1)
        deleting = one.ask("DELETE", "banks/reborn")
        await waiting(2)
        await holder.commit()
    assert isinstance(deleted := await deleting, Response)
    assert deleted.status == 204
    await changing
    await two.control("PUT", "banks/reborn", first, status=201)
    for _ in range(2):
        await two.control("POST", "clock/advance", {"by": "PT1S"}, bank="reborn")
    await over(two, "reborn")
    assert (await one.control("GET", "snapshots", bank="reborn"))["snapshots"] == []


@pytest.mark.parametrize(
    ("damage", "repair", "what"),
    [
        (
            "UPDATE {schema}.change SET body = '{' || body WHERE bank = %s AND sequence = 1",
            "UPDATE {schema}.change SET body = substring(body FROM 2) WHERE bank = %s AND sequence = 1",
            "change 1 of bank BANK is damaged: ",
        ),
        (
            "UPDATE {schema}.bank SET sequence = sequence + 1 WHERE name = %s",
            "UPDATE {schema}.bank SET sequence = sequence - 1 WHERE name = %s",
            "bank BANK is damaged: changes after ",
        ),
    ],
)
async def test_a_damaged_row_is_named_until_it_is_restored(
    one: Process, two: Process, bank: str, damage: str, repair: str, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = await one.control("PUT", "settings", {"progression": "manual"}, bank=bank)
    await one.homes._give_back([bank])
    one.homes.drop(bank)
    await execute(one.url, damage, bank)
    for each in (one, two):
        answer = await each.control("GET", "settings", bank=bank, status=503)
        assert what.replace("BANK", bank) in str(answer)
        assert (await each.send(Request("GET", "/health", HEADERS))).status == 200
    await execute(one.url, repair, bank)
    assert await two.control("GET", "settings", bank=bank) == before
    assert not [record for record in caplog.records if record.exc_info]


async def damage(home: Process, bank: str) -> None:
    """The bank is damaged, and has no home any more."""
    await home.homes._give_back([bank])
    home.homes.drop(bank)
    await execute(home.url, "UPDATE {schema}.change SET body = '{' WHERE bank = %s", bank)


@pytest.mark.parametrize("outcome", ["refused", "lost", "executed and lost"])
async def test_a_damaged_bank_stays_until_the_changes_of_the_new_one_are_stored(
    one: Process, bank: str, outcome: str
) -> None:
    """Its rows may be repaired from a backup."""
    await damage(one, bank)
    rows = "SELECT sequence, body FROM {schema}.change WHERE bank = %s"
    before = await execute(one.url, rows, bank)
    how = refused if outcome == "refused" else Sent(outcome == "executed and lost")
    async with commits_of(one, how, (log._REPLACE,)):
        answer = await one.ask("PUT", f"banks/{bank}", {"fixtures": "empty"})
    assert isinstance(answer, Response)
    assert answer.delivery.disconnect == (None if outcome == "refused" else "after")
    if outcome == "executed and lost":
        await one.control("GET", "clock", bank=bank, status=200)
    else:
        assert await execute(one.url, rows, bank) == before
        assert "is damaged" in str(await one.control("GET", "clock", bank=bank, status=503))
    await one.control("PUT", f"banks/{bank}", {"fixtures": "empty"}, status=200)


async def test_a_damaged_bank_is_replaced_or_deleted(one: Process, two: Process, bank: str) -> None:
    """What cannot be put in its place leaves it as it is."""
    await damage(one, bank)
    for each in (one, two):
        answer = await each.control("PUT", f"banks/{bank}", {"fixtures": "none.yaml"}, status=400)
        assert "none.yaml" in str(answer)
        answer = await each.control("GET", "clock", bank=bank, status=503)
        assert f"change 1 of bank {bank} is damaged: " in str(answer)
        assert f"or replace or delete the bank (/_emulator/banks/{bank})" in str(answer)
    await two.control("PUT", f"banks/{bank}", {"fixtures": "household", "clock": "frozen"}, status=200)
    assert (has(one, bank), has(two, bank)) == (False, True)
    people = (await one.control("GET", "people", bank=bank))["people"]
    assert people
    await two.homes._give_back([bank])
    two.homes.drop(bank)
    assert (await one.control("GET", "people", bank=bank))["people"] == people
    await damage(one, bank)
    await two.control("DELETE", f"banks/{bank}", status=204)
    for each in (one, two):
        await each.control("GET", "clock", bank=bank, status=404)
        assert bank not in [entry["name"] for entry in (await each.control("GET", "banks"))["banks"]]
    assert await execute(one.url, "SELECT FROM {schema}.change WHERE bank = %s", bank) == []
