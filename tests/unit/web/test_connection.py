"""However the bytes of a connection are cut, its requests get the same answers in the same order."""

from __future__ import annotations

import asyncio
import re
from unittest.mock import Mock

import pytest
from aiohttp import web
from hypothesis import assume, example, given
from hypothesis import strategies as st

from emulator.api.messages import Delivery, Request, Response
from emulator.web.answers import CompleteAnswer
from emulator.web.connection import Connection, Listener
from emulator.web.events import EventStream
from emulator.web.limits import MAX_FIELD_BYTES, MAX_HEAD_BYTES
from tests.e2e.serving import MadeUpSite, chunked, get, head, post
from tests.unit.web.peer import Peer, listener_of, turn

GOING_ON = {
    "get": get("/v1/get"),
    "elsewhere": get("/elsewhere"),
    "post": post(b"body", target="/v1/post"),
    "old": get("/v1/old", "Connection: keep-alive", version="1.0"),
    "chunked": head("POST", "/v1/chunked", "Transfer-Encoding: chunked") + b"4\r\nbody\r\n0\r\n\r\n",
    "expecting": post(b"body", "Expect: 100-continue", target="/v1/expecting"),
    "upgrade": get("/v1/upgrade", "Connection: Upgrade", "Upgrade: websocket"),
    "late": get("/v1/late"),
}
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
    return Peer(listener_of(application))


async def answers(parts: list[bytes], pauses: list[bool], number: int) -> tuple[list[int], list[str], list[str]]:
    """Statuses of `number` answers, what they say, and what reached the core; between parts the loop may run."""
    application = Application()
    client = client_of(application)
    for part, pause in zip(parts, pauses, strict=True):
        client.connection.data_received(part)
        if pause:
            await turn()
    statuses = await client.answered(number)
    client.leave()
    await turn()
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


async def test_a_client_that_was_held_back_in_a_body_may_go_on_when_that_is_read() -> None:
    application = Application()
    client = Throttled(listener_of(application))
    body = b"x" * 900_000
    data = post(body, target="/v1/post")
    for at in range(0, len(data), 150_000):
        client.connection.data_received(data[at : at + 150_000])
        await turn()
        assert not client.held
    assert await client.answered(1) == [200]
    assert client.times_held > 1
    assert application.requests[0].body == body
    client.leave()
    await turn()


@example(["get"] * 70, None, [], False)
@example(["late", "get", "get"], None, [], False)
@example(["get", "late", "post"], "last", [], False)
@example(["get", "upgrade", "get"], "fault", [], False)
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
    assume("upgrade" not in kinds or end not in ("broken", "garbage", "last"))
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
    for place in range(1, end_of_id + 1):
        client = client_of(Application())
        client.connection.data_received(before)
        for part in cut(refused, [place, end_of_id, 30_000]):
            await turn()
            client.connection.data_received(part)
        await turn()
        assert client.statuses == [200] * bool(before) + [status]
        assert client.got.count(b"X-Request-ID: its-id\r\n") == 1
        client.leave()
        await turn()


@pytest.mark.parametrize("begun", [GOING_ON["post"], GOING_ON["chunked"]], ids=["length", "chunks"])
@pytest.mark.parametrize("split", [None, 1, -10], ids=["in one piece", "cut before it", "cut behind it"])
async def test_a_refused_head_behind_the_end_of_a_body_has_its_x_request_id_returned(
    begun: bytes, split: int | None
) -> None:
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
        assert client.got.count(b"X-Request-ID: its-id\r\n") == 1
        client.leave()
        await turn()


async def test_half_an_x_request_id_is_not_returned() -> None:
    client = client_of(Application())
    client.connection.data_received(get("/", "X-A: a\x01b", "X-Request-ID: its-id").removesuffix(b"id\r\n\r\n"))
    await turn()
    assert client.statuses == [400]
    assert b"its-" not in client.got
    client.leave()
    await turn()


async def test_a_head_without_end_is_refused_behind_the_answers_that_are_owed() -> None:
    client = client_of(Application())
    client.ask("/v1/late")
    client.connection.data_received(b"GET / HTTP/1.1\r\nX-Request-ID: its-id\r\n" + b"X: y\r\n" * 20_000)
    client.connection.data_received(b"X: y\r\n" * 20_000)
    assert await client.answered(2) == [200, 431]
    assert client.got.count(b"X-Request-ID: its-id\r\n") == 1
    client.leave()
    await turn()


