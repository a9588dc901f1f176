"""`GET /metrics` for Prometheus (manual: metrics.md).

Samples are read in a turn; `prometheus_client` makes text of them in a thread, and is imported there when it is first
asked for.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from functools import partial
from typing import TYPE_CHECKING

from emulator.api import render
from emulator.api.guards import Attempts
from emulator.api.messages import Answered, Request, Response, Unfinished
from emulator.api.service import BankService
from emulator.bank.errors import BankError
from emulator.bank.threads import in_thread
from emulator.control.interface import NO_STORE, Gate

if TYPE_CHECKING:
    from emulator.metrics.table import MeasuredProcess

DASHBOARD = "dashboard.json"
EXTRA_NEEDED = "Metrics require an extra: pip install 'bank-emulator[metrics]'."


class MetricsPage:
    """Answers requests under /metrics; `tokens`: those that open it, none if none is required."""

    def __init__(
        self,
        registry: MeasuredProcess,
        *,
        tokens: Iterable[str | None],
        allowed_hosts: Iterable[str],
        process: dict[str, str],
    ) -> None:
        self._registry = registry
        given = [token for token in tokens if token is not None]
        self._gate = Gate(
            attempts=Attempts(*given) if given else None,
            allowed_hosts=None if given else allowed_hosts,  # a page of a foreign host does not know the token
            about="/metrics requires Authorization: Bearer with the --metrics-token or the --control-token.",
        )
        self._labels = process

    def refuse(self, request: Request) -> Response | None:
        """The answer to a request that may not read metrics; None if it may."""
        return self._gate.refuse(request)

    def handle(self, _service: BankService, request: Request) -> Answered:
        return self.refuse(request) or Unfinished(self._steps(request)).step()

    def _steps(self, request: Request) -> Generator[object, None, Response]:
        path = request.target.partition("?")[0].removeprefix(request.prefix).strip("/")
        if request.prefix or path not in ("metrics", f"metrics/{DASHBOARD}"):
            raise BankError("NOT_FOUND", f"There are /metrics, for all banks, and /metrics/{DASHBOARD}.")
        if request.method not in ("GET", "HEAD"):
            allowed = [("Allow", "GET, HEAD, OPTIONS")]
            if request.method == "OPTIONS":
                return Response(204, allowed)
            return render.refusal(BankError("BAD_REQUEST", f"/{path} takes GET.", status=405), headers=allowed)
        from emulator.metrics import table  # only on use, to keep the start fast

        if path != "metrics":
            return render.json_response(200, table.dashboard(), [NO_STORE])
        self._begin()
        try:
            taken = table.take(self._registry)
            body, content_type = yield from in_thread(partial(table.exposition, taken, self._labels))
        except ImportError:
            return render.refusal(BankError("SYSTEM_ERROR", EXTRA_NEEDED, status=501), headers=[NO_STORE])
        return Response(200, [("Content-Type", content_type), NO_STORE], body)

    def _begin(self) -> None:
        """Count from now on, beginning with the requests that the request logs still have."""
        registry = self._registry
        counts = registry.counts
        if counts.on:
            return
        counts.on = True
        registry.outcomes.followers.append(counts.request)
        for service in registry.services():
            for exchange in service.log.newest():
                if exchange.response is not None:
                    counts.request(service.bank.name, exchange)
