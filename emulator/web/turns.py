"""Requests take turns: some in the order in which they came, one end for all that they change, then their answers.

Together both cost a fraction of what they cost one by one: a write for each change, and for each answer a client that
is woken up (see `Turn`).

A turn is short, and between two of them the loop looks at what else has come. One turn for all that the loop finds
would be a little cheaper, but a client whose next request just misses it would wait for all of it and for all of the
next one, twice as long as the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable
from time import perf_counter
from typing import TYPE_CHECKING

from aiohttp.http import RawRequestMessage

from emulator.api.messages import Request, Response, Stream
from emulator.web.answers import block
from emulator.web.application import Application, Turn

if TYPE_CHECKING:
    from emulator.web.connection import Connection

logger = logging.getLogger(__name__)

Ended = asyncio.Future[None]
"""Done with the end of a turn: its answers are as they may leave."""

Waiting = tuple["Connection", RawRequestMessage, Response, bytes, bool]
"""An answer that leaves with the end of the turn, as it is and as it stands on the wire; whether nothing follows it."""

SECONDS = 0.002  # of a turn, after which no further bytes are taken
LONGEST = 64  # answers; of a thousand requests in one packet the first need not wait for the last


class Turns:
    """What waits for its turn, and the answers that wait for the end of the present one."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._turn: Turn | None = None
        self._answers: list[Waiting] = []
        self._ended: Ended | None = None
        self._ends: set[asyncio.Task[None]] = set()
        self._arrived: deque[tuple[Connection, bytes]] = deque()
        self._next: asyncio.Handle | None = None

    def arrived(self, connection: Connection, data: bytes) -> None:
        """Let `connection` take these bytes when those that came before have been taken."""
        self._arrived.append((connection, data))
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._take_turn)

    def take_waiting(self) -> None:
        """Take everything that has come by now."""
        while self._arrived:
            self._take_first()

    def catch_up(self) -> None:
        """Take everything that has come by now, and end the turn."""
        self.take_waiting()
        self.end()

    def _take_turn(self) -> None:
        self._next = None
        until = perf_counter() + SECONDS
        while self._arrived:
            self._take_first()
            if perf_counter() >= until:
                break
        self.end()
        if self._arrived and self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_first(self) -> None:
        connection, data = self._arrived.popleft()
        try:
            connection.take(data)
        except Exception:  # those behind it must get their turn
            logger.exception("what came on a connection could not be taken")
            connection.drop()

    @property
    def waits(self) -> bool:
        """Whether the end of the present turn may have to be awaited: then answers are not given to `answer`."""
        return self._turn is not None and self._turn.waits

    def handle(self, request: Request) -> Response | Stream:
        """The core's answer to a request, good with the end of the turn."""
        turn = self._turn
        if turn is None:
            turn = self._turn = self._application.turn()
            turn.begin((request,))
            asyncio.get_running_loop().call_soon(self.end)
        return turn.handle(request)

    def answer(
        self, connection: Connection, message: RawRequestMessage, response: Response, whole: bytes, close: bool
    ) -> None:
        """Deliver `whole`, which is `response` on the wire, at the end of the turn; with `close` nothing follows it."""
        answers = self._answers
        answers.append((connection, message, response, whole, close))
        # what follows a last request on its connection must not be looked at
        if close or len(answers) == LONGEST:
            self.end()

    def ended(self) -> Ended:
        """The end of the present turn, which an answer must await that is not given to `answer`."""
        if self._ended is None:
            self._ended = asyncio.get_running_loop().create_future()
        return self._ended

    def end(self) -> None:
        """End the present turn, if one has begun, and let its answers go."""
        turn, self._turn = self._turn, None
        if turn is None:
            return
        answers, self._answers = self._answers, []
        ended, self._ended = self._ended, None
        failed = turn.end()
        if failed is None or isinstance(failed, Exception):
            self._deliver(answers, ended, failed)
            return
        task = asyncio.get_running_loop().create_task(self._deliver_later(answers, ended, failed))
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)

    async def _deliver_later(
        self, answers: list[Waiting], ended: Ended | None, failed: Awaitable[Exception | None]
    ) -> None:
        self._deliver(answers, ended, await failed)

    def _deliver(self, answers: list[Waiting], ended: Ended | None, failed: Exception | None) -> None:
        for connection, message, response, whole, close in answers:
            if failed is not None:
                whole = block(message, response, close)
            transport = connection.transport
            if transport is not None:  # else the client has gone
                transport.write(whole)
                if close:
                    connection.force_close()
        if ended is not None:
            ended.set_result(None)