async def test_broken_chunks_behind_requests_that_wait_break_their_own_request_only() -> None:
    application = Application()
    client = client_of(application)
    client.connection.data_received(GOING_ON["late"] + post(b"body", target="/v1/post") + chunked("1", "xy", ""))
    assert await client.answered(3) == [200, 200, 400]
    assert [request.target for request in application.requests] == ["/v1/late", "/v1/post"]
    client.leave()
    await turn()


@pytest.mark.parametrize("end", sorted(ENDING))
async def test_the_write_side_ends_with_a_refusal(end: str) -> None:
    data, status = ENDING[end]
    client = client_of(Application())
    client.connection.data_received(data)
    assert await client.answered(1) == [status]
    await turn()
    assert (client.no_more, client.closed) == (status != 200, status == 200)
    client.leave()
    await turn()


async def test_who_half_closes_behind_whole_requests_gets_every_answer() -> None:
    client = client_of(Application())
    client.ask("/v1/late", "/v1/get")
    assert client.connection.eof_received()
    assert await client.answered(2) == [200, 200]
    await turn()
    assert (client.closed, client.got.count(b"Connection: close\r\n")) == (True, 1)


@pytest.mark.parametrize("begun", [b"", b"GET /", GOING_ON["post"][:-1], GOING_ON["chunked"][:-1]])
async def test_who_half_closes_within_a_request_is_not_waited_for(begun: bytes) -> None:
    client = client_of(Application())
    client.connection.data_received(GOING_ON["get"] + begun)
    assert await client.answered(1) == [200]
    assert not client.connection.eof_received()
    client.leave()
    await turn()


async def test_a_server_that_stops_waits_for_the_requests_that_have_come_and_for_no_other() -> None:
    application = Application()
    listener = listener_of(application)
    idle, asking, reading = Peer(listener), Peer(listener), Peer(listener)
    asking.ask("/v1/late", "/v1/never")
    reading.connection.data_received(GOING_ON["post"][:-1])
    draining = asyncio.ensure_future(listener.drain())
    await turn()
    late = Peer(listener)
    reading.connection.data_received(GOING_ON["post"][-1:] + get("/v1/never"))
    await draining
    assert [client.statuses for client in (idle, asking, reading, late)] == [[], [200], [200], []]
    assert all(client.closed for client in (idle, asking, reading, late))
    assert [request.target for request in application.requests] == ["/v1/late", "/v1/post"]


class Deaf(Peer):
    """Does not read the end of an answer, so that a close does not come about."""

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.connection.connection_lost(None)


async def test_a_client_that_does_not_read_the_end_is_dropped_after_the_close() -> None:
    """What is left of an answer is too little to make the server wait, and would keep the connection for ever."""
    listener = listener_of(Application())
    client = Deaf(listener)
    client.ask("/v1/get", more="Connection: close\r\n")
    assert await client.answered(1) == [200]
    await turn()
    listener.drop_stuck()
    assert listener.open == {client.connection}
    listener.drop_stuck()
    assert not listener.open


async def test_no_name_of_ours_hides_one_of_aiohttp() -> None:
    """We use aiohttp's public interface only; a later version must not have our private names as its own."""
    listener = listener_of(Application())
    connection = listener()
    plain = web.RequestHandler(web.Server(listener.request_handler), loop=asyncio.get_running_loop())
    assert set(Connection.__slots__).isdisjoint(dir(plain))
    assert (set(vars(listener)) - set(vars(web.Server(listener.request_handler)))).isdisjoint(dir(web.Server))
    answers = (CompleteAnswer(connection, Mock(), Response(200)), EventStream(connection, Mock(), Mock(), Mock()))
    for answer in answers:
        assert (set(vars(answer)) - set(vars(web.StreamResponse()))).isdisjoint(dir(web.StreamResponse))
    written = {name for kind in (Connection, Listener, CompleteAnswer, EventStream) for name in vars(kind)}
    private = {name for name in written if name.startswith("_") and not name.startswith("__")} - {"_abc_impl"}
    assert private.isdisjoint(dir(web.RequestHandler) + dir(web.Server) + dir(web.StreamResponse))
