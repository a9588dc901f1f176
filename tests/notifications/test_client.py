"""One notification on the wire: which address is connected to, and what an answer may do."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from emulator.bank.clock import real_now
from emulator.bank.notification_targets import Host
from emulator.ca import CertificateAuthority
from emulator.web import notification_client
from emulator.web.notification_client import NotificationClient

AUTHORITY = CertificateAuthority(None, clock=real_now)
PUBLIC = "93.184.216.34"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """A server that notes the heads of requests and answers each with the same bytes; None: with silence."""

    def __init__(self, answer: bytes | None) -> None:
        self.answer = answer
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.port = 0
        self._open: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open[asyncio.current_task()] = writer
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
            self.bodies.append(await reader.readexactly(length))
            if self.answer is None:
                await reader.read()
            else:
                writer.write(self.answer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            del self._open[asyncio.current_task()]

    async def end(self) -> None:
        """End the connections whose clients are silent."""
        for writer in self._open.values():
            writer.close()
        await asyncio.gather(*filter(None, self._open))


@asynccontextmanager
async def serving(answer: bytes | None, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(answer)
    listening = await asyncio.start_server(server.take, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await server.end()


class Names:
    """What names resolve to: each question gets the next answer, the last one again and again."""

    def __init__(self, answers: Sequence[Sequence[str]]) -> None:
        self.answers = [list(answer) for answer in answers]
        self.asked: list[str] = []

    def getaddrinfo(self, host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        self.asked.append(host)
        addresses = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        families = {True: socket.AF_INET6, False: socket.AF_INET}
        return [(families[":" in one], socket.SOCK_STREAM, 6, "", (one, port)) for one in addresses]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Names]:
    def answering(*answers: Sequence[str]) -> Names:
        known = Names(answers)
        monkeypatch.setattr(notification_client.socket, "getaddrinfo", known.getaddrinfo)
        return known

    return answering


def client(*allowed: Host) -> NotificationClient:
    return NotificationClient(allowed=allowed, authority=AUTHORITY.certificate_pem)


OK = b"HTTP/1.1 204 No Content\r\n\r\n"
ALLOWED = Host("tpp.example")


async def test_a_notification_is_posted_as_it_is() -> None:
    async with serving(OK) as server:
        outcome = await client(Host("127.0.0.1")).post(f"http://127.0.0.1:{server.port}/a?b=%2F", b'{"a":1}', "an-id")
    assert outcome.delivered
    (head,) = server.heads
    assert head.startswith("POST /a?b=%2F HTTP/1.1\r\n")
    assert "X-Request-ID: an-id\r\n" in head
    assert server.bodies == [b'{"a":1}']


INSIDE = [["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"], ["::1"], ["::ffff:127.0.0.1"], ["0.0.0.0"]]


@pytest.mark.parametrize("addresses", [*INSIDE, [PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC]])
async def test_a_name_that_leads_inside_is_not_connected_to(addresses: list[str], names: Callable[..., Names]) -> None:
    async with serving(OK) as server:
        names(addresses)
        outcome = await client().post(f"https://tpp.example:{server.port}/", b"{}", "id")
    assert "not public" in str(outcome.error)
    assert server.connections == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1", "localhost"])
async def test_an_address_inside_is_not_connected_to_even_if_it_got_so_far(host: str) -> None:
    async with serving(OK) as server:
        outcome = await client().post(f"https://{host}:{server.port}/", b"{}", "id")
    assert "not public" in str(outcome.error)
    assert server.connections == 0


async def test_a_port_beside_the_allowed_one_is_not_connected_to() -> None:
    async with serving(OK) as server:
        outcome = await client(Host("127.0.0.1", 1)).post(f"http://127.0.0.1:{server.port}/", b"{}", "id")
    assert "not public" in str(outcome.error)
    assert server.connections == 0


async def test_a_name_is_resolved_once_and_the_connection_goes_to_what_was_checked(names: Callable[..., Names]) -> None:
    """Rebinding: the second answer to the same question leads elsewhere; nobody asks twice."""
    async with serving(OK) as server:
        known = names(["127.0.0.1"], ["127.0.0.2"])
        outcome = await client(ALLOWED).post(f"http://tpp.example:{server.port}/", b"{}", "id")
    assert outcome.delivered
    assert known.asked == ["tpp.example"]
    assert f"Host: tpp.example:{server.port}\r\n" in server.heads[0]


async def test_an_own_address_that_looks_public_is_refused(
    names: Callable[..., Names], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notification_client, "is_public", lambda address: True)
    async with serving(OK) as server:
        names(["127.0.0.1"])
        outcome = await client().post(f"https://tpp.example:{server.port}/", b"{}", "id")
    assert "127.0.0.1" in str(outcome.error)
    assert server.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    async with serving(OK) as inside:
        location = f"Location: http://127.0.0.1:{inside.port}/admin\r\n"
        async with serving(f"HTTP/1.1 {status} Moved\r\n{location}Content-Length: 0\r\n\r\n".encode()) as server:
            outcome = await client(Host("127.0.0.1")).post(f"http://127.0.0.1:{server.port}/", b"{}", "id")
    assert (outcome.status, outcome.delivered) == (status, False)
    assert inside.connections == 0


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(OK) as proxy, serving(OK) as server:
        for variable in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}")
        outcome = await client(Host("127.0.0.1")).post(f"http://127.0.0.1:{server.port}/", b"{}", "id")
    assert outcome.delivered
    assert (proxy.connections, server.connections) == (0, 1)


@pytest.mark.parametrize(
    "answer, error",
    [
        (b"", "the connection was closed"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "the connection was closed"),
        (b"no HTTP at all\r\n\r\n", "the answer cannot be read"),
        (b"HTTP/1.1 204 No Content\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", "the answer cannot be read"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "the answer cannot be read"),
        (b"\x16\x03\x01\x00", "the answer cannot be read"),
    ],
)
async def test_no_answer_however_odd_is_more_than_a_failure(answer: bytes, error: str) -> None:
    async with serving(answer) as server:
        outcome = await client(Host("127.0.0.1")).post(f"http://127.0.0.1:{server.port}/", b"{}", "id")
    assert str(outcome.error).startswith(error)
    assert "\n" not in str(outcome.error)


async def test_a_body_without_an_end_is_not_read() -> None:
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n" + b"a" * 1000) as server:
        outcome = await client(Host("127.0.0.1")).post(f"http://127.0.0.1:{server.port}/", b"{}", "id")
    assert outcome.delivered


async def test_a_receiver_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notification_client, "SECONDS", 0.05)
    async with serving(None) as server:
        outcome = await client(Host("127.0.0.1")).post(f"http://127.0.0.1:{server.port}/", b"{}", "id")
    assert "no answer" in str(outcome.error)


async def test_a_name_that_is_not_there_is_a_failure(names: Callable[..., Names]) -> None:
    names([])
    outcome = await client().post("https://tpp.example/", b"{}", "id")
    assert "cannot be resolved" in str(outcome.error)


async def test_name_servers_that_never_answer_hold_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(notification_client, "SECONDS", 0.05)
    monkeypatch.setattr(notification_client, "MOST_NAMES", 2)
    monkeypatch.setattr(notification_client.socket, "getaddrinfo", lambda *_, **__: over.wait(10) and [])
    sender = client()
    try:
        outcomes = await asyncio.gather(*(sender.post("https://tpp.example/", b"{}", "id") for _ in range(3)))
        assert sorted(str(outcome.error) for outcome in outcomes) == [
            *["no answer within 0.05 s"] * 2,
            "not sent: too many names wait for their name servers",
        ]
        assert await asyncio.get_running_loop().run_in_executor(None, lambda: "free") == "free"
    finally:
        over.set()


async def test_nobody_listening_is_a_failure() -> None:
    async with serving(OK) as server:
        port = server.port
    outcome = await client(Host("127.0.0.1")).post(f"http://127.0.0.1:{port}/", b"{}", "id")
    assert outcome.error == f"Connection refused (127.0.0.1:{port})"


async def test_a_certificate_of_the_sandbox_ca_is_trusted(names: Callable[..., Names]) -> None:
    async with serving(OK, AUTHORITY.server_context(("tpp.example",))) as server:
        names(["127.0.0.1"])
        outcome = await client(ALLOWED).post(f"https://tpp.example:{server.port}/", b"{}", "id")
    assert outcome.delivered, outcome.error


@pytest.mark.parametrize("case", ["another name", "another authority"])
async def test_a_certificate_that_does_not_fit_is_refused(case: str, names: Callable[..., Names]) -> None:
    other = CertificateAuthority(None, clock=real_now)
    tls = (AUTHORITY if case == "another name" else other).server_context(
        ("other.example" if case == "another name" else "tpp.example",)
    )
    async with serving(OK, tls) as server:
        names(["127.0.0.1"])
        outcome = await client(ALLOWED).post(f"https://tpp.example:{server.port}/", b"{}", "id")
    assert "TLS" in str(outcome.error) or "certificate" in str(outcome.error).lower()
    assert server.bodies == []
