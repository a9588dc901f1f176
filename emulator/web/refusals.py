"""What the wire refuses before a request reaches the core, in the error form of CONTRACT 3.3; how a head is read."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from operator import itemgetter
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.hdrs import CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING
from aiohttp.http import HttpProcessingError, HttpVersion10, HttpVersion11
from aiohttp.http_exceptions import InvalidURLError

from emulator.api.headers import Headers
from emulator.api.messages import Fields, Request, Response
from emulator.api.pipeline import finish
from emulator.web.limits import MAX_BODY_BYTES, MAX_FIELD_BYTES, MAX_HEAD_BYTES, MAX_HEADERS, MAX_TARGET_BYTES

JSON_TYPE = "application/json; charset=utf-8"
# RFC 9112, 3.2: a Host is uri-host [":" port]; a request with another value is answered 400
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?")


class Refused(Exception):
    """The wire refuses this request; `response` says why."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


def wire_refusal(status: int, text: str) -> Response:
    """An error answer that needs no request: BAD_REQUEST, or SYSTEM_ERROR from 500 on."""
    code = "SYSTEM_ERROR" if status >= 500 else "BAD_REQUEST"
    entry = {"category": "ERROR", "code": code, "text": text}
    body = json.dumps({"tppMessages": [entry]}, separators=(",", ":"), ensure_ascii=False).encode()
    return Response(status, [("Content-Type", JSON_TYPE)], body)


def too_large(limit: int) -> Response:
    """413 for a body over `limit` bytes (CONTRACT 3.2)."""
    return wire_refusal(413, f"The body is larger than {limit} bytes.")


def too_slow(seconds: float) -> Response:
    """408 for a body that did not arrive in time (CONTRACT 13)."""
    return wire_refusal(408, f"The body did not arrive within {seconds:g} seconds.")


def bad_body(reason: str) -> Response:
    """400 for a body whose framing is broken."""
    return wire_refusal(400, f"The body cannot be read: {reason}.")


def unavailable(request: Request) -> Response:
    """503 for a request that the bank cannot handle at the moment."""
    done = "nothing was changed" if request.unfinished is None else "what was done of this before stays"
    response = wire_refusal(503, f"The bank cannot answer at the moment; {done}.")
    finish(response, Headers(request.headers))
    return response


def _headers_too_large(what: str) -> Response:
    """431; `what` names the limit that was passed."""
    return wire_refusal(431, f"The headers are too large: {what}.")


# A head that the parser refuses


def parser_refusal(error: HttpProcessingError, message: str, head: bytes) -> Response:
    """The answer to what aiohttp's parser raised: 414, 431 or 400 with the parser's own reason.

    `head`: as much of it as arrived; the answer returns its X-Request-ID.
    """
    return _finished(_of_parser(error, message), head)


def head_without_end(head: bytes) -> Response:
    """431 for a head that is too large; `head`: as much of it as arrived."""
    return _finished(_headers_too_large(f"together over {MAX_HEAD_BYTES} bytes"), head)


def _finished(response: Response, head: bytes) -> Response:
    finish(response, Headers(_sent_ids(head)))
    return response


def _sent_ids(head: bytes) -> list[tuple[str, str]]:
    """The X-Request-ID headers of a refused head, which may be incomplete."""
    lines = head.split(b"\r\n")[1:-1]  # without the first, and a last one that has no end yet
    fields = [line.partition(b":") for line in lines]
    return [(name.decode(), value.decode("latin-1")) for name, _, value in fields if name.lower() == b"x-request-id"]


def _of_parser(error: HttpProcessingError, message: str) -> Response:
    """The parser raises one error for a long target and for a long field; the limit it names tells them apart."""
    limit = error.args[1] if len(error.args) > 1 else None
    if limit == MAX_TARGET_BYTES:
        return wire_refusal(414, f"The request target is longer than {MAX_TARGET_BYTES} bytes.")
    if limit == MAX_FIELD_BYTES:
        return _headers_too_large(f"one is longer than {MAX_FIELD_BYTES} bytes")
    bare = isinstance(error, InvalidURLError) and "\n" not in message  # the target, and no reason before it
    reason = "its target cannot be read" if bare else _reason(message)
    return wire_refusal(400, f"This is not an HTTP/1.1 request: {reason}.")


