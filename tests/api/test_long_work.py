"""Long work through the turns of the HTTP server: others are answered meanwhile, and it ends once, as a whole."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import shutil
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from threading import enumerate as enumerate_threads
from typing import Any
from unittest.mock import Mock

import pytest

from emulator.api.messages import Answered, Request, Response, Unfinished
from emulator.assemble import assemble
from emulator.assemble.application import BankApplication
from emulator.bank import fixtures, sandbox, snapshots
from emulator.bank.accounts import ledger
from emulator.bank.clock import real_now
from emulator.bank.kinds import ACCOUNT, CARD, CARD_TRANSACTION, CONTACT, CUSTOMER, PAYMENT, TRANSACTION
from emulator.bank.payment import progression
from emulator.bank.problems import Problem
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.bank.sandbox import patterns
from emulator.bank.threads import run_to_end
from emulator.ca import CertificateAuthority
from emulator.client.clients import Tpp
from emulator.control import Control
from emulator.scenario import matching
from emulator.settings import ServeSettings
from emulator.store import Kind, StoreUnwritable, journal_log
from emulator.store.disk import Disk
from emulator.store.journal import content_in
from emulator.store.snapshot import write_snapshot
from emulator.store.table import DocumentTable
from emulator.web.handler import Handler
from tests.known_state import KARI
from tests.unit.payments.world import STRAKS, domestic, initiate

JSON = (("Content-Type", "application/json"), ("Host", "127.0.0.1"))
GENERATE = "/_emulator/generate"


class Desk:
    tpp: Tpp

    def __init__(self, application: BankApplication) -> None:
        self.application = application
        self.turns = Handler(application)
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, target: str, body: Any = None) -> asyncio.Future[Any]:
        content = b"" if body is None else json.dumps(body).encode()
        return self.turns.in_turn(Request(method, target, JSON, content))

    def signed(self, method: str, path: str, **options: Any) -> Request:
        prepared = self.tpp.prepare(method, path, **options)
        return Request(prepared.method, prepared.target, tuple(prepared.headers.items()), prepared.body)

    async def status(self, method: str, target: str, body: Any = None) -> int:
        answer = await self.send(method, target, body)
        assert isinstance(answer, Response)
        return answer.status


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    authority = CertificateAuthority(None, clock=real_now)
    application = assemble(ServeSettings(state=tmp_path), authority=authority)
    desk = Desk(application)
    desk.tpp = Tpp("http://127.0.0.1:8080", authority.demo())
    application.default.bank.watch(lambda event: desk.events.append(event or {}))
    yield desk
    application.close()


async def test_others_are_answered_while_customers_are_generated(desk: Desk) -> None:
    documents = desk.application.default.bank.documents
    before = documents.count(CUSTOMER)
    generating = desk.send("POST", GENERATE, {"customers": 40, "transactionsPerAccount": 2})
    seen = []
    while not generating.done():
        assert await desk.status("GET", "/health") == 200
        seen.append(documents.count(CUSTOMER) - before)
    assert (await generating).status == 200
    assert len(set(seen)) > 20, "a customer between two answers"
    assert documents.count(CUSTOMER) == before + 40
    progress = [(event["done"], event["of"]) for event in desk.events if event.get("status") == "generating"]
    assert progress == [(10, 40), (20, 40), (30, 40), (40, 40)]


async def test_what_the_first_request_imports_is_imported_beside_others(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[Thread] = []

    def noted(imports: Callable[..., Any]) -> Callable[..., Any]:
        def work(*arguments: Any) -> Any:
            threads.append(current_thread())
            return imports(*arguments)

        return work

    monkeypatch.setattr(Control, "_routing", noted(Control._routing))
    monkeypatch.setattr(patterns, "norwegian_names", noted(patterns.norwegian_names))
    assert await desk.status("POST", GENERATE, {"customers": 1}) == 200
    assert [thread is main_thread() for thread in threads[:2]] == [False, False]


@pytest.mark.parametrize(
    ("name", "shortage"),
    [
        ("emulator.bank.sandbox.generate.household", MemoryError()),
        ("emulator.bank.sandbox.generate.household", RuntimeError("can't start new thread")),
        ("emulator.bank.threads.Thread.start", RuntimeError("can't start new thread")),
        ("emulator.bank.sandbox.generate._Generator.delete", MemoryError()),
    ],
)
async def test_without_memory_or_threads_it_ends_with_503_and_a_text(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str, shortage: Exception
) -> None:
    assert await desk.status("POST", GENERATE, {"customers": 1, "transactionsPerAccount": 0}) == 200
    documents = desk.application.default.bank.documents
    before = documents.dump()
    with monkeypatch.context() as patch:
        if name.endswith("delete"):
            patch.setattr("emulator.bank.sandbox.generate.company", Mock(side_effect=MemoryError))
        patch.setattr(name, Mock(side_effect=shortage))
        refused = await desk.send("POST", GENERATE, {"customers": 4})
    assert refused.status == 503
    if name.endswith("delete"):
        assert b"generated and stored before: 4 customers" in refused.body
    else:
        assert b"not enough memory" in refused.body
        assert documents.dump() == before
    assert await desk.status("POST", GENERATE, {"customers": 1, "transactionsPerAccount": 0}) == 200


async def test_a_reset_meanwhile_ends_it_with_a_conflict(desk: Desk) -> None:
    # the first one of a process begins when its modules are imported
    assert await desk.status("POST", GENERATE, {"customers": 1, "transactionsPerAccount": 0}) == 200
    generating = desk.send("POST", GENERATE, {"customers": 40, "transactionsPerAccount": 2})
    assert await desk.status("GET", "/health") == 200
    assert await desk.status("POST", "/_emulator/reset", {}) == 200
    dump = desk.application.default.bank.documents.dump()
    refused = await generating
    assert (refused.status, b"reset or deleted" in refused.body) == (409, True)
    assert desk.application.default.bank.documents.dump() == dump


async def test_a_named_bank_that_is_deleted_meanwhile_ends_it_too(desk: Desk) -> None:
    assert await desk.status("PUT", "/_emulator/banks/x", {}) == 201
    generating = desk.send("POST", f"/banks/x{GENERATE}", {"customers": 40, "transactionsPerAccount": 2})
    assert await desk.status("GET", "/health") == 200
    assert await desk.status("DELETE", "/_emulator/banks/x") == 204
    assert (await generating).status == 409, "also before its first customer"
    assert await desk.status("GET", "/banks/x/_emulator/clock") == 404


async def test_others_are_answered_while_the_clock_moves(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progression, "PIECE", 1)
    bank = desk.application.default.bank
    bank.clock.set(mode="frozen")
    received = [initiate(bank, STRAKS, domestic()) for _ in range(20)]
    advancing = desk.send("POST", "/_emulator/clock/advance", {"by": "P2D"})
    left = []
    while not advancing.done():
        assert await desk.status("GET", "/_emulator/clock") == 200
        left.append(sum(payment["status"] == "RCVD" for payment in bank.documents.all(PAYMENT)))
    assert (await advancing).status == 200
    assert len(set(left)) > 10, "what is due is not applied at once by those who come meanwhile"
    assert {p["status"] for p in bank.documents.all(PAYMENT) if p["id"] in received} == {"RJCT"}


def many_due(desk: Desk, count: int) -> None:
    """Payments that nobody has signed and whose day is over, though nothing has been applied yet."""
    bank = desk.application.default.bank
    bank.clock.set(mode="frozen")
    for _ in range(count):
        initiate(bank, STRAKS, domestic())
    bank.clock.set(now=bank.clock.now() + timedelta(days=2))


def statuses(desk: Desk) -> Counter[str]:
    return Counter(payment["status"] for payment in desk.application.default.bank.documents.all(PAYMENT))


@pytest.mark.parametrize("target", ["/v1/consents/x", "/_emulator/payments", "/console", "/sca/none"])
async def test_others_are_answered_while_a_request_applies_what_is_due(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    assert await desk.status("GET", target) in (200, 400, 404)  # what it imports is there
    monkeypatch.setattr(progression, "PIECE", 2)
    many_due(desk, 20)
    asking = desk.send("GET", target)
    left = [20]
    while not asking.done():
        assert await desk.status("GET", "/health") == 200
        left.append(statuses(desk)["RCVD"])
    assert await asking
    assert {before - after for before, after in pairwise(left)} <= {0, 1, 2}, "two at a time"
    assert left[-1] == 0


async def test_who_watches_sees_what_is_due_in_pieces_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progression, "PIECE", 2)
    many_due(desk, 20)
    applying = desk.application.apply_due()
    assert applying is not None
    assert statuses(desk)["RCVD"] >= 18
    await applying
    assert statuses(desk) == {"RJCT": 20}
    assert desk.application.apply_due() is None


async def test_what_is_due_at_one_moment_is_listed_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progression, "PIECE", 2)
    documents = desk.application.default.bank.documents
    listed: list[Any] = []
    ids_at = documents.ids_at

    def noted(*place: Any) -> list[str]:
        listed.append(place)
        return ids_at(*place)

    monkeypatch.setattr(documents, "ids_at", noted)
    bank = desk.application.default.bank
    bank.clock.set(mode="frozen")
    for _ in range(20):
        initiate(bank, STRAKS, domestic())
    assert await desk.status("POST", "/_emulator/clock/advance", {"by": "P2D"}) == 200
    assert statuses(desk) == {"RJCT": 20}
    assert len(listed) == len(set(listed)), "not once for each piece"


@dataclass
class Held:
    """The reading of a fixture, in its thread, waits until it may continue."""

    begun: Event = field(default_factory=Event)
    let: Event = field(default_factory=Event)
    failure: Exception | None = None

    def __call__(self, build: Callable[..., Any]) -> Callable[..., Any]:
        def held(*arguments: Any, **options: Any) -> Any:
            self.begun.set()
            assert self.let.wait(30)
            if self.failure is not None:
                raise self.failure
            return build(*arguments, **options)

        return held


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch, desk: Desk) -> Iterator[Held]:
    """Any fixture counts as large, and is not read yet."""
    held = Held()
    monkeypatch.setattr(snapshots, "LARGE", 0)
    monkeypatch.setattr(fixtures, "_IMAGES", OrderedDict())
    monkeypatch.setattr(fixtures, "build", held(fixtures.build))
    yield held
    held.let.set()


def progress_of(desk: Desk, kind: str) -> list[tuple[Any, ...]]:
    return [(e["status"], e.get("done"), e.get("of")) for e in desk.events if e.get("type") == kind]


def contents(folder: Path) -> list[Path]:
    return list(folder.rglob("content-*"))


async def underway(desk: Desk, held: Held, method: str, target: str, body: Any = None) -> asyncio.Future[Any]:
    """A request that is reading a fixture beside others."""
    asking = desk.send(method, target, body)
    while not held.begun.is_set():
        assert await desk.status("GET", "/health") == 200
    assert not asking.done()
    return asking


async def test_who_waits_for_a_thread_takes_no_turns(desk: Desk, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    resetting = await underway(desk, held, "POST", "/_emulator/reset", {"fixtures": "empty"})
    handled: list[str] = []
    step = desk.application.step

    def noted(request: Request) -> Answered:
        handled.append(request.target)
        return step(request)

    monkeypatch.setattr(desk.application._turns, "answers", noted)
    for _ in range(10):
        assert await desk.status("GET", "/health") == 200
    assert handled == ["/health"] * 10
    held.let.set()
    assert (await resetting).status == 200


async def test_a_stop_ends_what_waits_for_a_thread(desk: Desk, held: Held, tmp_path: Path) -> None:
    documents = desk.application.default.bank.documents
    before = documents.dump()
    resetting = await underway(desk, held, "POST", "/_emulator/reset", {"fixtures": "empty"})
    desk.turns.stop()
    assert (await resetting).status == 503
    threads = [thread for thread in enumerate_threads() if thread.name == "request-work"]
    held.let.set()
    for thread in threads:
        thread.join(30)
    assert await desk.status("GET", "/health") == 200
    assert (documents.dump(), contents(tmp_path)) == (before, [])


async def test_a_bank_is_as_it_was_until_a_reset_is_through(desk: Desk, held: Held, tmp_path: Path) -> None:
    documents = desk.application.default.bank.documents
    customers = documents.count(CUSTOMER)
    resetting = await underway(desk, held, "POST", "/_emulator/reset", {"fixtures": "empty"})
    documents.put(CONTACT, {"id": "meanwhile"})
    assert await desk.status("GET", "/_emulator/clock") == 200
    assert documents.count(CUSTOMER) == customers > 0
    sequence = documents.sequence
    held.let.set()
    assert (await resetting).status == 200
    assert (documents.count(CUSTOMER), documents.count(CONTACT)) == (0, 0)
    assert documents.sequence == sequence + 1, "one change"
    dump = documents.dump()
    killed = tmp_path.with_name(f"{tmp_path.name}-killed")
    shutil.copytree(tmp_path, killed)
    again = assemble(ServeSettings(state=killed), authority=CertificateAuthority(None, clock=real_now))
    assert again.default.bank.documents.dump() == dump
    again.close()


async def test_a_reset_whose_fixture_cannot_be_used_changes_nothing(desk: Desk, held: Held, tmp_path: Path) -> None:
    documents = desk.application.default.bank.documents
    before = documents.dump()
    resetting = await underway(desk, held, "POST", "/_emulator/reset", {"fixtures": "household"})
    held.failure = fixtures.FixtureError("household", [Problem((), "No good.")])
    held.let.set()
    refused = await resetting
    assert (refused.status, b"No good." in refused.body) == (400, True)
    assert (documents.dump(), contents(tmp_path)) == (before, [])


async def test_a_reset_of_a_bank_that_is_deleted_meanwhile_is_a_conflict(
    desk: Desk, held: Held, tmp_path: Path
) -> None:
    held.let.set()
    assert await desk.status("PUT", "/_emulator/banks/x", {"fixtures": "empty"}) == 201
    held.let.clear()
    held.begun.clear()
    resetting = await underway(desk, held, "POST", "/banks/x/_emulator/reset", {"fixtures": "household"})
    assert await desk.status("DELETE", "/_emulator/banks/x") == 204
    held.let.set()
    assert (await resetting).status in (409, 503)
    assert contents(tmp_path) == []


async def test_a_bank_is_there_when_all_is_in_it(desk: Desk, held: Held) -> None:
    making = await underway(desk, held, "PUT", "/_emulator/banks/x", {"fixtures": "household", "clock": "frozen"})
    assert await desk.status("GET", "/banks/x/_emulator/clock") == 404
    held.let.set()
    assert (await making).status == 201
    assert await desk.status("GET", "/banks/x/_emulator/clock") == 200
    held.begun.clear()
    held.let.clear()
    again = await underway(desk, held, "PUT", "/_emulator/banks/x", {"fixtures": "two-signatures"})
    held.let.set()
    assert (await again).status == 200
    assert (
        progress_of(desk, "banks")
        == [
            ("preparing", 1, 2),
            ("preparing", 2, 2),
            ("created", None, None),
        ]
        * 2
    )


@pytest.mark.parametrize(
    ("target", "body", "status"),
    [
        ("/_emulator/reset", {}, 409),
        ("/_emulator/snapshots/a/restore", {}, 409),
        ("/_emulator/scenario", {"scenario": "x", "start": {"from": "snapshot:a"}}, 409),
        ("/v1/sandbox/initialize", None, 200),
    ],
)
async def test_what_is_prepared_while_the_bank_is_replaced_does_not_bring_the_old_one_back(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, body: Any, status: int
) -> None:
    """What restores the state that the bank was made with, restores that of the new one, or is refused."""
    assert await desk.status("PUT", "/_emulator/snapshots/a") == 201
    held, build = Held(), fixtures.build
    monkeypatch.setattr(snapshots, "LARGE", 0)
    monkeypatch.setattr(fixtures, "_IMAGES", OrderedDict())
    documents, prepare = desk.application.default.bank.documents, held(desk.application.default.bank.documents.prepare)
    monkeypatch.setattr(documents, "prepare", prepare)
    monkeypatch.setattr(
        fixtures, "build", lambda one, **more: (build if one.source == "empty" else held(build))(one, **more)
    )
    request = desk.signed("POST", target) if body is None else Request("POST", target, JSON, json.dumps(body).encode())
    asking = desk.turns.in_turn(request)
    while not held.begun.is_set():
        assert await desk.status("GET", "/health") == 200
    assert await desk.status("PUT", "/_emulator/banks/default", {"fixtures": "empty"}) == 200
    held.let.set()
    assert (await asking).status == status
    ready = json.loads((await desk.send("GET", "/ready")).body)
    assert (ready["fixtures"], ready["counts"]["customers"]) == ("empty", 0)
    assert await desk.status("POST", "/_emulator/reset", {}) == 200
    assert documents.count(CUSTOMER) == 0
    assert contents(tmp_path) == []


async def test_two_that_make_the_same_bank_make_it_once(desk: Desk, held: Held) -> None:
    first = await underway(desk, held, "PUT", "/_emulator/banks/x", {"fixtures": "household"})
    second = desk.send("PUT", "/_emulator/banks/x", {"fixtures": "household"})
    assert await desk.status("GET", "/health") == 200
    held.let.set()
    assert sorted([(await first).status, (await second).status]) == [201, 409]


@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("/_emulator/snapshots/a/restore", None),
        ("/_emulator/scenario", {"scenario": "x", "summary": "y", "start": {"from": "snapshot:a"}}),
    ],
)
async def test_a_large_snapshot_is_restored_beside_others(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, body: Any
) -> None:
    monkeypatch.setattr(snapshots, "LARGE", 0)
    documents = desk.application.default.bank.documents
    assert await desk.status("PUT", "/_emulator/snapshots/a") == 201
    saved = documents.dump()
    assert await desk.status("POST", "/_emulator/reset", {"fixtures": "empty"}) == 200
    held = Held()
    monkeypatch.setattr(journal_log, "content_in", held(content_in))
    restoring = await underway(desk, held, "POST", target, body)
    assert documents.count(CUSTOMER) == 0
    held.let.set()
    assert (await restoring).status == 200
    kind = "scenario" if body else "reset"
    assert [one for one in progress_of(desk, kind) if one[1]] == [("preparing", 1, 2), ("preparing", 2, 2)]
    assert {kind: rows for kind, rows in documents.dump().items() if kind != "meta"} == {
        kind: rows for kind, rows in saved.items() if kind != "meta"
    }
    assert len(contents(tmp_path)) == 2, "the snapshot, and what was restored"


@pytest.mark.parametrize("name", ["kept", "new"])
async def test_a_snapshot_is_saved_although_the_client_has_gone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str, tmp_path: Path
) -> None:
    documents = desk.application.default.bank.documents
    assert await desk.status("PUT", "/_emulator/snapshots/kept") == 201
    assert await desk.status("POST", "/_emulator/reset", {"fixtures": "empty"}) == 200
    held = Held()
    monkeypatch.setattr(journal_log, "write_snapshot", held(write_snapshot))
    saving = await underway(desk, held, "PUT", f"/_emulator/snapshots/{name}")
    saving.cancel()
    for _ in range(3):  # it is noticed
        assert await desk.status("GET", "/health") == 200
    threads = [thread for thread in enumerate_threads() if thread.name == "request-work"]
    held.let.set()
    for thread in threads:
        thread.join(30)
    for _ in range(3):
        assert await desk.status("GET", "/health") == 200
    listed = json.loads((await desk.send("GET", "/_emulator/snapshots")).body)["snapshots"]
    assert {snapshot["name"] for snapshot in listed} == {"kept", name}
    assert len(contents(tmp_path)) == len(listed)
    assert await desk.status("POST", f"/_emulator/snapshots/{name}/restore") == 200
    assert documents.count(CUSTOMER) == 0


@pytest.mark.parametrize("again", [False, True])
async def test_a_snapshot_of_a_bank_that_is_deleted_meanwhile_is_not_one_of_the_next_of_its_name(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, again: bool
) -> None:
    address = "/banks/other/_emulator/snapshots/kept"
    assert await desk.status("PUT", "/_emulator/banks/other", {"fixtures": "known-state"}) == 201
    with monkeypatch.context() as slow:
        held = Held()
        slow.setattr(journal_log, "write_snapshot", held(write_snapshot))
        saving = await underway(desk, held, "PUT", address)
    assert await desk.status("DELETE", "/_emulator/banks/other") == 204
    if again:
        assert await desk.status("PUT", "/_emulator/banks/other", {"fixtures": "empty"}) == 201
        assert await desk.status("PUT", address) == 201
    held.let.set()
    answer = await saving
    assert (answer.status, "deleted" in answer.body.decode()) == (409, True)
    assert len(contents(tmp_path)) == again
    if again:
        assert await desk.status("POST", f"{address}/restore") == 200
        assert json.loads((await desk.send("GET", "/banks/other/_emulator/people")).body)["people"] == []


async def test_the_snapshots_of_a_bank_go_with_it_whenever_the_client_has_gone_that_replaces_it(desk: Desk) -> None:
    """The new bank could be restored to what the old one was."""
    for moment in range(4):
        assert await desk.status("PUT", "/_emulator/banks/other", {"fixtures": "known-state"}) < 300
        assert await desk.status("PUT", "/banks/other/_emulator/snapshots/kept") == 201
        replacing = desk.send("PUT", "/_emulator/banks/other", {"fixtures": "empty"})
        for _ in range(moment):
            await asyncio.sleep(0)
        replacing.cancel()
        for _ in range(3):
            assert await desk.status("GET", "/health") == 200
        people, listed = [
            json.loads((await desk.send("GET", f"/banks/other/_emulator/{what}")).body)
            for what in ("people", "snapshots")
        ]
        assert bool(people["people"]) == bool(listed["snapshots"]), "the old bank with its snapshot, or the new one"


@pytest.mark.parametrize(
    ("method", "work", "body", "status"),
    [
        ("POST", "snapshots/big/restore", None, 200),
        ("POST", "reset", None, 200),
        ("PUT", "settings", {"unknown": "x" * 100_000}, 400),
    ],
)
async def test_what_long_work_has_read_is_gone_at_its_end(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, method: str, work: str, body: Any, status: int
) -> None:
    """Not with the next collection of garbage: a bank that is restored again and again would hold each content."""
    monkeypatch.setattr(snapshots, "LARGE", 0)
    assert await desk.status("PUT", "/_emulator/snapshots/big") == 201
    assert await desk.status(method, f"/_emulator/{work}", body) == status  # the first one imports
    gc.collect()
    gc.disable()
    try:
        assert await desk.status(method, f"/_emulator/{work}", body) == status
        await asyncio.sleep(0)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        assert [left for left in gc.garbage if isinstance(left, DocumentTable | Unfinished | Request)] == []
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def test_a_large_snapshot_is_previewed_beside_others(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "LARGE", 0)
    documents = desk.application.default.bank.documents
    assert await desk.status("PUT", "/_emulator/snapshots/a") == 201
    assert await desk.status("POST", "/_emulator/reset", {"fixtures": "empty"}) == 200
    dump = documents.dump()
    held = Held()
    monkeypatch.setattr(journal_log, "content_in", held(content_in))
    scenario = {
        "scenario": "x",
        "summary": "y",
        "start": {"from": "snapshot:a", "change": [{"account": "*", "name": "z"}]},
    }
    previewing = await underway(desk, held, "POST", "/_emulator/scenario/preview", scenario)
    held.let.set()
    answer = await previewing
    assert (answer.status, json.loads(answer.body)["reset"]) == (200, True)
    assert (documents.dump(), len(contents(tmp_path))) == (dump, 1)
    assert progress_of(desk, "scenario") == [("previewing", 1, 2), ("previewing", 2, 2)]


async def test_requests_are_counted_beside_others(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.turns.in_turn(desk.signed("GET", "/v1/accounts"))
    held = Held()
    monkeypatch.setattr(matching, "Facts", held(matching.Facts))
    counting = await underway(desk, held, "POST", "/_emulator/requests/count", {"match": {"operation": "getAccounts"}})
    held.let.set()
    assert json.loads((await counting).body) == {"count": 1}


async def test_the_known_state_is_restored_beside_others(desk: Desk, held: Held, tmp_path: Path) -> None:
    documents = desk.application.default.bank.documents
    known = documents.count(CUSTOMER)
    held.let.set()
    assert await desk.status("POST", "/_emulator/reset", {"fixtures": "empty"}) == 200
    fixtures._IMAGES.clear()
    held.let.clear()
    held.begun.clear()
    initializing = desk.turns.in_turn(desk.signed("POST", "/v1/sandbox/initialize"))
    while not held.begun.is_set():
        assert await desk.status("GET", "/health") == 200
    documents.put(CONTACT, {"id": "stays"})
    assert documents.count(CUSTOMER) == 0
    held.let.set()
    answer = await initializing
    assert progress_of(desk, "reset")[-2:] == [("preparing", 1, 2), ("preparing", 2, 2)]
    assert (answer.status, len(json.loads(answer.body)["customers"])) == (200, known)
    assert (documents.count(CUSTOMER), documents.count(CONTACT)) == (known, 1)
    assert [exchange.request.prepared for exchange in desk.application.default.log.newest()] == [None]


async def test_for_a_request_to_restore_the_known_state_that_is_not_signed_nothing_is_done(
    desk: Desk, held: Held, tmp_path: Path
) -> None:
    assert await desk.status("POST", "/v1/sandbox/initialize") in (400, 401)
    assert not held.begun.is_set()
    request = desk.signed("POST", "/v1/sandbox/initialize")
    request.headers = tuple((name, value) for name, value in request.headers if name.lower() != "x-request-id")
    held.let.set()
    refused = await desk.turns.in_turn(request)
    assert refused.status in (400, 401)
    assert contents(tmp_path) == []


def many_entries(desk: Desk, kind: Kind[Any], holder: str, count: int) -> str:
    """Further entries of the first account or card that has some; returns its id."""
    documents = desk.application.default.bank.documents
    first: dict[str, Any] = next(entry for entry in documents.all(kind) if entry["status"] == "booked")
    with documents.transaction():
        for number in range(count):
            documents.put(kind, {**first, "id": f"t{number}", "cardTransactionId": f"t{number}", "amount": "0.00"})
    return str(first[holder])


@pytest.mark.parametrize(
    ("path", "kind", "holder", "gone"),
    [
        ("accounts/{}", TRANSACTION, "accountId", ACCOUNT),
        ("accounts/{}/transactions", TRANSACTION, "accountId", None),
        ("card-accounts/{}", CARD_TRANSACTION, "cardId", CARD),
        ("card-accounts/{}/transactions", CARD_TRANSACTION, "cardId", None),
        ("customers/{}", TRANSACTION, "accountId", CUSTOMER),
    ],
)
async def test_very_many_transactions_are_deleted_between_others(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, path: str, kind: Kind[Any], holder: str, gone: Kind[Any] | None
) -> None:
    monkeypatch.setattr(sandbox, "PIECE", 10)
    bank = desk.application.default.bank
    documents = bank.documents
    identity = name = many_entries(desk, kind, holder, 200)
    if gone is CUSTOMER:
        identity = (documents.get(ACCOUNT, name) or {})["customerId"]
    steps = [documents.count(kind, **{holder: name})]
    deleting = desk.turns.in_turn(desk.signed("DELETE", f"/v1/sandbox/{path.format(identity)}"))
    while not deleting.done():
        assert await desk.status("GET", "/health") == 200
        if steps[-1] != (left := documents.count(kind, **{holder: name})):
            steps.append(left)
            assert gone is None or left == 0 or documents.exists(gone, identity)
            assert run_to_end(ledger.reporting(bank))["balanced"], "also for those who ask meanwhile"
    assert (await deleting).status == 204
    assert len(steps) > 20
    assert max(before - after for before, after in pairwise(steps[:-1])) == 10
    assert (steps[-1], gone is not None and documents.exists(gone, identity)) == (0, False)


async def test_a_kill_while_an_account_is_deleted_leaves_one_that_can_be_deleted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sandbox, "PIECE", 10)
    account = many_entries(desk, TRANSACTION, "accountId", 200)
    before = desk.application.default.bank.documents.get(ACCOUNT, account)
    assert before is not None
    deleting = desk.turns.in_turn(desk.signed("DELETE", f"/v1/sandbox/accounts/{account}"))
    while desk.application.default.bank.documents.count(TRANSACTION, accountId=account) > 150:
        assert await desk.status("GET", "/health") == 200
    killed = tmp_path.with_name(f"{tmp_path.name}-killed")
    shutil.copytree(tmp_path, killed)
    assert (await deleting).status == 204
    again = assemble(ServeSettings(state=killed), authority=CertificateAuthority(None, clock=real_now))
    bank = again.default.bank
    left = bank.documents.get(ACCOUNT, account)
    assert left is not None
    assert (left["booked"], run_to_end(ledger.reporting(bank))["balanced"]) == (before["booked"], True)
    assert 0 < bank.documents.count(TRANSACTION, accountId=account) <= 150
    run_to_end(sandbox_accounts.deleting(bank, ACCOUNT, account))
    assert run_to_end(ledger.reporting(bank))["balanced"]
    again.close()


async def test_a_reset_while_an_account_is_deleted_keeps_the_account_of_the_fixture(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await desk.status("POST", "/_emulator/reset", {}) == 200
    monkeypatch.setattr(sandbox, "PIECE", 10)
    documents = desk.application.default.bank.documents
    account = many_entries(desk, TRANSACTION, "accountId", 200)
    deleting = desk.turns.in_turn(desk.signed("DELETE", f"/v1/sandbox/accounts/{account}"))
    assert await desk.status("GET", "/health") == 200
    assert await desk.status("POST", "/_emulator/reset", {}) == 200
    dump = documents.dump()
    assert (await deleting).status == 204
    assert documents.exists(ACCOUNT, account)
    assert {kind: rows for kind, rows in documents.dump().items() if kind != "contact"} == {
        kind: rows for kind, rows in dump.items() if kind != "contact"
    }


async def test_a_full_disk_while_an_account_is_deleted_is_told_in_the_answer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "PIECE", 10)
    bank = desk.application.default.bank
    account = many_entries(desk, TRANSACTION, "accountId", 200)
    deleting = desk.turns.in_turn(desk.signed("DELETE", f"/v1/sandbox/accounts/{account}"))
    while bank.documents.count(TRANSACTION, accountId=account) > 150:
        assert await desk.status("GET", "/health") == 200

    def full(*_arguments: Any) -> None:
        raise StoreUnwritable("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(desk.application.default.bank.documents.log, "append", full)
        answer = await deleting
    assert (answer.status, b"the disk is full" in answer.body) == (503, True)
    logged = next(desk.application.default.log.newest()).response
    assert logged is not None
    assert logged.status == 503
    assert bank.documents.exists(ACCOUNT, account)
    assert run_to_end(ledger.reporting(bank))["balanced"]


async def test_the_ledger_is_recomputed_between_others_and_as_it_stood(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "PIECE", 10)
    documents = desk.application.default.bank.documents
    assert await desk.status("GET", "/_emulator/clock") == 200
    steps = 0
    asking = desk.send("GET", "/_emulator/ledger")
    for transaction in documents.all(TRANSACTION):
        assert await desk.status("GET", "/health") == 200
        documents.delete(TRANSACTION, transaction["id"])  # which would not balance
        steps += not asking.done()
    answer = await asking
    assert (steps > 10, json.loads(answer.body)["balanced"]) == (True, True)


async def test_what_the_process_has_in_memory_stays_where_a_reset_cannot_be_stored(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request log, and how often rules have acted: one that acts twice must not do so again."""
    rule = {"when": {"operation": "getAccounts"}, "times": {"first": 2}, "then": {"answer": {"status": 503}}}
    assert await desk.status("POST", "/_emulator/rules", rule) == 201
    assert await desk.status("PUT", "/_emulator/snapshots/kept") == 201
    seed = await desk.send("POST", "/_emulator/sessions", {"tpp": "demo", "nationalId": KARI})
    desk.tpp.use_session(json.loads(seed.body))
    for status in (503, 503, 200):
        assert (await desk.turns.in_turn(desk.signed("GET", "/v1/accounts"))).status == status

    async def remembered() -> list[Any]:
        return [(await desk.send("GET", f"/_emulator/{view}")).body for view in ("requests", "rules")]

    before = await remembered()
    known_state = {"scenario": "s", "start": {"from": "known-state"}}
    from_snapshot = {"scenario": "s", "start": {"from": "snapshot:kept"}}
    with monkeypatch.context() as patch:
        patch.setattr(Disk, "write", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
        for target, body in (
            ("reset", {}),
            ("snapshots/kept/restore", {}),
            ("scenario", known_state),
            ("scenario", from_snapshot),
        ):
            assert await desk.status("POST", f"/_emulator/{target}", body) == 503
            assert await remembered() == before, target
    assert await desk.status("POST", "/_emulator/snapshots/kept/restore", {}) == 200
    assert json.loads((await remembered())[1])["counts"][0]["matched"] == 0
    assert await desk.status("POST", "/_emulator/reset", {}) == 200
    assert json.loads((await remembered())[0]) == {"requests": []}
