"""One connection of a client: bytes come in, and one complete request after the other is answered.

aiohttp's parser decides what a request is and where it ends, and collects its body; nothing is parsed before or after
it. It stops behind each complete request (a queue of one), so the next one is parsed when the answer to this one has
been written; what arrives meanwhile waits in `_behind`.

| State | Seen by | Waits for | At most | Then |
|---|---|---|---|---|
| new | nothing was sent | the first byte of a request | `head_seconds` | closed |
| head | `_head` | the rest of a head | `head_seconds` from its first byte | closed |
| between | no `_message` | the first byte of a request | `idle_seconds` | closed |
| body | `_message` without `_task` | the rest of a body | `body_seconds` from the end of the head | 408 |
| answering | `_task` | the application | no limit of the connection's | |
| sending | `writing_paused` | the client, which reads the answer | `write_seconds` for each block | aborted |
| ended | `_ended` | the client, which reads the last answer and closes | `linger_seconds` | closed |
| closing | `is_closing` | the client, which reads the rest of an answer | `write_seconds` | aborted |

It ends by `_end` behind a last answer (`_refuse` sends one), by `_close` once all is sent, or by `drop` at once. A
server that stops calls `finish`, which chooses. `_left` only ends a delay or a stream of events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

from aiohttp.base_protocol import BaseProtocol
from aiohttp.hdrs import ACCEPT_ENCODING, HOST
from aiohttp.http import HttpProcessingError, HttpRequestParser, HttpVersion11, RawRequestMessage, StreamWriter
from aiohttp.streams import StreamReader

from emulator.api.messages import AT_ONCE, Request, Response, Stream
from emulator.web import wire
from emulator.web.handler import Handler

logger = logging.getLogger(__name__)

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_COMMENT = b": still here\n\n"
_READ_AHEAD = 65536  # bytes of further requests that are accepted while one is being answered
_PIECE = 16384  # bytes that are parsed before sizes are checked: they do not depend on the packets of the network
_LOOK = 0.005  # seconds between two looks at what is left, when the server stops
_AROUND = 8  # bytes of chunk sizes for a byte of the body: the smallest chunk has 5, or more with leading zeros


class Connection(BaseProtocol):
    """A connection of `all_of`; `base` decides the base of links."""

    def __init__(self, all_of: Connections, base: wire.Base) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop)
        self._all = all_of
        self._base = base
        self._handler = all_of.handler
        self._limits = all_of.limits
        self._http = HttpRequestParser(
            self,
            loop,
            wire.MAX_BODY_BYTES,
            max_line_size=wire.MAX_TARGET_BYTES,
            max_field_size=wire.MAX_FIELD_BYTES,
            max_headers=wire.MAX_HEAD_BYTES,  # head_refusal checks their number, with a status of its own
            auto_decompress=False,
            max_msg_queue_size=1,
        )
        self._peer: str | None = None  # the client's address
        self._behind = bytearray()  # what has arrived and is not parsed yet
        self._head = b""  # of a request whose head is not complete
        # bytes given to the parser for the body, which may consist of chunk sizes; before that, for the head
        self._fed = 0
        self._message: RawRequestMessage | None = None  # the request that is read or answered
        self._body: StreamReader | None = None  # of `_message`
        self._task: asyncio.Task[None] | None = None  # answers `_message`
        self._written = False  # bytes of the answer to `_message` were sent
        self._held = False  # the client may send nothing more for the moment
        self._deaf = False  # what the client sends is ignored
        self._client_ended = False  # the client has closed its sending side, and still reads
        self._ended = False  # the last answer was sent
        self._left = asyncio.Event()  # the client has disconnected, or the server no longer waits for it
        self._lasts = False  # the answer is a stream, or is delayed, which ends with that

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        name = transport.get_extra_info("peername")
        self._peer = str(name[0]) if isinstance(name, tuple) else None
        self._all.open.add(self)
        self._timer = asyncio.get_running_loop().call_later(self._limits.head_seconds, self._close)
        if self._all.ending:
            self.drop()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._deaf = True
        self._timer.cancel()
        self._all.open.discard(self)
        self._left.set()
        self._body = None
        del self._http  # or the two would keep one another until a collection

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self._behind += data
        if self._task is None:
            self._read()
        elif len(self._behind) > _READ_AHEAD and self.transport is not None:
            self._held = True
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        """Keep the sending side open for the answers to complete requests.

        A client that closes its side during a scripted delay most likely gave up, and must not delay a shutdown. TLS
        has no half-closed state.
        """
        if self._deaf or self._task is None or (self._all.ending and self._lasts):
            return False
        self._client_ended = self.transport is not None and self.transport.can_write_eof()
        return self._client_ended

    # Called by aiohttp's reader of a body, which is never longer than the limit on bodies

    def pause_reading(self) -> None:
        """Do nothing."""

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Do nothing."""

    # Reading

    def _read(self) -> None:
        """Parse piece by piece up to the end of a request; the rest waits."""
        while self._behind and self._task is None:
            piece = bytes(self._behind[:_PIECE])
            del self._behind[:_PIECE]
            self._parse(piece)

    def _parse(self, data: bytes) -> None:
        """Begin the answer if `data` completes a request, else set the time limit for the rest of it."""
        try:
            messages, upgraded, rest = self._http.feed_data(data)
        except HttpProcessingError as error:
            in_body = self._message is not None
            self._refuse(wire.unreadable_body(error) if in_body else wire.unreadable_head(self._head + data, error))
            return
        if upgraded:  # an offer that is declined; what follows is HTTP, and the parser hands it out
            self._http.set_upgraded(False)
            self._behind[:0] = rest
        self._fed += len(data)
        if messages:
            [(self._message, self._body)] = messages
            refusal = wire.head_refusal(self._message, self._fed)
            self._fed = 0
            if refusal is not None:
                self._refuse(refusal)
                return
        if self._message is None:
            self._await_head(data)
        elif self._body is not None:
            self._read_body(self._message, self._body, len(data), began=bool(messages))

    def _await_head(self, data: bytes) -> None:
        if data and not self._head:
            self._expect(self._limits.head_seconds, self._close)
        self._head += data
        if len(self._head) > wire.MAX_HEAD_BYTES:
            self._refuse(wire.unreadable_head(self._head))

    def _read_body(self, message: RawRequestMessage, body: StreamReader, size: int, *, began: bool) -> None:
        if body.total_bytes > wire.MAX_BODY_BYTES:
            self._refuse(wire.body_too_large())
        elif body.is_eof():
            self._fed = size  # part of it may belong to the next head
            self._timer.cancel()
            self._task = asyncio.get_running_loop().create_task(self._answer(message, body.read_nowait()))
        elif self._fed > wire.MAX_HEAD_BYTES + _AROUND * body.total_bytes:
            what = f"its chunk sizes and trailers are longer than {wire.MAX_HEAD_BYTES} bytes"
            self._refuse(wire.wire_refusal(400, f"The body cannot be read: {what}."))
        elif began:
            seconds = self._limits.body_seconds
            text = f"The body did not arrive within {seconds:g} seconds."
            self._expect(seconds, lambda: self._refuse(wire.wire_refusal(408, text)))
            if message.version == HttpVersion11 and "Expect" in message.headers and self.transport is not None:
                self.transport.write(_CONTINUE)

    # Answering

    async def _answer(self, message: RawRequestMessage, body: bytes) -> None:
        try:
            goes_on = await self._deliver(message, await self._handler.answer(self._request(message, body)))
        except ConnectionError:  # the client has disconnected
            self.drop()
        except Exception as error:
            logger.error("a request could not be answered", exc_info=error)
            if self._written:
                self.drop()
            else:
                self._refuse(wire.wire_refusal(500, "The bank could not answer."))
        else:
            if goes_on and not self._all.ending:  # a later request may be one to a bank that is handed over
                self._go_on()
            else:
                self._end()

    def _request(self, message: RawRequestMessage, body: bytes) -> Request:
        """A request as it leaves the wire; nothing of the bank has been asked before."""
        target = message.path or ""  # a CONNECT without target has None
        if not target.startswith("/"):
            target = wire.origin_form(message) or "/"
        base = self._base.of(message.headers.get(HOST))
        return Request(message.method, target, wire.fields(message), body, base, peer=self._peer)

    async def _deliver(self, message: RawRequestMessage, answer: Response | Stream) -> bool:
        """Send an answer, or what its delivery says; returns whether another request may follow."""
        if isinstance(answer, Stream):
            await self._send_events(answer)
            return False
        delivery = answer.delivery
        if delivery is not AT_ONCE and (
            (delivery.delay > 0 and await self._is_gone(delivery.delay)) or delivery.disconnect is not None
        ):
            self.drop()
            return False
        last = message.should_close or self._all.ending
        accepted = ", ".join(message.headers.getall(ACCEPT_ENCODING, ()))
        await self._send(wire.complete(wire.encoded(answer, accepted), message, last=last))
        if answer.parts is not None and message.method != "HEAD":
            async for part in answer.parts:
                await self._send(part)
                await asyncio.sleep(0)  # for other requests
        return not last

    async def _send_events(self, stream: Stream) -> None:
        """Send events as they are pushed, until the client disconnects or stops reading, or the stream ends."""
        await self._send(wire.head(stream, [wire.CLOSE]))
        self._stop_reading()
        watchers = self._handler.watchers
        unsubscribe = stream.subscribe(self._push)
        watchers.add(self._left.set)
        try:
            while not await self._is_gone(self._limits.comment_seconds):
                self._push(_COMMENT)
        finally:
            unsubscribe()
            watchers.discard(self._left.set)

    def _push(self, chunk: bytes | None) -> None:
        transport = self.transport
        if chunk is None:
            self._left.set()
        elif transport is not None and not transport.is_closing():
            if transport.get_write_buffer_size() > self._limits.event_bytes:
                self.drop()
            else:
                transport.write(chunk)

    async def _send(self, data: bytes) -> None:
        """Write to the client and wait for one that reads slowly; ConnectionResetError if it has disconnected."""
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has disconnected")
        self._written = True
        transport.write(data)
        if self.writing_paused:
            self._expect(self._limits.write_seconds, self.drop)
            await StreamWriter(self, asyncio.get_running_loop()).drain()
            self._timer.cancel()

    async def _is_gone(self, seconds: float) -> bool:
        """Wait until the client disconnects or the server stops, at most `seconds`; returns whether that happened."""
        self._lasts = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._left.wait(), seconds)
        self._lasts = False
        return self._left.is_set()

    def _go_on(self) -> None:
        """Read the next request, which may have arrived already."""
        if self._deaf:
            return
        if self._message is not None and self._message.upgrade:
            self._http.set_upgraded(True)  # or what follows would be dropped, unless websocket was offered
        self._message = self._body = self._task = None
        self._written = False
        self._head = b""
        self._expect(min(self._limits.head_seconds, self._limits.idle_seconds), self._silent)
        self._http.message_consumed()
        self._parse(b"")  # what the parser has kept
        self._read()
        if self._task is not None or self._deaf:
            return
        if self._client_ended:
            self._close()
        elif self._held:
            self._let_go()

    def _silent(self) -> None:
        """Close if a head began in the packet of the last request: only the parser knows.

        Told that the connection has ended, it returns None between two requests; within a head it returns or raises
        something. Then the time for a head is over; between two requests the longer time of an idle connection is not.
        """
        with suppress(HttpProcessingError):
            if self._http.feed_eof() is None:
                self._expect(max(self._limits.idle_seconds - self._limits.head_seconds, 0), self._close)
                return
        self._close()

    # The end of the connection

    def _stop_reading(self) -> None:
        """Ignore further bytes, but keep reading them: only so is it seen that the client leaves."""
        self._deaf = True
        self._behind.clear()
        self._let_go()

    def _let_go(self) -> None:
        if self._held and self.transport is not None:
            self._held = False
            self.transport.resume_reading()

    def _refuse(self, response: Response) -> None:
        """Send an answer that ends the connection."""
        if self._message is not None:  # its head was read, so its bank is known and adds what it adds to each answer
            request = self._request(self._message, b"")
            if response.status == 431:  # the request log must not store them either
                request.headers = [pair for pair in request.headers if pair[0].lower() == "x-request-id"]
            self._handler.application.refused(request, response)
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(wire.complete(response, self._message, last=True))
        self._end()

    def _end(self) -> None:
        """Close behind the last answer: the sending side at once, the receiving side when the client closes.

        Closing a socket to which the client still sends, be it an empty line, would reset the connection, and the rest
        of the answer might never arrive.
        """
        self._stop_reading()
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        self._ended = not self._client_ended and transport.can_write_eof()  # TLS waits for the client by itself
        with suppress(OSError):  # the client has reset the connection, which nobody has heard of yet
            if self._ended:
                transport.write_eof()
                self._linger()
                return
        self._close()

    def _linger(self) -> None:
        limits = self._limits
        self._expect(limits.last_linger_seconds if self._all.ending else limits.linger_seconds, self._close)

    @property
    def unanswered(self) -> bool:
        """Whether a request waits for its answer, not only the client for the rest of it, or for the end of a delay."""
        return self._message is not None and not (self._written or self._lasts or self._deaf)

    def finish(self) -> None:
        """Close, now or after the current answer; do not wait for a client that gave up (see eof_received)."""
        if self._ended:
            self._linger()
        elif self._message is None:
            self._close()
        elif self._client_ended and self._lasts:
            self.drop()

    def _close(self) -> None:
        """Close when the client has read what was sent, and abort if it does not."""
        self._deaf = True
        if self.transport is not None:
            self._expect(self._limits.write_seconds, self.drop)
            self.transport.close()

    def drop(self) -> None:
        """Close now, even if data remains to be written."""
        self._deaf = True
        if self.transport is not None:
            self.transport.abort()

    def _expect(self, seconds: float, late: Callable[[], None]) -> None:
        """Call `late` in `seconds`, unless something else is expected by then."""
        self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, late)


@dataclass(eq=False)
class Connections:
    """The open connections of a server."""

    handler: Handler
    limits: wire.Limits
    open: set[Connection] = field(default_factory=set)
    ending: bool = False

    async def end(self, leave: Callable[[], Awaitable[None]]) -> None:
        """Accept no new requests, answer those in progress within the time limit, close every connection.

        `leave` is called once all of these have answers, which clients may still be reading.
        """
        self.ending = True
        for connection in tuple(self.open):
            connection.finish()
        until = monotonic() + self.limits.drain_seconds
        while any(connection.unanswered for connection in self.open) and monotonic() < until:
            await asyncio.sleep(_LOOK)
        leaving = asyncio.ensure_future(leave())
        while self.open and monotonic() < until:
            await asyncio.sleep(_LOOK)
        for connection in tuple(self.open):
            connection.drop()
        await leaving
