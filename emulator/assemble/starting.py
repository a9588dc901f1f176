"""Answers requests while the documents are loaded: /health is 200, /ready 503 with the progress, the rest 503.

After a kill, a start reads the journal, which takes seconds if it is large. Meanwhile `StartingApplication` answers at
the listening address, and the progress is logged. Afterwards /ready is `api/service.ready`, to which `homes` adds what
a process of several has.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from ssl import SSLContext
from time import monotonic

from emulator.api import render
from emulator.api.headers import Headers
from emulator.api.messages import Request, Response
from emulator.api.router import split_target
from emulator.api.service import finish, health
from emulator.assemble.registry import DEFAULT
from emulator.bank.errors import BankError
from emulator.settings import ServeSettings
from emulator.web.handler import Application

logger = logging.getLogger(__name__)

SLOW_BYTES = 16 << 20
LOG_INTERVAL = 2.0  # seconds


def is_slow(settings: ServeSettings) -> bool:
    """Whether the journal of the default bank is so large that clients should see the progress.

    Only the journal counts: a snapshot is read several times as fast.
    """
    with suppress(OSError):  # the start itself reports the error
        journals = (settings.state / "banks" / DEFAULT).glob("*.jsonl")
        return not settings.ephemeral and sum(path.stat().st_size for path in journals) > SLOW_BYTES
    return False


class Progress:
    """How many bytes of the documents have been read; set by the loading thread, read by the other."""

    def __init__(self) -> None:
        self.done = 0
        self.total = 0
        self._logged = monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Set the progress, and log it every few seconds."""
        self.done, self.total = done, total
        now = monotonic()
        if now - self._logged >= LOG_INTERVAL:
            self._logged = now
            logger.info("reading the documents: %d %% of %d MB", self.percent, total >> 20)

    @property
    def percent(self) -> int:
        return 100 * self.done // self.total if self.total else 0


class StartingApplication(Application):
    """The application, and its turn, before there is a bank."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def turn(self) -> StartingApplication:
        return self

    def handle(self, request: Request) -> Response:
        """200 for /health, 503 for everything else; never raises."""
        try:
            path, _ = split_target(request.target)
            if path == "/health":
                return render.json_response(200, health())
            progress = self._progress
            if path == "/ready":
                reading = {"bytes": progress.done, "of": progress.total, "percent": progress.percent}
                return render.json_response(503, {"status": "starting", "reading": reading}, [("Retry-After", "1")])
            text = f"The bank is starting: {progress.percent} % of its documents are read."
            response = render.refusal(BankError("SYSTEM_ERROR", text, status=503), headers=[("Retry-After", "1")])
        except Exception as error:
            response = render.refusal(render.failed(request, error))
        self.refused(request, response)
        return response

    def end(self) -> None:
        """There are no changes."""

    def refused(self, request: Request, response: Response) -> None:
        finish(response, Headers(request.headers))

    def tls_context(self) -> SSLContext:
        raise RuntimeError("a starting bank serves no TLS")
