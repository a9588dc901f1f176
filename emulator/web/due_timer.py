"""Waking the core at its next due time while somebody watches, so that changes show without a request."""

from __future__ import annotations

import asyncio

from emulator.web.application import Application
from emulator.web.exchange import Exchange

_SHORTEST = 0.005  # a due time that has passed already must not become a busy loop
_LONGEST = 3600.0
_SLOWER = 4.0  # times as long after each waking that left something due, for the disk may be full
_SLOWEST = 60.0


class Watchers:
    """The open event streams, and one timer for the whole application while there are any (CONTRACT 13, Clock)."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self.open: set[Exchange] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._pause = _SHORTEST
        self._applying: asyncio.Future[None] | None = None

    def add(self, exchange: Exchange) -> None:
        """A stream begins."""
        self.open.add(exchange)
        self.look_again()

    def discard(self, exchange: Exchange) -> None:
        """A stream has ended."""
        self.open.discard(exchange)
        if not self.open:
            self._forget_timer()

    def look_again(self) -> None:
        """Set the timer anew: a request may have changed what falls due next."""
        self._forget_timer()
        seconds = self._application.next_due()
        if seconds is not None:
            seconds = min(max(seconds, self._pause), _LONGEST)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._ring)

    def end(self) -> None:
        """End all streams: the server stops."""
        for exchange in tuple(self.open):
            exchange.leave(ConnectionResetError("the server stops"))

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        try:
            applied = self._application.apply_due()
            if applied is not None:
                self._applying = asyncio.ensure_future(applied)
        finally:
            done = self._application.next_due() != 0
            self._pause = _SHORTEST if done else min(self._pause * _SLOWER, _SLOWEST)
            self.look_again()
