"""Requests take turns: some in the order in which they came, one write for all that they change, then their answers.

Together both cost a fraction of what they cost one by one: a system call for each change, and for each answer a client
that is woken up. What is not written yet is seen by the requests that follow in the same turn, so every answer waits
for the write. When it fails, all that waited for it is taken back and answered 503, and changes are written one by
one until one succeeds.

A turn is short, and between two of them the loop looks at what else has come. One turn for all that the loop finds
would be a little cheaper, but a client whose next request just misses it would wait for all of it and for all of the
next one, twice as long as the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING

from aiohttp.http import RawRequestMessage

from emulator.api.messages import Request, Response, Stream
from emulator.store import Store, StoreUnwritable
from emulator.web.answers import block
from emulator.web.application import Application
from emulator.web.refusals import unkept
from emulator.web.upkeep import Upkeep

if TYPE_CHECKING:
    from emulator.web.connection import Connection

logger = logging.getLogger(__name__)

Write = asyncio.Future[Exception | None]
"""Done with the write: None, or why it failed."""

SECONDS = 0.002  # of a turn, after which no further bytes are taken
LONGEST = 64  # answers; of a thousand requests in one packet the first need not wait for the last


class Turns:
    """What waits for its turn, and for the end of the present one: the changes of the default bank, and answers.

    `store` holds the documents of that bank, None where nothing is gained from writing several changes at once.
    """

    def __init__(self, application: Application, store: Store | None, upkeep: Upkeep) -> None:
        self._application = application
        self._store = store
        self._upkeep = upkeep
        self._answers: list[tuple[Connection, RawRequestMessage, Response, bytes, bool]] = []
        self._write: Write | None = None
        self._one_by_one = False
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

    def handle(self, request: Request) -> Response | Stream:
        """The core's answer to a request for the default bank, its changes left to the end of the turn."""
        store = self._store
        if store is None:
            return self._application.handle(request)
        if self._one_by_one:
            before = store.sequence
            answer = self._application.handle(request)
            self._one_by_one = store.sequence == before
            return answer
        store.later = self._later
        try:
            return self._application.handle(request)
        finally:
            store.later = None

    def _later(self) -> None:
        asyncio.get_running_loop().call_soon(self.end)

    def answer(
        self, connection: Connection, message: RawRequestMessage, response: Response, whole: bytes, close: bool
    ) -> None:
        """Deliver `whole`, which is `response` on the wire, at the end of the turn; with `close` nothing follows it."""
        answers = self._answers
        if not answers:
            self._later()
        answers.append((connection, message, response, whole, close))
        # what follows a last request on its connection must not be looked at
        if close or len(answers) == LONGEST:
            self.end()

    def write(self) -> Write | None:
        """The write that an answer must await which is not given to `answer`; None where nothing waits."""
        if self._store is None or not self._store.waiting:
            return None
        if self._write is None:
            self._write = asyncio.get_running_loop().create_future()
        return self._write

    def end(self) -> None:
        """Write down what waits, let the answers go, and begin a compaction where the journal has grown for one."""
        failed: Exception | None = None
        store = self._store
        if store is not None:
            try:
                store.flush()
            except Exception as error:  # whatever it is, nobody may wait for ever
                if not isinstance(error, StoreUnwritable):
                    logger.exception("the changes of a turn could not be written")
                failed = error
                self._one_by_one = True
                self._application.undone(store)
        answers, self._answers = self._answers, []
        for connection, message, response, whole, close in answers:
            if failed is not None:
                whole = block(message, unkept(failed, response), close)
            transport = connection.transport
            if transport is not None:  # else the client has gone
                transport.write(whole)
                if close:
                    connection.force_close()
        write, self._write = self._write, None
        if write is not None:
            write.set_result(failed)
        if store is not None:
            self._upkeep.look_after(store)
