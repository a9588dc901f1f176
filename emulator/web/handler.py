"""Handles parsed requests in turns; the only module of the HTTP server that calls the core.

The core is synchronous and does no I/O: a request runs whole, and only one runs at a time. A request is in one of these
places, and moves as the loop calls:

    place           what it waits for                           left by
    `_waiting`      the next turn                               `_next_turn`: up to LONGEST of them, in order of arrival
    (in a turn)     its handler, then the end of the turn       `_handle`; `_deliver` once the changes are stored
    `_unfinished`   the next step of its long work              `_next_turn`: one step, alternating with waiting ones
    `_awaiting`     a thread that prepares its next step        `_await`, which brings it back to `_deliver`

No answer leaves before the changes of its turn are stored: with the end of the turn, or, where an fsync or a commit
follows, when that is awaited (`_deliver_later`); the next turn may be computed meanwhile.

    failure                             consequence
    a handler raises                    that request alone gets the error (500); the others of the turn go on
    the turn cannot be stored           the application undoes the changes and has made 503 of its answers
    the end of the turn itself raises   all requests of the turn get the error: none may wait for ever
    a client goes away                  its answer is dropped; its changes stay, as they are stored; long work ends
    the server stops                    waiting requests are answered, long work is abandoned with 503
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Sequence
from contextlib import suppress

from aiohttp.hdrs import HOST
from aiohttp.http import RawRequestMessage

from emulator.api.messages import AT_ONCE, Answered, Request, Response, Stream, Unfinished
from emulator.web.application import Application, Turn
from emulator.web.connection import Connection
from emulator.web.events import Watchers, send_events
from emulator.web.wire import abandoned, accept_encoding, blocks, complete, encoded, fields, origin_form

LONGEST = 64  # requests in a turn; if a thousand arrive together, the first must not wait for the last

Waiting = tuple[Request, "asyncio.Future[Response | Stream]"]


class Handler:
    """Answers the complete requests of all connections."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self.watchers = Watchers(application)
        self._turns = RequestQueue(application, self.watchers)
        self._answering = application.around(self._turns.answer, self.watchers)

    async def __call__(self, connection: Connection, message: RawRequestMessage, body: bytes) -> bool:
        """Answer a complete request; returns whether another may follow on the connection.

        This is where a request leaves the wire: `message` has method, `path` (the target as sent) and `raw_headers`,
        `connection.peer` is the client's address. Nothing of the bank has been asked before.
        """
        answer = await self._answering(_request(connection, message, body))
        if isinstance(answer, Stream):
            await send_events(connection, message, answer, self.watchers)
            return False
        delivery = answer.delivery
        if delivery is not AT_ONCE and (
            (delivery.delay > 0 and await connection.gone(delivery.delay)) or delivery.disconnect is not None
        ):
            connection.drop()
            return False
        last = message.should_close or connection.last
        if answer.parts is None:
            connection.send(complete(encoded(answer, accept_encoding(message)), message, last=last))
            await connection.drain()
        else:
            async for block in blocks(answer, answer.parts, message, last=last):
                connection.send(block)
                await connection.drain()
                await asyncio.sleep(0)  # for other requests
        return not last

    def refused(self, connection: Connection, message: RawRequestMessage, response: Response) -> None:
        """Add to `response`, which refuses a request after its head was read, the headers that its bank adds."""
        request = _request(connection, message, b"")
        if response.status == 431:  # the request log must not store them either
            request.headers = [pair for pair in request.headers if pair[0].lower() == "x-request-id"]
        self._application.refused(request, response)

    def stop(self) -> None:
        """End event streams and long operations, when the server stops."""
        self.watchers.end()
        self._turns.stop()


def _request(connection: Connection, message: RawRequestMessage, body: bytes) -> Request:
    target = message.path or ""  # a CONNECT without target has None
    if not target.startswith("/"):
        target = origin_form(message) or "/"
    base = connection.base.of(message.headers.get(HOST))
    return Request(message.method, target, fields(message), body, base, peer=connection.peer)


