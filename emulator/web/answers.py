"""Writes answers: status line, headers and body in one block, compressed if the client asked for it.

aiohttp calls `prepare` and `write_eof` on the response that the handler returns. The responses here write once, in
`write_eof`; aiohttp's own response, with its dictionary of headers and its writer, takes three times as long.
"""

from __future__ import annotations

import asyncio
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import time

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.hdrs import ACCEPT_ENCODING
from aiohttp.http import HttpVersion10

from emulator.api.messages import Response, Stream
from emulator.api.negotiation import VARY, content_coded, gzip_packer, wants_gzip
from emulator.web.connection import Connection

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

    Signed answers were compressed by the core, before signing. Vary is added to uncompressed answers too, so that a
    cache asks again for a client with another Accept-Encoding.
    """
    coded = content_coded(response, accept_encoding)
    if VARY in coded.headers or not coded.body:
        return coded
    names = {name.lower() for name, _ in response.headers}
    if "vary" in names or "content-encoding" in names:  # the coding does not depend on Accept-Encoding
        return coded
    return Response(coded.status, [*coded.headers, ("Vary", "Accept-Encoding")], coded.body, coded.delivery)


class WireResponse(web.StreamResponse):
    """An aiohttp response that `write_eof` writes as a whole; with `closes` the connection is closed after it."""

    closes = False

    @property
    def keep_alive(self) -> bool:
        """Whether another request may follow on this connection."""
        return not self.closes

    async def prepare(self, _request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Do nothing: `write_eof` writes everything."""
        return None


class CompleteAnswer(WireResponse):
    """A complete answer, written at once; the connection stays open unless the client or the server closes it."""

    def __init__(self, connection: Connection, request: web.BaseRequest, response: Response) -> None:
        super().__init__()
        self._connection = connection
        self._request = request
        self._response = response

    async def write_eof(self, _data: bytes = b"") -> None:
        """Write head and body; wait, within limits, for a client that reads slowly."""
        connection, response = self._connection, self._response
        has_body = response.status not in (204, 304)
        framing = [f"Content-Length: {len(response.body)}"] if has_body else []
        written = self._head(response, framing)
        connection.send(written + response.body if has_body and self._request.method != "HEAD" else written)
        if connection.writing_paused:
            await self._drain()
        connection.end()

    def _head(self, response: Response, framing: list[str]) -> bytes:
        """The head of the answer; says whether another request may follow, where HTTP requires it."""
        if self.closes or not self._request.keep_alive or self._connection.last:
            self.closes = True
            framing.append(CLOSE)
        elif self._request.version == HttpVersion10:
            framing.append("Connection: keep-alive")
        return head(response, framing)

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(self._connection.limits.write_seconds):
                await self._request.writer.drain()
        except TimeoutError:
            self._connection.drop()


class PartedAnswer(CompleteAnswer):
    """An answer whose body is produced in parts while it is sent, so that other requests are handled in between."""

    async def write_eof(self, _data: bytes = b"") -> None:
        """Write the head, then each part when the client has read the previous ones."""
        connection, request, response = self._connection, self._request, self._response
        if response.parts is None:
            raise RuntimeError("the answer has no parts")
        headers = [*response.headers, ("Vary", "Accept-Encoding")]
        framing = [f"Content-Length: {len(response.body) + response.parts.size}"]
        packer = None
        if request.version != HttpVersion10 and wants_gzip(request.headers.get(ACCEPT_ENCODING, "")):
            packer = gzip_packer()
            framing = ["Transfer-Encoding: chunked"]
            headers.append(("Content-Encoding", "gzip"))
        connection.send(self._head(Response(response.status, headers), framing))
        if request.method != "HEAD":
            await self._send(response.body if packer is None else _chunk(packer.compress(response.body)))
            async for part in response.parts:
                await self._send(part if packer is None else _chunk(packer.compress(part)))
            if packer is not None:
                await self._send(_chunk(packer.flush()) + b"0\r\n\r\n")
        connection.end()

    async def _send(self, data: bytes) -> None:
        if data:
            self._connection.send(data)
        if self._connection.writing_paused:
            await self._drain()
        else:
            await asyncio.sleep(0)


def _chunk(data: bytes) -> bytes:
    """A chunk of a chunked body; nothing for empty data, which would end the body."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


class Refusal(CompleteAnswer):
    """An answer that ends the connection: the sending side is closed at once, the receiving side shortly after.

    Closing a socket with unread bytes would reset the connection, and the client might never receive the answer.
    """

    closes = True

    async def write_eof(self, _data: bytes = b"") -> None:
        """Write the answer, close the sending side, and wait for the client to close its own."""
        connection = self._connection
        connection.stop_reading()
        await super().write_eof()
        connection.send_end()
        await connection.gone(connection.limits.linger_seconds)


class Hangup(WireResponse):
    """Closes the connection without an answer (a scripted disconnect)."""

    closes = True

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    async def write_eof(self, _data: bytes = b"") -> None:
        """Close the connection."""
        self._connection.drop()
