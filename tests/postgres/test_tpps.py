"""TPPs that one process issues and all know."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from emulator.api.messages import HANG_UP, Response
from emulator.assemble import homes
from emulator.assemble.stored_authority import KEEP
from emulator.store.postgres.connection import OutcomeUnknown, StoreUnreachable
from tests.known_state import KARI
from tests.postgres.leased import commits_of, has, now, refused
from tests.postgres.process import Process, eventually, execute, process, request

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_tpp_that_could_not_be_replaced_is_what_it_was_without_a_request(one: Process, bank: str) -> None:
    """Its folder beside the process is not taken for a new one."""
    issued = await one.control("POST", "tpps", {"name": "to-be-replaced"}, bank=bank, status=201)
    async with commits_of(one, refused, (KEEP,)):
        await one.control("POST", "tpps", {"name": "to-be-replaced", "replace": True}, bank=bank, status=503)
    await one.homes._look_around()
    known = one.homes.authority.find("to-be-replaced")
    assert known is not None
    assert known.certificate_pem == issued["certificate"]


async def test_a_tpp_is_issued_whatever_becomes_of_the_changes_of_its_turn(
    one: Process, two: Process, bank: str
) -> None:
    """Or its key would be lost, and its name taken."""
    async with commits_of(one, refused):
        together = [
            request("POST", "clock/advance", {"by": "PT1H"}, bank=bank),
            request("POST", "tpps", {"name": "beside-a-refused-change"}, bank=bank),
        ]
        asked = [one.handler.in_turn(each) for each in together]
        assert [(await answer).status for answer in asked] == [503, 201]
    names = [tpp["name"] for tpp in (await two.control("GET", "tpps", bank=bank))["tpps"]]
    assert "beside-a-refused-change" in names


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_bank_that_is_not_stored_has_issued_no_tpp(one: Process, two: Process, bank: str, is_new: bool) -> None:
    """Nor replaced the key of the one there was."""
    before = await one.control("POST", "tpps", {"name": "not-replaced", "replace": True}, bank=bank, status=201)
    path, tpps = f"banks/{bank}" + "-new" * is_new, [{"name": "not-replaced"}, {"name": "not-issued"}]
    async with commits_of(one, refused):
        for tpp in tpps:
            await one.control("PUT", path, {"fixtures": "empty", "tpp": tpp}, bank=bank, status=503)
    for each in (one, two):
        known = {tpp["name"]: tpp for tpp in (await each.control("GET", "tpps", bank=bank))["tpps"]}
        assert known["not-replaced"]["certificate"] == before["certificate"]
        assert "not-issued" not in known


async def test_a_bank_whose_tpp_could_not_be_stored_is_not_said_to_be_as_it_was(one: Process, bank: str) -> None:
    path, body = f"banks/{bank}-new", {"fixtures": "empty", "tpp": {"name": "late-tpp"}}
    async with commits_of(one, refused, (KEEP,)):
        answer = await one.ask("PUT", path, body, bank=bank)
    assert isinstance(answer, Response)
    assert answer.delivery.disconnect == "after"
    assert "tpp" in await one.control("PUT", path, body, bank=bank, status=200)


async def test_a_tpp_of_which_nobody_knows_whether_it_is_stored_gets_no_answer(one: Process, bank: str) -> None:
    """Nor is it issued again where the lease is over by then."""
    lease = one.leases.held[bank]

    async def lost(commit: Awaitable[Any]) -> Any:
        await commit
        lease.until = 0.0
        raise OutcomeUnknown("the connection is lost")

    async with commits_of(one, lost, (KEEP,)):
        answer = await one.ask("POST", "tpps", {"name": "perhaps"}, bank=bank)
    assert isinstance(answer, Response)
    assert answer.delivery is HANG_UP, answer.body


async def test_what_one_process_makes_the_others_show_at_once(one: Process, two: Process) -> None:
    await two.control("PUT", "banks/red", {"fixtures": "empty", "seed": 5}, status=201)
    assert "red" in [entry["name"] for entry in (await one.control("GET", "banks"))["banks"]]
    await one.control("PUT", "banks/red", {"fixtures": "empty", "seed": 6})
    assert (has(one, "red"), has(two, "red")) == (False, True)
    await one.control("DELETE", "banks/red", status=204)
    for each in (two, one):
        assert "red" not in [entry["name"] for entry in (await each.control("GET", "banks"))["banks"]]
        await each.control("GET", "clock", bank="red", status=404)
    await one.control("POST", "tpps", {"name": "shop"}, bank="")
    for each in (two, one):
        assert "shop" in [entry["name"] for entry in (await each.control("GET", "tpps"))["tpps"]]
    await two.control("POST", "tpps", {"name": "shop"}, status=409)
    shop = (await two.control("POST", "tpps", {"name": "shop-of-two"}))["tppId"]
    await one.control("POST", "sessions", {"tpp": "shop-of-two", "nationalId": KARI})
    assert [consent["tpp"] for consent in (await one.control("GET", "consents"))["consents"]] == [shop]


async def test_requests_that_come_together_look_together_for_what_others_have_made(one: Process, bank: str) -> None:
    looks, first = list[float](), asyncio.Event()

    async def slowly(look: Awaitable[Any]) -> Any:
        looks.append(monotonic())
        await first.wait()
        return await look

    async with commits_of(one, slowly, (homes._LOOK,)):
        asked = [one.ask("GET", "banks", bank=bank) for _ in range(50)]
        await eventually(lambda: looks)
        asked += [one.ask("GET", "tpps", bank=bank) for _ in range(50)]
        first.set()
        assert {answer.status for answer in await asyncio.gather(*asked)} == {200}
    assert len(looks) < 20, "they look again where the lease was over, and so does the task that looks around"


async def test_a_tpp_that_two_processes_make_at_once_is_one(one: Process, two: Process, bank: str) -> None:
    await two.control("PUT", "banks/other", {"fixtures": "empty"}, status=201)
    asked = [
        one.ask("POST", "tpps", {"name": "both"}, bank=bank),
        two.ask("POST", "tpps", {"name": "both"}, bank="other"),
    ]
    assert sorted([(await answer).status for answer in asked]) == [201, 409]


async def test_a_tpp_is_stored_by_the_request_that_issued_it(one: Process, two: Process, bank: str) -> None:
    """Not by what goes on beside it, of which nobody would hear that another process was first."""

    async def late(keeping: Any) -> Any:
        await two.control("POST", "tpps", {"name": "first"}, bank=other, status=201)
        await one.homes._look_around()
        return await keeping

    other = f"{bank}-other"
    await two.control("PUT", f"banks/{other}", {"fixtures": "empty"}, status=201)
    async with commits_of(one, late, (KEEP,)):
        await one.control("POST", "tpps", {"name": "first"}, bank=bank, status=409)


async def test_only_the_request_that_issued_a_tpp_fails_with_it(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others of its turn are answered: what they have changed is stored."""
    before = await now(one, bank)
    rows = one.homes.server.rows

    async def away(statement: str, *values: Any, **options: Any) -> Any:
        if statement == KEEP:
            raise StoreUnreachable("PostgreSQL: no room")
        return await rows(statement, *values, **options)

    monkeypatch.setattr(one.homes.server, "rows", away)
    asked = [
        one.ask("POST", "clock/advance", {"by": "PT1H"}, bank=bank),
        one.ask("POST", "tpps", {"name": "homeless"}, bank=bank),
        one.ask("POST", "clock/advance", {"by": "PT1H"}, bank=bank),
    ]
    assert [(await answer).status for answer in asked] == [200, 503, 200]
    monkeypatch.undo()
    assert await now(one, bank) == before + timedelta(hours=2)
    assert "homeless" not in [tpp["name"] for tpp in (await one.control("GET", "tpps", bank=bank))["tpps"]]