class RequestQueue:
    """Handles requests in turns: up to LONGEST in order of arrival, one write for all their changes, then the answers.

    That costs a fraction of one write per request. After a turn of several requests the next begins one round of the
    loop later, so that clients who send again at once are in it. Requests see the changes of earlier ones in the same
    turn, so every answer waits for the end of the turn. A long operation continues one step at a time, in turns of its
    own between the others.
    """

    def __init__(self, application: Application, watchers: Watchers) -> None:
        self._application = application
        self._watchers = watchers
        self._waiting: deque[Waiting] = deque()
        self._unfinished: deque[Waiting] = deque()  # in turn
        self._awaiting: dict[asyncio.Future[Response | Stream], Request] = {}  # whose next step waits for a thread
        self._stepped = False  # the last turn was a step of an unfinished request
        self._crowded = False  # the last turn had several requests
        self._stopped = False
        self._scheduled = False  # a turn is scheduled
        self._delivering: set[asyncio.Task[None]] = set()

    def answer(self, request: Request) -> asyncio.Future[Response | Stream]:
        """The core's answer, after all changes it reports are stored; or the exception that the core raised."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Response | Stream] = loop.create_future()
        self._waiting.append((request, answer))
        self._schedule()
        return answer

    def _next_turn(self) -> None:
        """Take the waiting requests, or one step of long work: by turns where there are both."""
        waiting, unfinished = self._waiting, self._unfinished
        self._stepped = bool(unfinished) and not (waiting and self._stepped)
        if self._stepped:
            batch = [unfinished.popleft()]
        else:
            batch = [waiting.popleft() for _ in range(min(len(waiting), LONGEST))]
        self._crowded = len(batch) > 1
        if not batch:  # the server stops
            self._scheduled = False
            return
        turn = self._application.turn()
        self._handle(turn, batch)
        self._scheduled = False
        if waiting or unfinished:
            self._schedule()

    def _handle(self, turn: Turn, batch: Sequence[Waiting]) -> None:
        answers: list[Answered | Exception] = []
        for request, _ in batch:
            try:
                answers.append(turn.handle(request))
            except Exception as error:
                answers.append(error)
        try:
            ended = turn.end()
        except Exception as error:  # of any kind: no request may wait forever
            ended, answers = None, [error] * len(batch)
        if ended is None or isinstance(ended, Exception):
            self._deliver(batch, answers)
        else:
            delivering = asyncio.ensure_future(self._deliver_later(ended, batch, answers))
            self._delivering.add(delivering)
            delivering.add_done_callback(self._delivering.discard)
        if self._watchers.open:
            self._watchers.look_again()

    async def _deliver_later(
        self,
        ended: Awaitable[Exception | None],
        batch: Sequence[Waiting],
        answers: Sequence[Answered | Exception],
    ) -> None:
        try:
            await ended
        except Exception as error:
            answers = [error] * len(batch)
        self._deliver(batch, answers)

    def _deliver(self, batch: Sequence[Waiting], answers: Sequence[Answered | Exception]) -> None:
        for (request, waiter), answer in zip(batch, answers, strict=True):
            if isinstance(answer, Unfinished):
                request.unfinished = answer
                if not (waiter.done() or self._stopped):
                    if answer.awaits is not None and not answer.awaits.done():
                        self._await(request, waiter, answer)
                    else:
                        self._unfinished.append((request, waiter))
                        self._schedule()
                    continue
            if request.unfinished is not None:
                request.unfinished.abandon()
            if waiter.done():  # its task was cancelled
                continue
            if isinstance(answer, Unfinished):
                waiter.set_result(abandoned(request))
            elif isinstance(answer, Exception):
                waiter.set_exception(answer)
            else:
                waiter.set_result(answer)

    def _await(self, request: Request, waiter: asyncio.Future[Response | Stream], unfinished: Unfinished) -> None:
        """Continue a request once a thread has done what its next step waits for."""
        loop = asyncio.get_running_loop()
        self._awaiting[waiter] = request

        def resume() -> None:
            if self._awaiting.pop(waiter, None) is not None:
                self._deliver([(request, waiter)], [unfinished])

        def done(_: object) -> None:
            with suppress(RuntimeError):  # the loop of a process that ends is closed
                loop.call_soon_threadsafe(resume)

        if unfinished.awaits is not None:
            unfinished.awaits.add_done_callback(done)

    def stop(self) -> None:
        """Abandon unfinished requests with 503."""
        self._stopped = True
        unfinished = [*self._unfinished, *((request, waiter) for waiter, request in self._awaiting.items())]
        self._unfinished.clear()
        self._awaiting.clear()
        self._deliver(unfinished, [abandoned(request) for request, _ in unfinished])

    def _schedule(self) -> None:
        """Schedule a turn unless one is scheduled already."""
        if not self._scheduled:
            self._scheduled = True
            loop = asyncio.get_running_loop()
            if self._crowded:  # the clients of the last turn may be sending again: the loop polls once more
                loop.call_soon(loop.call_soon, self._next_turn)
            else:
                loop.call_soon(self._next_turn)
