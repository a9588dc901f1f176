"""From a parsed head to an answer: the only place where the web room calls the core."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from aiohttp.hdrs import ACCEPT_ENCODING, HOST
from aiohttp.http import RawRequestMessage
from aiohttp.streams import StreamReader

from emulator.api.messages import AT_ONCE, Request, Response, Stream
from emulator.store import Store, StoreUnwritable
from emulator.web import wire
from emulator.web.answers import Answer, EventStream, Hangup, Refusal, Sent, block
from emulator.web.application import Application
from emulator.web.due_timer import Watchers
from emulator.web.encoding import encoded
from emulator.web.exchange import Exchange, Refused
from emulator.web.limits import MAX_BODY_BYTES
from emulator.web.refusals import unkept
from emulator.web.turns import Turns, Write
from emulator.web.upkeep import Upkeep

if TYPE_CHECKING:
    from emulator.web.connection import Connection


Unsynced = tuple[Store, int]
"""Documents, and the number of the change whose fsync is awaited: that of the answer, or one that it may tell of."""

Acted = tuple[Response | Stream, Unsynced | None, Write | None]
"""What the core answered, the change where its fsync is awaited, the write where that of the turn is."""

SMALL_BODY = 65536  # below that aiohttp has not stopped reading for it


class Handler:
    """Called by aiohttp with each exchange, and before it with what may be answered at once.

    Never raises for what a client sends.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self.upkeep = Upkeep()
        store = application.store
        grouped = store is not None and store.groups
        self.turns = Turns(application, store if grouped else None, self.upkeep)
        self._single = None if grouped else store  # the default bank's, where each change is written by itself
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
        answer, unsynced = self._act(_request(connection, message, _whole(payload, size)))
        if unsynced is not None or isinstance(answer, Stream) or answer.delivery is not AT_ONCE:
            connection.acted = answer, unsynced, self.turns.write()
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
            acted = *self._act(_request(connection, exchange.message, body)), self.turns.write()
        answer, unsynced, write = acted
        if write is not None and (failed := await asyncio.shield(write)) is not None:
            answer = unkept(failed, answer)
        elif unsynced is not None:
            answer = await self._synced(*unsynced, answer)
        if isinstance(answer, Stream):
            return EventStream(exchange, answer, self.watchers)
        return await self._deliver(exchange, answer)

    def _refused(self, exchange: Exchange, response: Response) -> Refusal:
        request = _request(exchange.connection, exchange.message, b"")
        if response.status == 431:  # what is too large to be read is not kept either
            request.headers = [pair for pair in request.headers if pair[0].lower() == "x-request-id"]
        self._application.refused(request, response)
        return Refusal(exchange, response)

    def _act(self, request: Request) -> tuple[Response | Stream, Unsynced | None]:
        if request.target.startswith("/v1/"):
            answer, store = self.turns.handle(request), self._single
        else:
            # what resets, saves or leaves a bank finds everything written down
            self.turns.end()
            answer = self._application.handle(request)
            store = self._application.store_for(request)
        if self.watchers.open:
            self.watchers.look_again()
        if store is None:
            return answer, None
        if store.sync_needed:
            return answer, (store, store.sequence)
        self.upkeep.look_after(store)
        return answer, None

    async def _synced(self, store: Store, change: int, answer: Response | Stream) -> Response | Stream:
        """`answer` once what it tells is safe, or 503: with a failed fsync the change was undone."""
        try:
            await self.upkeep.synced(store, change)
        except StoreUnwritable as error:
            self._application.undone(store)
            return unkept(error, answer)
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
