"""Refusals before a request reaches the core, as JSON, and the reading of a request head."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from operator import itemgetter
from urllib.parse import urlsplit

from aiohttp.hdrs import CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING
from aiohttp.http import HttpProcessingError, HttpVersion10, HttpVersion11, RawRequestMessage
from aiohttp.http_exceptions import InvalidURLError

from emulator.api.headers import Headers
from emulator.api.messages import Fields, Request, Response
from emulator.api.service import finish
from emulator.web.limits import MAX_BODY_BYTES, MAX_FIELD_BYTES, MAX_HEAD_BYTES, MAX_HEADERS, MAX_TARGET_BYTES

JSON_TYPE = "application/json; charset=utf-8"
# RFC 9112, 3.2: a Host is uri-host [":" port]; a request with another value is answered 400
_TOGETHER = f"together over {MAX_HEAD_BYTES} bytes"
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?")


def wire_refusal(status: int, text: str) -> Response:
    """An error answer: BAD_REQUEST, or SYSTEM_ERROR from status 500 on."""
    code = "SYSTEM_ERROR" if status >= 500 else "BAD_REQUEST"
    entry = {"category": "ERROR", "code": code, "text": text}
    body = json.dumps({"tppMessages": [entry]}, separators=(",", ":"), ensure_ascii=False).encode()
    return Response(status, [("Content-Type", JSON_TYPE)], body)


def too_large(limit: int) -> Response:
    """413 for a body over `limit` bytes."""
    return wire_refusal(413, f"The body is larger than {limit} bytes.")


def too_slow(seconds: float) -> Response:
    """408 for a body that did not arrive in time."""
    return wire_refusal(408, f"The body did not arrive within {seconds:g} seconds.")


def unavailable(request: Request) -> Response:
    """503 for a request that the bank cannot handle at the moment."""
    changes = "nothing was changed" if request.unfinished is None else "the changes made so far remain"
    response = wire_refusal(503, f"The bank cannot answer at the moment; {changes}.")
    finish(response, Headers(request.headers))
    return response


def _headers_too_large(what: str) -> Response:
    """431; `what` names the limit that was exceeded."""
    return wire_refusal(431, f"The headers are too large: {what}.")


# What the parser refuses


def parser_refusal(error: HttpProcessingError, head: bytes) -> Response:
    """The answer to an error of aiohttp's parser: 414, 431 or 400 with the parser's reason.

    `head`: the bytes of the head that are known; the answer repeats its X-Request-ID.
    """
    return _finished(_of_parser(error), head)


def head_without_end(head: bytes) -> Response:
    """431 for a head that is too large; `head`: the bytes of it that arrived."""
    return _finished(_headers_too_large(_TOGETHER), head)


def body_refusal(error: HttpProcessingError) -> Response:
    """400 for a body whose chunks or trailers are malformed, 431 for a trailer that is too long."""
    return _too_long(error) or wire_refusal(400, f"The body cannot be read: {_reason(error.message)}.")


def too_much_around(limit: int) -> Response:
    """400 for a body that brings far more chunk sizes, extensions and trailers than data."""
    return wire_refusal(400, f"The body cannot be read: its chunk sizes and trailers are longer than {limit} bytes.")


def _finished(response: Response, head: bytes) -> Response:
    finish(response, Headers(_sent_ids(head)))
    return response


def _sent_ids(head: bytes) -> list[tuple[str, str]]:
    """The X-Request-ID headers of a refused head, which may be incomplete and have a body behind it."""
    lines = head.partition(b"\r\n\r\n")
    whole = lines[0].split(b"\r\n")[1 : None if lines[1] else -1]  # without the request line and half a line
    fields = [line.partition(b":") for line in whole]
    return [(name.decode(), value.decode("latin-1")) for name, _, value in fields if name.lower() == b"x-request-id"]


def _too_long(error: HttpProcessingError) -> Response | None:
    """The parser raises the same error for a long target and for a long field, with different limits."""
    limit = error.args[1] if len(error.args) > 1 else None
    if limit == MAX_TARGET_BYTES:
        return wire_refusal(414, f"The request target is longer than {MAX_TARGET_BYTES} bytes.")
    if limit == MAX_FIELD_BYTES:
        return _headers_too_large(f"one is longer than {MAX_FIELD_BYTES} bytes")
    return None


def _of_parser(error: HttpProcessingError) -> Response:
    too_long = _too_long(error)
    if too_long is not None:
        return too_long
    bare = isinstance(error, InvalidURLError) and "\n" not in error.message  # the target alone, without a reason
    reason = "its target cannot be read" if bare else _reason(error.message)
    return wire_refusal(400, f"This is not an HTTP/1.1 request: {reason}.")


def _reason(message: str) -> str:
    """The parser's reason without the bytes that it shows, which must not be repeated to the client.

    Its messages look like `Bad status line:` or `Invalid header token:`, followed by lines with the bytes.
    """
    lines = [line.strip() for line in message.split("\n\n", 1)[0].splitlines() if line.strip()]
    reason = " ".join(lines)[:200].rstrip(":. ")
    return reason or "it cannot be read"


# A head that the parser accepts


def head_refusal(message: RawRequestMessage, at_most: int) -> Response | None:
    """The refusal of a head without reading its body, or None; `at_most`: the bytes in which it arrived."""
    headers, target = message.headers, message.path or ""
    if (  # true for nearly all requests
        message.version == HttpVersion11
        and target.startswith("/")
        and "#" not in target
        and len(headers) <= MAX_HEADERS
        and at_most <= MAX_HEAD_BYTES
        and _HOST.fullmatch(headers.get(HOST, ""))
        and TRANSFER_ENCODING not in headers
        and EXPECT not in headers
        and message.method != "CONNECT"
        and int(headers.get(CONTENT_LENGTH, 0)) <= MAX_BODY_BYTES
    ):
        return None
    return _line_refusal(message) or _framing_refusal(message)


def _line_refusal(message: RawRequestMessage) -> Response | None:
    target = message.path or ""
    if message.version not in (HttpVersion10, HttpVersion11):
        major, minor = message.version
        return wire_refusal(400, f"HTTP/{major}.{minor} is not supported; use HTTP/1.1 or HTTP/1.0.")
    if message.method == "CONNECT":
        return wire_refusal(400, "CONNECT is not supported.")
    if "#" in target:
        return wire_refusal(400, "A request target must not contain a fragment (#).")
    if len(message.headers) > MAX_HEADERS:
        return _headers_too_large(f"more than {MAX_HEADERS} of them")
    if len(target) + sum(len(name) + len(value) + 4 for name, value in message.raw_headers) > MAX_HEAD_BYTES:
        return _headers_too_large(_TOGETHER)
    if _HOST.fullmatch(message.headers.get(HOST, "")) is None:
        return wire_refusal(400, "Host is not a host name or address with an optional port.")
    if not target.startswith("/"):
        if target == "*" and message.method != "OPTIONS":
            return wire_refusal(400, "The request target * is for OPTIONS only.")
        if origin_form(message) is None:
            return wire_refusal(400, "The host in the request target differs from the Host header.")
    return None


def _framing_refusal(message: RawRequestMessage) -> Response | None:
    length = message.headers.get(CONTENT_LENGTH)
    coding = message.headers.get(TRANSFER_ENCODING)
    if coding is not None:
        if length is not None:
            return wire_refusal(400, "A request must not have both Content-Length and Transfer-Encoding.")
        if message.version == HttpVersion10:
            return wire_refusal(400, "HTTP/1.0 has no Transfer-Encoding.")
        if coding.lower() != "chunked":
            return wire_refusal(400, "The only supported Transfer-Encoding is chunked.")
    elif length is not None and int(length) > MAX_BODY_BYTES:
        return too_large(MAX_BODY_BYTES)
    expectation = message.headers.get(EXPECT)
    if expectation is not None and expectation.lower() != "100-continue":
        return wire_refusal(417, "The only supported Expect is 100-continue.")
    return None


# Reading a head for the core


def fields(message: RawRequestMessage) -> Fields:
    """Header names as sent, and values as text: decoded as UTF-8 if possible, else as ISO 8859-1."""
    raw = message.raw_headers
    if not raw:
        return Fields((), (), ())
    names, lower = _decoded(tuple(map(_name, raw)))
    # The parser decodes values that are not UTF-8 with replacement characters.
    values = tuple(message.headers.values())
    if not all(map(str.isascii, values)):
        values = tuple(_text(value) for _, value in raw)
    return Fields(names, lower, values)


_name = itemgetter(0)


@lru_cache(maxsize=256)
def _decoded(names: tuple[bytes, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Header names as text, and in lower case; cached, since a client sends the same names with each request."""
    decoded = tuple(name.decode() for name in names)
    return decoded, tuple(map(str.lower, decoded))


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def origin_form(message: RawRequestMessage) -> str | None:
    """Path and query exactly as sent; for an absolute target (RFC 9112 3.2.2) the part after the authority.

    None if the host of an absolute target differs from the Host header: the server must not guess which one is meant.
    """
    target = message.path or ""
    if target.startswith("/") or target == "*":
        return target
    authority = urlsplit(target).netloc
    if authority.lower() != message.headers.get(HOST, authority).lower():
        return None
    rest = target.partition("://")[2][len(authority) :]
    return rest if rest.startswith("/") else "/" + rest
