"""One request on one connection: its head as parsed, its body as it arrives, and whether the client is still there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11, RawRequestMessage
from aiohttp.streams import StreamReader

from emulator.api.messages import Response
from emulator.web.limits import MAX_BODY_BYTES
from emulator.web.refusals import too_large, too_slow, wire_refusal

if TYPE_CHECKING:
    from emulator.web.connection import Connection

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Refused(Exception):
    """The wire refuses this request; `response` says why."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


class BadBody(Exception):
    """The framing of a body is broken behind a good head."""


class Exchange:
    """Stands where aiohttp would build its request object: only what serving needs.

    `message` is the parsed head, `payload` the body. aiohttp calls `_cancel` when the server stops and will wait no
    longer, `_finish` when the answer is about to leave.
    """

    __slots__ = ("_answered", "_gone", "_left", "_task", "connection", "message", "payload", "writer")

    def __init__(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        connection: Connection,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> None:
        self.message = message
        self.payload = payload
        self.connection = connection
        self.writer = writer
        self._task: asyncio.Task[None] | None = task
        self._answered = False
        self._left = False
        self._gone: asyncio.Future[None] | None = None
        connection.exchange = self

    def leave(self, error: BaseException) -> None:
        """End whatever waits for the client: a body, a delay, an event stream."""
        self._left = True
        if self._answered:
            self.payload.feed_eof()  # aiohttp may be reading the rest of a body, and would log an error as a fault
        else:
            self.payload.set_exception(error)
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    def _cancel(self, error: BaseException) -> None:
        self.leave(ConnectionResetError(f"the server stops: {error!r}"))

    def _finish(self) -> None:
        self._answered = True

    @property
    def waits(self) -> bool:
        """Whether nothing is done but to wait in `gone`."""
        return self._gone is not None

    async def gone(self, seconds: float) -> bool:
        """Wait until the client has gone or the server stops, at most `seconds`; whether that came about."""
        if self._left:
            return True
        self._gone = asyncio.get_running_loop().create_future()
        await asyncio.wait((self._gone,), timeout=seconds)
        self._gone = None
        return self._left

    async def body(self) -> bytes:
        """The whole body; raises Refused when it is too large, too slow or broken, ConnectionError without client."""
        payload = self.payload
        try:
            if payload.is_eof():
                body = payload.read_nowait(-1)
            else:
                body = await self._arriving()
        except BadBody as error:
            raise Refused(wire_refusal(400, str(error))) from error
        if len(body) > MAX_BODY_BYTES:
            raise Refused(too_large(MAX_BODY_BYTES))
        return body

    async def _arriving(self) -> bytes:
        if self.message.version == HttpVersion11 and "Expect" in self.message.headers:
            self.send(_CONTINUE)
        seconds = self.connection.limits.body_seconds
        parts = []
        size = 0
        try:
            async with asyncio.timeout(seconds):
                while part := await self.payload.readany():
                    parts.append(part)
                    size += len(part)
                    if size > MAX_BODY_BYTES:
                        break
        except TimeoutError as error:
            raise Refused(too_slow(seconds)) from error
        return b"".join(parts)

    def send(self, data: bytes) -> None:
        """Write to the client; raises ConnectionResetError when it has gone."""
        transport = self.connection.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has gone")
        transport.write(data)
