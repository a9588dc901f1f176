"""What takes long, through the turns of the web room: others are answered meanwhile, and it ends once, as a whole."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from threading import Thread, current_thread, main_thread
from typing import Any

import pytest

from emulator.api.messages import Request, Response
from emulator.assemble import assemble
from emulator.assemble.application import BankApplication
from emulator.bank.clock import real_now
from emulator.bank.kinds import CUSTOMER, PAYMENT
from emulator.bank.payment import progression
from emulator.bank.sandbox import patterns
from emulator.ca import CertificateAuthority
from emulator.control.room import Control
from emulator.settings import ServeSettings
from emulator.web.events import Watchers
from emulator.web.handler import Turns
from tests.unit.payments.world import STRAKS, domestic, initiate

JSON = (("Content-Type", "application/json"), ("Host", "127.0.0.1"))
GENERATE = "/_emulator/generate"


class Desk:
    def __init__(self, application: BankApplication) -> None:
        self.application = application
        self.turns = Turns(application, Watchers(application))
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, target: str, body: Any = None) -> asyncio.Future[Any]:
        content = b"" if body is None else json.dumps(body).encode()
        return self.turns.answer(Request(method, target, JSON, content))

    async def status(self, method: str, target: str, body: Any = None) -> int:
        answer = await self.send(method, target, body)
        assert isinstance(answer, Response)
        return answer.status


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    authority = CertificateAuthority(None, clock=real_now)
    application = assemble(ServeSettings(state=tmp_path), authority=authority)
    desk = Desk(application)
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
    told = [(event["done"], event["of"]) for event in desk.events if event.get("status") == "generating"]
    assert told == [(10, 40), (20, 40), (30, 40), (40, 40)]


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


async def test_a_reset_meanwhile_ends_it_with_a_conflict(desk: Desk) -> None:
    generating = desk.send("POST", GENERATE, {"customers": 40, "transactionsPerAccount": 2})
    assert await desk.status("GET", "/health") == 200
    assert await desk.status("POST", "/_emulator/reset", {}) == 200
    dump = desk.application.default.bank.documents.dump()
    refused = await generating
    assert (refused.status, b"reset meanwhile" in refused.body) == (409, True)
    assert desk.application.default.bank.documents.dump() == dump


async def test_a_named_bank_that_is_deleted_meanwhile_ends_it_too(desk: Desk) -> None:
    assert await desk.status("PUT", "/_emulator/banks/x", {}) == 201
    generating = desk.send("POST", f"/banks/x{GENERATE}", {"customers": 40, "transactionsPerAccount": 2})
    assert await desk.status("GET", "/health") == 200
    assert await desk.status("DELETE", "/_emulator/banks/x") == 204
    assert (await generating).status == 409
    assert await desk.status("GET", "/banks/x/_emulator/clock") == 404


async def test_the_console_generates_in_pieces_too(desk: Desk) -> None:
    page = await desk.send("GET", "/console/generate")
    token = page.body.decode().partition('name="csrf" value="')[2].partition('"')[0]
    form = (("Content-Type", "application/x-www-form-urlencoded"), ("Host", "127.0.0.1"))
    body = f"csrf={token}&customers=20&transactionsPerAccount=1".encode()
    generating = desk.turns.answer(Request("POST", "/console/generate", form, body))
    assert await desk.status("GET", "/health") == 200
    assert not generating.done()
    answer = await generating
    assert isinstance(answer, Response)
    assert answer.status == 303


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
