"""HTTP messages: the head of a request, read or refused, and an answer as bytes.

aiohttp's parser has split a request into its parts; what is refused here is refused before anybody is asked, as JSON.
An answer is status line, headers and body in one block, compressed if the client asked for it.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from decimal import Decimal
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from operator import itemgetter
from time import time
from urllib.parse import urlsplit

from aiohttp.hdrs import CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING
from aiohttp.http import HttpProcessingError, HttpVersion10, HttpVersion11, RawRequestMessage
from aiohttp.http_exceptions import InvalidURLError

from emulator.api.guards import LOOPBACK_NAMES, url_host
from emulator.api.headers import Headers
from emulator.api.json_body import LARGEST_BODY
from emulator.api.messages import Fields, Response, Stream
from emulator.api.render import VARY, refusal, wants_gzip
from emulator.api.service import finish
from emulator.bank.errors import BankError
from emulator.settings import ServeSettings

MAX_TARGET_BYTES = 8190
MAX_FIELD_BYTES = 16380  # fits a PEM certificate with its chain; must differ from the target's limit, see `_too_long`
MAX_HEADERS = 128
MAX_HEAD_BYTES = 65536
MAX_BODY_BYTES = LARGEST_BODY  # which a bank without a socket refuses, too


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds of real time and bytes on one connection (requests.md#http-limits; `idle`, `write`, `linger` assumed)."""

    head_seconds: float = 15.0  # from the first byte of a request to the end of its headers, then closed
    body_seconds: float = 30.0  # from there to the end of its body, then 408
    idle_seconds: float = 75.0  # between requests, then closed
    write_seconds: float = 30.0  # for a client that does not read its answer, then aborted
    linger_seconds: float = 2.0  # of reading after the last answer, so that the client receives it
    last_linger_seconds: float = 0.1  # the same at SIGTERM: a bank that others share waits for it
    drain_seconds: float = 6.0  # for requests in progress at SIGTERM
    comment_seconds: float = 15.0  # between the comments that keep an event stream open
    event_bytes: int = 1024 * 1024  # of events for a client that does not read, then aborted


_SENT_ID = re.compile(rb"\r\nx-request-id:(.*)\r\n", re.IGNORECASE)
_TOGETHER = f"together over {MAX_HEAD_BYTES} bytes"
# RFC 9112, 3.2: a Host is uri-host [":" port]; a request with another value is answered 400
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?")


def wire_refusal(status: int, text: str) -> Response:
    """An error answer: BAD_REQUEST, or SYSTEM_ERROR from status 500 on."""
    return refusal(BankError("SYSTEM_ERROR" if status >= 500 else "BAD_REQUEST", text, status=status))


def body_too_large() -> Response:
    return wire_refusal(413, f"The body is larger than {MAX_BODY_BYTES} bytes.")


def _headers_too_large(what: str) -> Response:
    return wire_refusal(431, f"The headers are too large: {what}.")


# What the parser refuses


def unreadable_head(head: bytes, error: HttpProcessingError | None = None) -> Response:
    """The answer to an error of aiohttp's parser (414, 431, or 400 with its reason), or to a head without end (431).

    `head`: the bytes that are known of it, perhaps with a body behind; the answer repeats its X-Request-ID.
    """
    if error is None:
        response = _headers_too_large(_TOGETHER)
    else:
        response = _too_long(error) or wire_refusal(400, f"This is not an HTTP/1.1 request: {_reason(error)}.")
    lines, end, _ = head.partition(b"\r\n\r\n")
    sent = _SENT_ID.search(lines + end)
    finish(response, Headers([("X-Request-ID", sent[1].decode("latin-1"))] if sent else []))
    return response


def unreadable_body(error: HttpProcessingError) -> Response:
    """400 for a body whose chunks or trailers are malformed, 431 for a trailer that is too long."""
    return _too_long(error) or wire_refusal(400, f"The body cannot be read: {_reason(error)}.")


def _too_long(error: HttpProcessingError) -> Response | None:
    """The parser raises the same error for a long target and for a long field, with different limits."""
    limit = error.args[1] if len(error.args) > 1 else None
    if limit == MAX_TARGET_BYTES:
        return wire_refusal(414, f"The request target is longer than {MAX_TARGET_BYTES} bytes.")
    if limit == MAX_FIELD_BYTES:
        return _headers_too_large(f"one is longer than {MAX_FIELD_BYTES} bytes")
    return None


def _reason(error: HttpProcessingError) -> str:
    """The parser's reason without the bytes that it shows, which must not be repeated to the client.

    Its messages look like `Bad status line:` or `Invalid header token:`, followed by lines with the bytes.
    """
    if isinstance(error, InvalidURLError) and "\n" not in error.message:  # the target alone, without a reason
        return "its target cannot be read"
    return " ".join(error.message.partition("\n\n")[0].split())[:200].rstrip(":. ") or "it cannot be read"


# A head that the parser accepts


