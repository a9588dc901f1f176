"""`GET /metrics` for Prometheus (manual: metrics.md): the table of the metrics, and what is made of it, the text and a
dashboard for Grafana.

Samples are read in a turn, from what the process has anyway and from `counts.py`. `prometheus_client` makes text of
them in a thread, and is imported there when it is first asked for; the table and the dashboard do without.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from emulator import __version__
from emulator.api import render
from emulator.api.guards import Attempts
from emulator.api.messages import Answered, Request, Response, Unfinished
from emulator.api.outcomes import Outcomes
from emulator.api.service import BankService
from emulator.bank.errors import BankError
from emulator.bank.kinds import NOTIFICATION
from emulator.bank.threads import in_thread
from emulator.control.interface import NO_STORE, Gate
from emulator.metrics.counts import Histogram, ProcessCounts

if TYPE_CHECKING:
    from prometheus_client import Metric as Family

PREFIX = "bank_emulator_"
DASHBOARD = "dashboard.json"
EXTRA_NEEDED = "Metrics require an extra: pip install 'bank-emulator[metrics]'."


class MeasuredProcess(Protocol):
    """The banks and the numbers of this process; `emulator.assemble` implements it."""

    @property
    def counts(self) -> ProcessCounts: ...
    @property
    def outcomes(self) -> Outcomes: ...

    def services(self) -> Iterator[BankService]:
        """The banks in memory."""

    def exists(self, name: str) -> bool:
        """Whether there is a bank of this name."""


Value = float | Histogram
Samples = Iterable[tuple[tuple[str, ...], Value]]
"""The values of the labels, and the value."""


class Metric(NamedTuple):
    """One metric; `about` is its help text and the description of its panel.

    `read` gives samples for a metric with labels, else the value; None where there is nothing to measure.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    about: str
    read: Callable[[MeasuredProcess], Samples | Value | None]
    labels: tuple[str, ...] = ()
    unit: Literal["short", "s", "bytes"] = "short"

    @property
    def full_name(self) -> str:
        """The name with its prefix, and with the suffix of counters."""
        return f"{PREFIX}{self.name}{'_total' if self.kind == 'counter' else ''}"

    def family(self, process: MeasuredProcess, labels: dict[str, str]) -> Callable[[], Any]:
        """Read the metric now; returns what makes, in any thread, the library's form of it: ImportError without the
        extra. `labels`: those of the process, which all samples have.
        """
        value = self.read(process)
        samples = [((), value)] if isinstance(value, float | int | Histogram) else value or ()
        read = [
            ((*labels.values(), *values), sample.state() if isinstance(sample, Histogram) else (sample,))
            for values, sample in samples
        ]

        def make() -> Any:
            from prometheus_client import core

            kinds: dict[str, Callable[..., Any]] = {
                "counter": core.CounterMetricFamily,
                "gauge": core.GaugeMetricFamily,
                "histogram": core.HistogramMetricFamily,
            }
            family = kinds[self.kind](f"{PREFIX}{self.name}", self.about, labels=(*labels, *self.labels))
            for values, state in read:
                family.add_metric(values, *state)
            return family

        return make


METRICS: tuple[Metric, ...] = (
    Metric("info", "gauge", "The version; always 1.", lambda _: [((__version__,), 1)], ("version",)),
    Metric(
        "requests",
        "counter",
        "Requests to the TPP interface; the 50 busiest banks by name, the rest as bank `other`.",
        lambda process: process.counts.requests.samples(),
        ("bank", "operation", "status"),
    ),
    Metric(
        "request_duration_seconds",
        "histogram",
        "Time in which an answer was computed, without waiting for its turn and its commit.",
        lambda process: [((operation,), own) for operation, own in sorted(process.counts.durations.items())],
        ("operation",),
        "s",
    ),
    Metric(
        "refusals",
        "counter",
        "Refused requests by the codes of their messages; an answer with several codes counts for each.",
        lambda process: [((code,), count) for code, count in sorted(process.counts.refusals.items())],
        ("code",),
    ),
    Metric(
        "other_requests",
        "counter",
        "Requests to the control interface (_emulator), the pages and the documents, by the first part of the address.",
        lambda process: [((part, str(status)), count) for (part, status), count in process.counts.others.items()],
        ("part", "status"),
    ),
    Metric(
        "turn_requests",
        "histogram",
        "Requests of any kind in a turn, whose changes are stored together.",
        lambda process: process.counts.turns,
    ),
    Metric(
        "commit_duration_seconds",
        "histogram",
        "Time in which the changes of a turn were stored: the journal, and the fsync or commit that follows.",
        lambda process: process.counts.commits,
        unit="s",
    ),
    Metric(
        "compactions",
        "counter",
        "Snapshots that replaced a journal, begun since the start.",
        lambda process: process.counts.compactions,
    ),
    Metric(
        "journal_bytes",
        "gauge",
        "Size of the journals of the banks in memory.",
        lambda process: sum(service.bank.documents.log.size for service in process.services()),
        unit="bytes",
    ),
    Metric("banks", "gauge", "Banks in the memory of the process.", lambda process: len([*process.services()])),
    Metric(
        "leases",
        "gauge",
        "With --store: banks of which the process is the home.",
        lambda process: process.counts.leases and process.counts.leases(),
    ),
    Metric(
        "passed_on",
        "counter",
        "With --store: requests that were passed on to the home of their bank, since the start.",
        lambda process: process.counts.leases and process.counts.passed_on,
    ),
    Metric(
        "notifications_waiting",
        "gauge",
        "Notifications that are not answered yet.",
        lambda process: sum(
            service.bank.documents.count(NOTIFICATION) - service.bank.documents.count(NOTIFICATION, done="yes")
            for service in process.services()
        ),
    ),
    Metric(
        "event_streams",
        "gauge",
        "Readers of events, open consoles included.",
        lambda process: sum(len(service.bank.watchers) for service in process.services()),
    ),
)
PROCESS = {
    "process_resident_memory_bytes": ("Memory", "Memory of the process.", "bytes"),
    "process_open_fds": ("Open files", "Open files and connections.", "short"),
}
"""Of the metrics that the library itself adds on Linux: those that the dashboard shows."""


