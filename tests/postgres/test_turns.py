"""Turns over a shared store: each bank's one behind the other, different banks at the same time, long work in steps."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import psycopg
import pytest
from emulator.assemble.shared import registry, upkeep
from emulator.assemble.shared import snapshots as shared_snapshots

from emulator.api.messages import Answered, Request, Response, Steps, Stream, Unfinished
from emulator.bank import snapshots
from emulator.bank.kinds import TRANSACTION
from emulator.bank.sandbox import data
from emulator.client.signing import Identity
from emulator.client.tpp import Tpp
from emulator.store.postgres import Committed, Database, Outcome, StoreUnreachable, Work, database, statements
from emulator.store.snapshot import Tables, snapshot_bytes
from tests.postgres.process import HEADERS, Process, process

SCHEMA = "bank_emulator"
MANY = {"customers": 40, "accountsPerCustomer": 1, "transactionsPerAccount": 100}


@pytest.fixture
async def one(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Process]:
    """A process that, as every other of its test, does nothing but what it is asked for."""
    monkeypatch.setattr(upkeep, "PAUSE", 3600)
    async with process(store_url, tmp_path / "one") as one:
        yield one


@asynccontextmanager
async def locked(store_url: str, bank: str) -> AsyncIterator[None]:
    """Somebody else has the right to a bank for the time of the block."""
    async with await psycopg.AsyncConnection.connect(store_url) as connection:
        await connection.execute(f"SELECT 1 FROM {SCHEMA}.bank WHERE name = %s FOR UPDATE", [bank])
        yield


async def test_a_bank_whose_turn_waits_holds_up_no_other(store_url: str, one: Process) -> None:
    for bank in ("red", "blue"):
        await one.control("PUT", f"banks/{bank}", {"fixtures": "empty"}, status=201)
    async with locked(store_url, "red"):
        waiting = one.ask("POST", "clock/advance", {"by": "PT1H"}, bank="red")
        behind = one.ask("GET", "clock", bank="red")
        for _ in range(3):
            await one.control("POST", "clock/advance", {"by": "PT1H"}, bank="blue")
        await one.control("GET", "clock")
        assert not waiting.done()
        assert not behind.done(), "the turns of a bank come one behind the other"
    assert await status(waiting) == 200
    assert await status(behind) == 200


async def test_one_batch_of_requests_to_several_banks_is_answered_bank_by_bank(store_url: str, one: Process) -> None:
    for bank in ("red", "blue"):
        await one.control("PUT", f"banks/{bank}", {"fixtures": "empty"}, status=201)
    requests = [Request("GET", f"/banks/{bank}/v1/nothing", HEADERS) for bank in ("red", "blue", "red")]
    async with locked(store_url, "red"):
        requests[0].method = "POST"
        red, blue, second = one.turns.begin(requests)
        assert await status(blue) == 404
        assert not red.done()
        assert not second.done()
    assert (await status(red), await status(second)) == (404, 404)


async def test_a_bank_without_requests_leaves_memory_and_comes_back(
    one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("red", "blue"):
        await one.control("PUT", f"banks/{name}", status=201)
        await one.control("PUT", "settings", {"progression": "manual"}, bank=name)
    later = monotonic() + 25 * 3600
    monkeypatch.setattr(registry, "monotonic", lambda: later)
    await one.control("GET", "clock", bank="blue")
    await one.turns._upkeep._look()
    assert set(one.registry.open_banks) == {"default", "blue"}
    assert (await one.control("GET", "settings", bank="red"))["progression"] == "manual"
    assert set(one.registry.open_banks) == {"default", "blue", "red"}


async def test_a_bank_that_has_something_to_do_stays_in_memory(one: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    banks = one.registry
    for name in ("red", "blue"):
        await one.control("PUT", f"banks/{name}", status=201)
    later = monotonic() + 25 * 3600
    monkeypatch.setattr(registry, "monotonic", lambda: later)
    assert banks.idle() == ["red", "blue"]
    unwatch = banks.open_banks["red"].service.bank.watch(lambda _: None)
    waits = banks.open_banks["blue"]
    waits.requests.begin(waits.service.bank.clock.stamp(), Request("GET", "/banks/blue/v1/accounts", HEADERS))
    assert banks.idle() == []
    for name in ("red", "blue"):
        banks.unload(name)
    assert set(banks.open_banks) == {"default", "red", "blue"}
    unwatch()
    assert banks.idle() == ["red"]
    monkeypatch.setattr(banks, "config", replace(banks.config, idle_seconds=0))
    assert banks.idle() == [], "0 stands for never"


async def test_a_tpp_that_could_not_be_stored_is_taken_later_and_a_broken_one_is_told_once(
    one: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tpps = tmp_path / "one" / "tpps"
    shutil.copytree(tpps / "demo", tpps / "shop")
    (tpps / "broken").mkdir()

    async def refused(whole: Callable[[Work], Awaitable[Committed]], work: Work) -> Committed:
        raise StoreUnreachable("away")

    async def names() -> list[str]:
        return [tpp["name"] for tpp in (await one.control("GET", "tpps"))["tpps"]]

    with monkeypatch.context() as away:
        commits(away, refused)
        await one.turns._upkeep._look()
    assert "shop" not in await names()
    for _ in range(2):
        await one.turns._upkeep._look()
    assert "shop" in await names()
    assert len([record for record in caplog.records if "broken" in record.getMessage()]) == 1


async def test_nobody_sees_a_bank_before_it_is_stored(one: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    await one.control("PUT", "banks/blue", {"fixtures": "empty"}, status=201)
    stored, reached = asyncio.Event(), asyncio.Event()

    async def slow(whole: Callable[[Work], Awaitable[Committed]], work: Work) -> Committed:
        if work.new_banks:
            reached.set()
            await stored.wait()
        return await whole(work)

    commits(monkeypatch, slow)
    both = asyncio.Event()

    class Counted(asyncio.Event):
        waiting = 0

        async def wait(self) -> Literal[True]:
            self.waiting += 1
            if self.waiting == 2:
                both.set()
            return await super().wait()

    one.turns._runner._settled = Counted()
    one.turns._runner._settled.set()
    creating = one.ask("PUT", "banks/green", {"fixtures": "empty"})
    await reached.wait()
    listed = asyncio.ensure_future(one.control("GET", "banks", bank="blue"))
    asked = one.ask("GET", "clock", bank="green")
    held_up = asyncio.ensure_future(both.wait())
    await asyncio.wait([listed, asked, held_up], return_when=asyncio.FIRST_COMPLETED)
    assert held_up.done()
    assert not listed.done()
    assert not asked.done()
    stored.set()
    assert "green" in [bank["name"] for bank in (await listed)["banks"]]
    assert (await status(creating), await status(asked)) == (201, 200)


async def test_a_bank_that_could_not_be_stored_was_never_there(one: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    await one.control("PUT", "banks/blue", {"fixtures": "empty"}, status=201)

    async def refused(whole: Callable[[Work], Awaitable[Committed]], work: Work) -> Committed:
        if work.new_banks:
            raise StoreUnreachable("away")
        return await whole(work)

    commits(monkeypatch, refused)
    creating, tpp = (
        one.ask("PUT", "banks/green", {"fixtures": "empty"}),
        one.ask("POST", "tpps", {"name": "other"}, bank="blue"),
    )
    assert (await status(creating), await status(tpp)) == (503, 201)
    assert [bank["name"] for bank in (await one.control("GET", "banks"))["banks"]] == ["default", "blue"]
    monkeypatch.undo()
    await one.control("PUT", "banks/green", {"fixtures": "empty"}, status=201)


@pytest.mark.parametrize(("losses", "expected"), [(2, 200), (3, 503)])
async def test_a_turn_that_loses_its_lock_is_run_again(
    one: Process, monkeypatch: pytest.MonkeyPatch, losses: int, expected: int
) -> None:
    """As by a server that ends a transaction in which nothing has happened for long: the machine is too busy."""
    lost: list[Work] = []
    before = await one.control("GET", "clock")

    async def late(whole: Callable[[Work], Awaitable[Committed]], work: Work) -> Committed:
        if len(lost) < losses:
            lost.append(work)
            raise ConnectionError("server closed the connection unexpectedly")
        return await whole(work)

    async def outcome(self: Database, work: Work) -> Outcome:
        await self.end()
        return Outcome.LOST

    monkeypatch.setattr(Database, "outcome", outcome)
    commits(monkeypatch, late)
    await one.control("PUT", "clock", {"mode": "frozen"}, status=expected)
    after = await one.control("GET", "clock")
    assert (before["mode"], after["mode"]) == ("live", "frozen" if expected == 200 else "live")


async def test_between_two_steps_another_process_has_the_bank(store_url: str, tmp_path: Path, one: Process) -> None:
    async with process(store_url, tmp_path / "two") as two:
        await two.control("PUT", "settings", {"progression": "manual"})
        request = Request("POST", "/_emulator/generate", HEADERS, json.dumps(MANY).encode())
        before, counts = await customers(two), []
        while isinstance(answer := await one.go_on(request), Unfinished):
            await two.control("POST", "clock/advance", {"by": "PT1M"})
            counts.append(await customers(two))
        assert isinstance(answer, Response)
        assert answer.status == 200
        assert counts == sorted(counts)
        assert len(set(counts)) > 3, "each step is stored by itself"
        assert await customers(two) == before + 40


async def test_between_two_pieces_of_a_deletion_another_process_has_the_bank(
    store_url: str, tmp_path: Path, one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "PIECE", 5)
    tpp = Tpp("http://127.0.0.1:8080", Identity.from_folder(tmp_path / "one" / "tpps" / "demo"))
    async with process(store_url, tmp_path / "two") as two:
        await two.control("PUT", "settings", {"progression": "manual"})
        await one.control("GET", "settings")
        documents = one.registry.default.bank.documents
        accounts = [transaction["accountId"] for transaction in documents.all(TRANSACTION)]
        account = max(set(accounts), key=accounts.count)
        sent = tpp.prepare("DELETE", f"/v1/sandbox/accounts/{account}")
        request = Request(sent.method, sent.target, tuple(sent.headers.items()))
        counts = []
        while isinstance(answer := await one.go_on(request), Unfinished):
            ledger = await two.control("GET", "ledger")
            assert (ledger["balanced"], account in str(ledger)) == (True, True)
            counts.append(two.registry.default.bank.documents.count(TRANSACTION, accountId=account))
        assert isinstance(answer, Response)
        assert (answer.status, counts) == (204, sorted(set(counts), reverse=True))
        assert len(counts) > 3
        assert account not in str(await two.control("GET", "ledger"))


async def test_what_takes_long_takes_back_its_steps_when_one_cannot_be_stored(
    one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[int] = []

    async def third_fails(whole: Callable[[Work], Awaitable[Committed]], work: Work) -> Committed:
        attempts.append(1)
        if len(attempts) == 3:
            raise StoreUnreachable("away")
        return await whole(work)

    before = await customers(one)
    monkeypatch.setattr(statements, "LIMITS", statements.LIMITS_BUSY)  # a busy machine must not lose another step
    commits(monkeypatch, third_fails)
    await one.control("POST", "generate", MANY, status=503)
    monkeypatch.undo()
    assert len(attempts) > 4
    assert await customers(one) == before


async def test_what_takes_long_ends_where_its_bank_is_deleted_meanwhile(
    store_url: str, tmp_path: Path, one: Process
) -> None:
    await one.control("PUT", "banks/red", {"fixtures": "empty"}, status=201)
    async with process(store_url, tmp_path / "two") as two:
        request = Request("POST", "/banks/red/_emulator/generate", HEADERS, json.dumps(MANY).encode())
        assert isinstance(await one.go_on(request), Unfinished)
        await two.control("DELETE", "banks/red", status=204)
        await two.control("PUT", "banks/red", {"fixtures": "empty"}, status=201)
        assert await status(one.go_on(request)) == 409
        assert await customers(one, bank="red") == 0


async def test_what_takes_long_ends_where_another_process_resets_its_bank(
    store_url: str, tmp_path: Path, one: Process
) -> None:
    async with process(store_url, tmp_path / "two") as two:
        before = await customers(two)
        request = Request("POST", "/_emulator/generate", HEADERS, json.dumps(MANY).encode())
        while before == await customers(two):
            assert isinstance(await one.go_on(request), Unfinished)
        await two.control("POST", "reset")
        while isinstance(answer := await one.go_on(request), Unfinished):
            pass
        assert isinstance(answer, Response)
        assert (answer.status, await customers(one), await customers(two)) == (409, before, before)


@pytest.mark.parametrize(("first", "expected"), [(None, (2, 200)), (1, (1, 500))])
async def test_a_step_that_needs_more_begins_the_request_again_if_nothing_was_done(
    one: Process, first: int | None, expected: tuple[int, int]
) -> None:
    await one.control("PUT", "banks/red", {"fixtures": "empty"}, status=201)
    begun: list[int] = []

    def steps() -> Steps:
        begun.append(1)
        yield first
        assert one.registry.find("red") is not None, "the first step has not asked for it"
        return Response(200)

    one.answer_with(steps)
    request = Request("GET", "/v1/steps", HEADERS)
    while isinstance(answer := await one.go_on(request), Unfinished):
        pass
    assert isinstance(answer, Response)
    assert (len(begun), answer.status) == expected


async def test_exchanges_and_snapshots_are_read_where_they_are_asked_for(
    one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    for name in ("exchanges", "snapshots"):
        whole = getattr(Database, name)

        def read(self: Database, *about: Any, name: str = name, whole: Any = whole) -> Any:
            asked.append(name)
            return whole(self, *about)

        monkeypatch.setattr(Database, name, read)
    await one.control("GET", "clock")
    await one.control("PUT", "settings", {"progression": "manual"})
    await one.control("GET", "payments")
    assert asked == []
    await one.control("GET", "requests")
    assert asked == ["exchanges"]
    await one.control("PUT", "snapshots/first", status=201)
    assert set(asked) == {"exchanges", "snapshots"}
    assert [saved["name"] for saved in (await one.control("GET", "snapshots"))["snapshots"]] == ["first"]


async def test_a_large_snapshot_is_stored_between_turns_and_has_the_bank_as_it_was_at_first(
    one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "LARGE", 0)
    monkeypatch.setattr(statements, "SAVE_SNAPSHOT", "no turn writes the content")
    await one.control("PUT", "snapshots/first", status=201)
    goes_on = threading.Event()

    def when_allowed(tables: Tables) -> bytes:
        goes_on.wait(60)
        return snapshot_bytes(tables)

    monkeypatch.setattr(shared_snapshots, "snapshot_bytes", when_allowed)
    await one.control("PUT", "settings", {"progression": "manual"})
    request = Request("PUT", "/_emulator/snapshots/first", HEADERS, b"{}")
    assert isinstance(await one.go_on(request), Unfinished)
    saved = one.go_on(request)
    await one.control("PUT", "settings", {"progression": "immediate"})
    assert not saved.done()
    goes_on.set()
    while isinstance(answer := await saved, Unfinished):
        saved = one.go_on(request)
    assert isinstance(answer, Response)
    assert answer.status == 200
    await one.control("POST", "snapshots/first/restore")
    assert (await one.control("GET", "settings"))["progression"] == "manual"


async def test_contents_that_no_turn_has_named_are_not_listed_and_later_deleted(
    one: Process, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process leaves them that is killed while it saves a snapshot."""
    monkeypatch.setattr(snapshots, "LARGE", 0)
    async with await psycopg.AsyncConnection.connect(store_url, autocommit=True) as connection:
        for name, days in ((".yesterday", 2), (".today", 0)):
            await connection.execute(
                f"INSERT INTO {SCHEMA}.snapshot VALUES ('default', %s, now() - %s * interval '1 day', '')", [name, days]
            )
        assert (await one.control("GET", "snapshots"))["snapshots"] == []
        await one.control("PUT", "snapshots/first", status=201)
        rows = await (await connection.execute(f"SELECT name FROM {SCHEMA}.snapshot ORDER BY name")).fetchall()
    assert rows == [(".today",), ("first",)]


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The statements that are executed meanwhile."""
    executed: list[str] = []
    execute = psycopg.AsyncConnection.execute

    async def counted(self: Any, statement: Any, *about: Any, **more: Any) -> Any:
        executed.append(statement)
        return await execute(self, statement, *about, **more)

    with monkeypatch.context() as patched:
        patched.setattr(psycopg.AsyncConnection, "execute", counted)
        yield executed


async def test_a_turn_that_changes_a_bank_is_one_question_and_one_statement_that_is_committed(
    one: Process, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await one.control("PUT", "clock", {"mode": "frozen"})
    body = b'{"creditorName": "none"}'
    with counting(monkeypatch) as executed:
        await one.control("PUT", "clock", {"now": "2031-01-01T00:00:00+00:00"})
        await asyncio.gather(
            *one.turns.begin([Request("POST", "/v1/payments/sepa-credit-transfers", HEADERS, body) for _ in range(3)])
        )
    words = [statement.split()[0] for statement in executed]
    assert words == ["BEGIN", "WITH", "COMMIT"] * 2
    async with await psycopg.AsyncConnection.connect(store_url, autocommit=True) as connection:
        stored = await (
            await connection.execute(f"SELECT count(*), count(DISTINCT id) FROM {SCHEMA}.exchange")
        ).fetchone()
    assert stored == (3, 3)


async def test_a_turn_takes_the_requests_that_come_while_it_waits_for_its_lock(
    store_url: str, one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    await one.control("PUT", "clock", {"mode": "frozen"})
    payment = "/v1/payments/sepa-credit-transfers"
    with counting(monkeypatch) as executed:
        async with locked(store_url, "default"):
            executed.clear()
            answers = [one.go_on(Request("POST", payment, HEADERS, b"{}"))]
            while not executed:
                await asyncio.sleep(0)
            answers += [one.go_on(Request(method, payment, HEADERS, b"{}")) for method in ("POST", "GET", "POST")]
        assert [await status(answer) for answer in answers] == [400, 400, 405, 400]
    assert [statement.split()[0] for statement in executed] == ["BEGIN", "WITH", "COMMIT"]


async def test_a_long_tail_is_applied_without_the_lock(
    store_url: str, tmp_path: Path, one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with process(store_url, tmp_path / "two") as two:
        await two.control("GET", "clock")
        for progression in ("manual", "immediate", "manual"):
            await one.control("PUT", "settings", {"progression": progression})
        monkeypatch.setattr(database, "LONG", 1)
        with counting(monkeypatch) as executed:
            await two.control("PUT", "settings", {"conformance": False})
        words = [statement.split()[0] for statement in executed]
        assert words == ["BEGIN", "ROLLBACK", "WITH", "BEGIN", "WITH", "COMMIT"]
        settings = await one.control("GET", "settings")
        assert (settings["progression"], settings["conformance"]) == ("manual", False)


async def test_requests_without_an_id_get_different_ones_from_the_bank(one: Process) -> None:
    await one.control("PUT", "clock", {"mode": "frozen"})
    answers = await asyncio.gather(*one.turns.begin([Request("GET", "/v1/consents/none", HEADERS) for _ in range(3)]))
    given = [dict(answer.headers)["X-Request-ID"] for answer in answers if isinstance(answer, Response)]
    assert len(set(given)) == 3


async def test_exchanges_of_a_commit_that_was_looked_up_are_published_once_with_their_numbers(
    one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(whole: Callable[[Work], Awaitable[Committed]], work: Work) -> Committed:
        await whole(work)
        raise ConnectionError("server closed the connection unexpectedly")

    async def outcome(self: Database, work: Work) -> Outcome:
        return Outcome.WRITTEN

    events: list[Any] = []
    one.registry.default.bank.watch(events.append)
    monkeypatch.setattr(Database, "outcome", outcome)
    with monkeypatch.context() as patched:
        commits(patched, lost)
        assert await status(one.go_on(Request("POST", "/v1/consents/7", HEADERS))) == 405
    (listed,) = (await one.control("GET", "requests"))["requests"]
    assert [event["id"] for event in events if event["type"] == "request"] == [listed["id"]]


async def test_a_request_log_that_is_cleared_in_the_same_turn_shows_numbers(one: Process) -> None:
    requests = [
        Request("POST", "/v1/consents/1", HEADERS),
        Request("DELETE", "/_emulator/requests", HEADERS),
        Request("POST", "/v1/consents/2", HEADERS),
        Request("GET", "/_emulator/requests", HEADERS),
    ]
    *_, listed = await asyncio.gather(*one.turns.begin(requests))
    assert isinstance(listed, Response)
    (shown,) = json.loads(listed.body)["requests"]
    assert shown["target"] == "/v1/consents/2"
    assert shown["id"].isdigit()


async def test_a_request_that_was_refused_before_its_turn_is_logged_though_the_next_turn_is_run_again(
    one: Process,
) -> None:
    await one.control("PUT", "settings", {"progression": "manual"})
    log = one.registry.default.log
    log.begin(one.registry.default.bank.clock.stamp(), Request("GET", "/v1/consents/3", HEADERS))
    await one.control("PUT", "banks/blue", {"fixtures": "empty"}, status=201)  # its turn needs more
    assert await answered(one) == [3]


async def test_a_read_of_what_nobody_else_has_changed_is_one_statement(
    store_url: str, tmp_path: Path, one: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with process(store_url, tmp_path / "two") as two:
        for reader in (one, two):
            await reader.control("GET", "clock")
        for year in ("2031", "2032"):
            await one.control("PUT", "clock", {"now": f"{year}-01-01T00:00:00+00:00"})
            with counting(monkeypatch) as statements:
                assert (await two.control("GET", "clock"))["now"].startswith(year)
                assert len(statements) == 2, "one that sees that the bank has changed, and one that fetches the change"
                statements.clear()
                for _ in range(3):
                    await two.control("GET", "clock")
                await two.go_on(Request("GET", "/v1/consents/none", HEADERS))
                assert len(statements) == 4


async def test_requests_are_numbered_in_the_order_of_their_answers_whichever_process_answers(
    one: Process, store_url: str, tmp_path: Path
) -> None:
    async with process(store_url, tmp_path / "two") as two:
        for number, reader in enumerate((one, one, two, one, two, two)):
            method = "POST" if number == 3 else "GET"
            assert await status(reader.go_on(Request(method, f"/v1/consents/{number}", HEADERS))) in (400, 405)
        for reader in (one, two):
            listed = (await reader.control("GET", "requests"))["requests"]
            assert [request["target"] for request in listed] == [
                f"/v1/consents/{number}" for number in (5, 4, 3, 2, 1, 0)
            ]
        requests = [Request("GET", f"/v1/consents/{number}", HEADERS) for number in range(10, 14)]
        await asyncio.gather(*one.turns.begin(requests))
        listed = (await two.control("GET", "requests"))["requests"]
        assert [request["target"] for request in listed][:4] == [
            f"/v1/consents/{number}" for number in (13, 12, 11, 10)
        ]


async def answered(process: Process) -> list[int]:
    """The requests for consents that its log shows, by the last part of their path, newest first."""
    listed = (await process.control("GET", "requests"))["requests"]
    return [int(request["target"].rpartition("/")[2]) for request in listed]


async def test_a_read_over_a_connection_that_the_server_has_ended_is_answered(store_url: str, one: Process) -> None:
    await one.control("GET", "clock")
    async with await psycopg.AsyncConnection.connect(store_url, autocommit=True) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'bank-emulator bank_emulator' AND datname = current_database()"
        )
    await one.control("GET", "clock")


async def customers(process: Process, *, bank: str = "") -> int:
    answer = await process.go_on(Request("GET", f"{bank and f'/banks/{bank}'}/ready", HEADERS))
    assert isinstance(answer, Response)
    count: int = json.loads(answer.body)["counts"]["customers"]
    return count


async def status(answer: Awaitable[Answered | Stream]) -> int:
    answered = await answer
    assert isinstance(answered, Response), answered
    return answered.status


def commits(
    monkeypatch: pytest.MonkeyPatch,
    commit: Callable[[Callable[[Work], Awaitable[Committed]], Work], Awaitable[Committed]],
) -> None:
    """Let `commit` stand before every commit."""
    whole = Database.commit

    async def before(self: Database, work: Work) -> Committed:
        return await commit(lambda work: whole(self, work), work)

    monkeypatch.setattr(Database, "commit", before)