def head_refusal(message: RawRequestMessage, at_most: int) -> Response | None:
    """The refusal of a head without reading its body, or None; `at_most`: the bytes in which it arrived."""
    target, version = message.path or "", message.version
    if version not in (HttpVersion10, HttpVersion11):
        return wire_refusal(400, f"HTTP/{version.major}.{version.minor} is not supported; use HTTP/1.1 or HTTP/1.0.")
    if message.method == "CONNECT":
        return wire_refusal(400, "CONNECT is not supported.")
    if "#" in target:
        return wire_refusal(400, "A request target must not contain a fragment (#).")
    if len(message.headers) > MAX_HEADERS:
        return _headers_too_large(f"more than {MAX_HEADERS} of them")
    size = 0 if at_most <= MAX_HEAD_BYTES else sum(len(name) + len(value) + 4 for name, value in message.raw_headers)
    if len(target) + size > MAX_HEAD_BYTES:
        return _headers_too_large(_TOGETHER)
    if _HOST.fullmatch(message.headers.get(HOST, "")) is None:
        return wire_refusal(400, "Host is not a host name or address with an optional port.")
    if not target.startswith("/"):
        if target == "*" and message.method != "OPTIONS":
            return wire_refusal(400, "The request target * is for OPTIONS only.")
        if origin_form(message) is None:
            return wire_refusal(400, "The host in the request target differs from the Host header.")
    length = message.headers.get(CONTENT_LENGTH)
    coding = message.headers.get(TRANSFER_ENCODING)
    if coding is not None:  # never with a Content-Length: the parser takes one of them only
        if version == HttpVersion10:
            return wire_refusal(400, "HTTP/1.0 has no Transfer-Encoding.")
        if coding.lower() != "chunked":
            return wire_refusal(400, "The only supported Transfer-Encoding is chunked.")
    elif length is not None and Decimal(length) > MAX_BODY_BYTES:  # int() refuses more than 4300 digits
        return body_too_large()
    expectation = message.headers.get(EXPECT)
    if expectation is not None and expectation.lower() != "100-continue":
        return wire_refusal(417, "The only supported Expect is 100-continue.")
    return None


# Reading a head for the core


def fields(message: RawRequestMessage) -> Fields:
    """Header names as sent, and values as text: decoded as UTF-8 if possible, else as ISO 8859-1."""
    raw = message.raw_headers
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


_NAME_AND_PORT = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?", re.IGNORECASE)
_LAST_PORT = 65535


class Base:
    """The base of links in answers of one listener, depending on the Host header of the request.

    It is the public address if one is set; else the scheme and the Host header, if that is an allowed name (a loopback
    name, a `--host`, an `--allow-host`); else the listening address.
    """

    def __init__(self, scheme: str, port: int, settings: ServeSettings) -> None:
        self.scheme = scheme
        self.listening = f"{scheme}://{url_host(settings.host[0])}:{port}"
        self._public = settings.public_url.rstrip("/") if settings.public_url else None
        self._allowed = LOOPBACK_NAMES | {url_host(name).lower() for name in settings.host_names}

    def of(self, host: str | None) -> str:
        """The base of links, `http://host:port`, for a request whose Host header is `host`."""
        if self._public is not None:
            return self._public
        if host is None:
            return self.listening
        parts = _NAME_AND_PORT.fullmatch(host)
        if parts is None or parts[1].lower() not in self._allowed or int(parts[2] or 0) > _LAST_PORT:
            return self.listening
        return f"{self.scheme}://{host}"


CLOSE = "Connection: close"
_DATE = b"\r\nDate: "
_SERVER = b"\r\nServer: bank-emulator\r\n\r\n"
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}" for status in HTTPStatus}
_LINE = ": ".join
_GZIP = 31  # zlib's window bits for the gzip container
_NO_CONTROLS = bytes([0x09, *range(0x20, 0x7F), *range(0x80, 0x100)])


def head(answer: Response | Stream, framing: list[str]) -> bytes:
    """Status line, headers and `framing` up to the empty line; ValueError for control characters in a header."""
    status = answer.status
    lines = [_STATUS_LINES.get(status) or f"HTTP/1.1 {status} ", *map(_LINE, answer.headers), *framing]
    written = "\r\n".join(lines).encode()
    if len(written.translate(None, _NO_CONTROLS)) != 2 * len(lines) - 2:  # other than the ends of lines
        raise ValueError("a header of the answer contains a control character")
    return written + (b"" if _DATE in written else _date(int(time()))) + _SERVER


@lru_cache(maxsize=1)
def _date(now: int) -> bytes:
    """The line of a moment; cached, since many answers leave in one second."""
    return _DATE + formatdate(now, usegmt=True).encode()


def encoded(response: Response, accepted: str) -> Response:
    """A copy of the answer compressed with gzip if the client accepts it; the answer if not, or if signed or in parts.

    Vary is added to uncompressed answers too, so that a cache asks again for a client with another Accept-Encoding;
    not where the coding does not depend on that.
    """
    headers, body = response.headers, response.body
    if not body or response.parts is not None or (not accepted and VARY in headers):
        return response
    names = {name.lower() for name, _ in headers}
    if accepted and names.isdisjoint(("content-encoding", "digest")) and wants_gzip(accepted):
        body = zlib.compress(body, level=1, wbits=_GZIP)
        headers = [*headers, ("Content-Encoding", "gzip")]
    if names.isdisjoint(("content-encoding", "vary")):
        headers = [*headers, ("Vary", "Accept-Encoding")]
    return response if headers is response.headers else Response(response.status, headers, body, response.delivery)


def complete(response: Response, message: RawRequestMessage | None, *, last: bool) -> bytes:
    """The bytes of an answer to `message`, without parts; `last`: no further request is answered on the connection."""
    has_body = response.status not in (204, 304)
    size = len(response.body) + (0 if response.parts is None else response.parts.size)
    framing = [f"Content-Length: {size}"] if has_body else []
    if last:
        framing.append(CLOSE)
    elif message is not None and message.version == HttpVersion10:
        framing.append("Connection: keep-alive")
    written = head(response, framing)
    return written + response.body if has_body and (message is None or message.method != "HEAD") else written