def _reason(message: str) -> str:
    """The parser's reason without its picture of the bytes, which must not be repeated to the client.

    Its messages look like `Bad status line:` or `Invalid header token:`, then the bytes on lines of their own.
    """
    lines = [line.strip() for line in message.split("\n\n", 1)[0].splitlines() if line.strip()]
    reason = " ".join(lines)[:200].rstrip(":. ")
    return reason or "it cannot be read"


# A head that the parser accepts


def head_refusal(request: web.BaseRequest) -> Response | None:
    """Why a head is refused without its body, or None (CONTRACT 13, refusals at the wire)."""
    headers, target = request.headers, request.raw_path
    if (  # the form that nearly all requests have
        request.version == HttpVersion11
        and target.startswith("/")
        and "#" not in target
        and len(headers) <= MAX_HEADERS
        and _is_host(headers.get(HOST, ""))
        and TRANSFER_ENCODING not in headers
        and EXPECT not in headers
        and request.method != "CONNECT"
        and int(headers.get(CONTENT_LENGTH, 0)) <= MAX_BODY_BYTES
    ):
        return None
    return _line_refusal(request) or _framing_refusal(request)


def _line_refusal(request: web.BaseRequest) -> Response | None:
    target = request.raw_path
    if request.version not in (HttpVersion10, HttpVersion11):
        major, minor = request.version
        return wire_refusal(400, f"HTTP/{major}.{minor} is not spoken here, HTTP/1.1 and HTTP/1.0 are.")
    if request.method == "CONNECT":
        return wire_refusal(400, "CONNECT is not served here.")
    if "#" in target:
        return wire_refusal(400, "A request target has no fragment (#).")
    if len(request.headers) > MAX_HEADERS:
        return _headers_too_large(f"there are more than {MAX_HEADERS}")
    if not _is_host(request.headers.get(HOST, "")):
        return wire_refusal(400, "Host is not a host name or address with an optional port.")
    if not target.startswith("/"):
        if target == "*" and request.method != "OPTIONS":
            return wire_refusal(400, "The request target * is for OPTIONS only.")
        if origin_form(request) is None:
            return wire_refusal(400, "The request target names another host than Host does.")
    return None


def _framing_refusal(request: web.BaseRequest) -> Response | None:
    length = request.headers.get(CONTENT_LENGTH)
    coding = request.headers.get(TRANSFER_ENCODING)
    if coding is not None:
        if length is not None:
            return wire_refusal(400, "Content-Length and Transfer-Encoding in one request.")
        if request.version == HttpVersion10:
            return wire_refusal(400, "HTTP/1.0 has no Transfer-Encoding.")
        if coding.lower() != "chunked":
            return wire_refusal(400, "The only Transfer-Encoding understood here is chunked.")
    elif length is not None and int(length) > MAX_BODY_BYTES:
        return too_large(MAX_BODY_BYTES)
    expectation = request.headers.get(EXPECT)
    if expectation is not None and expectation.lower() != "100-continue":
        return wire_refusal(417, "The only Expect understood here is 100-continue.")
    return None


@lru_cache(maxsize=256)
def _is_host(value: str) -> bool:
    return _HOST.fullmatch(value) is not None


# What the core is given


def fields(request: web.BaseRequest) -> Fields:
    """Header names as sent and values as text: UTF-8 where they are that, else ISO 8859-1."""
    raw = request.raw_headers
    if not raw:
        return Fields((), (), ())
    names, lower = _decoded(tuple(map(_name, raw)))
    # The parser has decoded the values, but those that are not UTF-8 into something else.
    values = tuple(request.headers.values())
    if not all(map(str.isascii, values)):
        values = tuple(_text(value) for _, value in raw)
    return Fields(names, lower, values)


_name = itemgetter(0)


@lru_cache(maxsize=256)
def _decoded(names: tuple[bytes, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Header names as text, and in lower case; a client's requests carry the same ones each time."""
    decoded = tuple(name.decode() for name in names)
    return decoded, tuple(map(str.lower, decoded))


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def origin_form(request: web.BaseRequest) -> str | None:
    """Path and query exactly as sent; of an absolute target (RFC 9112 3.2.2) what follows the authority.

    None when an absolute target names another host than Host does: the server must not guess which one was meant.
    """
    target = request.raw_path
    if target.startswith("/") or target == "*":
        return target
    authority = urlsplit(target).netloc
    if authority.lower() != request.headers.get(HOST, authority).lower():
        return None
    rest = target.partition("://")[2][len(authority) :]
    return rest if rest.startswith("/") else "/" + rest
