"""Event streams, and a task that applies due changes while a stream is open."""

from __future__ import annotations

import asyncio
import logging

from aiohttp.http import RawRequestMessage

from emulator.api.messages import Stream
from emulator.web.application import Application, Leaving
from emulator.web.connection import Connection
from emulator.web.wire import CLOSE, head

logger = logging.getLogger(__name__)

_COMMENT = b": still here\n\n"
_SHORTEST = 0.005  # a due time in the past must not become a busy loop
_LONGEST = 3600.0
_SLOWER = 4.0  # factor for the pause after an attempt that could not apply everything: the disk may be full
_SLOWEST = 60.0


async def send_events(connection: Connection, message: RawRequestMessage, stream: Stream, watchers: Watchers) -> None:
    """Send events as they are pushed, until the client disconnects or stops reading, or the stream ends."""
    connection.send(head(stream, [CLOSE]))
    if message.method == "HEAD":
        return

    def push(chunk: bytes | None) -> None:
        transport = connection.transport
        if chunk is None:
            connection.leave()
        elif transport is None or transport.is_closing():
            return
        elif transport.get_write_buffer_size() > connection.limits.event_bytes:
            connection.drop()
        else:
            transport.write(chunk)

    connection.stop_reading()
    unsubscribe = stream.subscribe(push)
    watchers.add(connection)
    try:
        while not await connection.gone(connection.limits.comment_seconds):
            push(_COMMENT)
    finally:
        unsubscribe()
        watchers.discard(connection)


class Watchers:
    """The open event streams. While there are any, a task applies what falls due without a request."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self.open: set[Leaving] = set()
        self._changed = asyncio.Event()
        self._waking: asyncio.Task[None] | None = None

    def add(self, stream: Leaving, /) -> None:
        """Add a new stream."""
        self.open.add(stream)
        self.look_again()

    def discard(self, stream: Leaving, /) -> None:
        """Remove a stream that has ended."""
        self.open.discard(stream)
        self.look_again()

    def look_again(self) -> None:
        """Find anew what falls due next, which a request may have changed."""
        self._changed.set()
        if self.open and self._waking is None:
            self._waking = asyncio.get_running_loop().create_task(self._wake())

    def end(self) -> None:
        """End all streams, when the server stops."""
        for stream in tuple(self.open):
            stream.leave()

    async def _wake(self) -> None:
        """Wait for what falls due next and apply it, until no stream is open."""
        try:
            pause = _SHORTEST
            while self.open:
                self._changed.clear()
                seconds = self._application.next_due()
                try:
                    async with asyncio.timeout(None if seconds is None else min(max(seconds, pause), _LONGEST)):
                        await self._changed.wait()
                    continue
                except TimeoutError:
                    pass
                try:
                    applying = self._application.apply_due()
                    if applying is not None:
                        await applying
                except Exception:
                    logger.exception("what has fallen due could not be applied")
                pause = min(pause * _SLOWER, _SLOWEST) if self._application.next_due() == 0 else _SHORTEST
        finally:
            self._waking = None
