"""The result of a check: how often its occasions passed and failed, and the evidence of its failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from emulator.conformance.facts import Observation

MOST_FAILURES = 20  # of a check that are shown; all are counted
BODY_SHOWN = 4096  # bytes of a request in a failure


@dataclass(frozen=True, slots=True)
class Evidence:
    """A request or change that shows a failure; `headers` and `body` only of requests."""

    id: str
    what: str
    at: float
    method: str = ""
    target: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """What was expected and what was seen instead."""

    text: str
    occasion: Evidence
    instead: Evidence | None = None


@dataclass(slots=True)
class Record:
    """The result of a check so far: how many occasions passed and failed, and the first failures."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[Failure] = field(default_factory=list)

    def fail(self, failure: Failure | Callable[[], Failure]) -> None:
        """Count a failure; one of the first is also kept, and only then computed."""
        self.failed += 1
        if len(self.failures) < MOST_FAILURES:
            self.failures.append(failure if isinstance(failure, Failure) else failure())


Outline = tuple[str, str, str, str, float]
"""The part of an occasion that is kept while it is open: id, description, method, target, bank time."""


def outline(observed: Observation) -> Outline:
    """The outline of an occasion; headers and body are not kept, as an occasion may be open for long."""
    exchange = observed.exchange
    if exchange is not None:
        request = exchange.request
        return str(exchange.id), str(exchange.status or "nothing"), request.method, request.target, observed.at
    about = next((str(observed[name]) for name in ("payment", "sca", "consent", "basket") if observed[name]), "")
    what = " ".join(filter(None, (observed.event, str(observed["outcome"] or observed["link"] or ""), about)))
    return "", what, "", "", observed.at


def brief_evidence(outline: Outline) -> Evidence:
    """The evidence of an occasion, without headers and body."""
    identity, what, method, target, at = outline
    return Evidence(identity, f"{method} {target} answered {what}" if method else what, at, method, target)


def evidence(observed: Observation) -> Evidence:
    """The evidence of an observation that failed a check: enough to send the request again."""
    brief = brief_evidence(outline(observed))
    if observed.exchange is None:
        return brief
    request = observed.exchange.request
    body = request.body[:BODY_SHOWN].decode("utf-8", "replace")
    return replace(brief, headers=tuple(request.headers), body=body)
