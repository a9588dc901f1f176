"""From a parsed head to an answer: the only place where the web room calls the core."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Sequence
from functools import partial

from aiohttp import web
from aiohttp.hdrs import ACCEPT_ENCODING, HOST

from emulator.api.messages import AT_ONCE, Answered, Request, Response, Stream, Unfinished
from emulator.web.answers import Answer, Hangup, PartedAnswer, Refusal, encoded
from emulator.web.application import Application, Turn
from emulator.web.connection import Connection
from emulator.web.events import EventStream, Watchers
from emulator.web.limits import MAX_BODY_BYTES
from emulator.web.refusals import Refused, fields, head_refusal, origin_form, too_large, unavailable

logger = logging.getLogger(__name__)

LONGEST = 64  # requests of a turn: of a thousand that arrive together the first must not wait for the last

Waiting = tuple[Request, "asyncio.Future[Response | Stream]"]


class Handler:
    """Called by aiohttp with each request; never raises for what a client sends."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self.watchers = Watchers(application)
        self._turns = Turns(application, self.watchers)

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, Connection)
        connection.begin()
        refusal = head_refusal(request)
        if refusal is not None:
            return self._refused(connection, request, refusal)
        try:
            content = request.content
            body = content.read_nowait(-1) if content.is_eof() else await connection.arriving(request)
            if len(body) > MAX_BODY_BYTES:
                raise Refused(too_large(MAX_BODY_BYTES))
        except Refused as refused:
            return self._refused(connection, request, refused.response)
        except ConnectionError:
            return Hangup(connection)
        answer = await self._turns.answer(_request(connection, request, body))
        if isinstance(answer, Stream):
            return EventStream(connection, request, answer, self.watchers)
        delivery = answer.delivery
        if delivery is not AT_ONCE:
            if delivery.delay > 0 and await connection.gone(delivery.delay):
                return Hangup(connection)
            if delivery.disconnect is not None:
                return Hangup(connection)
        if answer.parts is not None:
            return PartedAnswer(connection, request, answer)
        return Answer(connection, request, encoded(answer, request.headers.get(ACCEPT_ENCODING)))

    def stop(self) -> None:
        """End event streams and what takes long: the server stops."""
        self.watchers.end()
        self._turns.stop()

    def _refused(self, connection: Connection, request: web.BaseRequest, response: Response) -> Refusal:
        refused = _request(connection, request, b"")
        if response.status == 431:  # the request log does not store them either
            refused.headers = [pair for pair in refused.headers if pair[0].lower() == "x-request-id"]
        self._application.refused(refused, response)
        return Refusal(connection, request, response)


def _request(connection: Connection, request: web.BaseRequest, body: bytes) -> Request:
    target = request.raw_path
    if not target.startswith("/"):
        target = origin_form(request) or "/"
    base = connection.base.of(request.headers.get(HOST))
    return Request(request.method, target, fields(request), body, base)


class Turns:
    """Requests are handled in turns: up to LONGEST in order of arrival, one write for all changes, then the answers.

    That costs a fraction of one write per request. Requests see what earlier ones of the same turn changed, so every
    answer waits for the end of the turn. What takes long goes on a step at a time, in turns of its own between the
    others.
    """

    def __init__(self, application: Application, watchers: Watchers) -> None:
        self._application = application
        self._watchers = watchers
        self._waiting: deque[Waiting] = deque()
        self._unfinished: deque[Waiting] = deque()  # in turn
        self._stepped = False  # the last turn was a step of what is unfinished
        self._stopped = False
        self._called = False  # a turn is scheduled, or waits to begin
        self._tasks: set[asyncio.Task[None]] = set()

    def answer(self, request: Request) -> asyncio.Future[Response | Stream]:
        """The core's answer, once everything it reports is stored; or the exception that the core raised."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Response | Stream] = loop.create_future()
        self._waiting.append((request, answer))
        self._call()
        return answer

    def _take(self) -> None:
        """Begin the next turn."""
        waiting, unfinished = self._waiting, self._unfinished
        self._stepped = bool(unfinished) and not (waiting and self._stepped)
        if self._stepped:
            taken = [unfinished.popleft()]
        else:
            taken = [waiting.popleft() for _ in range(min(len(waiting), LONGEST))]
        if not taken:  # the server stops
            self._called = False
            return
        turn = self._application.turn()
        try:
            begun = turn.begin([request for request, _ in taken])
        except Exception as error:
            self._refuse(taken, error)
            self._go_on()
            return
        if begun is None:
            self._act(turn, taken)
        else:
            for one, answer in zip(taken, begun, strict=True):
                answer.add_done_callback(partial(self._deliver_begun, one))
        self._go_on()

    def _deliver_begun(self, one: Waiting, answer: asyncio.Future[Answered]) -> None:
        try:
            self._deliver([one], [answer.result()])
        except (Exception, asyncio.CancelledError) as error:
            self._refuse([one], error)
        if self._watchers.open:
            self._watchers.look_again()

    def _act(self, turn: Turn, taken: Sequence[Waiting]) -> None:
        answers: list[Answered | Exception] = []
        for request, _ in taken:
            try:
                answers.append(turn.handle(request))
            except Exception as error:
                answers.append(error)
        try:
            ended = turn.end()
        except Exception as error:  # whatever it is, no request may wait forever
            ended, answers = None, [error] * len(taken)
        if ended is None or isinstance(ended, Exception):
            self._deliver(taken, answers)
        else:
            self._spawn(self._deliver_later(ended, taken, answers))
        if self._watchers.open:
            self._watchers.look_again()

    async def _deliver_later(
        self,
        ended: Awaitable[Exception | None],
        taken: Sequence[Waiting],
        answers: Sequence[Answered | Exception],
    ) -> None:
        try:
            await ended
        except Exception as error:
            answers = [error] * len(taken)
        self._deliver(taken, answers)

    def _refuse(self, taken: Sequence[Waiting], error: BaseException) -> None:
        """Answer 503 to the requests of a turn that could not begin: nothing was changed in it."""
        logger.error("a turn could not begin: %s", error)
        self._deliver(taken, [unavailable(request) for request, _ in taken])

    def _deliver(self, taken: Sequence[Waiting], answers: Sequence[Answered | Exception]) -> None:
        for (request, waiter), answer in zip(taken, answers, strict=True):
            if isinstance(answer, Unfinished) and not (waiter.done() or self._stopped):
                request.unfinished = answer
                self._unfinished.append((request, waiter))
                self._call()
                continue
            if request.unfinished is not None:
                request.unfinished.abandon()
            if waiter.done():  # its task was cancelled
                continue
            if isinstance(answer, Unfinished):
                answer.abandon()
                waiter.set_result(unavailable(request))
            elif isinstance(answer, Exception):
                waiter.set_exception(answer)
            else:
                waiter.set_result(answer)

    def stop(self) -> None:
        """Do no more of what is unfinished: 503."""
        self._stopped = True
        unfinished, self._unfinished = list(self._unfinished), deque()
        self._deliver(unfinished, [unavailable(request) for request, _ in unfinished])

    def _call(self) -> None:
        """See that a turn begins soon."""
        if not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._take)

    def _go_on(self) -> None:
        self._called = bool(self._waiting or self._unfinished)
        if self._called:
            asyncio.get_running_loop().call_soon(self._take)

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
