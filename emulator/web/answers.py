"""Answers on their way out: one block of bytes for a Response, an open end for a Stream.

Both stand where aiohttp expects a StreamResponse, of which its protocol uses `prepare`, `write_eof` and
`keep_alive`; aiohttp's own keeps headers in dictionaries and costs three times as much per answer.
"""

from __future__ import annotations

import asyncio
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import time

from aiohttp.http import HttpVersion10, RawRequestMessage

from emulator.api.messages import Response, Stream
from emulator.web.due_timer import Watchers
from emulator.web.exchange import Exchange

CLOSE = "Connection: close"
_SERVER = b"\r\nServer: bank-emulator\r\n\r\n"
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}" for status in HTTPStatus}
_LINE = ": ".join
_NO_CONTROLS = bytes([0x09, *range(0x20, 0x7F), *range(0x80, 0x100)])
_COMMENT = b": still here\n\n"


def head(answer: Response | Stream, framing: list[str]) -> bytes:
    """Status line, headers and `framing` up to the empty line; ValueError for control characters in a header."""
    status = answer.status
    lines = [_STATUS_LINES.get(status) or f"HTTP/1.1 {status} ", *map(_LINE, answer.headers), *framing]
    written = "\r\n".join(lines).encode()
    if len(written.translate(None, _NO_CONTROLS)) != 2 * len(lines) - 2:  # other than the ends of lines
        raise ValueError("a header of the answer holds a control character")
    return written + (_SERVER if "Date" in dict(answer.headers) else _date_and_server(int(time())))


@lru_cache(maxsize=1)
def _date_and_server(second: int) -> bytes:
    """The end of a head; remembered, since all answers of a second share it."""
    return b"\r\nDate: " + formatdate(second, usegmt=True).encode() + _SERVER


def block(message: RawRequestMessage, response: Response, close: bool) -> bytes:
    """The whole answer to `message` as it goes over the wire."""
    status, body = response.status, response.body
    framing = [] if status in (204, 304) else [f"Content-Length: {len(body)}"]
    if close:
        framing.append(CLOSE)
    elif message.version == HttpVersion10:
        framing.append("Connection: keep-alive")
    first = head(response, framing)
    return first if message.method == "HEAD" or status in (204, 304) else first + body


class Answer:
    """A whole answer, written at once; the connection stays open unless `close`, or the client wants it closed."""

    def __init__(self, exchange: Exchange, response: Response, *, close: bool = False) -> None:
        self._exchange = exchange
        self._response = response
        self._close = close

    @property
    def keep_alive(self) -> bool:
        """Whether another request may follow on this connection."""
        return not self._close

    async def prepare(self, exchange: Exchange) -> None:
        """Everything leaves in one write."""

    async def write_eof(self) -> None:
        """Write head and body, and wait, within limits, for a client that is slow to read them."""
        exchange = self._exchange
        message = exchange.message
        self._close = self._close or message.should_close or exchange.connection.last
        exchange.send(block(message, self._response, self._close))
        if exchange.connection.writing_paused:
            await self._drain()

    async def _drain(self) -> None:
        connection = self._exchange.connection
        try:
            async with asyncio.timeout(connection.limits.write_seconds):
                await self._exchange.writer.drain()
        except TimeoutError:
            connection.drop()


class Refusal(Answer):
    """An answer that ends the connection, and reads on for a moment so that the client gets to see it.

    A close with unread bytes in the socket resets the connection, and the answer with it.
    """

    def __init__(self, exchange: Exchange, response: Response) -> None:
        super().__init__(exchange, response, close=True)

    async def write_eof(self) -> None:
        """Write the answer, then wait for the client to close."""
        await super().write_eof()
        connection = self._exchange.connection
        connection.stop_reading_requests()
        await self._exchange.gone(connection.limits.linger_seconds)


class Hangup:
    """No answer: the connection is closed in its place (a scripted disconnect)."""

    keep_alive = False

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def prepare(self, exchange: Exchange) -> None:
        """Nothing is prepared."""

    async def write_eof(self) -> None:
        """Close at once, whatever waits to be written."""
        self._exchange.connection.drop()


class EventStream:
    """Server-sent events: every chunk is written as it is pushed, until the client goes or does not read."""

    keep_alive = False

    def __init__(self, exchange: Exchange, stream: Stream, watchers: Watchers) -> None:
        self._exchange = exchange
        self._stream = stream
        self._watchers = watchers

    async def prepare(self, exchange: Exchange) -> None:
        """The head leaves with the stream."""

    async def write_eof(self) -> None:
        """Carry events until either side has had enough."""
        exchange = self._exchange
        exchange.send(head(self._stream, [CLOSE]))
        if exchange.message.method == "HEAD":
            return
        exchange.connection.stop_reading_requests()
        unsubscribe = self._stream.subscribe(self._push)
        self._watchers.add(exchange)
        try:
            while not await exchange.gone(exchange.connection.limits.comment_seconds):
                self._push(_COMMENT)
        finally:
            unsubscribe()
            self._watchers.discard(exchange)

    def _push(self, chunk: bytes | None) -> None:
        connection = self._exchange.connection
        if chunk is None:
            self._exchange.leave(ConnectionResetError("the stream has ended"))
            return
        transport = connection.transport
        if transport is None or transport.is_closing():
            return
        if transport.get_write_buffer_size() > connection.limits.event_bytes:
            connection.drop()
        else:
            transport.write(chunk)


Sent = Answer | Hangup | EventStream
