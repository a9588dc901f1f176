"""What a search has found: on a terminal, as one HTML page, as JUnit and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from emulator import junit
from emulator.bank.errors import counted
from emulator.conformance.report import page
from emulator.explore.faults import kinds

if TYPE_CHECKING:
    from emulator.explore.judge import Finding, RunOutcome
    from emulator.explore.play import Row
    from emulator.explore.search import Breakage, SearchProgress

RULES: Mapping[int, str] = {
    1: "An order is paid at most once, and not after a decline.",
    2: "What the TPP claims agrees with the ledger.",
    3: "No check of level must fails.",
    4: "The TPP does not crash.",
    5: "The TPP does not send for ever.",
}
WHO: Mapping[str, str] = {"tpp": "", "bank": "", "customer": "the customer ", "time": "", "fault": "fault: "}
TIME = 17  # columns of a terminal for the mark and bank time of a timeline: month, day, and time


def timeline(rows: Sequence[Row], finding: Finding | None) -> list[dict[str, Any]]:
    """The rows with what the TPP did at the left and what was true at the right; equal ones in sequence are one."""
    lines: list[dict[str, Any]] = []
    for row in rows:
        left, right = (row.text, "") if row.side == "tpp" else ("", WHO[row.side] + row.text)
        line = {"at": row.at[:19].replace("T", " "), "left": left, "right": right, "fault": row.fault, "times": 1}
        if lines and [lines[-1][name] for name in ("left", "right")] == [left, right]:
            lines[-1]["times"] += 1
        else:
            lines.append(line)
    if finding is not None and (finding.believed or finding.true):
        believed = f"believes: {finding.believed}" if finding.believed else ""
        true = f"{'expected' if finding.rule == 3 else 'true'}: {finding.true}"
        lines.append({"at": "at the end", "left": believed, "right": true, "fault": True, "times": 1})
    return lines


def drawing(rows: Sequence[Row], finding: Finding | None) -> str:
    """A timeline for a terminal, as wide as that is."""
    width = min(max(get_terminal_size((120, 24)).columns, 80), 160) - TIME
    left_width = width * 5 // 8
    shown = [f"  {'bank time':<{TIME - 2}}{'what the TPP did':<{left_width}}what was true"]
    for line in timeline(rows, finding):
        times = f" ({line['times']} times)" if line["times"] > 1 else ""
        texts = [line[name] and line[name] + times for name in ("left", "right")]
        parts = [wrap(text, size) for text, size in zip(texts, (left_width - 1, width - left_width), strict=True)]
        begins = f"{'!' if line['fault'] else ' '} {line['at'].partition('-')[2] or line['at']}"
        for left, right in zip_longest(*parts, fillvalue=""):
            shown.append(f"{begins:<{TIME}}{left:<{left_width}}{right}".rstrip())
            begins = ""
    return "\n".join(shown)


def failure_text(breakage: Breakage) -> str:
    """A failure for a terminal: what it is, its schedule, and its timeline."""
    finding, outcome = breakage.finding, breakage.outcome
    how = "made smaller" if breakage.failed > 1 else "as it was drawn"
    lines = [
        f"FOUND: {finding.what} (rule {finding.rule}: {RULES[finding.rule]})",
        f"  {finding.text}",
        f"  fails {breakage.failed} of {breakage.played}; {how}:",
        "",
        *(f"    {line}" for line in outcome.schedule.text().rstrip().splitlines()),
        "",
        drawing(outcome.rows, finding),
    ]
    return "\n".join(lines)


def summary(progress: SearchProgress) -> str:
    """What was searched, in a few lines."""
    met = ", ".join(f"{name} {count}" for name, count in progress.kinds.most_common())
    missing = [name for name in kinds() if name not in progress.kinds]
    counts = f"{counted(progress.drawn, 'schedule')}, {counted(progress.runs, 'run')}"
    lines = [f"{counts}; {len(progress.found)} found"]
    lines += [f"Faults met: {met}" if met else "No fault was met."]
    lines += [f"Not met: {', '.join(missing)}"] if missing else []
    lines += [f"{name}: {count} more schedules fail so" for name, count in progress.alike.items()]
    return "\n".join(lines)


def document(progress: SearchProgress) -> dict[str, Any]:
    """The result as JSON."""
    return {
        "schedules": progress.drawn,
        "runs": progress.runs,
        "faults": dict(progress.kinds),
        "alike": dict(progress.alike),
        "found": [_shown(breakage) for breakage in progress.found],
    }


def _shown(breakage: Breakage) -> dict[str, Any]:
    finding, outcome = breakage.finding, breakage.outcome
    return {
        **case(breakage.name, finding, outcome),
        "believed": finding.believed,
        "true": finding.true,
        "failed": breakage.failed,
        "played": breakage.played,
        "schedule": outcome.schedule.document(),
    }


def case(name: str, finding: Finding | None, outcome: RunOutcome) -> dict[str, Any]:
    """A schedule that was played, for `junit_report` and `html`."""
    return {
        "name": name,
        "what": "" if finding is None else finding.what,
        "rule": None if finding is None else finding.rule,
        "text": "" if finding is None else finding.text,
        "schedule": outcome.schedule.text(),
        "described": [fault.described() for fault in outcome.schedule.faults],
        "timeline": timeline(outcome.rows, finding),
        "output": outcome.output,
    }


def junit_report(cases: Sequence[Mapping[str, Any]]) -> str:
    """One test for each schedule."""
    group = "conformance.explore"
    failures = [(one["text"], one["schedule"]) if one["what"] else None for one in cases]
    tests = [junit.Case(group, one["name"], failure) for one, failure in zip(cases, failures, strict=True)]
    return junit.document(junit.suite("explore", tests))


def html(cases: Sequence[Mapping[str, Any]], *, title: str, text: str) -> str:
    """One page without scripts and external files."""
    failed = [one for one in cases if one["what"]]
    passed = [one for one in cases if not one["what"]]
    return page("emulator.explore", title=title, text=text, failed=failed, passed=passed, rules=RULES)
