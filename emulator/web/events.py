"""Event streams, and a timer that applies due changes while a stream is open (CONTRACT 13, Clock)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from aiohttp import web

from emulator.api.messages import Stream
from emulator.web.answers import CLOSE, WireResponse, head
from emulator.web.application import Application, Leaving
from emulator.web.connection import Connection

_COMMENT = b": still here\n\n"
_SHORTEST = 0.005  # a due time in the past must not become a busy loop
_LONGEST = 3600.0
_SLOWER = 4.0  # factor for the pause after an attempt that could not apply everything: the disk may be full
_SLOWEST = 60.0


class EventStream(WireResponse):
    """Server-sent events: each chunk is written when it is pushed, until the client disconnects or stops reading."""

    closes = True

    def __init__(self, connection: Connection, request: web.BaseRequest, stream: Stream, watchers: Watchers) -> None:
        super().__init__()
        self._connection = connection
        self._request = request
        self._stream = stream
        self._watchers = watchers

    async def write_eof(self, _data: bytes = b"") -> None:
        """Send events until the client disconnects or the stream ends."""
        connection = self._connection
        connection.send(head(self._stream, [CLOSE]))
        if self._request.method == "HEAD":
            return
        connection.stop_reading()
        unsubscribe = self._stream.subscribe(self._push)
        self._watchers.add(connection)
        try:
            while not await connection.gone(connection.limits.comment_seconds):
                self._push(_COMMENT)
        finally:
            unsubscribe()
            self._watchers.discard(connection)

    def _push(self, chunk: bytes | None) -> None:
        connection = self._connection
        if chunk is None:
            connection.leave()
            return
        transport = connection.transport
        if transport is None or transport.is_closing():
            return
        if transport.get_write_buffer_size() > connection.limits.event_bytes:
            connection.drop()
        else:
            transport.write(chunk)


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
