"""One connection: aiohttp's protocol, with the bank's answers to malformed requests and limits on slow clients.

Only public methods of aiohttp's `RequestHandler` are overridden or called. It owns the parser, and calls the handler
for one request after the other in a task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

from aiohttp import web
from aiohttp.http import HttpProcessingError, HttpVersion11
from aiohttp.streams import StreamReader

from emulator.api.messages import Response
from emulator.web.address import Base
from emulator.web.framing import END, HEAD_TOO_LARGE, Framing
from emulator.web.limits import MAX_BODY_BYTES, MAX_FIELD_BYTES, MAX_HEAD_BYTES, MAX_TARGET_BYTES, Limits
from emulator.web.refusals import (
    RequestRefused,
    bad_body,
    head_without_end,
    parser_refusal,
    too_slow,
    wire_refusal,
)

logger = logging.getLogger(__name__)

RequestHandler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
MakeRefusal = Callable[["Connection", web.BaseRequest, Response], web.StreamResponse]
NO_HEAD = b"\0"  # makes the parser refuse any head
_LAST_SECONDS = 0.5  # for handlers whose connections were aborted
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection(web.RequestHandler):
    """A client's connection, one request after the other."""

    __slots__ = (
        "_answering",
        "_client_ended",
        "_framing",
        "_gone",
        "_head_timer",
        "_heads_seen",
        "_held",
        "_left",
        "_listener",
        "_paused_by_body",
        "_reading",
        "_refused",
        "_socket",
        "_stuck",
        "base",
        "limits",
    )

    def __init__(self, listener: Listener, loop: asyncio.AbstractEventLoop) -> None:
        self.limits = listener.limits
        self.base = listener.base
        self._listener = listener
        self._framing = Framing()
        self._heads_seen = 0  # `count` of the framing when the timer was last checked
        self._held = b""  # a head that waits briefly for its body
        self._socket: asyncio.Transport | None = None  # aiohttp sets its own to None when it begins to close
        self._head_timer: asyncio.TimerHandle | None = None
        self._answering = False
        self._reading: StreamReader | None = None  # the body that the current request waits for
        self._gone: asyncio.Future[None] | None = None
        self._left = False  # the client has disconnected, or the server no longer waits for it
        self._client_ended = False  # the client has closed its sending side, and still reads
        self._refused = False  # a refusal was sent; further bytes are ignored
        self._stuck = False
        self._paused_by_body = False
        super().__init__(
            listener,
            loop=loop,
            keepalive_timeout=self.limits.idle_seconds,
            access_log=cast(Any, None),
            lingering_time=0.0,
            max_line_size=MAX_TARGET_BYTES,
            max_field_size=MAX_FIELD_BYTES,
            max_headers=MAX_HEAD_BYTES,  # head_refusal checks their number, with a status of its own
            auto_decompress=False,
            read_bufsize=65536,
        )

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._socket = self.transport
        self._listener.open.add(self)
        if self._listener.ending:
            self.drop()
        else:
            self._await_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._listener.closed(self)
        self._forget_timer()
        super().connection_lost(exc)
        self.leave()

    def data_received(self, data: bytes) -> None:
        if not data:  # aiohttp continues with data that its parser has buffered
            super().data_received(data)
            return
        framing = self._framing
        if self._refused or framing.fault is not None:
            return
        parts = framing.cut(data)
        if self._held:
            self._release()
        if framing.announced and len(parts) == 1 and data.endswith(END) and not self._answering:
            self._hold(data)
        else:
            for part in parts:
                super().data_received(part)
        if framing.fault is not None:
            self._read_no_further(framing.fault)
        elif self._head_timer is not None or framing.partial_head:
            self._watch_head()

    def _hold(self, head: bytes) -> None:
        """Hold a head back until its body arrives, or until the loop has polled twice.

        Most clients send head and body in two packets, one right after the other. Starting the handler with the first
        and waiting there for the second would take longer than everything else that aiohttp does for a request.
        """
        self._held = head
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._release)

    def _release(self) -> None:
        held, self._held = self._held, b""
        if held:
            super().data_received(held)

    def pause_reading(self) -> None:
        self._paused_by_body = True
        super().pause_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Resume only what was paused: aiohttp calls this after every part of a body, and then parses again."""
        if self._paused_by_body:
            self._paused_by_body = False
            super().resume_reading(resume_parser)

    def eof_received(self) -> Any:  # aiohttp narrows asyncio's `bool | None` to None
        """Keep the sending side open while complete requests wait for their answers.

        A client that closes its side during a scripted delay most likely gave up, and must not delay a shutdown.
        """
        broken = self._framing.fault is not None
        if self._listener.ending and self._gone is not None:
            return None
        if self._refused or self.ssl_context is not None or (self._framing.in_body and not broken):
            return None
        if not self.owes and not broken:
            return None
        self._client_ended = True
        return True

    # Limits on what arrives

    def _read_no_further(self, fault: str) -> None:
        self._forget_timer()
        if fault is HEAD_TOO_LARGE:  # refused after the requests before it are answered
            super().data_received(NO_HEAD)
        elif self._reading is not None and not self._framing.heads:
            self._reading.set_exception(RequestRefused(bad_body(fault)))

    def _watch_head(self) -> None:
        """Start or stop the timer for an incomplete head."""
        framing = self._framing
        if framing.count != self._heads_seen:
            self._heads_seen = framing.count
            self._forget_timer()
        if framing.partial_head and self._head_timer is None:
            self._await_head()

    def _await_head(self) -> None:
        loop = asyncio.get_running_loop()
        self._head_timer = loop.call_later(self.limits.head_seconds, self._head_too_slow)

    def _head_too_slow(self) -> None:
        if self.owes:
            self._await_head()
        else:
            self._head_timer = None
            self.force_close()

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    # For the handler and its answers

    @property
    def owes(self) -> bool:
        """Whether complete requests wait for their answers."""
        return self._answering or bool(self._framing.heads)

    @property
    def last(self) -> bool:
        """Whether no request is answered after the current one."""
        return self._listener.ending or (self._client_ended and not self._framing.heads)

    def begin(self) -> bytes:
        """Start answering the next request; returns its head as received, perhaps incomplete."""
        self._answering = True
        framing = self._framing
        return framing.heads.popleft() if framing.heads else bytes(framing.partial_head)

    def end(self) -> None:
        """Record that the answer to the current request was written."""
        self._answering = False

    async def arriving(self, request: web.BaseRequest) -> bytes:
        """Wait for the body of a request; one that is too large is cut off somewhere above the limit.

        Raises RequestRefused if it is too slow or malformed, ConnectionError if the client disconnects.
        """
        fault = self._framing.fault
        if fault is not None and self._framing.in_body and not self._framing.heads:
            raise RequestRefused(bad_body(fault))
        if request.version == HttpVersion11 and "Expect" in request.headers:
            self.send(_CONTINUE)
        seconds = self.limits.body_seconds
        parts = []
        size = 0
        self._reading = request.content
        try:
            async with asyncio.timeout(seconds):
                while part := await self._reading.readany():
                    parts.append(part)
                    size += len(part)
                    if size > MAX_BODY_BYTES:
                        break
        except TimeoutError as error:
            raise RequestRefused(too_slow(seconds)) from error
        finally:
            self._reading = None
        return b"".join(parts)

    def send(self, data: bytes) -> None:
        """Write to the client; raises ConnectionResetError if it has disconnected."""
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has disconnected")
        transport.write(data)

    def stop_reading(self) -> None:
        """Ignore further bytes, but keep reading them."""
        self._refused = True
        if self._socket is not None and not self._socket.is_closing():
            self._socket.resume_reading()

    def send_end(self) -> None:
        """Close the sending side; the client may still send. Does nothing over TLS, which has no half-closed state."""
        if self._socket is not None and not self._socket.is_closing() and self._socket.can_write_eof():
            self._socket.write_eof()

    async def gone(self, seconds: float) -> bool:
        """Wait until the client disconnects or the server stops, at most `seconds`; returns whether that happened."""
        if self._left:
            return True
        self._gone = asyncio.get_running_loop().create_future()
        await asyncio.wait((self._gone,), timeout=seconds)
        self._gone = None
        return self._left

    def leave(self) -> None:
        """End the wait of `gone`."""
        self._left = True
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to a request that the parser refused or that failed; aiohttp's own answer is plain text."""
        if not isinstance(exc, HttpProcessingError):
            logger.error("a request could not be answered", exc_info=exc)
            return self._listener.refusal(self, request, wire_refusal(max(status, 500), "The bank could not answer."))
        too_long = self._framing.fault is HEAD_TOO_LARGE and not self._framing.heads
        head = self.begin()
        response = head_without_end(head) if too_long else parser_refusal(exc, message or "", head)
        return self._listener.refusal(self, request, response)

    # The end of the connection

    def finish(self) -> None:
        """Close, now or after the current answer; do not wait for a client that gave up (see eof_received)."""
        if not self.owes:
            self.force_close()
        elif self._client_ended and self._gone is not None:
            self.drop()

    def drop(self) -> None:
        """Close now, even if data remains to be written."""
        self.force_close()
        if self._socket is not None:
            self._socket.abort()

    def drop_if_stuck(self) -> None:
        """Abort a connection that was already closing at the previous call."""
        if self._stuck and self._socket is not None:
            self._socket.abort()
        self._stuck = self._socket is not None and self._socket.is_closing()


