"""The short look at a head lets pass only what the long one does."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from aiohttp.http import HttpProcessingError, RawRequestMessage
from aiohttp.http_parser import HttpRequestParser
from hypothesis import example, given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from emulator.web import wire
from emulator.web.limits import MAX_BODY_BYTES, MAX_HEAD_BYTES, MAX_HEADERS, MAX_TARGET_BYTES
from emulator.web.wire import fields, refusal, usual

FIELDS = st.sampled_from(
    [
        "Content-Length: 0",
        "Content-Length: 4",
        "Content-Length: 18446744073709551615",
        f"Content-Length: {MAX_BODY_BYTES + 1}",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding:",
        "Expect: 100-continue",
        "Expect: more",
        "Expect:",
        "Connection: close",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "X: y",
    ]
)
TARGETS = st.sampled_from(
    ["/", "/v1/payments?a=b", "/a#b", "/#", "*", "http://there/x", "http://here/x", "here:80", "//", "x"]
)


def whole_requests(raw: bytes) -> list[tuple[RawRequestMessage, int]]:
    """What aiohttp's parser makes of `raw`: the requests that came whole, each with the size of its body."""
    parser = HttpRequestParser(
        Mock(),
        Mock(),
        65536,
        max_line_size=MAX_TARGET_BYTES,
        max_field_size=2 * MAX_HEAD_BYTES,
        max_headers=MAX_HEAD_BYTES,
        auto_decompress=False,
    )
    try:
        messages, _, _ = parser.feed_data(raw)
    except HttpProcessingError:
        return []
    return [(message, body.total_bytes) for message, body in messages if body.is_eof()]


def request(method: str, target: str, version: str, lines: list[str], body: bytes) -> bytes:
    return "\r\n".join([f"{method} {target} HTTP/{version}", "Host: here", *lines, "", ""]).encode() + body


@example("POST", "/v1/payments", "1.1", ["Content-Length: 4"], b"body")
@example("GET", "/", "1.1", ["Expect: more"], b"")
@example("GET", "/", "1.1", [f"X: {20_000 * 'x'}"] * 4, b"")
@example("GET", "/", "1.1", ["X: y"] * MAX_HEADERS, b"")
@example("GET", "/", "1.1", ["Transfer-Encoding:"], b"")
@example("GET", "/", "1.1", ["Content-Length: 18446744073709551615"], b"")
@given(
    st.sampled_from(["GET", "POST", "OPTIONS", "HEAD", "CONNECT"]),
    TARGETS,
    st.sampled_from(["1.1", "1.0", "0.9", "2.0"]),
    st.lists(FIELDS, max_size=4),
    st.sampled_from([b"", b"body", b"4\r\nbody\r\n0\r\n\r\n"]),
)
def test_the_short_look_lets_nothing_pass_that_is_refused(
    method: str, target: str, version: str, lines: list[str], body: bytes
) -> None:
    raw = request(method, target, version, lines, body)
    for message, size in whole_requests(raw):
        if size <= MAX_BODY_BYTES and usual(message, len(raw), size):
            assert refusal(message, len(raw)) is None


@pytest.mark.parametrize(("lines", "body"), [([], b""), (["Content-Length: 4"], b"body"), (["X: y"] * 9, b"")])
def test_the_short_look_is_enough_for_what_clients_send(lines: list[str], body: bytes) -> None:
    raw = request("POST", "/v1/payments?x=y", "1.1", lines, body)
    [(message, size)] = whole_requests(raw)
    assert usual(message, len(raw), size)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("y", "y"),
        ("y \t ", "y"),
        ("", ""),
        ("a b", "a b"),
        # white space, but no blank of HTTP
        ("y\xa0", "y\xa0"),
        ("y\x85", "y\x85"),
        ("y\u3000 ", "y\u3000"),
    ],
)
def test_blanks_behind_a_value_are_no_part_of_it(sent: str, read: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor when the parser leaves them there, as that of aiohttp 3.14.1 does."""
    [(message, _)] = whole_requests(request("GET", "/", "1.1", ["A: b", f"X: {sent}", "C: d"], b""))
    assert fields(message).values == ("here", "b", read, "d")
    left = CIMultiDict(message.headers)
    left["X"] = sent
    monkeypatch.setattr(wire, "_LEAVES_BLANKS", True)
    assert fields(message._replace(headers=CIMultiDictProxy(left))).values == ("here", "b", read, "d")
