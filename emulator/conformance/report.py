"""Reports: as JSON, on a terminal, as JUnit and as one HTML page that needs no network (CONTRACT 17)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, Literal
from xml.etree import ElementTree

from pydantic import BaseModel, ConfigDict

from emulator.conformance.auditor import MOST_FAILURES, Evidence, Failure, Record
from emulator.conformance.check import Check

Verdict = Literal["pass", "fail", "warn", "not-seen", "skipped", "known"]
VERDICTS: tuple[Verdict, ...] = ("fail", "warn", "known", "not-seen", "skipped", "pass")
_TELLING: tuple[Verdict, ...] = ("fail", "warn", "known", "pass", "skipped", "not-seen")  # of two, the first stands
# Headers that the signature makes useless for a repeat; `bank-emulator request` or the proxy makes new ones.
_OF_THE_SIGNATURE = frozenset({"signature", "digest", "date", "tpp-signature-certificate", "host", "content-length"})


class FailureShown(BaseModel):
    """One failure: what was expected, the request that was the occasion, and the one that was seen instead."""

    model_config = ConfigDict(extra="forbid")

    text: str
    occasion: str
    instead: str | None = None
    requests: list[str]
    curl: list[str]


class CheckShown(BaseModel):
    """The verdict of one check; `passed` and `failed` count occasions."""

    model_config = ConfigDict(extra="forbid")

    check: str
    level: Literal["must", "should"]
    verdict: Verdict
    group: str
    role: str
    about: str
    spec: str
    requests: list[str]
    text: str
    passed: int
    failed: int
    failures: list[FailureShown]


class Report(BaseModel):
    """The report on a TPP: every check, and how many have each verdict."""

    model_config = ConfigDict(extra="forbid")

    checks: list[CheckShown]
    summary: dict[str, int]


def report(checks: Iterable[Check], records: Mapping[str, Record]) -> dict[str, Any]:
    """The report as JSON has it; `records` by the check's name."""
    return summed([_shown(check, records.get(check.check, Record())) for check in checks])


