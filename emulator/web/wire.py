"""What aiohttp's parser lets pass and this bank refuses all the same, and how a parsed head becomes text."""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter
from typing import Any
from urllib.parse import urlsplit

from aiohttp.hdrs import CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING
from aiohttp.http import HttpVersion10, HttpVersion11, RawRequestMessage
from aiohttp.http_parser import HttpRequestParser

from emulator.api.messages import Fields, Response
from emulator.web.limits import MAX_BODY_BYTES, MAX_HEAD_BYTES, MAX_HEADERS
from emulator.web.refusals import headers_too_large, too_large, wire_refusal


def usual(message: RawRequestMessage, received: int, size: int) -> bool:
    """Whether the head of a request that came whole is of the form that nearly all have, which `refusal` lets pass.

    `received`: as there; `size`: of the body, at most MAX_BODY_BYTES.
    """
    path, headers = message.path, message.headers
    return (
        message.version is HttpVersion11
        and received <= MAX_HEAD_BYTES
        and len(message.raw_headers) <= MAX_HEADERS
        and path.startswith("/")
        and "#" not in path
        and message.method != "CONNECT"
        and (size > 0 or CONTENT_LENGTH not in headers)
        and TRANSFER_ENCODING not in headers
        and EXPECT not in headers
    )


def refusal(message: RawRequestMessage, received: int) -> Response | None:
    """The refusal that the head of a request earns by itself, or None (CONTRACT 13, refusals at the wire).

    `received`: the bytes that came with it, at least those of the head.
    """
    if message.version not in (HttpVersion10, HttpVersion11):
        major, minor = message.version
        return wire_refusal(400, f"HTTP/{major}.{minor} is not spoken here, HTTP/1.1 and HTTP/1.0 are.")
    if message.method == "CONNECT":
        return wire_refusal(400, "CONNECT is not served here.")
    if "#" in message.path:
        return wire_refusal(400, "A request target has no fragment (#).")
    if len(message.raw_headers) > MAX_HEADERS:
        return headers_too_large(f"there are more than {MAX_HEADERS}")
    if received > MAX_HEAD_BYTES and _head_size(message) > MAX_HEAD_BYTES:
        return headers_too_large(f"together over {MAX_HEAD_BYTES} bytes")
    if not message.path.startswith("/"):
        if message.path == "*" and message.method != "OPTIONS":
            return wire_refusal(400, "The request target * is for OPTIONS only.")
        if origin_form(message) is None:
            return wire_refusal(400, "The request target names another host than Host does.")
    return _framing_refusal(message)


def _framing_refusal(message: RawRequestMessage) -> Response | None:
    headers = message.headers
    length = headers.get("Content-Length")
    coding = headers.get("Transfer-Encoding")
    if coding is not None:
        if length is not None:
            return wire_refusal(400, "Content-Length and Transfer-Encoding in one request.")
        if message.version == HttpVersion10:
            return wire_refusal(400, "HTTP/1.0 has no Transfer-Encoding.")
        if coding.lower() != "chunked":
            return wire_refusal(400, "The only Transfer-Encoding understood here is chunked.")
    elif length is not None and int(length) > MAX_BODY_BYTES:
        return too_large(MAX_BODY_BYTES)
    expectation = headers.get("Expect")
    if expectation is not None and expectation.lower() != "100-continue":
        return wire_refusal(417, "The only Expect understood here is 100-continue.")
    return None


def _head_size(message: RawRequestMessage) -> int:
    return len(message.path) + sum(len(name) + len(value) + 4 for name, value in message.raw_headers)


def fields(message: RawRequestMessage) -> Fields:
    """Header names as sent and values as text: UTF-8 where they are that, else ISO 8859-1."""
    if not message.raw_headers:
        return Fields((), (), ())
    names, lower = _decoded(tuple(map(_name, message.raw_headers)))
    # The parser has decoded the values; of bytes that are not ASCII it made something else.
    values = tuple(message.headers.values())
    if not all(map(str.isascii, values)):
        values = tuple(_text(value) for _, value in message.raw_headers)
    if _LEAVES_BLANKS:
        values = tuple(value.rstrip(" \t") for value in values)
    return Fields(names, lower, values)


def _leaves_blanks() -> bool:
    """Whether the parser leaves the blanks behind a header's value, as that of aiohttp 3.14.1 does."""
    nobody: Any = None  # what the parser would need for a body
    [(message, _)], _, _ = HttpRequestParser(nobody, nobody, 65536).feed_data(b"GET / HTTP/1.1\r\nHost: x \r\n\r\n")
    return message.headers[HOST] != "x"


_LEAVES_BLANKS = _leaves_blanks()


_name = itemgetter(0)


@lru_cache(maxsize=256)
def _decoded(names: tuple[bytes, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Header names as text, and in lower case; remembered, since a client's requests carry the same ones each time."""
    decoded = tuple(name.decode() for name in names)
    return decoded, tuple(map(str.lower, decoded))


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def origin_form(message: RawRequestMessage) -> str | None:
    """Path and query exactly as sent; of an absolute target (RFC 9112 3.2.2) what follows the authority.

    None when an absolute target names another host than Host does: which of them was meant is not ours to guess.
    """
    target = message.path
    if target.startswith("/") or target == "*":
        return target
    authority = urlsplit(target).netloc
    if authority.lower() != message.headers.get("Host", authority).lower():
        return None
    rest = target.partition("://")[2][len(authority) :]
    return rest if rest.startswith("/") else "/" + rest
