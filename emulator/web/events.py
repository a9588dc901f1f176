"""Event streams, and a timer that applies due changes while a stream is open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from aiohttp.http import RawRequestMessage

from emulator.api.messages import Stream
from emulator.web.application import Application, Leaving
from emulator.web.connection import Connection
from emulator.web.wire import CLOSE, head

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
    """The open event streams, and one timer for the whole application while any is open."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self.open: set[Leaving] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._applying: asyncio.Future[None] | None = None
        self._pause = _SHORTEST

    def add(self, stream: Leaving, /) -> None:
        """Add a new stream."""
        self.open.add(stream)
        self.set_timer()

    def discard(self, stream: Leaving, /) -> None:
        """Remove a stream that has ended."""
        self.open.discard(stream)
        if not self.open:
            self._cancel_timer()

    def set_timer(self) -> None:
        """Set the timer again: a request may have changed what falls due next."""
        self._cancel_timer()
        seconds = self._application.next_due()
        if seconds is not None:
            seconds = min(max(seconds, self._pause), _LONGEST)
            self._timer = asyncio.get_running_loop().call_later(seconds, self.ring)

    def end(self) -> None:
        """End all streams, when the server stops."""
        for stream in tuple(self.open):
            stream.leave()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def ring(self) -> None:
        """Apply due changes and set the timer again."""
        self._timer = None
        if self._applying is not None:  # the timer is set again when that ends
            return
        applying: Awaitable[None] | None = None
        try:
            applying = self._application.apply_due()
        finally:
            if applying is None:
                self._after_applying()
        if applying is not None:
            self._applying = asyncio.ensure_future(applying)
            self._applying.add_done_callback(self._finish_applying)

    def _finish_applying(self, applying: asyncio.Future[None]) -> None:
        self._applying = None
        self._after_applying()
        if not applying.cancelled():
            applying.result()  # raises a failure, which the event loop reports

    def _after_applying(self) -> None:
        all_applied = self._application.next_due() != 0
        self._pause = _SHORTEST if all_applied else min(self._pause * _SLOWER, _SLOWEST)
        if self.open:
            self.set_timer()