class Listener(web.Server):
    """The connections of one listening address; `base` decides the base of links.

    `refusal`: makes the answer that ends a connection, to a request that the parser refused.
    """

    def __init__(self, handler: RequestHandler, base: Base, limits: Limits, *, refusal: MakeRefusal) -> None:
        super().__init__(handler)
        self.refusal = refusal
        self.base = base
        self.limits = limits
        self.open: set[Connection] = set()
        self.ending = False
        self._all_closed = asyncio.Event()

    def __call__(self) -> Connection:
        return Connection(self, asyncio.get_running_loop())

    def closed(self, connection: Connection) -> None:
        """Remove a closed connection."""
        self.open.discard(connection)
        if self.ending and not self.open:
            self._all_closed.set()

    async def drain(self) -> None:
        """Accept no new requests, answer those in progress within the time limit, close every connection."""
        self.ending = True
        for connection in tuple(self.open):
            connection.finish()
        if self.open:
            try:
                await asyncio.wait_for(self._all_closed.wait(), self.limits.drain_seconds)
            except TimeoutError:
                for connection in tuple(self.open):
                    connection.drop()
        await self.shutdown(_LAST_SECONDS)

    def drop_stuck(self) -> None:
        """Abort connections that were already closing at the previous call: their clients do not read."""
        for connection in tuple(self.open):
            connection.drop_if_stuck()
