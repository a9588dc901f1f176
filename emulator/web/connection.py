"""One connection: aiohttp's protocol with our answers to its parser's errors, and limits on slow and gone clients."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast

from aiohttp.http import HttpProcessingError, RawRequestMessage
from aiohttp.http_parser import HttpRequestParser
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import RequestHandler, RequestPayloadError
from aiohttp.web_response import StreamResponse

from emulator.web.answers import CLOSE, Refusal, head
from emulator.web.exchange import BadBody, Exchange
from emulator.web.handler import Acted
from emulator.web.limits import MAX_HEAD_BYTES, MAX_WAITING_BYTES, PARSING, READ_BYTES
from emulator.web.refusals import head_without_end, parser_refusal, reason, wire_refusal
from emulator.web.shortcut import END, Shortcut, behind, pieces, several

if TYPE_CHECKING:
    from emulator.web.listener import Listener

logger = logging.getLogger(__name__)


class Connection(RequestHandler):
    """A client's connection, one request after the other.

    `received` counts the bytes up to and with the request that the parser gave out last, `exchange` is the one being
    answered, `acted` what the core has answered to the next one already.
    """

    __slots__ = (
        "_body_bytes",
        "_ended",
        "_head_timer",
        "_last_payload",
        "_listener",
        "_partial",
        "_refused",
        "_shortcut",
        "_socket",
        "_stuck",
        "_unanswered",
        "_waits",
        "acted",
        "base",
        "exchange",
        "limits",
        "received",
    )

    def __init__(self, listener: Listener, loop: asyncio.AbstractEventLoop) -> None:
        self.limits = listener.limits
        self.base = listener.base
        self.exchange: Exchange | None = None
        self.acted: Acted | Exception | None = None
        self.received = 0
        self._listener = listener
        self._socket: asyncio.Transport | None = None
        self._head_timer: asyncio.TimerHandle | None = None
        self._last_payload = EMPTY_PAYLOAD
        self._body_bytes = 0  # what the body that still comes had at the last look
        self._partial = bytearray()  # since the parser gave out anything: of a head, of trailers, of a chunk's frame
        self._unanswered = 0  # requests that the parser gave out and that are not answered
        self._refused = False  # what still comes is not read as requests
        self._ended = False  # the client will send no more, but reads
        self._stuck = False
        self._waits = False  # something that came waits for its turn
        super().__init__(
            listener,
            loop=loop,
            keepalive_timeout=self.limits.idle_seconds,
            access_log=cast(Any, None),
            lingering_time=self.limits.linger_seconds,
            read_bufsize=READ_BYTES,
            **PARSING,
        )
        self._shortcut = Shortcut(self._parser, self._partial, self._new_parser)
        self._parser = cast(Any, self._shortcut)

    def _new_parser(self) -> HttpRequestParser:
        return HttpRequestParser(self, self._loop, READ_BYTES, payload_exception=RequestPayloadError, **PARSING)

    @property
    def last(self) -> bool:
        """Whether no request follows the one being answered."""
        return self._close or (self._ended and not self._messages)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._socket = self.transport
        self._listener.open.add(self)
        if self._listener.ending:
            self.drop()
        else:
            self._await_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._waits:  # what came whole acts, though nobody will see the answer
            self._listener.handler.turns.take_waiting()
        self._listener.open.discard(self)
        self._forget_timer()
        super().connection_lost(exc)
        if self.exchange is not None:
            self.exchange.leave(exc or ConnectionResetError("the client has gone"))
            self.exchange = None

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        turns = self._listener.handler.turns
        # What waits must stay in order and bounded: of each connection one piece of a request's usual size.
        if self._waits or len(data) > MAX_WAITING_BYTES:
            turns.take_waiting()
        if len(data) > MAX_WAITING_BYTES:
            self.take(data)
        else:
            self._waits = True
            turns.arrived(self, data)

    def take(self, data: bytes) -> None:
        """Answer the requests that these bytes end, as far as that can be done at once; called in the client's turn."""
        self._waits = False
        if self._refused:
            return
        if self._close or self._force_close:
            self._take_rest(data)
            return
        if (self._unanswered or self._partial) and several(bytes(self._partial[-3:]) + data):
            self._take_in_pieces(data)
            return
        self.received = len(self._partial) + len(data)
        rest = None if self._unanswered else self._shortcut.answered(data, self._at_once)
        if rest is not None:
            if self._partial:
                self._partial.clear()
            if self._head_timer is not None:
                self._forget_timer()
            if rest:
                self._begun(data[-rest:])
            # now and not when the answers leave, which could find the connection closed for idleness
            self._next_keepalive_close_time = self._loop.time() + self.limits.idle_seconds
            if self._keepalive_handle is None:  # some versions of aiohttp begin to wait only after their first answer
                self._keepalive = True
                self._keepalive_handle = self._loop.call_at(self._next_keepalive_close_time, self._process_keepalive)
            return
        if self._shortcut.lost and self._last_payload.is_eof():
            self._shortcut.begin_anew()
            self._take_in_pieces(data)
            return
        count = self._request_count
        super().data_received(data)
        new = self._request_count - count
        if new:
            self._took(new, data)
        else:
            self._took_part(data)

    def _take_in_pieces(self, data: bytes) -> None:
        """Take one head after the other: aiohttp's parser gives out nothing of a piece in which it refuses one."""
        begun = bytes(self._partial[-3:])  # which may have cut the end of a head in two
        first, *others = pieces(begun + data)
        for piece in (first[len(begun) :], *others):
            self.take(piece)

    def _take_rest(self, data: bytes) -> None:
        """On a connection that ends with the request it is at: what still belongs to that one's body.

        aiohttp takes nothing any more, and would wait in vain for the rest.
        """
        if not self._last_payload.is_eof():
            try:
                self._shortcut.feed_data(data)
            except HttpProcessingError as error:
                self._break_body(reason(error.message))

    def _at_once(self, message: RawRequestMessage, payload: StreamReader) -> bool:
        """Answer a whole request within this call, where nothing waits and nothing has to be awaited."""
        if self._paused or self._force_close:
            return False
        try:
            return self._listener.handler.at_once(self, message, payload)
        except Exception as error:
            self.acted = error  # raised again where aiohttp asks for the answer, so that one place deals with it
            return False

    def resume_reading(self, resume_parser: bool = True) -> None:
        # aiohttp calls this for every body that was read, paused or not
        if self._reading_paused:
            super().resume_reading(resume_parser)

    def _took(self, new: int, data: bytes) -> None:
        self._forget_timer()
        self._unanswered += new
        self._partial.clear()
        message, payload = self._messages[-1]
        if isinstance(message, RawRequestMessage):
            self._last_payload = EMPTY_PAYLOAD if payload.is_eof() else payload
            self._body_bytes = payload.total_bytes
            if payload.is_eof() and (begun := behind(data, payload)):
                self._begun(data[-begun:])
            return
        # The parser has given up. A request whose body it was reading would wait for the rest in vain.
        self._refused = True
        if not self._last_payload.is_eof():
            self._break_body(reason(message.message))

    def _begun(self, data: bytes) -> None:
        """Take note of what stands behind a whole request."""
        self._last_payload = EMPTY_PAYLOAD
        self._partial.clear()
        self._took_part(data)

    def _took_part(self, data: bytes) -> None:
        """Take note of bytes that completed no request."""
        body = self._last_payload
        if body is EMPTY_PAYLOAD:
            self._partial += data
            if len(self._partial) > MAX_HEAD_BYTES:
                self._refuse_head()
            elif self._partial and self._head_timer is None:
                self._await_head()
        elif body.is_eof():
            in_chunks = (self._partial[-3:] + data).endswith(END)  # nothing stands behind these, see `pieces`
            self._begun(b"" if in_chunks else data[body.total_bytes - self._body_bytes :])
        elif body.total_bytes > self._body_bytes:
            self._body_bytes = body.total_bytes
            self._partial.clear()
        else:
            self._partial += data
            if len(self._partial) > MAX_HEAD_BYTES:
                self._refused = True
                self._break_body(f"what stands around it is over {MAX_HEAD_BYTES} bytes")

    def _break_body(self, why: str) -> None:
        self._last_payload.set_exception(BadBody(f"The body cannot be read: {why}."))
        self._last_payload.feed_eof()  # else aiohttp would try to read on

    def _refuse_head(self) -> None:
        self._refused = True
        self._forget_timer()
        if self._unanswered:
            self._ended = True  # the answers that are owed come first, and the last of them closes
            return
        self._listener.handler.turns.end()
        response = head_without_end(self._partial)
        if self.transport is not None:
            self.transport.write(head(response, [f"Content-Length: {len(response.body)}", CLOSE]) + response.body)
        self._loop.call_later(self.limits.linger_seconds, self.force_close)

    def _await_head(self) -> None:
        self._head_timer = self._loop.call_later(self.limits.head_seconds, self._head_too_slow)

    def _head_too_slow(self) -> None:
        if self._unanswered or self._waits:
            self._await_head()
        else:
            self._head_timer = None
            self.force_close()

    def _process_keepalive(self) -> None:
        if self._waits:
            self._listener.handler.turns.take_waiting()
        super()._process_keepalive()

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def eof_received(self) -> Any:  # aiohttp narrows asyncio's `bool | None` to None
        """Keep the way to the client open while whole requests of it wait for their answers."""
        self._listener.handler.turns.catch_up()  # over TLS the connection may end right behind the request
        if self._refused or not self._unanswered or not self._last_payload.is_eof() or self.ssl_context is not None:
            return None
        self._ended = True
        return True

    async def finish_response(
        self, request: Any, resp: StreamResponse, start_time: float | None
    ) -> tuple[StreamResponse, bool]:
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self._unanswered -= 1

    def handle_error(
        self, request: Any, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> StreamResponse:
        """The answer to what the parser refused, or to a fault of ours; aiohttp's own is plain text."""
        if isinstance(exc, HttpProcessingError):
            return cast(StreamResponse, Refusal(request, parser_refusal(exc, message or "")))
        logger.error("a request could not be answered", exc_info=exc)
        return cast(StreamResponse, Refusal(request, wire_refusal(max(status, 500), "The bank could not answer.")))

    def stop_reading_requests(self) -> None:
        """Take what still comes without looking at it."""
        self._refused = True

    def give_up_waiting(self) -> None:
        """Drop a client that sends no more while a delay lasts: most likely it gave up, and would hold up the end."""
        if self._ended and self.exchange is not None and self.exchange.waits:
            self.drop()

    def drop(self) -> None:
        """Close at once, whatever waits to be written."""
        self.force_close()
        if self._socket is not None:
            self._socket.abort()

    def drop_if_stuck(self) -> None:
        """Abort a connection that was closing at the last call and still is."""
        if self._stuck and self._socket is not None:
            self._socket.abort()
        self._stuck = self._socket is not None and self._socket.is_closing()
