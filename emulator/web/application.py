"""What the web room needs of the rest of the program: the application that assemble hands to it."""

from __future__ import annotations

from ssl import SSLContext
from typing import Protocol

from emulator.api.messages import Request, Response, Stream
from emulator.store import Store


class Application(Protocol):
    """Everything that is served, behind one synchronous function that does no I/O."""

    @property
    def store(self) -> Store | None:
        """The documents of the default bank, which is the one of /v1; the same ones while the application is served."""
        ...

    def handle(self, request: Request) -> Response | Stream:
        """Answer any request: /v1, /_emulator, /sca, /console, /health and the rest; never raises."""
        ...

    def refused(self, request: Request, response: Response) -> None:
        """Add to `response`, the refusal of a request that came without a body, what its bank adds to its answers."""
        ...

    def store_for(self, request: Request) -> Store | None:
        """The documents that `request` may have changed: its answer waits for their fsync (`--durability power`)."""
        ...

    def undone(self, store: Store) -> None:
        """Changes of these documents were taken back behind the core: what it holds in memory is read again."""
        ...

    def next_due(self) -> float | None:
        """Seconds of real time until something falls due while somebody watches; None: nothing, or nobody."""
        ...

    def wake(self) -> None:
        """Apply what has fallen due, so that watchers see it without a request."""
        ...

    def tls_context(self) -> SSLContext:
        """TLS 1.2 or higher with the bank's certificate, for --tls-port."""
        ...

    def close(self) -> None:
        """Put the documents in order and let go of the state directory."""
        ...
