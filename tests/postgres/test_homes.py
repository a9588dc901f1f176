"""Each bank has one home: who it is, what becomes of its answers when it is late, and who comes after it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import psycopg
import pytest

from emulator.api.messages import Request, Response
from emulator.assemble import forwarding, homes, registry
from emulator.assemble.joining import assembled
from emulator.assemble.registry import DEFAULT
from emulator.bank.clock import LIVE
from emulator.settings import ServeSettings
from emulator.store.postgres import leases, log
from emulator.store.postgres.connection import OutcomeUnknown, Server, StoreUnreachable, StoreUnusable
from tests.ports import free_port
from tests.postgres.leased import commits_of, has, now, over, taken
from tests.postgres.process import HEADERS, Process, eventually, execute, process
from tests.postgres.server import PASSWORD, ROLE, PostgreSQL

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_every_process_answers_for_every_bank_and_says_where_it_is(one: Process, two: Process, bank: str) -> None:
    before = await now(one, bank)
    for each in (two, one, two):
        await each.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
    assert [await now(each, bank) for each in (one, two)] == [before + timedelta(hours=3)] * 2
    assert (has(one, bank), has(two, bank)) == (True, False)
    for each in (one, two):
        banks = {entry["name"]: entry for entry in (await each.control("GET", "banks"))["banks"]}
        assert banks[bank]["home"] == one.leases.address
        assert bank in (await ready(one))["banks"]
        assert bank not in (await ready(two))["banks"]


async def ready(one: Process) -> Any:
    import orjson

    answer = await one.send(Request("GET", "/ready", HEADERS))
    assert isinstance(answer, Response)
    assert answer.status == 200
    return orjson.loads(answer.body)


async def test_a_home_that_was_stopped_longer_than_its_lease_does_not_answer(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await now(one, bank)
    with monkeypatch.context() as stopped:
        await taken(one, two, bank, stopped)
        await two.control("POST", "clock/advance", {"by": "PT1H"}, bank=bank)
        real = leases.elapsed
        later = one.leases.held[bank].until + 0.1
        stopped.setattr(leases, "elapsed", lambda: max(real(), later))
        two.leases.held[bank].until = later + 60  # it has renewed
        assert await now(one, bank) == before + timedelta(hours=1)
    assert (has(one, bank), has(two, bank)) == (False, True)


async def test_a_home_that_was_stopped_does_not_call_itself_the_home_of_what_another_has_taken(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as stopped:
        await taken(one, two, bank, stopped)
        one.leases.held[bank].until = 0.0
        await one.homes.refresh()
        assert one.registry.home(bank) == two.leases.address


async def test_banks_whose_home_is_gone_are_taken_over_without_a_request(
    one: Process, two: Process, tmp_path: Path
) -> None:
    async with process(one.url, tmp_path / "three") as three:
        await three.control("PUT", "banks/orphan", {"fixtures": "empty"}, status=201)
        assert has(three, "orphan")
        await three.kill()
        await over(three, "orphan")
        await eventually(lambda: has(one, "orphan") or has(two, "orphan"))
        await one.control("GET", "clock", bank="orphan")


async def test_however_many_banks_a_home_had_they_are_taken_over_at_the_next_look(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["default", *(f"orphan{number}" for number in range(4))]

    async def once(_: homes.Homes, work: Callable[[], Awaitable[None]], **_logs: bool) -> None:
        await work()

    async with process(store_url, tmp_path / "one") as one:
        for name in names[1:]:
            await one.control("PUT", f"banks/{name}", {"fixtures": "empty"}, status=201)
    for name in names:
        await over(one, name)
    monkeypatch.setattr(homes, "AT_ONCE", 1)
    monkeypatch.setattr(homes.Homes, "_each_second", once)
    async with process(store_url, tmp_path / "two") as two:
        await eventually(lambda: all(has(two, name) for name in names))


async def test_a_process_ends_although_the_store_does_not_answer(
    one: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = asyncio.Event()

    async def unheard(sent: Any) -> Any:
        sent.close()
        silent.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(homes, "LEAVING", 0.05)
    monkeypatch.setattr(forwarding, "ENDING", 0.05)
    async with process(one.url, tmp_path / "three") as three:
        await three.control("PUT", "banks/stuck", {"fixtures": "empty"}, status=201)
        async with commits_of(three, unheard, (log._COMMIT_ONE, leases._GIVE_BACK)):
            stuck = three.ask("PUT", "settings", {"progression": "manual"}, bank="stuck")
            await silent.wait()
            await asyncio.wait_for(three.homes.leave(), 10)
            stuck.cancel()


async def test_of_two_processes_that_take_a_bank_at_once_the_later_one_hears_who_has_it(
    one: Process, two: Process, bank: str
) -> None:
    """Not that there is no such bank: the statement has read the row before the other one was first."""
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    one.homes.drop(bank)
    await over(one, bank)
    two.homes.known.pop(bank, None)
    async with await psycopg.AsyncConnection.connect(one.url) as holder:
        await holder.execute("SELECT 1 FROM bank_emulator.bank WHERE name = %s FOR UPDATE", [bank])
        asked = [each.send(Request("GET", f"/banks/{bank}/v1/accounts", HEADERS)) for each in (one, two)]
        while (await execute(one.url, waits))[0][0] < 2:
            await asyncio.sleep(0.005)
        await holder.commit()
    assert [(await answer).status for answer in asked] == [400, 400], "not signed, but known"


async def test_a_process_that_loads_a_bank_does_not_say_that_there_is_none(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it has never heard of it before, and another process sends it a request meanwhile."""
    load, loading, goes_on = two.homes._load, asyncio.Event(), asyncio.Event()

    async def slowly(lease: leases.Lease) -> None:
        loading.set()
        await goes_on.wait()
        await load(lease)

    async def none(_most: int) -> list[str]:
        return []

    monkeypatch.setattr(two.homes, "_load", slowly)
    monkeypatch.setattr(one.leases, "orphans", none)  # it would take the bank back before anybody asks
    one.homes.drop(bank)
    await over(one, bank)
    two.homes.known.pop(bank, None)
    asked = [two.send(Request("GET", f"/banks/{bank}/v1/accounts", HEADERS))]
    await loading.wait()
    two.homes.known.pop(bank, None)
    asked.append(one.send(Request("GET", f"/banks/{bank}/v1/accounts", HEADERS)))
    await eventually(lambda: one.homes.known[bank].address == two.leases.address)
    await asyncio.wait(asked[1:], timeout=0.05)
    goes_on.set()
    assert [(await answer).status for answer in asked] == [400, 400], "not signed, but known"


