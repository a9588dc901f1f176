"""From a parsed head to an answer: the only place where the web room calls the core."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from aiohttp.hdrs import ACCEPT_ENCODING, HOST
from aiohttp.http import RawRequestMessage
from aiohttp.streams import StreamReader

from emulator.api.messages import AT_ONCE, Request, Response, Stream
from emulator.web import wire
from emulator.web.answers import Answer, EventStream, Hangup, Refusal, Sent, block
from emulator.web.application import Application
from emulator.web.due_timer import Watchers
from emulator.web.encoding import encoded
from emulator.web.exchange import Exchange, Refused
from emulator.web.limits import MAX_BODY_BYTES
from emulator.web.turns import Ended, Turns

if TYPE_CHECKING:
    from emulator.web.connection import Connection


Acted = tuple[Response | Stream, Ended]
"""What the core answered, and the end of its turn, which the answer must await."""

SMALL_BODY = 65536  # below that aiohttp has not stopped reading for it


class Handler:
    """Called by aiohttp with each exchange, and before it with what may be answered at once.

    Never raises for what a client sends.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self.turns = Turns(application)
        self.watchers = Watchers(application)

    def at_once(self, connection: Connection, message: RawRequestMessage, payload: StreamReader) -> bool:
        """Answer a whole request, with the end of this turn, unless something has to be awaited for it.

        False: aiohttp has to call for it. Where the core has acted by then, `connection.acted` says so.
        """
        size = payload.total_bytes
        if size > MAX_BODY_BYTES:
            return False
        received = connection.received
        if not wire.usual(message, received, size) and wire.refusal(message, received) is not None:
            return False
        answer = self._act(_request(connection, message, _whole(payload, size)))
        if self.turns.waits or isinstance(answer, Stream) or answer.delivery is not AT_ONCE:
            connection.acted = answer, self.turns.ended()
            return False
        coding = message.headers.get(ACCEPT_ENCODING)
        sent = answer if coding is None else encoded(answer, coding)
        close = message.should_close
        self.turns.answer(connection, message, answer, block(message, sent, close), close)
        return True

    async def __call__(self, exchange: Exchange) -> Sent:
        connection = exchange.connection
        acted, connection.acted = connection.acted, None
        if isinstance(acted, Exception):
            raise acted
        if acted is None:
            refusal = wire.refusal(exchange.message, connection.received)
            if refusal is not None:
                return self._refused(exchange, refusal)
            try:
                body = await exchange.body()
            except Refused as refused:
                return self._refused(exchange, refused.response)
            except ConnectionError:
                return Hangup(exchange)
            acted = self._act(_request(connection, exchange.message, body)), self.turns.ended()
        answer, ended = acted
        await asyncio.shield(ended)
        if isinstance(answer, Stream):
            return EventStream(exchange, answer, self.watchers)
        return await self._deliver(exchange, answer)

    def _refused(self, exchange: Exchange, response: Response) -> Refusal:
        request = _request(exchange.connection, exchange.message, b"")
        if response.status == 431:  # what is too large to be read is not kept either
            request.headers = [pair for pair in request.headers if pair[0].lower() == "x-request-id"]
        self._application.refused(request, response)
        return Refusal(exchange, response)

    def _act(self, request: Request) -> Response | Stream:
        answer = self.turns.handle(request)
        if self.watchers.open:
            self.watchers.look_again()
        return answer

    async def _deliver(self, exchange: Exchange, response: Response) -> Sent:
        delivery = response.delivery
        if delivery is not AT_ONCE:
            if delivery.delay > 0 and await exchange.gone(delivery.delay):
                return Hangup(exchange)
            if delivery.disconnect is not None:
                return Hangup(exchange)
        return Answer(exchange, encoded(response, exchange.message.headers.get(ACCEPT_ENCODING)))


def _whole(payload: StreamReader, size: int) -> bytes:
    """The body that has come whole. One that is small and in one piece is taken as it lies there, which costs less."""
    if size == 0:
        return b""
    pieces: deque[bytes] = payload._buffer
    return pieces[0] if len(pieces) == 1 and size <= SMALL_BODY else payload.read_nowait(-1)


def _request(connection: Connection, message: RawRequestMessage, body: bytes) -> Request:
    target = message.path
    if not target.startswith("/"):
        target = wire.origin_form(message) or "/"
    base = connection.base.of(message.headers.get(HOST))
    return Request(message.method, target, wire.fields(message), body, base)
