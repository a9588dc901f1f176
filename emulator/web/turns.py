"""The end of a turn of the loop: one write for all that its requests have changed, then all their answers.

Together both cost a fraction of what they cost one by one: a system call for each change, and for each answer a client
that is woken up. What is not written yet is seen by the requests that follow in the same turn, so every answer waits
for the write. When it fails, all that waited for it is taken back and answered 503, and changes are written one by
one until one succeeds.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from aiohttp.http import RawRequestMessage

from emulator.api.messages import Request, Response, Stream
from emulator.store import Store, StoreUnwritable
from emulator.web.answers import block
from emulator.web.refusals import unkept
from emulator.web.site import Site
from emulator.web.upkeep import Upkeep

if TYPE_CHECKING:
    from emulator.web.connection import Connection

log = logging.getLogger(__name__)

Write = asyncio.Future[Exception | None]
"""Done with the write: None, or why it failed."""

LONGEST = 64  # answers; the first of a thousand need not wait for the last


class Turns:
    """What waits for the end of the turn: the changes of the default bank, and answers.

    `store` holds the documents of that bank, None where nothing is gained from writing several changes at once.
    """

    def __init__(self, site: Site, store: Store | None, upkeep: Upkeep) -> None:
        self._site = site
        self._store = store
        self._upkeep = upkeep
        self._answers: list[tuple[Connection, RawRequestMessage, Response, bytes, bool]] = []
        self._write: Write | None = None
        self._one_by_one = False

    def handle(self, request: Request) -> Response | Stream:
        """The core's answer to a request for the default bank, its changes left to the end of the turn."""
        store = self._store
        if store is None:
            return self._site.handle(request)
        if self._one_by_one:
            before = store.sequence
            answer = self._site.handle(request)
            self._one_by_one = store.sequence == before
            return answer
        store.later = self._later
        try:
            return self._site.handle(request)
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
                    log.exception("the changes of a turn could not be written")
                failed = error
                self._one_by_one = True
                self._site.undone(store)
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
