"""What the web server needs from the rest of the program."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Awaitable, Sequence
from ssl import SSLContext
from typing import Protocol

from emulator.api.messages import Answered, Request, Response


class Turn(Protocol):
    """Some requests whose changes are stored together: `begin`, `handle` for each of them, `end`.

    What a request changes is seen by those that follow, so no answer leaves before `end` is through. `begin`, all of
    `handle` and the call of `end` run one behind the other; once `end` was called the next turn may begin, though what
    `end` gave may still be awaited. `waits`: whether `begin` and `end` may give something to await.
    """

    @property
    def waits(self) -> bool: ...

    def begin(self, requests: Sequence[Request], /) -> Sequence[Future[Answered]] | None:
        """None: nothing is waited for. Else the answers themselves, where processes share the documents: the turn
        handles each request when it has the right to, without `handle` and `end`, and the next one may begin at once.
        """
        ...

    def handle(self, request: Request, /) -> Answered:
        """Answer any request: /v1, /_emulator, /sca, /console, /health and the rest; synchronous, never raises.

        What takes long is answered Unfinished; its `request.unfinished` is then set, and it comes again in later turns.
        """
        ...

    def end(self) -> Awaitable[Exception | None] | Exception | None:
        """Store what was changed; the failure, if something was undone.

        Every answer that reports something undone has become 503 by then, in place: render answers after the end.
        """
        ...


class Application(Protocol):
    """Everything that is served."""

    def turn(self) -> Turn:
        """The next turn."""
        ...

    def refused(self, request: Request, response: Response) -> None:
        """Add to `response`, the refusal of a request that came without a body, what its bank adds to its answers."""
        ...

    def next_due(self) -> float | None:
        """Seconds of real time until something falls due while somebody watches; None: nothing, or nobody."""
        ...

    def apply_due(self) -> Awaitable[None] | None:
        """Apply what has fallen due, so that watchers see it without a request; not within a turn."""
        ...

    def tls_context(self) -> SSLContext:
        """TLS 1.2 or higher with the bank's certificate, for --tls-port."""
        ...

    def start(self) -> None:
        """Requests are served from now on, within a running loop."""
        ...

    def stop(self) -> None:
        """No more requests are served."""
        ...

    def close(self) -> None:
        """Put the documents in order and release the state directory."""
        ...
