"""However the bytes of a connection are cut, its requests get the same answers in the same order."""

from __future__ import annotations

import asyncio
import gc
import re
import weakref
from errno import ENOTCONN

import pytest
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpProcessingError, HttpRequestParser
from hypothesis import assume, example, given
from hypothesis import strategies as st

from emulator.api.messages import Delivery, Request, Response
from emulator.web.connection import Connection
from emulator.web.wire import MAX_BODY_BYTES, MAX_FIELD_BYTES, MAX_HEAD_BYTES, Limits
from tests.e2e.serving import MadeUpSite, chunked, get, head, post
from tests.unit.web.peer import Peer, connections_of, turn

GOING_ON = {
    "get": get("/v1/get"),
    "elsewhere": get("/elsewhere"),
    "post": post(b"body", target="/v1/post"),
    "old": get("/v1/old", "Connection: keep-alive", version="1.0"),
    "chunked": head("POST", "/v1/chunked", "Transfer-Encoding: chunked") + b"4\r\nbody\r\n0\r\n\r\n",
    "expecting": post(b"body", "Expect: 100-continue", target="/v1/expecting"),
    "upgrade": get("/v1/upgrade", "Connection: Upgrade", "Upgrade: websocket"),
    "h2c": get("/v1/h2c", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"),
    "h2c-posted": post(b"body", "Connection: Upgrade", "Upgrade: h2c", target="/v1/h2c-posted"),
    "late": get("/v1/late"),
    "trailed": chunked("2;x=y", "bo", "2", "dy", "0", "X-Trailer: 1", "", "").replace(b" / ", b" /v1/trailed "),
    "blank": b"\r\n" + get("/v1/blank"),
}
UPGRADING = {"upgrade", "h2c", "h2c-posted"}
ENDING = {
    "last": (get("/v1/last", "Connection: close"), 200),
    "fault": (get("/v1/fault"), 500),
    "refused": (get("/v1/refused#here"), 400),
    "broken": (get("/v1/broken", "no colon"), 400),
    "garbage": (b"garbage\r\n", 400),
}


class Application(MadeUpSite):
    """Answers one request late, and fails at another."""

    def handle(self, request: Request) -> Response:
        self.requests.append(request)
        if request.target == "/v1/fault":
            raise RuntimeError("a fault of ours")
        answer = Response(200, [], f"<{request.target}>".encode())
        if request.target == "/v1/late":
            answer.delivery = Delivery(delay=1e-9)
        return answer


def client_of(application: Application) -> Peer:
    return Peer(connections_of(application))


async def answers(parts: list[bytes], pauses: list[bool], number: int) -> tuple[list[int], list[str], list[str]]:
    """Statuses of `number` answers, what they say, and what reached the core; between parts the loop may run."""
    application = Application()
    client = client_of(application)
    for part, pause in zip(parts, pauses, strict=True):
        client.connection.data_received(part)
        if pause:
            await turn()
    statuses = await client.answered(number)
    assert {request.body for request in application.requests if request.method == "POST"} <= {b"body"}
    return statuses, re.findall("<(.*?)>", client.got.decode()), [request.target for request in application.requests]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = sorted({place % len(data) for place in places} - {0})
    return [data[start:end] for start, end in zip([0, *at], [*at, len(data)], strict=True)]


class Throttled(Peer):
    """A client that stops sending while the server holds it back."""

    held, times_held = False, 0

    def pause_reading(self) -> None:
        self.held = True
        self.times_held += 1

    def resume_reading(self) -> None:
        self.held = False


async def test_a_client_that_sends_many_requests_ahead_is_held_back_and_gets_every_answer() -> None:
    client = Throttled(connections_of(Application()))
    client.ask("/v1/late")
    sent = 1
    while not client.held:
        client.ask(*["/v1/get"] * 50)
        sent += 50
    assert sent < 5000
    async with asyncio.timeout(20):
        while client.got.count(b"HTTP/1.1 200 OK") < sent:
            await asyncio.sleep(0.01)
    assert (client.held, client.times_held) == (False, 1)


class Reset(Peer):
    """A client that has reset the connection, which only the system knows yet."""

    def write_eof(self) -> None:
        raise OSError(ENOTCONN, "Transport endpoint is not connected")


@pytest.mark.parametrize("last", [get("/", "Connection: close"), b"garbage\r\n\r\n"], ids=["answered", "refused"])
async def test_a_connection_that_the_client_has_reset_is_closed_at_its_end(last: bytes) -> None:
    client = Reset(connections_of(Application(), Limits(linger_seconds=600.0)))
    client.connection.data_received(last)
    await client.until_closed()


async def test_a_large_body_is_read_in_whatever_pieces_it_comes() -> None:
    application = Application()
    client = Throttled(connections_of(application))
    body = b"x" * MAX_BODY_BYTES
    data = post(body, target="/v1/post")
    for at in range(0, len(data), 150_000):
        client.connection.data_received(data[at : at + 150_000])
        await turn()
    assert await client.answered(1) == [200]
    assert application.requests[0].body == body
    assert client.times_held == 0


class Unpaused(BaseProtocol):
    def pause_reading(self) -> None:
        """Nothing is held back."""

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Nothing is held back."""


async def parser_refuses(data: bytes) -> bool:
    """Whether aiohttp's parser refuses any part of `data`."""
    loop = asyncio.get_running_loop()
    limits = {"max_line_size": 8190, "max_field_size": MAX_FIELD_BYTES, "max_headers": MAX_HEAD_BYTES}
    parser = HttpRequestParser(Unpaused(loop), loop, MAX_BODY_BYTES, auto_decompress=False, **limits)
    try:
        parser.feed_data(data)
    except HttpProcessingError:
        return True
    return False


async def fate(parts: list[bytes], *, pausing: bool) -> tuple[list[int], list[str], bool]:
    """Statuses, what reached the core, and whether the server has ended the connection."""
    application = Application()
    client = client_of(application)
    for part in parts:
        client.connection.data_received(part)
        if pausing:
            await turn()
    before = -1
    while len(client.got) != before:
        before = len(client.got)
        await turn()
    ended = client.no_more or client.closed
    return client.statuses, [request.target for request in application.requests], ended


PIECES = (b"\r", b"\n", b"\r\n\r\n", b"\0", b" ", b":", b";", b"#", b"f" * 17, b"\xe5", b"http://", b"Host: x\r\n")
PIECES += (b"Transfer-Encoding: chunked\r\n", b"Content-Length: 3\r\n", b"Connection: close\r\n", b"Expect: x\r\n")
DAMAGE = st.tuples(st.integers(0, 500), st.integers(0, 8), st.sampled_from(PIECES) | st.binary(max_size=3))


@example([], [(0, 0, b"CONNECT \r\n\r\n")], [], False)
@example(["chunked"], [(70, 0, b"X"), (80, 0, b"no colon\r\n")], [71], True)
@given(
    st.lists(st.sampled_from(sorted(set(GOING_ON) - UPGRADING)), max_size=3),
    st.lists(DAMAGE, min_size=1, max_size=4),
    st.lists(st.integers(0, 500), max_size=4),
    st.booleans(),
)
def test_what_the_parser_refuses_is_answered_at_once_however_it_comes(
    kinds: list[str], damages: list[tuple[int, int, bytes]], places: list[int], pausing: bool
) -> None:
    data = b"".join(GOING_ON[kind] for kind in kinds)
    for at, removed, put in damages:
        at = at % (len(data) + 1)
        data = data[:at] + put + data[at + removed :]
    if not data:
        return

    async def run() -> None:
        statuses, targets, ended = await fate([data], pausing=False)
        assert (statuses, targets, ended) == await fate(cut(data, places), pausing=pausing)
        assert all(status in (200, 400, 417, 500) for status in statuses)
        assert ended or not await parser_refuses(data)

    asyncio.run(run())


@example(["get"] * 70, None, [], False)
@example(["late", "get", "get"], None, [], False)
@example(["get", "late", "post"], "last", [], False)
@example(["get", "upgrade", "get"], "fault", [], False)
@example(["h2c", "h2c-posted", "get"], None, [], False)
@example([], "refused", [9], True)
@example(["get", "post", "get"], "broken", [], False)
@example(["late", "get"], "broken", [], False)
@example(["late", "get"], "broken", [len(GOING_ON["late"])], False)
@example(["get", "get"], "garbage", [9], False)
@given(
    st.lists(st.sampled_from(sorted(GOING_ON)), max_size=6),
    st.none() | st.sampled_from(sorted(ENDING)),
    st.lists(st.integers(0, 2000), max_size=5),
    st.booleans(),
)
def test_answers_do_not_depend_on_how_requests_come(
    kinds: list[str], end: str | None, places: list[int], pausing: bool
) -> None:
    # What comes behind an offered upgrade waits unread until that is answered, and is then read in one go.
    assume(UPGRADING.isdisjoint(kinds) or end not in ("broken", "garbage", "last"))
    data = b"".join(GOING_ON[kind] for kind in kinds)
    targets = ["/elsewhere" if kind == "elsewhere" else f"/v1/{kind}" for kind in kinds]
    expected = [200] * len(kinds), targets, targets
    if end is not None:
        last, status = ENDING[end]
        data += last + get("/v1/never")
        answered = [*targets, f"/v1/{end}"]
        expected = (
            [*expected[0], status],
            answered if status == 200 else targets,
            targets if status == 400 else answered,
        )
    if not data:
        return
    parts = cut(data, places)
    pauses = [pausing] * len(parts)
    assert asyncio.run(answers(parts, pauses, len(expected[0]))) == expected


SECRET = "b" * (MAX_FIELD_BYTES + 1)
BEGUN = chunked("1", "x", "0", "")


@pytest.mark.parametrize(
    ("before", "rest", "status"),
    [
        (b"", f"X-A: {SECRET}\r\n\r\n", 431),
        (get("/v1/get"), "X-A: " + "b" * 15_990 + "\r\n", 400),
        (get("/v1/get"), "X-A: b\r\n" * 7000 + "\r\n", 200),
        (get("/v1/late") * 3, "X-A: b\r\n" * 7000 + "\r\n", 200),
        (b"", f"X-A: {SECRET[:-10]}\r\n" * 10 + "\r\n", 400),
        (get("/v1/late") * 3, "X-A: b\r\n" * 20_000 + "\r\n", 400),
    ],
    ids=["one too long", "without end", "as large as allowed", "behind others", "ten long ones", "many short ones"],
)
async def test_trailers_are_bounded_alike_however_they_come(before: bytes, rest: str, status: int) -> None:
    sent = rest.encode() * (1 if rest.endswith("\r\n\r\n") else 10)
    answered = before.count(b"GET")
    for parts in (
        [before + BEGUN + sent],
        [before + BEGUN, sent],
        cut(before + BEGUN + sent, [*range(0, 170_000, 1900)]),
    ):
        client = client_of(Application())
        for part in parts:
            client.connection.data_received(part)
            await turn()
        assert await client.answered(answered + 1) == [200] * answered + [status]
        assert b"bbbb" not in client.got


LARGE = "a" * (MAX_FIELD_BYTES - 10)
TOO_LARGE = [f"X-{number}: {LARGE}" for number in range(MAX_HEAD_BYTES // MAX_FIELD_BYTES + 1)]


@pytest.mark.parametrize(
    ("refused", "status"),
    [
        (get("/", "X-Request-ID: its-id", "Host: another"), 400),
        (get("/", "X-Request-ID: its-id", "X-A: " + "a" * (MAX_FIELD_BYTES + 1)), 431),
        (get("/", "X-Request-ID: its-id", *TOO_LARGE).removesuffix(b"\r\n"), 431),
    ],
    ids=["two hosts", "a long header", "long together, without end"],
)
@pytest.mark.parametrize("before", [b"", get("/v1/get", "X-Request-ID: another")], ids=["first", "second"])
async def test_a_refused_head_has_its_x_request_id_returned_in_however_many_pieces_it_comes(
    refused: bytes, status: int, before: bytes
) -> None:
    end_of_id = refused.index(b"its-id\r\n") + len(b"its-id\r\n")
    for place in (*range(1, end_of_id - 1, 3), end_of_id - 1, end_of_id):
        client = client_of(Application())
        client.connection.data_received(before)
        for part in cut(refused, [place, end_of_id, 30_000]):
            await turn()
            client.connection.data_received(part)
        await turn()
        assert client.statuses == [200] * bool(before) + [status]
        assert client.got.count(b"X-Request-ID: its-id\r\n") == 1


@pytest.mark.parametrize("begun", [GOING_ON["post"], GOING_ON["chunked"]], ids=["length", "chunks"])
@pytest.mark.parametrize("split", [None, 1, -10], ids=["in one piece", "cut before it", "cut behind it"])
async def test_a_refused_head_behind_the_end_of_a_body_has_its_own_x_request_id_or_one_of_the_bank(
    begun: bytes, split: int | None
) -> None:
    """What arrives in the packet of the request before it is the parser's and not looked at again."""
    begun = begun.replace(b"Host", b"X-Request-ID: another\r\nHost")
    refused = get("/", "X-Request-ID: its-id", "Host: another")
    for place in range(begun.index(b"\r\n\r\n") + 4, len(begun)):
        client = client_of(Application())
        client.connection.data_received(begun[:place])
        await turn()
        client.connection.data_received(begun[place:] + refused[:split])
        if split is not None:
            await turn()
            client.connection.data_received(refused[split:])
        assert await client.answered(2) == [200, 400]
        ids = re.findall(rb"X-Request-ID: (.*)\r\n", client.got)
        assert len(ids) == 1
        assert ids[0] == b"its-id" if split == 1 else ids[0] != b"another"


async def test_half_an_x_request_id_is_not_returned() -> None:
    client = client_of(Application())
    client.connection.data_received(get("/", "X-A: a\x01b", "X-Request-ID: its-id").removesuffix(b"id\r\n\r\n"))
    await turn()
    assert client.statuses == [400]
    assert b"its-" not in client.got


async def test_a_head_without_end_is_refused_behind_the_answers_that_are_owed() -> None:
    client = client_of(Application())
    client.ask("/v1/late")
    client.connection.data_received(b"GET / HTTP/1.1\r\nX-Request-ID: its-id\r\n" + b"X: y\r\n" * 20_000)
    client.connection.data_received(b"X: y\r\n" * 20_000)
    assert await client.answered(2) == [200, 431]
    assert client.got.count(b"X-Request-ID: its-id\r\n") == 1


async def test_broken_chunks_behind_requests_that_wait_break_their_own_request_only() -> None:
    application = Application()
    client = client_of(application)
    client.connection.data_received(GOING_ON["late"] + post(b"body", target="/v1/post") + chunked("1", "xy", ""))
    assert await client.answered(3) == [200, 200, 400]
    assert [request.target for request in application.requests] == ["/v1/late", "/v1/post"]


@pytest.mark.parametrize("begun", [b"", b"GET /", GOING_ON["post"][:-1], GOING_ON["chunked"][:-1]])
async def test_who_half_closes_within_a_request_is_not_waited_for(begun: bytes) -> None:
    client = client_of(Application())
    client.connection.data_received(GOING_ON["get"] + begun)
    assert await client.answered(1) == [200]
    assert not client.connection.eof_received()


async def test_who_connects_while_the_server_stops_is_dropped() -> None:
    connections = connections_of(Application())
    asking = Peer(connections)
    asking.ask("/v1/late")
    draining = asyncio.ensure_future(connections.end(connections.handler.application.leave))
    await turn()
    late = Peer(connections)
    assert late.closed
    await draining
    assert (asking.statuses, late.statuses) == ([200], [])


class Deaf(Peer):
    """Does not read the end of an answer, so that a close does not come about."""

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.connection.connection_lost(None)


async def test_a_client_that_does_not_read_the_end_is_dropped_after_the_close() -> None:
    """What is left of an answer is too little to make the server wait, and would keep the connection for ever."""
    connections = connections_of(Application(), Limits(write_seconds=0.01))
    client = Deaf(connections)
    client.ask("/v1/get", more="Connection: close\r\n")
    assert await client.answered(1) == [200]
    while not client.closed:
        await asyncio.sleep(0.001)
    assert connections.open == {client.connection}
    async with asyncio.timeout(10):
        while connections.open:
            await asyncio.sleep(0.001)


def test_no_name_of_ours_hides_one_of_aiohttp() -> None:
    """We use aiohttp's public interface only; a later version must not have our private names as its own."""
    written = {*vars(Connection), *Connection.__init__.__code__.co_names}
    private = {name for name in written if name.startswith("_") and not name.startswith("__")}
    assert len(private) > 20
    assert private.isdisjoint(dir(BaseProtocol))


async def test_a_closed_connection_is_gone_without_a_collection() -> None:
    gc.disable()
    try:
        for begun in (b"", b"GET / HT", GOING_ON["get"], GOING_ON["post"][:-1], b"garbage\r\n", GOING_ON["late"]):
            client = client_of(Application())
            client.connection.data_received(begun)
            await turn()
            closed = weakref.ref(client.connection)
            client.leave()
            await turn()
            del client
            await turn()
            assert closed() is None, begun
    finally:
        gc.enable()


# Without a socket the whole first request comes before the time of the head can be over, on a busy machine as well.


@pytest.mark.parametrize(
    "whole",
    [
        [get("/")],
        [post(b"{}")],
        [chunked("4", "body", "0", "", "")],
        [get("/"), get("/v1/late"), get("/")],
        [get("/", "Connection: Upgrade", "Upgrade: websocket"), get("/"), get("/")],
    ],
    ids=["get", "post", "chunks", "several", "upgrade"],
)
async def test_slow_headers_on_a_connection_in_use_are_cut(whole: list[bytes]) -> None:
    """They come with the last whole request, during it, or behind it."""
    connections = connections_of(Application(), Limits(head_seconds=0.02, idle_seconds=600.0))
    clients = []
    for begun in (b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x}"):
        one, during, behind = (Peer(connections) for _ in range(3))
        one.connection.data_received(b"".join(whole) + begun)
        during.connection.data_received(b"".join(whole))
        during.connection.data_received(begun)
        behind.connection.data_received(b"".join(whole))
        await behind.answered(len(whole))
        await turn()
        behind.connection.data_received(begun)
        clients += [one, during, behind]
    for client in clients:
        await client.until_closed()
        assert client.statuses == [200] * len(whole)
