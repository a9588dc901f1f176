"""The interface that the HTTP server requires of the application behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from ssl import SSLContext
from typing import Protocol

from emulator.api.messages import Answered, Request, Response, Stream

Answering = Callable[[Request], Awaitable[Response | Stream]]
"""Gives the answer to a request, once it may be sent."""


class Leaving(Protocol):
    """Somebody who receives an event stream."""

    def leave(self) -> None:
        """End the stream, as the server stops."""


class Watching(Protocol):
    """Those who receive event streams. While there are any, due steps are applied without a request."""

    def add(self, stream: Leaving, /) -> None:
        """One more."""

    def discard(self, stream: Leaving, /) -> None:
        """One less."""


class Turn(Protocol):
    """A batch of requests whose changes are stored together: `handle` for each request, then `end`.

    Each request sees the changes of the earlier ones, so no answer is sent before `end` has completed. Every `handle`
    and the call of `end` run one after the other. The next turn may begin once `end` was called, even while its result
    is still being awaited.
    """

    def handle(self, request: Request, /) -> Answered:
        """Answer any request: /v1, /_emulator, /sca, /console, /health and the rest; synchronous, never raises.

        A long operation returns Unfinished: it is stored as `request.unfinished`, and the request is passed in again in
        later turns.
        """

    def end(self) -> Awaitable[Exception | None] | Exception | None:
        """Store the changes of the turn; returns the failure if some were rolled back.

        Answers that reported such changes have then been replaced by 503, in place: write answers after `end` only.
        """


class Application(Protocol):
    """All banks and pages of a process; what an application that inherits this leaves out does nothing."""

    def turn(self) -> Turn:
        """Create the next turn."""

    def around(self, local: Answering, watching: Watching) -> Answering:
        """What answers requests: `local`, which does it in turns, or something that may pass them on elsewhere.

        `watching`: those who hear of events at this process; whoever passes a stream on to another is one of them.
        """
        del watching
        return local

    def refused(self, request: Request, response: Response) -> None:
        """Add to `response`, which refuses a request before its body was read, the headers that its bank adds."""

    def next_due(self) -> float | None:
        """Seconds of real time until something falls due; None if nothing does, or if no event stream is open."""
        return None

    def apply_due(self) -> Awaitable[None] | None:
        """Apply what has fallen due, so that event streams report it without a request; not within a turn."""
        return None

    def tls_context(self) -> SSLContext:
        """The settings for --tls-port: TLS 1.2 or higher with the bank's certificate."""

    def start(self) -> None:
        """Called within the running event loop before the first request."""
        return

    def stop(self) -> None:
        """Called when no further requests are accepted."""
        return

    async def leave(self) -> None:
        """Called once the last answer is computed, within the event loop; clients may still be reading it."""
        return

    def close(self) -> None:
        """Compact and close the stored documents, and release the state directory."""
        return
