"""What a connection carries: whole requests to the core, whole answers back, and nothing for ever."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
from typing import Literal

import pytest

from emulator.api.messages import Delivery, Request, Response
from emulator.bank.clock import real_now
from emulator.ca import CertificateAuthority
from emulator.web.wire import Limits
from tests.e2e.serving import PATIENCE, Client, MadeUpSite, Served, both_loops, chunked, get, head, post, serving

CONTINUE = "Expect: 100-continue"
CHUNKED = "Transfer-Encoding: chunked"
FAR = 600.0  # a limit that no test reaches
LONG = 32 << 20  # bytes: more than the buffers between server and client hold


def text(body: bytes, *headers: tuple[str, str], status: int = 200, delivery: Delivery | None = None) -> Response:
    return Response(status, [("Content-Type", "text/plain"), *headers], body, delivery or Delivery())


async def one(served: Served, data: bytes) -> Request:
    client = await served.connect()
    await client.ask(data)
    return served.application.requests[-1]


@both_loops
async def test_the_core_gets_exactly_what_was_sent_but_of_an_absolute_target_its_path_and_query() -> None:
    odd = post(b"{ }", "x-Odd-NAME:  v \t", "X-A: 1", "X-A: 2", target="/v1/a%2Fb?c=%C3%A5&c")
    as_sent = [("Content-Length", "3"), ("x-Odd-NAME", "v"), ("X-A", "1"), ("X-A", "2")]
    absolute = {"http://localhost/a?b": "/a?b", "http://LOCALHOST?b": "/?b", "http://localhost": "/"}
    async with serving() as served:
        for data, method, target, headers in (
            (odd, "POST", "/v1/a%2Fb?c=%C3%A5&c", as_sent),
            # values are read as UTF-8, and else as Latin-1
            (get("/", "X-U: ÅÆ", "X-L: ?").replace(b"?", b"\xe5"), "GET", "/", [("X-U", "ÅÆ"), ("X-L", "å")]),
            *((get(sent), "GET", taken, []) for sent, taken in absolute.items()),
            (b"GET http://tp/a?b HTTP/1.1\r\nHost: tp\r\n\r\n", "GET", "/a?b", []),
            (head("OPTIONS", "*"), "OPTIONS", "*", []),
        ):
            request = await one(served, data)
            assert (request.method, request.target, list(request.headers)[1:]) == (method, target, headers)
            assert request.body == data.partition(b"\r\n\r\n")[2]


@both_loops
async def test_an_answer_says_length_date_and_server_and_keeps_the_connection() -> None:
    async with serving() as served:
        served.application.answers["/"] = lambda request: text(b"hei")
        client = await served.connect()
        answer = await client.ask(get("/"))
        names = [name for name, _ in answer.headers]
        assert names == ["Content-Type", "Vary", "Content-Length", "Date", "Server"]
        assert (answer.header("Server"), answer.body) == ("bank-emulator", b"hei")


@both_loops
async def test_head_204_and_304_have_no_body() -> None:
    async with serving() as served:
        served.application.answers["/gone"] = lambda request: Response(204)
        served.application.answers["/known"] = lambda request: Response(304, [("ETag", '"1"')])
        client = await served.connect()
        answer = await client.ask(head("HEAD", "/"), bare=True)
        assert int(answer.header("Content-Length") or 0) > 0
        answer = await client.ask(get("/gone"))
        assert (answer.status, answer.header("Content-Length")) == (204, None)
        answer = await client.ask(get("/known"))
        assert (answer.status, answer.header("Content-Length")) == (304, None)
        assert (await client.ask(get("/next"))).json()["target"] == "/next"


@both_loops
async def test_the_client_decides_whether_the_connection_stays() -> None:
    async with serving() as served:
        for data in (get("/", "Connection: close"), get("/", version="1.0")):
            client = await served.connect()
            assert (await client.ask(data)).header("Connection") == "close"
            assert await client.until_closed() == b""
        client = await served.connect()
        answer = await client.ask(get("/", "Connection: keep-alive", version="1.0"))
        assert answer.header("Connection") == "keep-alive"
        assert (await client.ask(get("/"))).status == 200


@both_loops
async def test_a_client_that_stops_sending_still_gets_every_answer() -> None:
    async with serving() as served:
        served.application.answers["/1"] = lambda request: text(b"late", delivery=Delivery(delay=0.05))
        client = await served.connect()
        await client.send(get("/1") + get("/2"))
        client.end()
        assert (await client.answer()).body == b"late"
        assert (await client.answer()).json()["target"] == "/2"
        assert await client.until_closed() == b""


@both_loops
@pytest.mark.parametrize(
    "request_", [get("/large", "Connection: close"), get("/large", version="1.0")], ids=["close", "1.0"]
)
async def test_what_is_sent_behind_the_last_request_does_not_cut_its_answer_off(request_: bytes) -> None:
    """An empty line behind a body, as old clients send it: at a socket that is closed it would reset the connection."""
    async with serving(limits=Limits(linger_seconds=FAR)) as served:
        served.application.answers["/large"] = lambda request: text(b"x" * 1_000_000)
        loop = asyncio.get_running_loop()
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the rest waits in the server's socket
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", served.port))
            await loop.sock_sendall(client, request_)
            received = bytearray()
            async with asyncio.timeout(PATIENCE):
                while part := await loop.sock_recv(client, 65536):
                    received += part
                    await loop.sock_sendall(client, b"\r\n")
        assert len(received.partition(b"\r\n\r\n")[2]) == 1_000_000


@both_loops
async def test_a_header_of_the_core_cannot_break_out_of_its_line() -> None:
    async with serving(limits=Limits(linger_seconds=0.02)) as served:
        served.application.answers["/"] = lambda request: text(b"", ("Location", "/a\r\nSet-Cookie: b"))
        answer = await served.exchange(get("/"))
        assert (answer.status, answer.header("Set-Cookie")) == (500, None)


@both_loops
@pytest.mark.parametrize("parts", [[post(b"{}")], [post(b"{}")[:-1], b"}"]])
async def test_a_fault_of_the_core_is_500_in_json_and_closes(parts: list[bytes]) -> None:
    async with serving(limits=Limits(linger_seconds=0.02)) as served:
        served.application.answers["/"] = lambda request: text(str(1 // 0).encode())
        answer = await served.exchange(*parts)
        assert (answer.status, answer.header("Connection")) == (500, "close")
        assert answer.json()["tppMessages"][0]["code"] == "SYSTEM_ERROR"


# Slow and silent clients


@both_loops
async def test_slow_headers_are_cut() -> None:
    async with serving(limits=Limits(head_seconds=0.02, idle_seconds=FAR)) as served:
        for sent in (b"", b"GET /", get("/")[:-2]):
            client = await served.connect()
            await client.send(sent)
            assert await client.until_closed() == b"", sent
        assert served.application.requests == []


@both_loops
async def test_headers_are_too_large_however_they_come() -> None:
    sent = get("/") + get("/", *(f"X-{n}: {'x' * 7000}" for n in range(10)))
    async with serving() as served:
        for at in (65_000, 65_600, 72_000, 80_000):
            client = await served.connect()
            await client.ask(sent[:at])
            assert (await client.ask(sent[at:])).status == 431, at


@both_loops
async def test_a_connection_behind_whole_requests_is_idle_and_not_slow() -> None:
    # The last connection must get its head through in time too, on a busy machine as well.
    async with serving(limits=Limits(head_seconds=0.25, idle_seconds=FAR)) as served:
        served.application.answers["/late"] = lambda request: text(b"late", delivery=Delivery(delay=0.3))
        clients = []
        for whole in (get("/"), post(b"{}"), post(b"x"), chunked("4", "body", "0", "", "")):
            clients.append(await served.connect())
            await clients[-1].send(whole)
            await clients[-1].answer()
        await one(served, get("/late"))  # longer than headers may take
        for client in clients:
            assert (await client.ask(get("/"))).status == 200


@both_loops
async def test_a_connection_in_use_is_never_idle() -> None:
    async with serving(limits=Limits(head_seconds=FAR, idle_seconds=0.2)) as served:
        client = await served.connect()
        loop = asyncio.get_running_loop()
        since = loop.time()
        while loop.time() < since + 0.25:
            assert (await client.ask(get("/"))).status == 200


@both_loops
async def test_an_idle_connection_is_closed_in_the_end() -> None:
    async with serving(limits=Limits(head_seconds=FAR, idle_seconds=0.02)) as served:
        client = await served.connect()
        assert (await client.ask(get("/"))).status == 200
        assert await client.until_closed() == b""


@both_loops
@pytest.mark.parametrize("sent", [head("POST", "/", "Content-Length: 2") + b"{", chunked("1", "{", "")])
async def test_a_slow_body_is_408(sent: bytes) -> None:
    async with serving(limits=Limits(body_seconds=0.02, linger_seconds=0.02)) as served:
        answer = await served.exchange(sent)
        assert (answer.status, answer.header("Connection")) == (408, "close")
        assert answer.json()["tppMessages"][0]["code"] == "BAD_REQUEST"
        assert served.application.requests == []


@both_loops
async def test_a_client_that_vanishes_in_a_request_has_sent_none() -> None:
    async with serving() as served:
        for sent in (get("/")[:9], head("POST", "/", "Content-Length: 9") + b"{", chunked("9", "{")):
            client = await served.connect()
            await client.send(sent)
            client.vanish()
            half = await served.connect()
            await half.send(sent)
            half.end()
            assert await half.until_closed() == b"", sent
        assert served.application.requests == []


@both_loops
async def test_a_client_that_does_not_read_is_dropped_and_holds_little() -> None:
    async with serving(limits=Limits(write_seconds=0.05)) as served:
        served.application.answers["/large"] = lambda request: text(b"x" * 16_000_000)  # the kernel holds up to 4 MB
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # counts for connections made afterwards
        deaf.connect(("127.0.0.1", served.port))
        deaf.sendall(get("/large") * 8)
        await until(lambda: len(served.application.requests) > 0)
        await until(lambda: not served.server.connections.open)
        assert len(served.application.requests) == 1
        deaf.close()


async def until(true: object) -> None:
    """Let the loop run until `true()`."""
    assert callable(true)
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0)


# Delivery


@both_loops
async def test_a_delay_holds_up_nobody_else() -> None:
    async with serving() as served:
        served.application.answers["/never"] = lambda request: text(b"never", delivery=Delivery(delay=3600))
        served.application.answers["/late"] = lambda request: text(b"late", delivery=Delivery(delay=0.05))
        never, other = await served.connect(), await served.connect()
        await never.send(get("/never"))
        await until(lambda: served.application.requests)
        assert (await other.ask(get("/late"))).body == b"late"
        assert not never.reader._buffer
        never.vanish()


@both_loops
@pytest.mark.parametrize("kind", ["before", "after"])
async def test_a_disconnect_is_a_close_without_a_byte(kind: Literal["before", "after"]) -> None:
    async with serving() as served:
        served.application.answers["/"] = lambda request: text(b"lost", delivery=Delivery(disconnect=kind))
        client = await served.connect()
        await client.send(get("/"))
        assert await client.until_closed() == b""


@pytest.mark.parametrize(
    "lines", [["Accept-Encoding: br, gzip;q=0.5"], ["Accept-Encoding: br", "Accept-Encoding: gzip"]]
)
@both_loops
async def test_gzip_when_asked_for(lines: list[str]) -> None:
    async with serving() as served:
        served.application.answers["/"] = lambda request: text(b"hei " * 100)
        client = await served.connect()
        answer = await client.ask(get("/", *lines))
        assert answer.header("Content-Encoding") == "gzip"
        assert gzip.decompress(answer.body) == b"hei " * 100
        answer = await client.ask(get("/", "Accept-Encoding: gzip;q=0"))
        assert (answer.header("Content-Encoding"), answer.body) == (None, b"hei " * 100)


# Events


async def events(served: Served) -> Client:
    served.application.answers["/events"] = served.application.events
    client = await served.connect()
    answer = await client.ask(get("/events"))
    assert (answer.header("Content-Type"), answer.header("Content-Length")) == ("text/event-stream", None)
    assert await client.reader.readuntil(b"\n\n") == b"data: first\n\n"
    return client


@both_loops
async def test_a_stream_whose_bank_is_gone_is_closed_behind_what_was_pushed() -> None:
    async with serving() as served:
        client = await events(served)
        [push] = served.application.pushes
        push(b"data: last\n\n")
        push(None)
        assert await client.until_closed() == b"data: last\n\n"
        await asyncio.wait_for(served.application.ended.wait(), PATIENCE)


@both_loops
async def test_events_arrive_as_they_are_pushed_and_comments_between_them() -> None:
    async with serving(limits=Limits(comment_seconds=0.02)) as served:
        client = await events(served)
        served.application.pushes[0](b"data: second\n\n")
        comment = b": still here\n\n"
        while (heard := await client.reader.readuntil(b"\n\n")) == comment:
            pass  # a busy machine took so long
        assert heard == b"data: second\n\n"
        assert await client.reader.readuntil(b"\n\n") == comment
        client.vanish()
        await asyncio.wait_for(served.application.ended.wait(), 10)


@both_loops
async def test_a_watcher_that_does_not_read_is_dropped() -> None:
    async with serving(limits=Limits(event_bytes=100_000)) as served:
        watcher = await events(served)
        while not served.application.ended.is_set():
            served.application.pushes[0](b"x" * 100_000)
            await asyncio.sleep(0)
        assert len(await watcher.until_closed()) < 50_000_000


@both_loops
async def test_a_request_moves_the_next_waking() -> None:
    async with serving() as served:
        watcher = await events(served)

        def sooner(request: Request) -> Response:
            served.application.due = 0.01
            return text(b"")

        served.application.answers["/"] = sooner
        await one(served, get("/"))
        await asyncio.wait_for(served.application.woken.wait(), 10)
        watcher.vanish()


@both_loops
async def test_nobody_watching_the_core_sleeps() -> None:
    async with serving() as served:
        client = await events(served)
        client.vanish()
        await asyncio.wait_for(served.application.ended.wait(), 10)
        served.application.due = 0.0
        await one(served, get("/"))
        await one(served, get("/"))
        assert not served.application.woken.is_set()


# The base of links


@both_loops
async def test_the_base_of_links_is_an_allowed_host_or_the_listening_address() -> None:
    async with serving(allowed=("bank.test",)) as served:
        for host in ("localhost:9", "127.0.0.1", "[::1]:80", "Bank.Test:8080", "localhost:65535"):
            assert await base_for(served, host) == f"http://{host}"
        for host in ("evil.test", "localhost.evil.test", "localhost:65536", ""):
            assert await base_for(served, host) == f"http://127.0.0.1:{served.port}", host


async def base_for(served: Served, host: str) -> str:
    request = await one(served, get("/").replace(b"localhost", host.encode()))
    return request.base


@both_loops
async def test_the_public_address_is_the_base_whatever_the_host() -> None:
    async with serving(public_url="https://bank.test/sandbox/") as served:
        request = await one(served, get("/"))
        assert request.base == "https://bank.test/sandbox"


# TLS


@both_loops
async def test_the_same_site_answers_over_tls() -> None:
    application, authority = MadeUpSite(), CertificateAuthority(None, clock=real_now)
    application.tls = authority.server_context(("localhost",))
    async with serving(application, tls=True) as served:
        assert [url.partition(":")[0] for url in served.server.urls] == ["http", "https"]
        client = await served.connect_tls(ssl.create_default_context(cadata=authority.certificate_pem))
        assert (await client.ask(get("/"))).status == 200
        assert application.requests[0].base == "https://localhost"
        client.writer.close()


# The end


@both_loops
async def test_stopping_closes_idle_connections_and_streams_and_finishes_requests() -> None:
    async with serving(limits=Limits(linger_seconds=0.02)) as served:
        served.application.answers["/late"] = lambda request: text(b"late", delivery=Delivery(delay=0.05))
        idle, late, watching = await served.connect(), await served.connect(), await events(served)
        await idle.ask(get("/"))
        await late.send(get("/late") + get("/never"))
        await until(lambda: served.application.requests[-1].target == "/late")
        stopping = asyncio.ensure_future(served.server.stop())
        answer = await late.answer()
        assert (answer.body, answer.header("Connection")) == (b"late", "close")
        for client in (idle, late, watching):
            assert await client.until_closed() == b""
        await stopping
        assert served.application.requests[-1].target == "/late"
        with pytest.raises(ConnectionRefusedError):
            await served.connect()


@both_loops
@pytest.mark.parametrize(
    ("first", "rest"),
    [
        (head("POST", "/", "Content-Length: 4", CONTINUE) + b"{", b" }\n" + get("/never")),
        (head("POST", "/", CHUNKED, CONTINUE) + b"1\r\n{\r\n", b"3\r\n }\n\r\n0\r\n\r\n" + get("/never")),
    ],
    ids=["length", "chunks"],
)
async def test_a_request_whose_body_comes_while_the_server_stops_is_answered(first: bytes, rest: bytes) -> None:
    async with serving(limits=Limits(linger_seconds=0.02)) as served:
        client = await served.connect()
        await client.send(first)
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        stopping = asyncio.ensure_future(served.server.stop())
        await asyncio.sleep(0)
        await client.send(rest[:2])
        answer = await client.ask(rest[2:])
        assert (answer.status, answer.header("Connection")) == (200, "close")
        assert await client.until_closed() == b""
        await stopping
        assert [(request.target, request.body) for request in served.application.requests] == [("/", b"{ }\n")]


@both_loops
async def test_a_body_that_breaks_while_the_server_stops_is_refused() -> None:
    async with serving(limits=Limits(linger_seconds=0.02)) as served:
        client = await served.connect()
        await client.send(head("POST", "/", CHUNKED, CONTINUE) + b"1\r\n{\r\n")
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        stopping = asyncio.ensure_future(served.server.stop())
        await asyncio.sleep(0)
        assert (await client.ask(b"no length\r\n")).status == 400
        await stopping
        assert served.application.requests == []


@both_loops
async def test_stopping_waits_no_longer_than_it_may() -> None:
    async with serving(limits=Limits(drain_seconds=0.05)) as served:
        served.application.answers["/late"] = lambda request: text(b"late", delivery=Delivery(delay=FAR))
        late, slow = await served.connect(), await served.connect()
        await late.send(get("/late"))
        await slow.send(head("POST", "/", "Content-Length: 5"))
        await until(lambda: served.application.requests)
        await asyncio.wait_for(served.server.stop(), 10)
        assert await late.until_closed() == b""
        assert await slow.until_closed() == b""


@both_loops
async def test_who_does_not_close_behind_its_last_answer_does_not_hold_up_the_end() -> None:
    async with serving(limits=Limits(linger_seconds=FAR, drain_seconds=FAR)) as served:
        answered, watching = await served.connect(), await events(served)
        await answered.ask(get("/", "Connection: close"))
        await asyncio.wait_for(served.server.stop(), PATIENCE)
        for client in (answered, watching):
            assert await client.until_closed() == b""


@both_loops
async def test_whoever_reads_slowly_does_not_hold_up_the_hand_over_and_gets_all() -> None:
    async with serving(limits=Limits(drain_seconds=FAR)) as served:
        served.application.answers["/long"] = lambda request: text(b"x" * LONG)
        client = await served.connect()
        await client.send(get("/long") + get("/after"))
        await until(lambda: served.application.requests)
        stopping = asyncio.ensure_future(served.server.stop())
        await asyncio.wait_for(served.application.left.wait(), PATIENCE)
        assert not stopping.done()
        answer = await client.answer()
        assert len(answer.body) == LONG
        assert await client.until_closed() == b""
        await asyncio.wait_for(stopping, PATIENCE)
        assert [request.target for request in served.application.requests] == ["/long"], "its bank is another's"


@both_loops
async def test_who_gave_up_on_a_delayed_answer_does_not_hold_up_the_end() -> None:
    async with serving(limits=Limits(drain_seconds=FAR)) as served:
        served.application.answers["/late"] = lambda request: text(b"late", delivery=Delivery(delay=FAR))
        client = await served.connect()
        await client.send(get("/late"))
        client.end()  # what the server sees of a client that has closed
        await until(lambda: served.application.requests)
        await asyncio.wait_for(served.server.stop(), PATIENCE)
        assert await client.until_closed() == b""
