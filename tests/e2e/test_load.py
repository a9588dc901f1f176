"""Many at once, deaf and vanishing clients, and an end under load: every request acts whole or not at all."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from emulator.api.description import examples
from emulator.client import Identity
from emulator.client.clients import Prepared, Tpp
from emulator.web.server import raise_file_limit
from emulator.web.wire import Limits
from tests.e2e.process import Served, control, served
from tests.e2e.serving import Client, both_loops, serving
from tests.known_state import DOMESTIC, KARI

BODY = examples.bodies(date(2026, 3, 2))["createPayment"]["norwegian-domestic-credit-transfers"]
CONNECTIONS = 1000
DEAF = 20
PATIENCE = 60.0  # seconds until a test gives up; none waits for it to pass
MUCH = 100_000_000  # bytes: what deaf clients may make the bank hold, generously


class Customer:
    """A TPP with a session; `wire` gives a signed request as its bytes."""

    def __init__(self, bank: Served) -> None:
        self.port = int(bank.url.rpartition(":")[2])
        self.url = bank.url
        self.tpp = Tpp(bank.url, Identity.from_folder(bank.state / "tpps" / "demo"))
        self.tpp.use_session(control(bank.url, "POST", "sessions", {"tpp": "demo", "nationalId": KARI}))

    def wire(self, method: str, path: str, **options: Any) -> bytes:
        return as_bytes(self.tpp.prepare(method, path, **options))

    def creation(self, request_id: str) -> bytes:
        return self.wire("POST", DOMESTIC, json=BODY, headers={"X-Request-ID": request_id})

    def payments(self) -> list[dict[str, Any]]:
        payments: list[dict[str, Any]] = control(self.url, "GET", "payments?limit=1000")["payments"]
        return payments


def as_bytes(prepared: Prepared) -> bytes:
    headers = dict(prepared.headers)
    if prepared.body:
        headers["Content-Length"] = str(len(prepared.body))
    lines = [f"{prepared.method} {prepared.target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + prepared.body


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    raise_file_limit()
    with served(tmp_path_factory.mktemp("bank") / "state") as running:
        yield running


@pytest.fixture
def customer(bank: Served) -> Customer:
    """A customer of the bank as it was made."""
    control(bank.url, "POST", "reset")
    return Customer(bank)


@asynccontextmanager
async def connected(port: int, number: int) -> AsyncIterator[list[Client]]:
    async def one() -> Client:
        return Client(*await asyncio.open_connection("127.0.0.1", port))

    clients = list(await asyncio.gather(*(one() for _ in range(number))))
    try:
        yield clients
    finally:
        for client in clients:
            client.vanish()


async def test_a_thousand_connections_at_once_are_all_answered(customer: Customer) -> None:
    health = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    signed = [customer.wire("GET", "/v1/accounts") for _ in range(20)]
    asked = [*signed, *[health] * (CONNECTIONS - len(signed))]
    async with connected(customer.port, CONNECTIONS) as clients:
        for client, request in zip(clients, asked, strict=True):
            await client.send(request)
        answers = [await client.answer() for client in clients]
        assert {answer.status for answer in answers} == {200}
        assert len({answer.body for answer in answers}) == 2
        # All are still there, and each may ask again.
        for client in clients:
            await client.send(health)
        assert [(await client.answer()).status for client in clients] == [200] * CONNECTIONS


def resident(process: int) -> int:
    """Bytes of memory that a process holds."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the process has no memory")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc")
def test_readers_that_never_read_fill_no_memory(bank: Served, customer: Customer) -> None:
    """Each asks for far more than the sockets hold, all in one go, and reads nothing."""
    one = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    before = resident(bank.process.pid)
    deaf = []
    for _ in range(DEAF):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE)
        connection.connect(("127.0.0.1", customer.port))
        connection.setblocking(False)
        deaf.append(connection)
    for _ in range(3):
        for connection in deaf:
            with suppress(BlockingIOError):  # the bank reads nothing further from this one, as it should
                connection.send(one * 500)
        with urlopen(f"{bank.url}/health", timeout=PATIENCE) as answer:
            assert answer.status == 200
        assert resident(bank.process.pid) - before < MUCH
    for connection in deaf:
        connection.close()


