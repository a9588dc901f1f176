"""Requests reach the home of their bank over another process, and answers come back as they are."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from emulator.api.messages import BodyParts, Request, Response, Stream
from emulator.assemble import forwarding
from emulator.assemble.forwarding import NotDelivered, Ways
from emulator.client import Identity
from emulator.client.clients import Tpp
from emulator.store.postgres.connection import StoreUnreachable
from tests.known_state import KARI
from tests.postgres.process import HEADERS, PATIENCE, Process, eventually, execute, process, request, whole
from tests.unit.pages.visitor import Page, Visitor

BANK = "/banks/guarded"

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def both(one: Process, two: Process, asked: Request) -> list[tuple[int, list[tuple[str, str]], bytes]]:
    """What the same request is answered at the home and at the other process, but for ids and times of answers."""
    shown = []
    for each in (one, two):
        answer = await each.send(replace(asked))
        assert isinstance(answer, Response)
        headers = [pair for pair in answer.headers if pair[0] not in ("X-Request-ID", "Date")]
        shown.append((answer.status, headers, await whole(answer)))
    return shown


@pytest.mark.parametrize(
    ("method", "target", "headers", "body"),
    [
        ("POST", "/v1/sandbox/initialize", (), bytes(range(256))),
        ("PUT", "/_emulator/settings", (("Content-Type", "application/json"),), bytes(range(256)) * 1000),
        ("GET", "/v1/accounts?q=%ff%00&r=\u00e6", (("X-Odd", "\u00e6\u20ac\u0001"), ("x-odd", "")), b""),
        ("GET", "/v1/\udcff", (("X-Odd", "\udcff"),), b""),
        ("OPTIONS", "/v1/accounts", (), b""),
        ("BREW", "/v1/accounts", (), b""),
        ("HEAD", "/_emulator/state", (), b""),
        ("GET", "/_emulator/state", (), b""),
        ("HEAD", "/console", (), b""),
    ],
)
async def test_any_request_is_answered_alike(
    one: Process, two: Process, bank: str, method: str, target: str, headers: Any, body: bytes
) -> None:
    asked = Request(method, f"/banks/{bank}{target}", (("Host", "127.0.0.1:8080"), *headers), body)
    direct, passed_on = await both(one, two, asked)
    assert passed_on == direct


async def test_each_process_has_metrics_of_its_own(one: Process, two: Process, bank: str) -> None:
    async def scraped(process: Process) -> dict[str, float]:
        answer = await process.send(Request("GET", "/metrics", HEADERS))
        assert isinstance(answer, Response)
        families = text_string_to_metric_families(answer.body.decode())
        samples = [sample for family in families for sample in family.samples]
        of_bank = {
            f"requests {sample.labels['status']}": sample.value
            for sample in samples
            if sample.labels.get("bank") == bank
        }
        return {sample.name: sample.value for sample in samples} | of_bank

    before = [await scraped(each) for each in (one, two)]
    await both(one, two, Request("GET", f"/banks/{bank}/v1/accounts", HEADERS))
    after = [await scraped(each) for each in (one, two)]
    grown = [
        now["bank_emulator_passed_on_total"] - then["bank_emulator_passed_on_total"]
        for now, then in zip(after, before, strict=True)
    ]
    assert grown == [0, 1]
    assert [each.get("requests 400") for each in after] == [2, None]
    assert after[0]["bank_emulator_leases"] == len(one.leases.held)
    await one.control("PUT", "settings", {"weather": "calm"}, bank=bank)
    commits = "bank_emulator_commit_duration_seconds_count"
    assert (await scraped(one))[commits] > after[0][commits]


async def test_a_long_body_comes_in_parts_and_the_connection_is_used_again(
    one: Process, two: Process, bank: str
) -> None:
    await one.control("POST", "generate", {"customers": 60, "accountsPerCustomer": 1}, bank=bank)
    direct, passed_on = await both(one, two, request("GET", "state", bank=bank))
    assert passed_on == direct
    assert len(direct[2]) > 50_000
    answer = await two.ask("GET", "state", bank=bank)
    assert isinstance(answer, Response)
    assert answer.parts is not None
    ways = two.homes._ways
    assert ways is not None
    free = len(ways._free[one.leases.address])
    async for _ in answer.parts:
        break  # the client goes away in the middle
    assert len(ways._free[one.leases.address]) == free
    assert (await both(one, two, request("GET", "state", bank=bank)))[1] == direct


async def test_a_connection_between_processes_does_not_outlast_its_network(
    one: Process, two: Process, bank: str
) -> None:
    """No answer and no event stream waits for hours where packets are lost: the system sees that within seconds."""
    await two.control("GET", "clock", bank=bank)
    _, sent = two.homes._ways._free[one.leases.address][-1]
    assert one.homes._entrance is not None
    for end in (sent, *one.homes._entrance._connections.values()):
        line = end.get_extra_info("socket")
        assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def follow(stream: Response | Stream) -> tuple[list[Any], Any]:
    """The events of a stream as they come, with None at its end, and what ends it."""
    assert isinstance(stream, Stream)
    seen: list[Any] = []

    def push(chunk: bytes | None) -> None:
        if chunk is None:
            seen.append(None)
        else:
            seen.extend(json.loads(line[5:])["type"] for line in chunk.split(b"\n") if line.startswith(b"data:"))

    return seen, stream.subscribe(push)


async def test_an_event_stream_shows_what_happens_at_the_home_until_its_client_goes(
    one: Process, two: Process, bank: str
) -> None:
    service = one.registry.opened(bank)
    assert service is not None
    seen, end = follow(await two.ask("GET", "events", bank=bank))
    await eventually(lambda: service.bank.watchers)
    assert one.handler.watchers.open, "due steps are applied while somebody watches, whatever process they watch at"
    for number in range(3):
        await (one, two)[number % 2].control("PUT", "settings", {"progression": "manual"}, bank=bank)
    await eventually(lambda: seen == ["settings"] * 3)
    end()
    await eventually(lambda: not (service.bank.watchers or one.handler.watchers.open))


async def test_an_event_stream_ends_with_its_home(one: Process, two: Process, bank: str) -> None:
    """Its client connects again, and is at the next home."""
    streams = [follow(await each.ask("GET", "events", bank=bank))[0] for each in (one, two)]
    one.homes.drop(bank)
    await eventually(lambda: all(seen == [None] for seen in streams))


@pytest.mark.parametrize(
    ("then", "delay", "disconnect"),
    [({"delay": "1.5s"}, 1.5, None), ({"disconnect": "before"}, 0, "before"), ({"disconnect": "after"}, 0, "after")],
)
async def test_a_scripted_delay_or_disconnection_is_for_the_process_that_the_client_has_reached(
    one: Process, two: Process, bank: str, then: Any, delay: float, disconnect: str | None
) -> None:
    rule = {"name": "odd", "unsigned": True, "when": {"operation": "getAccounts"}, "then": then}
    await two.control("POST", "rules", {"rules": [rule]}, bank=bank)
    answer = await two.send(Request("GET", f"/banks/{bank}/v1/accounts", HEADERS))
    assert isinstance(answer, Response)
    assert (answer.delivery.delay, answer.delivery.disconnect) == (delay, disconnect)


async def test_a_wrong_secret_is_refused_and_logged(one: Process, bank: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    ways = Ways(b"wrong", one.leases.is_home)
    with pytest.raises(NotDelivered, match=f"the process at {one.leases.address} has another secret"):
        await ways.send(one.leases.address, one.leases.home, bank, request("POST", "clock/advance", bank=bank))
    assert "an internal connection with a wrong secret came from" in caplog.text


async def spoken(one: Process, sent: bytes) -> bytes:
    """What the internal address answers."""
    host, _, port = one.leases.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", b"x" * 64, b"GET /" + b"x" * 100_000])
async def test_who_does_not_know_the_secret_gets_403(
    one: Process, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await spoken(one, sent)
    assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert answer.endswith(b"know its secret.\n")
    assert "an internal connection with a wrong secret came from" in caplog.text


@pytest.mark.parametrize(
    "head", [b"{}", b"[]", b'{"size":-1}', b"[" * 200_000], ids=["no request", "a list", "no size", "deep"]
)
async def test_what_is_no_message_ends_its_connection(
    one: Process, head: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    assert await spoken(one, one.homes._secret + len(head).to_bytes(4, "big") + head) == b""
    assert "an internal connection sent something else than a request" in caplog.text


async def test_a_wrong_token_is_refused_by_the_process_that_it_has_reached(
    one: Process, bank: str, tmp_path: Path
) -> None:
    """The home of the bank has no token, and is not asked; who waits after wrong ones is the client, by its address."""
    async with process(one.url, tmp_path / "guarded", control_token="a" * 20) as guarded:
        for path in ("/_emulator/settings", "/console"):
            asked = Request("GET", f"/banks/{bank}{path}", HEADERS, peer="192.0.2.1")
            answer = await guarded.send(asked)
            assert isinstance(answer, Response)
            assert answer.status in (303, 401), path
        wrong = (*HEADERS, ("Authorization", "Bearer " + "b" * 20))
        statuses = []
        for _ in range(8):
            answer = await guarded.send(Request("PUT", "/_emulator/banks/tried", wrong, b"{}", peer="192.0.2.2"))
            assert isinstance(answer, Response)
            statuses.append(answer.status)
        assert statuses[:5] == [401] * 5, "each try counts once"
        assert statuses[-1] == 429
        right = (*HEADERS, ("Authorization", "Bearer " + "a" * 20))
        answer = await guarded.send(Request("GET", f"/banks/{bank}/_emulator/settings", right, peer="192.0.2.3"))
        assert isinstance(answer, Response)
        assert answer.status == 200


async def elsewhere(one: Process, bank: str, address: str) -> None:
    """Another process, at this address, has a bank for an hour."""
    statement = "INSERT INTO {schema}.bank (name, home, address, epoch, until, sequence)"
    await execute(one.url, f"{statement} VALUES (%s, 'nobody', %s, 1, now() + interval '1 hour', 1)", bank, address)


async def test_a_home_that_cannot_be_reached_is_named_until_its_lease_is_over(one: Process, bank: str) -> None:
    name = f"{bank}-away"
    await elsewhere(one, name, "127.0.0.1:1")
    for method, path in (("GET", "clock"), ("POST", "clock/advance")):
        answer = await one.control(method, path, bank=name, status=503)
        assert "nothing was changed: the process at 127.0.0.1:1 cannot be reached" in str(answer)
    await execute(one.url, "UPDATE {schema}.bank SET until = now() - interval '1 s' WHERE name = %s", name)
    answer = await one.control("GET", "clock", bank=name, status=503)
    assert f"bank {name} is damaged: changes after 0 are missing" in str(answer)


async def test_another_process_at_the_address_of_the_home_is_told_apart(one: Process, two: Process, bank: str) -> None:
    """As where two have the same --advertise on different machines."""
    name = f"{bank}-same"
    await elsewhere(one, name, two.leases.address)
    answer = await one.control("GET", "clock", bank=name, status=503)
    assert f"at {two.leases.address} is another process than the home: is --advertise the same?" in str(answer)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "_emulator/clock", 200),
        ("POST", "_emulator/clock/advance", None),
        ("GET", "v1/accounts/a/balances", None),  # without the customer, which is counted
        ("GET", "v1/accounts", 400),
    ],
)
async def test_a_request_whose_connection_breaks_is_sent_again_if_it_only_reads(
    one: Process, two: Process, bank: str, method: str, path: str, status: int | None
) -> None:
    """Another one may have been carried out: its client is told nothing, and sends it again."""
    await two.control("GET", "clock", bank=bank)
    entrance = one.homes._entrance
    assert entrance is not None
    here, broken = entrance._here, []

    async def first_breaks(name: str, asked: Request) -> Response | Stream | None:
        answer = await here(name, asked)
        if not broken:
            broken.append(asked)
            for writer in list(entrance._connections.values()):
                writer.transport.abort()
        return answer

    entrance._here = first_breaks
    try:
        answer = await two.send(Request(method, f"/banks/{bank}/{path}", HEADERS, b'{"by": "PT1H"}'))
    finally:
        entrance._here = here
    assert isinstance(answer, Response)
    assert (answer.status, answer.delivery.disconnect) == ((503, "after") if status is None else (status, None))
    assert len(broken) == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_home_that_is_stopped_holds_no_request_up_when_another_has_taken_the_bank(
    one: Process, two: Process, bank: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "LATE", 0.05)
    await two.control("GET", "clock", bank=bank)
    entrance = one.homes._entrance
    assert entrance is not None
    reached = asyncio.Event()

    async def none(_most: int) -> list[str]:
        return []

    monkeypatch.setattr(one.homes.leases, "orphans", none)  # it is stopped: it takes nothing over

    async def stopped(name: str, asked: Request) -> None:
        reached.set()
        await asyncio.Event().wait()

    looked = asyncio.Semaphore(0)

    async def is_home(*whose: str, look: Any = two.homes._ways._is_home) -> bool:
        try:
            return bool(await look(*whose))
        finally:
            looked.release()

    monkeypatch.setattr(two.homes._ways, "_is_home", is_home)
    monkeypatch.setattr(entrance, "_here", stopped)
    asked = two.ask(method, "clock" if method == "GET" else "clock/advance", {"by": "PT1H"}, bank=bank)
    await reached.wait()
    for _ in range(2):
        await looked.acquire()
    assert not asked.done(), f"it is still the home: {asked.result()}"
    statement = "UPDATE {schema}.bank SET until = now() - interval '1 s', home = 'gone' WHERE name = %s"
    await execute(one.url, statement, bank)
    answer = await asked
    assert isinstance(answer, Response)
    assert (answer.status, answer.delivery.disconnect) == ((200, None) if method == "GET" else (503, "after"))


async def endless() -> AsyncIterator[bytes]:
    yield b"a"
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    "begun",
    [Stream(200, [], lambda _: lambda: None), Response(200, parts=BodyParts(2, endless()))],
    ids=["a stream", "a body"],
)
async def test_an_answer_ends_where_its_home_is_stopped_meanwhile_and_another_has_taken_the_bank(
    one: Process, two: Process, bank: str, begun: Response | Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stopped(_name: str, _asked: Request) -> Response | Stream:
        return begun

    async def none(_most: int) -> list[str]:
        return []

    assert one.homes._entrance is not None
    monkeypatch.setattr(forwarding, "LATE", 0.05)
    monkeypatch.setattr(one.homes.leases, "orphans", none)  # it is stopped: it takes nothing over
    monkeypatch.setattr(one.homes._entrance, "_here", stopped)
    answer = await two.ask("GET", "events", bank=bank)
    statement = "UPDATE {schema}.bank SET until = now() - interval '1 s', home = 'gone' WHERE name = %s"
    await execute(one.url, statement, bank)
    if isinstance(answer, Stream):
        seen, _ = follow(answer)
        await eventually(lambda: seen == [None])
    else:
        with pytest.raises(ConnectionResetError):
            async with asyncio.timeout(PATIENCE):
                await whole(answer)


async def test_a_home_that_cannot_read_the_store_says_so_to_whoever_asked_it(
    one: Process, two: Process, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> None:
        raise StoreUnreachable("PostgreSQL: away")

    await two.control("GET", "clock", bank=bank)
    monkeypatch.setattr(one.homes, "refresh", away)
    for each in (one, two):
        answer = await each.control("GET", "banks", bank=bank, status=503)
        assert "nothing was changed: PostgreSQL: away" in str(answer)


async def test_a_payment_is_made_and_read_at_any_process(one: Process, two: Process, bank: str) -> None:
    name = f"{bank}-paid"
    await one.control("PUT", f"banks/{name}", status=201)
    tpps = one.application.homes.authority._place / "tpps" / "demo"
    tpp = Tpp(f"http://127.0.0.1:8080/banks/{name}", Identity.from_folder(tpps))
    session = await two.control("POST", "sessions", {"tpp": "demo", "nationalId": KARI}, bank=name)
    tpp.use_session(session)
    statuses = []
    for each in (two, one, two):
        sent = tpp.prepare("GET", "/v1/accounts")
        answer = await each.send(Request("GET", f"/banks/{name}/v1/accounts", tuple(sent.headers.items())))
        assert isinstance(answer, Response)
        statuses.append((answer.status, len(json.loads(answer.body).get("accounts", ()))))
    assert statuses == [(200, 2)] * 3


class Console(Visitor):
    """The console of a process, which other requests reach too."""

    def __init__(self, process: Process, cookie: str = "") -> None:
        super().__init__(None, None)  # type: ignore[arg-type]
        self._process = process
        self._cookie = ("Cookie", cookie)

    def send(self, method: str, target: str, body: bytes = b"", **headers: str) -> Page:
        raise NotImplementedError

    async def page(self, method: str, target: str, body: bytes = b"") -> Page:
        sent = (*HEADERS[:1], ("Content-Type", "application/x-www-form-urlencoded"), self._cookie)
        answer = await self._process.send(Request(method, target, sent, body))
        assert isinstance(answer, Response)
        return Page(answer)


async def test_the_console_creates_and_deletes_banks_and_snapshots_wherever_they_are(
    one: Process, two: Process, bank: str
) -> None:
    from urllib.parse import urlencode

    async def pressed(each: Process, page: Page, action: str, **values: str) -> Page:
        (form,) = [form for form in page.forms if form.action.endswith(action)][:1]
        fields = [pair for pair in form.sent() if pair[0] not in values] + list(values.items())
        answer = await Console(each).page("POST", form.action, urlencode(fields).encode())
        location = answer.headers.get("location")
        return answer if location is None else await Console(each).page("GET", location)

    for each, other in ((one, two), (two, one)):
        page = await Console(each).page("GET", "/console/banks")
        assert f'href="/banks/{bank}/console"' in page.source
        page = await pressed(each, page, "/banks", bank="shown")
        assert 'href="/banks/shown/console"' in (await Console(other).page("GET", "/console/banks")).source
        await other.control("GET", "clock", bank="shown")
        page = await Console(each).page("GET", "/console/snapshots")
        page = await pressed(each, page, "/snapshots", snapshot="once")
        page = await pressed(each, page, "/snapshots/once/delete")
        page = await pressed(each, page, "/snapshots/once/delete")
        assert "No snapshots yet." in page.text
        page = await Console(other).page("GET", "/console/banks")
        page = await pressed(other, page, "/banks/shown/delete")
        page = await pressed(other, page, "/banks/shown/delete")  # yes, really
        await each.control("GET", "clock", bank="shown", status=404)


async def test_who_logs_out_of_the_console_has_logged_out_at_every_process(tmp_path: Path, store_url: str) -> None:
    """Also at one that joins later; the login of somebody else goes on."""
    from urllib.parse import urlencode

    async def logged_in(each: Process, cookie: str) -> bool:
        return (await Console(each, cookie).page("GET", "/console")).status == 200

    settings = {"control_token": "a token", "fixtures": "empty"}
    async with process(store_url, tmp_path / "own", **settings) as own:
        async with process(store_url, tmp_path / "beside", **settings) as beside:
            headers = (*HEADERS, ("Authorization", "Bearer a token"))
            await beside.send(Request("PUT", f"/_emulator{BANK}", headers, b"{}"))
            cookies = []
            for each in (own, beside):
                page = await Console(each).page("POST", "/console/login", urlencode({"token": "a token"}).encode())
                cookies.append(page.headers["set-cookie"].partition(";")[0])
            page = await Console(beside, cookies[0]).page("GET", f"{BANK}/console")
            logout = next(form for form in page.forms if form.action.endswith("/logout"))
            await Console(beside, cookies[0]).page("POST", f"{BANK}/console/logout", urlencode(logout.sent()).encode())
            for each in (own, beside):
                assert [await logged_in(each, cookie) for cookie in cookies] == [False, True]
        async with process(store_url, tmp_path / "late", **settings) as late:
            assert [await logged_in(late, cookie) for cookie in cookies] == [False, True]
