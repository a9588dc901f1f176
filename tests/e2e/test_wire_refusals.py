"""What the wire refuses comes back as JSON on a closed connection, and never reaches the core."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from emulator.web.wire import MAX_BODY_BYTES, MAX_FIELD_BYTES, MAX_HEAD_BYTES, MAX_HEADERS, MAX_TARGET_BYTES, Limits
from tests.e2e.serving import assert_refused, both_loops, chunked, get, head, post, serving

END = b"0\r\n\r\n"
QUICK = Limits(linger_seconds=0.02)


@contextmanager
def named(name: object) -> Iterator[None]:
    """What fails in the `with` block is about this one of several."""
    try:
        yield
    except BaseException as error:
        error.add_note(str(name))
        raise


# What is sent, and what the refusal says of it.
NOT_HTTP = {
    "no-http": (b"GARBAGE\r\n\r\n", "Invalid method"),
    "lower-case-method": (b"get / HTTP/1.1\r\nHost: x\r\n\r\n", "Invalid method"),
    "unknown-method": (b"FOO / HTTP/1.1\r\nHost: x\r\n\r\n", "Invalid method"),
    "nul-in-method": (b"G\0T / HTTP/1.1\r\nHost: x\r\n\r\n", "Invalid method"),
    "tls-on-the-plain-port": (b"\x16\x03\x01\x02\x00\x01\x00\x01", "HTTPS traffic"),
    "http2-preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""),
    "http-2.0": (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", "HTTP/2.0 is not supported"),
    "http-0.9": (b"GET / HTTP/0.9\r\nHost: x\r\n\r\n", "HTTP/0.9 is not supported"),
    "no-version": (b"GET /\r\n\r\n", "HTTP/0.9 is not supported"),
    "http-1.2": (b"GET / HTTP/1.2\r\nHost: x\r\n\r\n", "Invalid HTTP version"),
    "http-9.9": (b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", "Invalid HTTP version"),
    "http-1.10": (b"GET / HTTP/1.10\r\nHost: x\r\n\r\n", "after version"),
    "lower-case-version": (b"GET / http/1.1\r\nHost: x\r\n\r\n", "Expected HTTP/"),
    "bare-line-feeds": (b"GET / HTTP/1.1\nHost: x\n\n", "Expected CRLF"),
    "blank-in-target": (b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", "Expected HTTP/"),
    "tab-in-target": (b"GET /a\tb HTTP/1.1\r\nHost: x\r\n\r\n", "Invalid characters in url"),
    "nul-in-target": (b"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n", "Invalid char in url"),
    "utf-8-in-target": ("GET /å HTTP/1.1\r\nHost: x\r\n\r\n".encode(), "Invalid char in url"),
    "fragment-in-target": (b"GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n", "fragment"),
    "no-target": (b"GET HTTP/1.1\r\nHost: x\r\n\r\n", ""),
    "relative-target": (b"GET a HTTP/1.1\r\nHost: x\r\n\r\n", ""),
    "asterisk-without-options": (b"GET * HTTP/1.1\r\nHost: x\r\n\r\n", ""),
    "absolute-target-not-host": (b"GET http://y/a HTTP/1.1\r\nHost: x\r\n\r\n", "differs from the Host"),
    # which of these the parser refuses itself, and in what words, depends on aiohttp's version
    "target-with-half-an-address": (b"GET http://[::1/a HTTP/1.1\r\nHost: x\r\n\r\n", "its target cannot be read"),
    "target-without-host": (b"GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n", ""),
    "target-with-impossible-port": (b"GET http://x:99999/ HTTP/1.1\r\nHost: x\r\n\r\n", ""),
    "connect": (b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT"),
    "no-host": (b"GET / HTTP/1.1\r\n\r\n", "Missing 'Host'"),
    "two-hosts": (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "Duplicate 'Host'"),
    "folded": (get("/", "X-A: 1\r\n folded"), "whitespace after header value"),
    "folded-with-tab": (get("/", "X-A: 1\r\n\tfolded"), "whitespace after header value"),
    "folded-empty": (get("/", "X-A:\r\n folded"), "Invalid header value"),
    "folded-first": (b"GET / HTTP/1.1\r\n Host: x\r\n\r\n", "after start line"),
    "blank-before-colon": (get("/", "X-A : 1"), "Invalid header token"),
    "no-header-name": (get("/", ": 1"), "Invalid header token"),
    "no-colon": (get("/", "Xa"), "Invalid header token"),
    "odd-header-name": (get("/", "X(a: 1"), "Invalid header token"),
    "nul-in-header": (get("/", "X-A: a\0b"), "Invalid header value"),
    "control-in-header": (get("/", "X-A: a\x01b"), "Invalid header value"),
    "carriage-return-in-header": (get("/", "X-A: a\rb"), "LF after header value"),
    "line-feed-in-header": (get("/", "X-A: a\nX-B: b"), "CR after header value"),
}
BAD_FRAMING = {
    "length-then-coding": (head("POST", "/", "Content-Length: 5", "Transfer-Encoding: chunked") + END, ""),
    "coding-then-length": (head("POST", "/", "Transfer-Encoding: chunked", "Content-Length: 5") + END, ""),
    "coding-in-1.0": (head("POST", "/", "Transfer-Encoding: chunked", version="1.0") + END, "HTTP/1.0"),
    "coding-empty": (head("POST", "/", "Transfer-Encoding: "), "only supported Transfer-Encoding"),
    **{
        coding: (head("POST", "/", f"Transfer-Encoding: {coding}") + END, "Transfer-Encoding")
        for coding in ("gzip, chunked", "chunked, gzip", "gzip", "identity", "xchunked", "chunked, chunked", "foo")
    },
    "coding-twice": (
        head("POST", "/", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + END,
        "Transfer-Encoding",
    ),
    **{
        f"length-{length}": (head("POST", "/", f"Content-Length: {length}") + b"12345", "Content-Length")
        for length in ("-5", "+5", "0x5", "5, 5", "1_0", "5.0", "9" * 30, "")
    },
    "length-twice": (head("POST", "/", "Content-Length: 5", "Content-Length: 5") + b"12345", "Content-Length"),
    "two-lengths": (head("POST", "/", "Content-Length: 5", "Content-Length: 6") + b"12345", "Content-Length"),
    "chunk-size-no-number": (chunked("zz", ""), "chunk size"),
    "chunk-size-negative": (chunked("-1", ""), "chunk size"),
    "chunk-size-prefixed": (chunked("0x1", "x", "0", "", ""), "chunk size"),
    "chunk-size-overflow": (chunked("f" * 17, ""), "hunk size overflow"),
    "chunk-longer-than-it-says": (chunked("1", "xy", "0", "", ""), "after chunk data"),
    "return-in-an-extension": (chunked("1;a\rb", "x", "0", "", ""), "after chunk size"),
    "return-in-a-chunk-size": (chunked("1", "x", "1\rx"), "after chunk size"),
    "control-in-a-trailer": (chunked("0", "X-A: b\x01", ""), "header value"),
    "folded-trailer": (chunked("0", " folded: x", ""), "header"),
    "trailer-without-colon": (chunked("0", "no colon", ""), "header token"),
    "trailer-content-length": (chunked("0", "Content-Length: 3", ""), "Content-Length"),
    "trailer-coding": (chunked("0", "Transfer-Encoding: chunked", ""), "Transfer-Encoding"),
}


@both_loops
@pytest.mark.parametrize("sent", [NOT_HTTP, BAD_FRAMING], ids=["not HTTP", "bad framing"])
async def test_what_is_not_http_or_badly_framed_is_400_at_once_whole_and_cut_behind_its_head(
    sent: dict[str, tuple[bytes, str]], caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(limits=Limits(linger_seconds=0.02, body_seconds=600.0)) as served:
        for name, (data, phrase) in sent.items():
            first, end, rest = data.partition(b"\r\n\r\n")
            for parts in ([data], [first + end, rest]):
                with named(f"{name}, {len(parts)}"):
                    assert_refused(await served.exchange(*parts), 400, phrase)
                    assert served.application.requests == []
    assert not caplog.records


@both_loops
async def test_chunk_extensions_are_bounded_too() -> None:
    async with serving(limits=QUICK) as served:
        answer = await served.exchange(chunked("1", "x", "1;"), b"a=b;" * 200_000)
        assert_refused(answer, 400, "chunk sizes and trailers")
        assert served.application.requests == []


PIECE = f"{65536:x}\r\n{'x' * 65536}"


@pytest.mark.parametrize(
    ("data", "status", "phrase"),
    [
        (get("/" + "a" * MAX_TARGET_BYTES), 414, "target"),
        (get("/", "X-A: " + "a" * (MAX_FIELD_BYTES + 1)), 431, "longer than"),
        (get("/", *(f"X-{n}: 1" for n in range(MAX_HEADERS))), 431, "more than"),
        (get("/", *(f"X-{n}: {'a' * 16000}" for n in range(5))), 431, "together"),
        *((head("POST", "/", f"Content-Length: {n}"), 413, "1048576") for n in (MAX_BODY_BYTES + 1, 10**12, 2**64 - 1)),
        (chunked(*[PIECE] * 17, ""), 413, "1048576"),
        (post(b"{}", "Expect: a-miracle"), 417, "100-continue"),
    ],
    ids=["target", "header", "headers", "head", "body", "10**12", "2**64", "chunks", "expectation"],
)
@both_loops
async def test_what_is_too_long_or_cannot_be_expected_is_refused_before_more_of_it_comes(
    data: bytes, status: int, phrase: str
) -> None:
    async with serving(limits=QUICK) as served:
        assert_refused(await served.exchange(data), status, phrase)
        assert served.application.requests == []


@both_loops
async def test_headers_that_are_large_together_are_431_in_many_pieces() -> None:
    lines = [f"X-{n}: {'a' * 15990}\r\n".encode() for n in range(MAX_HEAD_BYTES // 16000 + 1)]
    async with serving(limits=QUICK) as served:
        assert_refused(await served.exchange(b"GET / HTTP/1.1\r\n", *lines), 431, "together")


@both_loops
async def test_as_many_and_as_large_headers_as_allowed_pass() -> None:
    async with serving() as served:
        client = await served.connect()
        await client.send(
            get("/" + "a" * (MAX_TARGET_BYTES - 1), *(f"X-{n}: {'a' * 300}" for n in range(MAX_HEADERS - 1)))
        )
        assert (await client.answer()).status == 200
        assert (await client.ask(get("/", "X-A: " + "a" * (MAX_FIELD_BYTES - 3)))).status == 200


@both_loops
async def test_a_large_body_sent_on_after_413_does_not_hide_the_answer() -> None:
    async with serving() as served:  # a busy machine may need longer than QUICK for this body
        answer = await served.exchange(head("POST", "/", f"Content-Length: {8 * MAX_BODY_BYTES}"), b"x" * 4_000_000)
        assert_refused(answer, 413, "1048576")


@both_loops
@pytest.mark.parametrize(
    "data, status", [(b"GARBAGE\r\n\r\n", 400), (get("/", "Transfer-Encoding: gzip, chunked"), 400)]
)
async def test_what_is_sent_behind_a_refused_head_does_not_hide_the_answer(data: bytes, status: int) -> None:
    async with serving() as served:
        client = await served.connect()
        await client.send(data + b"x" * 4_000_000)
        client.end()
        answer = await client.answer()
        answer.rest = await client.until_closed()
        assert_refused(answer, status, "")


@pytest.mark.parametrize(
    "sent",
    [
        head("POST", "/", f"Content-Length: {MAX_BODY_BYTES + 1}", "X-Request-ID: my-id"),
        head("POST", "/", "Transfer-Encoding: chunked", "X-Request-ID: my-id")
        + b"%x\r\n" % (MAX_BODY_BYTES + 1)
        + b"x" * (MAX_BODY_BYTES + 1),
        head("POST", "/", "Content-Length: 2", "Expect: a-miracle", "X-Request-ID: my-id"),
        head("POST", "/", "Content-Length: 2", "X-Request-ID: my-id"),
    ],
    ids=["413", "413 in chunks", "417", "408"],
)
@both_loops
async def test_a_refusal_behind_a_whole_head_is_finished_by_the_bank(sent: bytes) -> None:
    async with serving(limits=Limits(linger_seconds=0.02, body_seconds=0.02)) as served:
        answer = await served.exchange(sent)
        assert answer.header("X-Told") == "yes"
        [request] = served.application.refusals
        assert (request.method, request.target, request.body) == ("POST", "/", b"")
        assert ("X-Request-ID", "my-id") in request.headers


WITH_AN_ID = (
    head("POST", "/", "X-Request-ID: my-id", "Content-Length: 5", "Transfer-Encoding: chunked"),
    head("POST", "/", "x-request-id:my-id ", "Content-Length: 5", "Content-Length: 5"),
    head("GET", "/", "X-A: a", "X-Request-ID: my-id", "X-B: a\x01b"),
    head("GET", "/", "X-Request-ID: my-id", "X-A: a", " folded"),
    head("POST", "/", "X-Request-ID: my-id", "Transfer-Encoding: chunked") + b"zz\r\n\r\nX-Request-ID: other\r\n\r\n",
    head("GET", "/", "Host: another", "X-Request-ID: my-id"),
    head("GET", "/" + "a" * MAX_TARGET_BYTES, "X-Request-ID: my-id"),
    head("GET", "/", "X-A: " + "a" * (MAX_FIELD_BYTES + 1), "X-Request-ID: my-id"),
)


@both_loops
async def test_what_the_parser_refuses_returns_the_x_request_id_that_came_with_it() -> None:
    async with serving(limits=QUICK) as served:
        for sent in WITH_AN_ID:
            with named(sent[:200]):
                answer = await served.exchange(sent)
                assert answer.status in (400, 414, 431)
                assert answer.header("X-Request-ID") == "my-id"
        for unusable in (b"bl\xe5", b"a\tb", b""):
            sent = head("GET", "/", "X-A: a\x01b").replace(b"X-A", b"X-Request-ID: %s\r\nX-A" % unusable)
            with named(sent):
                answer = await served.exchange(sent)
                assert (answer.status, len(answer.header("X-Request-ID") or "")) == (400, 36)  # one of the bank's


@both_loops
async def test_the_bank_does_not_get_to_keep_headers_that_are_too_large() -> None:
    many = [f"X-{number}: x" for number in range(MAX_HEADERS)]
    async with serving(limits=QUICK) as served:
        answer = await served.exchange(head("GET", "/v1/accounts", *many, "X-Request-ID: my-id"))
        assert (answer.status, answer.header("X-Told")) == (431, "yes")
        assert [list(request.headers) for request in served.application.refusals] == [[("X-Request-ID", "my-id")]]


@both_loops
async def test_a_client_that_goes_with_its_413_leaves_nothing_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(limits=QUICK) as served:
        client = await served.connect()
        assert (
            await client.ask(head("POST", "/", f"Content-Length: {2 * MAX_BODY_BYTES}") + b"x" * MAX_BODY_BYTES)
        ).status == 413
        client.vanish()
        while served.server.connections.open:
            await asyncio.sleep(0)
    assert caplog.records == []


@both_loops
async def test_the_largest_body_passes_plain_and_chunked() -> None:
    body = b"x" * MAX_BODY_BYTES
    async with serving() as served:
        client = await served.connect()
        assert (await client.ask(post(body))).status == 200
        assert (await client.ask(chunked(f"{MAX_BODY_BYTES:x}", body.decode(), "0", "", ""))).status == 200
        assert [request.body for request in served.application.requests] == [body, body]


@both_loops
@pytest.mark.parametrize("sent", [b"GARBAGE\r\n\r\n", head("POST", "/", f"Content-Length: {2 * MAX_BODY_BYTES}")])
async def test_the_connection_ends_at_once_behind_a_refusal(sent: bytes) -> None:
    async with serving(limits=Limits(linger_seconds=600.0)) as served:
        client = await served.connect()
        assert (await client.ask(sent)).status in (400, 413)
        assert await client.until_closed() == b""
        client.vanish()


@both_loops
async def test_a_refusal_does_not_repeat_the_bytes_of_the_client() -> None:
    async with serving(limits=QUICK) as served:
        answer = await served.exchange(get("/", "Authorization Bearer: secret-token"))
        assert_refused(answer, 400, "")
        assert b"secret" not in answer.body