@pytest.mark.parametrize("transport", ["headers", "body", "answer"])
async def test_a_client_that_vanishes_leaves_a_whole_change_or_none(customer: Customer, transport: str) -> None:
    number = 20
    requests = [customer.creation(f"{transport}-{at}") for at in range(number)]
    async with connected(customer.port, number) as clients:
        for at, (client, request) in enumerate(zip(clients, requests, strict=True)):
            headers = request.index(b"\r\n\r\n") + 4
            sent = {"headers": headers * at // number, "body": headers + at, "answer": len(request)}[transport]
            await client.send(request[:sent])
            client.vanish()
    known = {payment["paymentId"] for payment in customer.payments()}
    assert len(known) <= (number if transport == "answer" else 0)
    async with connected(customer.port, number) as clients:
        retried = set()
        for client, request in zip(clients, requests, strict=True):
            answer = await client.ask(request)
            assert answer.status == 201
            retried.add(answer.json()["paymentId"])
    assert len(retried) == number
    assert known <= retried
    assert {payment["paymentId"] for payment in customer.payments()} == retried
    assert control(customer.url, "GET", "ledger")["balanced"] is True


class Writer:
    """Creates payments one after the other until the bank ends; remembers each acknowledgement."""

    def __init__(self, customer: Customer, name: str) -> None:
        self._requests = [customer.creation(f"{name}-{at}") for at in range(40)]
        self._port = customer.port
        self.acknowledged: set[str] = set()
        self.refused = 0
        self.cut_off = 0  # bytes of an answer that was not whole

    async def run(self) -> None:
        try:
            async with connected(self._port, 1) as [client]:
                for request in self._requests:
                    answer = await client.ask(request)
                    assert answer.status in (201, 503), answer.body
                    if answer.status == 201:
                        self.acknowledged.add(answer.json()["paymentId"])
                    else:
                        self.refused += 1
        except asyncio.IncompleteReadError as cut:
            self.refused += 1
            self.cut_off = len(cut.partial)
        except OSError:
            self.refused += 1


@pytest.mark.parametrize(
    "durability, number",
    [pytest.param("process", signal.SIGTERM, marks=pytest.mark.long), ("power", signal.SIGINT)],
)
async def test_an_end_under_load_loses_no_acknowledged_write(
    tmp_path: Path, durability: str, number: signal.Signals
) -> None:
    raise_file_limit()
    with served(tmp_path / "state", "--durability", durability) as bank:
        customer = Customer(bank)
        writers = [Writer(customer, f"writer-{at}") for at in range(8)]
        working = [asyncio.create_task(writer.run()) for writer in writers]
        while sum(len(writer.acknowledged) for writer in writers) < 20:
            await asyncio.sleep(0)
        bank.process.send_signal(number)
        await asyncio.gather(*working)
        assert bank.process.wait(timeout=10) == 0
    assert sum(writer.cut_off for writer in writers) == 0
    acknowledged = set().union(*(writer.acknowledged for writer in writers))
    assert sum(writer.refused for writer in writers) > 0, "the end came after all the work"
    with served(tmp_path / "state") as again:
        known = {payment["paymentId"] for payment in control(again.url, "GET", "payments?limit=1000")["payments"]}
        assert acknowledged <= known
        assert known == acknowledged, "a request without an answer has acted"
        assert control(again.url, "GET", "ledger")["balanced"] is True
        assert again.stop() == 0


@both_loops
async def test_those_who_connect_at_once_need_not_wait_for_one_another() -> None:
    async with serving() as running:
        clients = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(64)]
        for _ in range(16):  # turns of the loop
            await asyncio.sleep(0)
        assert len(running.server.connections.open) == len(clients)
        for client in clients:
            client.close()


@both_loops
@pytest.mark.parametrize("turns", range(6))
async def test_who_connects_as_the_bank_ends_does_not_hold_it_up(turns: int) -> None:
    """The limit for what is under way lies beyond the patience of the test: only a prompt end passes."""
    async with serving(limits=Limits(drain_seconds=600)) as running:
        connecting = [asyncio.create_task(running.connect()) for _ in range(50)]
        for _ in range(turns):
            await asyncio.sleep(0)
        await running.server.stop()
        for client in await asyncio.gather(*connecting, return_exceptions=True):
            if isinstance(client, Client):
                client.vanish()
