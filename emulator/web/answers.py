"""Writes answers: status line, headers and body in one block, compressed if the client asked for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import time

from aiohttp.hdrs import ACCEPT_ENCODING
from aiohttp.http import HttpVersion10, RawRequestMessage

from emulator.api.messages import BodyParts, Response, Stream
from emulator.api.negotiation import VARY, content_coded, gzip_packer, wants_gzip

CLOSE = "Connection: close"
_DATE = b"\r\nDate: "
_SERVER = b"\r\nServer: bank-emulator\r\n\r\n"
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}" for status in HTTPStatus}
_LINE = ": ".join
_NO_CONTROLS = bytes([0x09, *range(0x20, 0x7F), *range(0x80, 0x100)])


def head(answer: Response | Stream, framing: list[str]) -> bytes:
    """Status line, headers and `framing` up to the empty line; ValueError for control characters in a header."""
    status = answer.status
    lines = [_STATUS_LINES.get(status) or f"HTTP/1.1 {status} ", *map(_LINE, answer.headers), *framing]
    written = "\r\n".join(lines).encode()
    if len(written.translate(None, _NO_CONTROLS)) != 2 * len(lines) - 2:  # other than the ends of lines
        raise ValueError("a header of the answer contains a control character")
    return written + (_SERVER if _DATE in written else _date_and_server(int(time())))


@lru_cache(maxsize=1)
def _date_and_server(second: int) -> bytes:
    """The end of a head; the same for all answers within a second."""
    return _DATE + formatdate(second, usegmt=True).encode() + _SERVER


def encoded(response: Response, accept_encoding: str | None) -> Response:
    """A copy of the answer compressed with gzip if the client accepts it, else the answer itself.

    Vary is added to uncompressed answers too, so that a
    cache asks again for a client with another Accept-Encoding.
    """
    coded = content_coded(response, accept_encoding)
    if VARY in coded.headers or not coded.body:
        return coded
    names = {name.lower() for name, _ in response.headers}
    if "vary" in names or "content-encoding" in names:  # the coding does not depend on Accept-Encoding
        return coded
    return Response(coded.status, [*coded.headers, ("Vary", "Accept-Encoding")], coded.body, coded.delivery)


def complete(response: Response, message: RawRequestMessage | None, *, last: bool) -> bytes:
    """All bytes of an answer to `message`; `last`: no further request is answered on the connection."""
    has_body = response.status not in (204, 304)
    framing = [f"Content-Length: {len(response.body)}"] if has_body else []
    written = head(response, framing + _connection(message, last=last))
    return written + response.body if has_body and (message is None or message.method != "HEAD") else written


async def blocks(
    response: Response, parts: BodyParts, message: RawRequestMessage, *, last: bool
) -> AsyncIterator[bytes]:
    """The bytes of an answer whose body is produced in parts, as `complete` gives those of another."""
    headers = [*response.headers, ("Vary", "Accept-Encoding")]
    framing = [f"Content-Length: {len(response.body) + parts.size}"]
    packer = None
    if message.version != HttpVersion10 and wants_gzip(message.headers.get(ACCEPT_ENCODING, "")):
        packer = gzip_packer()
        framing = ["Transfer-Encoding: chunked"]
        headers.append(("Content-Encoding", "gzip"))
    yield head(Response(response.status, headers), framing + _connection(message, last=last))
    if message.method == "HEAD":
        return
    yield response.body if packer is None else _chunk(packer.compress(response.body))
    async for part in parts:
        yield part if packer is None else _chunk(packer.compress(part))
    if packer is not None:
        yield _chunk(packer.flush()) + b"0\r\n\r\n"


def _connection(message: RawRequestMessage | None, *, last: bool) -> list[str]:
    """Whether another request may follow, where HTTP requires that the answer says it."""
    if last:
        return [CLOSE]
    return ["Connection: keep-alive"] if message is not None and message.version == HttpVersion10 else []


def _chunk(data: bytes) -> bytes:
    """A chunk of a chunked body; nothing for empty data, which would end the body."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""
