"""The metrics of a process, and what is made of their table: the text for Prometheus and a dashboard for Grafana.

The samples are read from what the process has anyway and from `counts.py`. Imported at the first scrape, which needs
`prometheus_client`; the table and the dashboard do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from emulator import __version__
from emulator.api.outcomes import Outcomes
from emulator.api.service import BankService
from emulator.bank.kinds import NOTIFICATION
from emulator.metrics.counts import Histogram, ProcessCounts

if TYPE_CHECKING:
    from prometheus_client import Metric as Family

PREFIX = "bank_emulator_"


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


Samples = Iterable[tuple[tuple[str, ...], float | Histogram]]
"""The values of the labels, and the value."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; `about` is its help text and the description of its panel."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    about: str
    samples: Callable[[MeasuredProcess], Samples]
    labels: tuple[str, ...] = ()
    unit: Literal["short", "s", "bytes"] = "short"

    @property
    def full_name(self) -> str:
        """The name with its prefix, and with the suffix of counters."""
        return f"{PREFIX}{self.name}{'_total' if self.kind == 'counter' else ''}"

    @property
    def title(self) -> str:
        return self.name.removesuffix("_seconds").replace("_", " ").capitalize()

    def family(self, samples: Samples, process: dict[str, str]) -> Family:
        """The metric as the library has it; `process`: labels that all samples have."""
        from prometheus_client import core

        labels = (*process, *self.labels)
        if self.kind == "histogram":
            histograms = core.HistogramMetricFamily(f"{PREFIX}{self.name}", self.about, labels=labels)
            for values, sample in samples:
                if isinstance(sample, Histogram):
                    histograms.add_metric((*process.values(), *values), sample.buckets(), sample.sum)
            return histograms
        kind = core.CounterMetricFamily if self.kind == "counter" else core.GaugeMetricFamily
        numbers = kind(f"{PREFIX}{self.name}", self.about, labels=labels)
        for values, sample in samples:
            if not isinstance(sample, Histogram):
                numbers.add_metric((*process.values(), *values), sample)
        return numbers


def _one(value: Callable[[MeasuredProcess], float | Histogram | None]) -> Callable[[MeasuredProcess], Samples]:
    """A metric without labels; None: it has no sample."""

    def samples(registry: MeasuredProcess) -> Samples:
        number = value(registry)
        return () if number is None else (((), number),)

    return samples


def _leases(registry: MeasuredProcess) -> int | None:
    return registry.counts.leases() if registry.counts.leases is not None else None


def _passed_on(registry: MeasuredProcess) -> int | None:
    return registry.counts.passed_on if registry.counts.leases is not None else None


def _notifications(registry: MeasuredProcess) -> int:
    documents = [service.bank.documents for service in registry.services()]
    return sum(each.count(NOTIFICATION) - each.count(NOTIFICATION, done="yes") for each in documents)


def _journals(registry: MeasuredProcess) -> int:
    return sum(service.bank.documents.log.size for service in registry.services())


METRICS: tuple[Metric, ...] = (
    Metric("info", "gauge", "The version; always 1.", lambda _: [((__version__,), 1)], ("version",)),
    Metric(
        "requests",
        "counter",
        "Requests to the TPP interface; the 50 busiest banks by name, the rest as bank `other`.",
        lambda registry: registry.counts.requests.samples(),
        ("bank", "operation", "status"),
    ),
    Metric(
        "request_duration_seconds",
        "histogram",
        "Time in which an answer was computed, without waiting for its turn and its commit.",
        lambda registry: [((operation,), own) for operation, own in sorted(registry.counts.durations.items())],
        ("operation",),
        "s",
    ),
    Metric(
        "refusals",
        "counter",
        "Refused requests by the codes of their messages; an answer with several codes counts for each.",
        lambda registry: [((code,), count) for code, count in sorted(registry.counts.refusals.items())],
        ("code",),
    ),
    Metric(
        "other_requests",
        "counter",
        "Requests to the control interface (_emulator), the pages and the documents, by the first part of the address.",
        lambda registry: [((part, str(status)), count) for (part, status), count in registry.counts.others.items()],
        ("part", "status"),
    ),
    Metric(
        "turn_requests",
        "histogram",
        "Requests of any kind in a turn, whose changes are stored together.",
        _one(lambda registry: registry.counts.turns),
    ),
    Metric(
        "commit_duration_seconds",
        "histogram",
        "Time in which the changes of a turn were stored: the journal, and the fsync or commit that follows.",
        _one(lambda registry: registry.counts.commits),
        unit="s",
    ),
    Metric(
        "compactions",
        "counter",
        "Snapshots that replaced a journal, begun since the start.",
        _one(lambda registry: registry.counts.compactions),
    ),
    Metric("journal_bytes", "gauge", "Size of the journals of the banks in memory.", _one(_journals), unit="bytes"),
    Metric(
        "banks",
        "gauge",
        "Banks in the memory of the process.",
        _one(lambda registry: sum(1 for _ in registry.services())),
    ),
    Metric("leases", "gauge", "With --store: banks of which the process is the home.", _one(_leases)),
    Metric(
        "passed_on",
        "counter",
        "With --store: requests that were passed on to the home of their bank, since the start.",
        _one(_passed_on),
    ),
    Metric("notifications_waiting", "gauge", "Notifications that are not answered yet.", _one(_notifications)),
    Metric(
        "event_streams",
        "gauge",
        "Readers of events, open consoles included.",
        _one(lambda registry: sum(len(service.bank.watchers) for service in registry.services())),
    ),
)
PROCESS = {
    "process_resident_memory_bytes": ("Memory", "Memory of the process.", "bytes"),
    "process_open_fds": ("Open files", "Open files and connections.", "short"),
}
"""Of the metrics that the library itself adds on Linux: those that the dashboard shows."""


Taken = Sequence[tuple[Metric, Samples]]
"""The metrics with their samples, as they were at one moment."""


def take(registry: MeasuredProcess) -> Taken:
    """Read all samples."""
    registry.counts.requests.rank(registry.exists)
    return [(metric, list(metric.samples(registry))) for metric in METRICS]


def exposition(taken: Taken, process: dict[str, str]) -> tuple[bytes, str]:
    """The text and its content type; ImportError without the extra. For any thread."""
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
    from prometheus_client.registry import Collector

    class Families(Collector):
        def collect(self) -> Iterable[Family]:
            for metric, samples in taken:
                yield metric.family(samples, process)

    families = CollectorRegistry()
    families.register(Families())
    ProcessCollector(registry=families)
    return generate_latest(families), CONTENT_TYPE_LATEST


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
    name = metric.full_name
    if metric.kind == "counter":
        for label in metric.labels or ("instance",):
            query = f"sum by ({label}) (rate({name}[$__rate_interval]))"
            by = f" by {label}" if metric.labels else ""
            yield _panel(f"{metric.title}{by}, per second", metric.about, "cps", [(query, f"{{{{{label}}}}}")])
    elif metric.kind == "histogram":
        by = ", ".join(("le", *metric.labels))
        legend = "".join(f" {{{{{label}}}}}" for label in metric.labels)
        rate = f"sum by ({by}) (rate({name}_bucket[$__rate_interval]))"
        queries = [(f"histogram_quantile({part}, {rate})", f"{part:.0%}{legend}") for part in (0.5, 0.95)]
        yield _panel(f"{metric.title}, median and 95 %", metric.about, metric.unit, queries)
    else:
        label = (metric.labels or ("instance",))[0]
        yield _panel(metric.title, metric.about, metric.unit, [(f"sum by ({label}) ({name})", f"{{{{{label}}}}}")])


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
