"""What a home leaves to the next one, and what it does not."""

from __future__ import annotations

import zlib
from pathlib import Path
from time import monotonic
from typing import cast

import pytest

from emulator.api.messages import Request, Response
from emulator.bank.documents import Notification
from emulator.bank.kinds import NOTIFICATION
from emulator.store.postgres import leases, log
from tests.postgres.leased import commits_of, over, refused
from tests.postgres.process import HEADERS, Process, eventually, execute, process

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_home_that_ends_leaves_request_log_and_counters(one: Process, two: Process, tmp_path: Path) -> None:
    rule = {
        "name": "twice",
        "unsigned": True,
        "when": {"operation": "getAccounts"},
        "times": {"first": 2},
        "then": {"answer": {"status": 500, "code": "SYSTEM_ERROR"}},
    }

    async def accounts(each: Process) -> int:
        answer = await each.send(Request("GET", "/banks/left/v1/accounts", HEADERS))
        assert isinstance(answer, Response)
        return answer.status

    async with process(one.url, tmp_path / "three") as three:
        await three.control("PUT", "banks/left", {"fixtures": "empty"}, status=201)
        await three.control("POST", "rules", {"rules": [rule]}, bank="left")
        assert [await accounts(three), await accounts(one)] == [500, 500]
        before = await three.control("GET", "requests", bank="left")
        began = monotonic()
        await three.end()
        assert await one.control("GET", "requests", bank="left") == before
        assert monotonic() - began < leases.LASTS, "it waited for the lease"
        assert await accounts(two) == 400
        (count,) = (await one.control("GET", "rules", bank="left"))["counts"]
        assert (count["matched"], count["acted"]) == (3, 2)
        entries = (await one.control("GET", "requests", bank="left"))["requests"]
        assert [entry["id"] for entry in entries] == ["3", "2", "1"]


async def test_what_a_home_has_left_waits_for_one_that_can_load_the_bank(
    one: Process, two: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with process(one.url, tmp_path / "three") as three:
        await three.control("PUT", "banks/heirloom", {"fixtures": "empty"}, status=201)
        await three.send(Request("GET", "/banks/heirloom/v1/accounts", HEADERS))
        await three.end()
    async with commits_of(one, refused, (log.CHANGES,)):
        await one.control("GET", "requests", bank="heirloom", status=503)
    await eventually(lambda: "heirloom" not in one.leases.held)
    for each in (two, one):
        assert len((await each.control("GET", "requests", bank="heirloom"))["requests"]) == 1


async def test_what_a_home_has_left_is_for_the_next_one_only(one: Process, two: Process, tmp_path: Path) -> None:
    """A home that is killed loses what it had in memory; what was left before it does not come back."""
    async with process(one.url, tmp_path / "three") as three:
        await three.control("PUT", "banks/heir", {"fixtures": "empty"}, status=201)
        await three.send(Request("GET", "/banks/heir/v1/accounts", HEADERS))
        await three.end()
    assert len((await one.control("GET", "requests", bank="heir"))["requests"]) == 1
    one.homes.drop("heir")  # as if it was killed
    await over(one, "heir")
    assert (await two.control("GET", "requests", bank="heir"))["requests"] == []


async def test_a_bank_in_which_nothing_happens_rests_after_the_end_of_its_home(one: Process, tmp_path: Path) -> None:
    """A thousand banks would else be loaded by those that are left. One with something to do is taken over."""
    async with process(one.url, tmp_path / "three") as three:
        for name in ("resting", "busy"):
            await three.control("PUT", f"banks/{name}", {"fixtures": "empty"})
        busy = three.registry.opened("busy")
        assert busy is not None
        busy.bank.change_settings({"notifications": True})
        busy.bank.documents.put(NOTIFICATION, cast(Notification, {"id": "n", "state": "waiting", "due": "9999"}))
        await three.end()
    homes = "SELECT name, home IS NOT NULL FROM {schema}.bank WHERE name IN ('resting', 'busy')"
    assert dict(await execute(one.url, homes)) == {"resting": False, "busy": True}
    await execute(one.url, "DELETE FROM {schema}.bank WHERE name = 'busy'")  # it is no real notification


@pytest.mark.parametrize("memory", ["", "x", "5", "[]", '{"requests": [[1, "{}"]]}', '{"requests": 5}'])
async def test_what_a_home_has_left_is_left_out_where_it_cannot_be_read(
    one: Process, bank: str, memory: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = await one.control("PUT", "settings", {"progression": "manual"}, bank=bank)
    await one.homes._give_back([bank])
    one.homes.drop(bank)
    await execute(
        one.url,
        "UPDATE {schema}.bank SET memory = %s WHERE name = %s",
        zlib.compress(memory.encode()) if memory else b"not compressed",
        bank,
    )
    assert await one.control("GET", "settings", bank=bank) == before
    assert f"bank {bank}: what its last home had in memory cannot be read: " in caplog.text
