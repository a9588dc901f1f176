"""The life of a payment as one table (CONTRACT 6, Transitions); the README's diagram is drawn from it.

A flow is the way a kind of product goes: `instant` (straks), `dated` (domestic), `foreign` (SEPA, cross-border),
`standing` (periodic) and `batch` (bulk).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

INSTANT = "instant"
DATED = "dated"
FOREIGN = "foreign"
STANDING = "standing"
BATCH = "batch"

ALL = (INSTANT, DATED, FOREIGN, STANDING, BATCH)
WAITING = (DATED, FOREIGN, BATCH)  # flows that may wait for an execution date
EXECUTED = (INSTANT, DATED, FOREIGN, BATCH)  # flows executed once
NOT_INSTANT = (DATED, FOREIGN, STANDING, BATCH)

FINAL = frozenset({"ACSC", "RJCT", "CANC", "PART"})
UNSIGNED = frozenset({"RCVD", "PATC"})  # a signature is still missing
NOT_EXECUTED = frozenset({"ACTC", "ACWC", "PDNG", "ACCP"})  # authorised; waits for its date or for money


@dataclass(frozen=True, slots=True)
class Transition:
    """One edge: the flows that have it, and in a few words when it is taken."""

    start: str
    end: str
    flows: tuple[str, ...]
    when: str


# Cancelled is also what a script has led to a status that its flow does not reach by itself.
TRANSITIONS: tuple[Transition, ...] = (
    Transition("RCVD", "RJCT", ALL, "SCA declined, or 24 h without"),
    Transition("RCVD", "CANC", ALL, "DELETE"),
    Transition("RCVD", "PATC", ALL, "first of two signatures"),
    Transition("RCVD", "ACTC", ALL, "authorised"),
    Transition("RCVD", "ACWC", WAITING, "authorised, date moved or text changed"),
    Transition("PATC", "ACTC", ALL, "second signature"),
    Transition("PATC", "ACWC", WAITING, "second signature, date moved or text changed"),
    Transition("PATC", "RJCT", ALL, "30 days without the second signature"),
    Transition("PATC", "CANC", ALL, "cancelled"),
    Transition("ACTC", "ACSP", EXECUTED, "executed"),
    Transition("ACTC", "PDNG", WAITING, "waits for date and cut-off"),
    Transition("ACTC", "ACCP", EXECUTED, "no funds"),
    Transition("ACTC", "ACSC", (STANDING,), "last execution"),
    Transition("ACTC", "CANC", NOT_INSTANT, "cancelled"),
    Transition("ACWC", "ACSP", WAITING, "executed"),
    Transition("ACWC", "PDNG", WAITING, "waits for date and cut-off"),
    Transition("ACWC", "ACCP", WAITING, "no funds"),
    Transition("ACWC", "CANC", NOT_INSTANT, "cancelled"),
    Transition("PDNG", "ACSP", WAITING, "executed"),
    Transition("PDNG", "ACCP", WAITING, "no funds"),
    Transition("PDNG", "CANC", ALL, "cancelled"),
    Transition("ACCP", "ACSP", EXECUTED, "money arrived"),
    Transition("ACCP", "RJCT", EXECUTED, "given up"),
    Transition("ACCP", "CANC", ALL, "cancelled"),
    Transition("ACSP", "ACSC", (INSTANT, DATED, BATCH), "booked"),
    Transition("ACSP", "ACWP", (FOREIGN,), "sent, not credited yet"),
    Transition("ACSP", "PART", (BATCH,), "some entries rejected"),
    Transition("ACWP", "ACSC", (FOREIGN,), "booked"),
)

STATUSES = ("RCVD", "PATC", "ACTC", "ACWC", "PDNG", "ACCP", "ACSP", "ACWP", "ACSC", "PART", "RJCT", "CANC")

_EDGES: dict[str, dict[str, tuple[str, ...]]] = {
    flow: {status: tuple(t.end for t in TRANSITIONS if t.start == status and flow in t.flows) for status in STATUSES}
    for flow in ALL
}


def allowed(flow: str, start: str, end: str) -> bool:
    """Whether the table has the edge `start -> end` for a flow."""
    return end in _EDGES[flow][start]


def following(flow: str, start: str) -> tuple[str, ...]:
    """The statuses that may follow `start` in a flow."""
    return _EDGES[flow][start]


def path(flow: str, start: str, end: str) -> tuple[str, ...]:
    """The fewest statuses that lead from `start` (left out) to `end` along the table; empty when none do."""
    open_paths: deque[tuple[str, ...]] = deque([(start,)])
    seen = {start}
    while open_paths:
        so_far = open_paths.popleft()
        for status in following(flow, so_far[-1]):
            if status == end:
                return (*so_far[1:], end)
            if status not in seen:
                seen.add(status)
                open_paths.append((*so_far, status))
    return ()


_NAMES = {INSTANT: "straks", DATED: "domestic", FOREIGN: "SEPA and cross-border", STANDING: "periodic", BATCH: "bulk"}


def _flows_in_words(flows: tuple[str, ...]) -> str:
    """` (only straks, domestic)`, ` (not straks)`, or nothing when every flow has the edge."""
    missing = [flow for flow in ALL if flow not in flows]
    if not missing:
        return ""
    if len(missing) < len(flows):
        return f" (not {', '.join(_NAMES[flow] for flow in missing)})"
    return f" ({', '.join(_NAMES[flow] for flow in ALL if flow in flows)})"


def diagram() -> str:
    """The table as a mermaid state diagram, as the README shows it."""
    lines = ["stateDiagram-v2", "    [*] --> RCVD"]
    for edge in TRANSITIONS:
        lines.append(f"    {edge.start} --> {edge.end}: {edge.when}{_flows_in_words(edge.flows)}")
    lines += [f"    {status} --> [*]" for status in STATUSES if status in FINAL]
    return "\n".join(lines) + "\n"
