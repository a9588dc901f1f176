"""The interface that the HTTP server requires of the application behind it."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Awaitable, Sequence
from ssl import SSLContext
from typing import Protocol

from emulator.api.messages import Answered, Request, Response


class Turn(Protocol):
    """A batch of requests whose changes are stored together: `begin`, `handle` for each request, `end`.

    Each request sees the changes of the earlier ones, so no answer is sent before `end` has completed. `begin`, every
    `handle` and the call of `end` run one after the other. The next turn may begin once `end` was called, even while
    its result is still being awaited.
    """

    def begin(self, requests: Sequence[Request], /) -> Sequence[Future[Answered]] | None:
        """Start the turn. None: call `handle` for each request, then `end`. No request awaits a thread's result.

        Where several processes share the documents it may return the answers as futures instead. The turn then handles
        each request once it holds the lock; `handle` and `end` are not called, and the next turn may begin at once.
        """
        ...

    def handle(self, request: Request, /) -> Answered:
        """Answer any request: /v1, /_emulator, /sca, /console, /health and the rest; synchronous, never raises.

        A long operation returns Unfinished: it is stored as `request.unfinished`, and the request is passed in again in
        later turns.
        """
        ...

    def end(self) -> Awaitable[Exception | None] | Exception | None:
        """Store the changes of the turn; returns the failure if some were rolled back.

        Answers that reported such changes have then been replaced by 503, in place: write answers after `end` only.
        """
        ...


class Application(Protocol):
    """All banks and pages of a process."""

    def turn(self) -> Turn:
        """Create the next turn."""
        ...

    def refused(self, request: Request, response: Response) -> None:
        """Add to `response`, which refuses a request before its body was read, the headers that its bank adds."""
        ...

    def next_due(self) -> float | None:
        """Seconds of real time until something falls due; None if nothing does, or if no event stream is open."""
        ...

    def apply_due(self) -> Awaitable[None] | None:
        """Apply what has fallen due, so that event streams report it without a request; not within a turn."""
        ...

    def tls_context(self) -> SSLContext:
        """The settings for --tls-port: TLS 1.2 or higher with the bank's certificate."""
        ...

    def start(self) -> None:
        """Called within the running event loop before the first request."""
        ...

    def stop(self) -> None:
        """Called when no further requests are accepted."""
        ...

    def close(self) -> None:
        """Compact and close the stored documents, and release the state directory."""
        ...