def exposition(families: Sequence[Callable[[], Any]]) -> tuple[bytes, str]:
    """The text and its content type; ImportError without the extra. For any thread."""
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
    from prometheus_client.registry import Collector

    class Families(Collector):
        def collect(self) -> Iterable[Family]:
            return [family() for family in families]

    registry = CollectorRegistry()
    registry.register(Families())
    ProcessCollector(registry=registry)
    return generate_latest(registry), CONTENT_TYPE_LATEST


class MetricsPage:
    """Answers requests under /metrics; `tokens`: those that open it, none if none is required."""

    def __init__(
        self,
        measured: MeasuredProcess,
        *,
        tokens: Iterable[str | None],
        allowed_hosts: Iterable[str],
        process: dict[str, str],
    ) -> None:
        self._measured = measured
        given = [token for token in tokens if token is not None]
        self.refuse = Gate(
            attempts=Attempts(*given) if given else None,
            allowed_hosts=None if given else allowed_hosts,  # a page of a foreign host does not know the token
            about="/metrics requires Authorization: Bearer with the --metrics-token or the --control-token.",
        ).refuse
        """The answer to a request that may not read metrics; None if it may."""
        self._labels = process

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
        if path != "metrics":
            return render.json_response(200, dashboard(), [NO_STORE])
        self._begin()
        self._measured.counts.requests.rank(self._measured.exists)
        families = [metric.family(self._measured, self._labels) for metric in METRICS]
        try:
            body, content_type = yield from in_thread(partial(exposition, families))
        except ImportError:
            return render.refusal(BankError("SYSTEM_ERROR", EXTRA_NEEDED, status=501), headers=[NO_STORE])
        return Response(200, [("Content-Type", content_type), NO_STORE], body)

    def _begin(self) -> None:
        """Count from now on, beginning with the requests that the request logs still have."""
        counts = self._measured.counts
        if counts.on:
            return
        counts.on = True
        self._measured.outcomes.followers.append(counts.request)
        for service in self._measured.services():
            for exchange in service.log.newest():
                if exchange.response is not None:
                    counts.request(service.bank.name, exchange)


# The dashboard


def dashboard() -> dict[str, Any]:
    """A dashboard for Grafana: a panel for each metric, and for each label of a counter one."""
    panels = [panel for metric in METRICS for panel in _panels(metric)]
    panels += [_panel(*shown, [(name, "{{instance}}")]) for name, shown in PROCESS.items()]
    for at, panel in enumerate(panels):
        panel |= {"id": at + 1, "gridPos": {"x": at % 2 * 12, "y": at // 2 * 8, "w": 12, "h": 8}}
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "title": "Bank emulator",
        "uid": "bank-emulator",
        "tags": ["bank-emulator"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [source]},
        "panels": panels,
    }


def _panels(metric: Metric) -> Iterator[dict[str, Any]]:
    name, title = metric.full_name, metric.name.removesuffix("_seconds").replace("_", " ").capitalize()
    if metric.kind == "counter":
        for label in metric.labels or ("instance",):
            query = f"sum by ({label}) (rate({name}[$__rate_interval]))"
            by = f" by {label}" if metric.labels else ""
            yield _panel(f"{title}{by}, per second", metric.about, "cps", [(query, f"{{{{{label}}}}}")])
    elif metric.kind == "histogram":
        by = ", ".join(("le", *metric.labels))
        legend = "".join(f" {{{{{label}}}}}" for label in metric.labels)
        rate = f"sum by ({by}) (rate({name}_bucket[$__rate_interval]))"
        queries = [(f"histogram_quantile({part}, {rate})", f"{part:.0%}{legend}") for part in (0.5, 0.95)]
        yield _panel(f"{title}, median and 95 %", metric.about, metric.unit, queries)
    else:
        label = (metric.labels or ("instance",))[0]
        yield _panel(title, metric.about, metric.unit, [(f"sum by ({label}) ({name})", f"{{{{{label}}}}}")])


def _panel(title: str, about: str, unit: str, queries: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": title,
        "description": about,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + at), "expr": expression, "legendFormat": legend}
            for at, (expression, legend) in enumerate(queries)
        ],
    }