async def test_a_tpp_that_could_not_be_stored_is_taken_later_and_a_broken_folder_is_logged_once(
    one: Process, tmp_path: Path, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with process(store_url, tmp_path / "own") as own:
        tpps = tmp_path / "own" / "tpps"
        shutil.copytree(tpps / "demo", tpps / "market")
        (tpps / "broken").mkdir()

        async def names() -> list[str]:
            return [tpp["name"] for tpp in (await own.control("GET", "tpps"))["tpps"]]

        while "market" not in await names():
            await asyncio.sleep(0.01)
        assert len([record for record in caplog.records if "broken" in record.getMessage()]) == 1


async def test_a_damaged_tpp_is_logged_once_and_left_out(
    one: Process, two: Process, caplog: pytest.LogCaptureFixture
) -> None:
    await execute(one.url, "INSERT INTO {schema}.secret VALUES ('tpp', 'odd', 1000000, '[]')")
    for each in (one, two, one):
        await each.homes.refresh()
        assert "odd" not in [tpp["name"] for tpp in (await each.control("GET", "tpps"))["tpps"]]
    logged = [record for record in caplog.records if "the secret tpp odd is damaged: " in record.getMessage()]
    assert len(logged) == 2, "by each process"
    await execute(one.url, "DELETE FROM {schema}.secret WHERE name = 'odd'")
    for each in (one, two):
        each.homes.authority.version = 0