async def test_a_process_that_loses_a_bank_while_it_loads_it_does_not_say_that_there_is_none(
    one: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it has not heard of that bank before."""
    await one.homes._give_back([bank])
    one.homes.drop(bank)
    read = homes.content_of

    async def lost(*asked: Any) -> Any:
        one.homes.drop(bank)
        one.homes.known.pop(bank, None)
        return await read(*asked)

    with monkeypatch.context() as losing:
        losing.setattr(homes, "content_of", lost)
        answer = await one.send(Request("GET", f"/banks/{bank}/v1/accounts", HEADERS))
    assert answer.status == 503
    assert (await one.send(Request("GET", f"/banks/{bank}/v1/accounts", HEADERS))).status == 400  # it is not signed


@pytest.mark.parametrize("same", [False, True], ids=["another-address", "the-same-address"])
async def test_a_start_waits_for_the_lease_of_a_process_that_was_killed(
    store_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, *, same: bool
) -> None:
    """Its banks are there when it is ready, and its scenario is applied."""
    advertise = f"127.0.0.1:{free_port()}" if same else None
    async with process(store_url, tmp_path / "killed", advertise=advertise) as killed:
        killed.homes._bound.close()
    starting = asyncio.ensure_future(_started(store_url, tmp_path / "new", advertise))
    await asyncio.wait([starting], timeout=0.2)
    assert not starting.done(), "the lease is not over"
    await over(killed, DEFAULT)
    async with await starting as new:
        assert has(new, DEFAULT)
    assert "is not applied" not in caplog.text


async def _started(store_url: str, state: Path, advertise: str | None) -> Any:
    settings = ServeSettings(state=state, store=store_url, scenario=("slow-bank",), advertise=advertise)
    application = await asyncio.to_thread(assembled, settings, LIVE)
    return _running(application, store_url)


@asynccontextmanager
async def _running(application: Any, store_url: str) -> Any:
    one = Process(application, store_url)
    try:
        yield one
    finally:
        await one.kill()


@pytest.mark.parametrize("answers", [True, False], ids=["answers", "away"])
async def test_requests_for_a_bank_whose_home_is_not_known_look_for_it_once(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch, *, answers: bool
) -> None:
    """Over a slow line, or where the server says nothing, they would wait for one another."""
    looks, first, take = list[str](), asyncio.Event(), two.leases.take

    async def slowly(name: str, **options: Any) -> Any:
        looks.append(name)
        await first.wait()
        if not answers and name == bank:
            raise StoreUnreachable("PostgreSQL does not answer")
        return await take(name, **options)

    two.homes.known.pop(bank, None)
    with monkeypatch.context() as slow:
        slow.setattr(two.leases, "take", slowly)
        asked = [two.ask("GET", "clock", bank=bank) for _ in range(50)]
        await eventually(lambda: bank in looks)
        first.set()
        assert {answer.status for answer in await asyncio.gather(*asked)} == {200 if answers else 503}
    assert looks.count(bank) < 10, "they look again, together, where the home has renewed late or was not reached"
    await two.control("GET", "clock", bank=bank)


async def test_requests_that_wait_for_one_home_ask_together_whether_it_still_is(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two.control("GET", "clock", bank=bank)
    goes_on, asked, statements = asyncio.Event(), list[str](), list[float]()
    is_home = two.homes._ways._is_home

    async def counted(name: str, home: str) -> bool:
        asked.append(name)
        return await is_home(name, home)

    async def stuck(commit: Awaitable[Any]) -> Any:
        await goes_on.wait()
        return await commit

    async def noted(look: Awaitable[Any]) -> Any:
        statements.append(monotonic())
        await goes_on.wait()
        return await look

    monkeypatch.setattr(two.homes._ways, "_is_home", counted)
    monkeypatch.setattr(forwarding, "LATE", 0.01)
    async with commits_of(one, stuck), commits_of(two, noted, (leases._IS_HOME,)):
        waiting = [two.ask("POST", "clock/advance", {"by": "PT1S"}, bank=bank) for _ in range(20)]
        await eventually(lambda: len(asked) == 20)
        assert len(statements) == 1
        goes_on.set()
        assert {answer.status for answer in await asyncio.gather(*waiting)} == {200}


async def test_what_fails_meanwhile_does_not_disturb_who_loads_a_bank(one: Process, bank: str) -> None:
    looked, loaded, held = asyncio.Event(), asyncio.Event(), list[Any]()

    async def late(statement: Awaitable[Any], until: asyncio.Event) -> Any:
        held.append(statement)
        await until.wait()
        return await statement

    async with (
        commits_of(one, lambda look: late(look, looked), (homes._LOOK,)),
        commits_of(one, lambda changes: late(changes, loaded), (log.CHANGES,)),
    ):
        replaced = one.ask("PUT", f"banks/{bank}", {"fixtures": "empty"})
        await eventually(lambda: held)
        one.homes.drop(bank)
        read = one.ask("GET", "clock", bank=bank)
        await eventually(lambda: bank in one.leases.held)  # the reader has taken it, and loads it
        looked.set()
        for _ in range(20):  # it has found that the bank is lost
            await execute(one.url, "SELECT 1")
        loaded.set()
        assert [(await answer).status for answer in (read, replaced)] == [200, 200]


async def test_a_bank_without_requests_leaves_memory_and_comes_back(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await one.control("PUT", "settings", {"progression": "manual"}, bank=bank)
    with monkeypatch.context() as later:
        in_a_day = monotonic() + 25 * 3600
        later.setattr(registry, "monotonic", lambda: in_a_day)
        while has(one, bank):
            one.registry.close_idle()
    await eventually(lambda: bank not in one.leases.held)
    assert (await two.control("GET", "settings", bank=bank))["progression"] == "manual"
    assert (has(one, bank), has(two, bank)) == (False, True)


async def test_any_address_that_leads_here_can_be_told_to_the_others(
    one: Process, two: Process, bank: str, tmp_path: Path
) -> None:
    """As that of the machine around a container: it is none of the container's own."""
    name = "machine.invalid"
    async with process(one.url, tmp_path / "three", advertise=name) as three:
        host, _, port = three.leases.address.rpartition(":")
        assert host == name
        await three.control("PUT", "banks/around", {"fixtures": "empty"}, status=201)
        answer = await two.control("GET", "clock", bank="around", status=503)
        assert f"the process at {three.leases.address} cannot be reached" in str(answer)
        own = {**two.homes.known, "around": leases.Whereabouts(f"127.0.0.1:{port}", three.leases.home)}
        two.homes.known = own  # as if the machine passed it on
        await two.control("GET", "clock", bank="around")
        await three.control("DELETE", "banks/around", status=204)


async def test_an_address_that_another_process_has_is_refused(one: Process, tmp_path: Path) -> None:
    address = one.leases.address
    settings = ServeSettings(state=tmp_path, store=one.url, advertise=address)
    with pytest.raises(StoreUnusable, match=f"--advertise {address}: this process cannot listen there: "):
        await asyncio.to_thread(assembled, settings, LIVE)


async def test_eight_banks_at_once_share_the_connections_that_the_server_grants(
    postgresql: PostgreSQL, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Waiting for a free one is no error, though the process may have a third one, and the server has none."""
    url = postgresql.database()
    with postgresql.admin(url.rpartition("/")[2]) as admin:
        admin.execute(f"CREATE ROLE narrow LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 2")
        admin.execute("GRANT ALL ON DATABASE " + url.rpartition("/")[2] + " TO narrow")
    try:
        own = url.replace(f"//{ROLE}:", "//narrow:")
        async with process(own, tmp_path / "own", store_connections=3) as narrow:
            names = [f"n{number}" for number in range(8)]
            for name in names:
                await narrow.control("PUT", f"banks/{name}", {"fixtures": "empty"})
            asked = [
                narrow.ask("PUT", "settings", {"progression": ("manual", "time")[number % 2]}, bank=names[number % 8])
                for number in range(320)
            ]
            snapshots = [narrow.ask("PUT", "snapshots/s", bank=name) for name in names]
            assert {answer.status for answer in await asyncio.gather(*asked)} == {200}
            # 200: on a machine that is too busy to renew leases in time, one is saved again
            assert {answer.status for answer in await asyncio.gather(*snapshots)} <= {200, 201}
            assert caplog.text.count("too many connections for role") == 1
    finally:
        postgresql.drop(url)
        with postgresql.admin() as admin:
            admin.execute("DROP ROLE narrow")


async def test_whoever_waits_for_a_connection_to_a_silent_server_fails_with_the_first(one: Process) -> None:
    server = Server(one.url, "bank_emulator", connections=1)
    server.open()
    asked = [server.rows("SELECT pg_sleep(60)", within=0.1) for _ in range(20)]
    failures = [type(failed) for failed in await asyncio.gather(*asked, return_exceptions=True)]
    assert failures == [OutcomeUnknown, *[StoreUnreachable] * 19]
    assert await server.rows("SELECT 1") == [(1,)]
    await server.close()


async def test_an_error_of_a_statement_tells_those_who_wait_that_the_server_answers(one: Process) -> None:
    server = Server(one.url, "bank_emulator", connections=2)
    server.open()
    outcomes = await asyncio.gather(
        server.rows("SELECT pg_sleep(60)", within=1),
        server.rows("SELECT no_such_function()"),
        server.rows("SELECT pg_sleep(60)", within=1),  # in the place of the second
        server.rows("SELECT 1"),  # in that of the first
        return_exceptions=True,
    )
    assert [*map(type, outcomes[:3]), outcomes[3]] == [OutcomeUnknown, StoreUnreachable, OutcomeUnknown, [(1,)]]
    await server.close()


async def test_statements_wait_for_a_connection_in_the_loop_that_serves_as_in_that_of_the_start(one: Process) -> None:
    server = Server(one.url, "bank_emulator", connections=1)

    async def two() -> list[list[Any]]:
        server.open()
        try:
            return await asyncio.gather(server.rows("SELECT 1"), server.rows("SELECT 2"))
        finally:
            await server.close()

    for _ in range(2):
        assert await asyncio.to_thread(asyncio.run, two()) == [[(1,)], [(2,)]]