def summed(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The report that has these checks."""
    return {
        "checks": list(rows),
        "summary": {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS},
    }


def merged(reports: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One report of several banks: occasions are added up, and of two verdicts the worse one stands."""
    rows: dict[str, dict[str, Any]] = {}
    for one in reports:
        for row in one["checks"]:
            known = rows.get(row["check"])
            rows[row["check"]] = row if known is None else _added(known, row)
    return summed(list(rows.values()))


def _added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    worse, better = sorted((one, other), key=lambda row: _TELLING.index(row["verdict"]))
    return {
        **worse,
        "passed": one["passed"] + other["passed"],
        "failed": one["failed"] + other["failed"],
        "failures": [*worse["failures"], *better["failures"]][:MOST_FAILURES],
    }


def verdict_of(check: Check, record: Record) -> Verdict:
    """The verdict that these occasions give."""
    if record.failed:
        return "fail" if check.level == "must" else "warn"
    if record.passed:
        return "pass"
    return "skipped" if record.skipped else "not-seen"


def _shown(check: Check, record: Record) -> dict[str, Any]:
    failures = [_failure(failure) for failure in record.failures]
    requests = sorted({identity for failure in failures for identity in failure["requests"]}, key=int)
    text = failures[0]["text"] if failures else ""
    if record.failed > len(failures):
        text += f" ({record.failed} times; the first {len(failures)} are shown.)"
    verdict = verdict_of(check, record)
    if verdict == "not-seen":
        text = "The occasion never arose."
    elif verdict == "skipped":
        text = "What the TPP believes is not known: --claims tells where to ask."
    return {
        "check": check.check,
        "level": check.level,
        "verdict": verdict,
        "group": check.group,
        "role": check.role,
        "about": check.about,
        "spec": check.spec,
        "requests": requests,
        "text": text,
        "passed": record.passed,
        "failed": record.failed,
        "failures": failures,
    }


def _failure(failure: Failure) -> dict[str, Any]:
    seen = [entry for entry in (failure.occasion, failure.instead) if entry is not None]
    shown: dict[str, Any] = {"text": failure.text.strip(), "occasion": failure.occasion.what}
    if failure.instead is not None:
        shown["instead"] = failure.instead.what
    shown["requests"] = list(dict.fromkeys(entry.id for entry in seen if entry.id))
    shown["curl"] = [curl(entry) for entry in seen if entry.headers]
    return shown


def curl(request: Evidence) -> str:
    """The request as a curl line for the signing proxy, which signs it again."""
    words = ["curl", "-X", request.method, f"$PROXY{request.target}"]
    for name, value in request.headers:
        if name.lower() not in _OF_THE_SIGNATURE:
            words += ["-H", f"{name}: {value}"]
    if request.body:
        words += ["--data-binary", request.body]
    return " ".join(word if word.startswith("$PROXY") else shlex.quote(word) for word in words)


def exit_status(shown: Mapping[str, Any], *, require_seen: bool = False) -> int:
    """0 when no must has failed, else 1; with `require_seen` also 1 for an occasion that never arose."""
    summary = shown["summary"]
    return int(bool(summary["fail"] or (require_seen and summary["not-seen"])))


_MARKS: Mapping[str, str] = {
    "pass": "pass",
    "fail": "FAIL",
    "warn": "warn",
    "not-seen": "not seen",
    "skipped": "skipped",
    "known": "known",
}


def terminal(shown: Mapping[str, Any], *, healed: Iterable[str] = (), planned: bool = False) -> str:
    """The report for a terminal: a table, the failures in full, and the sums; `planned`: of a run of the plan."""
    lines = []
    width = max((len(row["check"]) for row in shown["checks"]), default=0)
    for row in shown["checks"]:
        lines.append(f"{_MARKS[row['verdict']]:<9} {row['check']:<{width}}  {row['about']}")
        if row["verdict"] == "skipped":
            lines.append(f"{'':<9} {'':<{width}}  {row['text']}")
    for row in shown["checks"]:
        if row["verdict"] not in ("fail", "warn"):
            continue
        lines += ["", f"{_MARKS[row['verdict']]}: {row['check']} ({row['level']}, see /docs/{row['spec']})"]
        for failure in row["failures"][:3]:
            lines.append(f"  {failure['text']}")
            lines.append(f"    seen:    {failure['occasion']}")
            if "instead" in failure:
                lines.append(f"    then:    {failure['instead']}")
            if failure["requests"]:
                lines.append(f"    look at: bank-emulator requests show {failure['requests'][-1]}")
            lines += [f"    again:   {line}" for line in failure["curl"][-1:]]
    for name in healed:
        lines += ["", f"{name} is in the baseline and passes now: take it out with --write-baseline."]
    sums = ", ".join(f"{count} {_MARKS[verdict].lower()}" for verdict, count in shown["summary"].items() if count)
    lines += ["", sums or "nothing was judged"]
    if shown["summary"].get("not-seen"):
        more = "your TPP left its tasks early" if planned else "run more of your flows, or the plan (conformance run)"
        lines.append(f"What was not seen is not passed: {more}.")
    return "\n".join(lines)


def junit(shown: Mapping[str, Any]) -> str:
    """The report as JUnit XML; what was not seen, skipped or known is a skipped test, a should that failed passes
    with its text in system-out.
    """
    rows = shown["checks"]
    suite = ElementTree.Element(
        "testsuite",
        name="conformance",
        tests=str(len(rows)),
        failures=str(shown["summary"]["fail"]),
        errors="0",
        skipped=str(sum(row["verdict"] in ("not-seen", "skipped", "known") for row in rows)),
    )
    for row in rows:
        case = ElementTree.SubElement(suite, "testcase", classname=f"conformance.{row['group']}", name=row["check"])
        if row["verdict"] == "fail":
            failure = ElementTree.SubElement(case, "failure", message=row["text"])
            failure.text = json.dumps(row["failures"], indent=2, ensure_ascii=False)
        elif row["verdict"] in ("not-seen", "skipped", "known"):
            ElementTree.SubElement(case, "skipped", message=f"{row['verdict']}: {row['text'] or row['about']}")
        elif row["verdict"] == "warn":
            ElementTree.SubElement(case, "system-out").text = f"warning: {row['text']}"
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def html(shown: Mapping[str, Any], *, title: str = "Conformance report") -> str:
    """The report as one page without scripts and links to other files; what was not seen stands first."""
    from jinja2 import Environment

    template = files("emulator.conformance").joinpath("report.html.j2").read_text(encoding="utf-8")
    rows = shown["checks"]
    return (
        Environment(autoescape=True)
        .from_string(template)
        .render(
            title=title,
            summary=shown["summary"],
            marks=_MARKS,
            unseen=[row for row in rows if row["verdict"] in ("not-seen", "skipped")],
            failed=[row for row in rows if row["verdict"] in ("fail", "warn", "known")],
            passed=[row for row in rows if row["verdict"] == "pass"],
        )
    )
