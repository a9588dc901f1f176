"""Reports: as JSON, on a terminal, as JUnit and as one HTML page that needs no network.

A baseline lists the checks that are known to fail, so that a build fails for new failures only.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict

from emulator import junit
from emulator.api.log import curl_words
from emulator.bank.fixtures import strict_yaml
from emulator.conformance.auditor import MOST_FAILURES, Evidence, Failure, Record
from emulator.conformance.check import Check
from emulator.failure import Failed

Verdict = Literal["pass", "fail", "warn", "not-seen", "skipped", "known"]
VERDICTS: tuple[Verdict, ...] = ("fail", "warn", "known", "not-seen", "skipped", "pass")
# Of two verdicts the first one counts.
_PRECEDENCE: tuple[Verdict, ...] = ("fail", "warn", "known", "pass", "skipped", "not-seen")
NO_OCCASION = "There was no occasion."
UNDECIDED = "The occasion arose, and no request that decides the check has followed."
# Headers of the signature, which cannot be sent again; `bank-emulator request` and the proxy add new ones.
_SIGNATURE_HEADERS = frozenset({"signature", "digest", "date", "tpp-signature-certificate"})


class _ReportPart(BaseModel):
    model_config = ConfigDict(extra="forbid")


class FailureShown(_ReportPart):
    """One failure: what was expected, the request that was the occasion, and the one that came instead."""

    text: str
    occasion: str
    instead: str | None = None
    requests: list[str]
    curl: list[str]


class CheckShown(_ReportPart):
    """The verdict of one check; `passed` and `failed` count occasions."""

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


class Report(_ReportPart):
    """The report on a TPP: every check, and the number of checks per verdict."""

    checks: list[CheckShown]
    summary: dict[str, int]


def report(checks: Iterable[Check], records: Mapping[str, Record]) -> dict[str, Any]:
    """The report as JSON; `records` by the name of the check."""
    return summed([_shown(check, records.get(check.check, Record())) for check in checks])


def summed(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "checks": list(rows),
        "summary": {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in VERDICTS},
    }


def merged(reports: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One report of several banks: occasions are added up, and of two verdicts the worse one counts."""
    rows: dict[str, dict[str, Any]] = {}
    for one in reports:
        for row in one["checks"]:
            known = rows.get(row["check"])
            rows[row["check"]] = row if known is None else _added(known, row)
    return summed(list(rows.values()))


def _added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    worse, better = sorted((one, other), key=lambda row: _PRECEDENCE.index(row["verdict"]))
    return {
        **worse,
        "passed": one["passed"] + other["passed"],
        "failed": one["failed"] + other["failed"],
        "failures": [*worse["failures"], *better["failures"]][:MOST_FAILURES],
    }


def _shown(check: Check, record: Record) -> dict[str, Any]:
    failures = [_failure(failure) for failure in record.failures]
    requests = sorted({identity for failure in failures for identity in failure["requests"]}, key=int)
    text = failures[0]["text"] if failures else ""
    if record.failed > len(failures):
        text += f" ({record.failed} times; the first {len(failures)} are shown.)"
    verdict: Verdict
    if record.failed:
        verdict = "fail" if check.level == "must" else "warn"
    elif record.passed:
        verdict = "pass"
    elif record.skipped:
        verdict, text = "skipped", "The claims of the TPP are not known: --claims names their address."
    else:
        verdict, text = "not-seen", UNDECIDED if record.undecided else NO_OCCASION
    return {
        **check.model_dump(include={"check", "level", "group", "role", "about", "spec"}),
        "verdict": verdict,
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
    """The request as a curl command for the signing proxy."""
    headers = [(name, value) for name, value in request.headers if name.lower() not in _SIGNATURE_HEADERS]
    return " ".join(curl_words(request.method, f"$PROXY{quote(request.target)}", headers, request.body))


def exit_status(shown: Mapping[str, Any], *, require_seen: bool = False) -> int:
    """0 if no check of level must failed, else 1; with `require_seen` also 1 for a verdict not-seen."""
    summary = shown["summary"]
    return int(bool(summary["fail"] or (require_seen and summary["not-seen"])))


def read_baseline(file: Path, known: Collection[str]) -> frozenset[str]:
    """The check names of a baseline file, `known-failures: [name, ...]`, all in `known`; raises Failed."""
    try:
        value = strict_yaml.read(strict_yaml.text_of(file)).value
    except (OSError, ValueError) as error:
        raise Failed(f"{file}: {getattr(error, 'strerror', None) or error}") from None
    except strict_yaml.YamlError as error:
        raise Failed(f"{file}: {error}") from None
    names = value.get("known-failures") if isinstance(value, dict) else None
    if not isinstance(names, list) or set(value) != {"known-failures"}:
        raise Failed(f"{file}: expected known-failures with a list of checks")
    unknown = [name for name in names if not isinstance(name, str) or name not in known]
    if unknown:
        raise Failed(f"{file}: there is no check {unknown[0]!r}")
    return frozenset(names)


def baseline(report: Mapping[str, Any]) -> str:
    """The failing checks of a report as a baseline file."""
    names = [row["check"] for row in report["checks"] if row["verdict"] in ("fail", "warn", "known")]
    text = "# Checks that are known to fail. bank-emulator conformance ... --write-baseline writes this file.\n"
    return text + yaml.safe_dump({"known-failures": names}, sort_keys=False)


def with_baseline(report: Mapping[str, Any], names: Collection[str]) -> tuple[dict[str, Any], list[str]]:
    """The report in which failures of these checks are `known`, and the names of those that pass now."""
    rows = [
        {**row, "verdict": "known"} if row["check"] in names and row["verdict"] in ("fail", "warn") else row
        for row in report["checks"]
    ]
    fixed = [row["check"] for row in rows if row["check"] in names and row["verdict"] == "pass"]
    return summed(rows), fixed


_MARKS: Mapping[str, str] = {**{verdict: verdict for verdict in VERDICTS}, "fail": "FAIL", "not-seen": "not seen"}


def terminal(shown: Mapping[str, Any], *, fixed: Iterable[str] = (), planned: bool = False) -> str:
    """The report for a terminal: a table, the failures in full, and the sums; `planned`: of `conformance run`."""
    lines = []
    width = max((len(row["check"]) for row in shown["checks"]), default=0)
    for row in shown["checks"]:
        lines.append(f"{_MARKS[row['verdict']]:<9} {row['check']:<{width}}  {row['about']}")
        if row["verdict"] in ("not-seen", "skipped") and row["text"] != NO_OCCASION:
            lines.append(f"{'':<9} {'':<{width}}  {row['text']}")
    lines += failures(shown, planned=planned)
    for name in fixed:
        lines += ["", f"{name} is in the baseline and passes now: remove it with --write-baseline."]
    lines += ["", sums(shown)]
    if shown["summary"].get("not-seen"):
        more = (
            "your TPP ended early, or does not use what it is about"
            if planned
            else "use more of your flows, or `conformance run`"
        )
        lines.append(f"A check that is not seen has not passed: {more}.")
    return "\n".join(lines)


def failures(shown: Mapping[str, Any], *, planned: bool = False) -> list[str]:
    """The failed checks as lines, each after an empty one; `planned`: their banks, with their logs, are gone."""
    lines = []
    for row in shown["checks"]:
        if row["verdict"] not in ("fail", "warn"):
            continue
        lines += ["", f"{_MARKS[row['verdict']]}: {row['check']} ({row['level']}, see /docs/{row['spec']})"]
        for failure in row["failures"][:3]:
            lines.append(f"  {failure['text']}")
            lines.append(f"    seen:    {failure['occasion']}")
            if "instead" in failure:
                lines.append(f"    then:    {failure['instead']}")
            if failure["requests"] and not planned:
                lines.append(f"    look at: bank-emulator requests show {failure['requests'][-1]}")
            lines += [f"    again:   {line}" for line in failure["curl"][-1:]]
    return lines


def sums(shown: Mapping[str, Any]) -> str:
    """How many checks have each verdict, in a line."""
    return (
        ", ".join(f"{count} {_MARKS[verdict].lower()}" for verdict, count in shown["summary"].items() if count)
        or "no checks"
    )


def junit_report(shown: Mapping[str, Any]) -> str:
    """The report as JUnit XML.

    The verdicts not-seen, skipped and known are skipped tests; warn is a passed test with its text in system-out.
    """
    return junit.document(junit.suite("conformance", map(_case, shown["checks"])))


def _case(row: Mapping[str, Any]) -> junit.Case:
    verdict, group = row["verdict"], f"conformance.{row['group']}"
    if verdict == "fail":
        failures = json.dumps(row["failures"], indent=2, ensure_ascii=False)
        return junit.Case(group, row["check"], failure=(row["text"], failures))
    if verdict in ("not-seen", "skipped", "known"):
        return junit.Case(group, row["check"], skipped=f"{verdict}: {row['text'] or row['about']}")
    return junit.Case(group, row["check"], output=f"warning: {row['text']}" if verdict == "warn" else None)


def html(shown: Mapping[str, Any], *, title: str = "Conformance report") -> str:
    """The report as one HTML page without scripts and external files; checks that were not seen come first."""
    rows = shown["checks"]
    return page(
        "emulator.conformance",
        title=title,
        summary=shown["summary"],
        marks=_MARKS,
        unseen=[row for row in rows if row["verdict"] in ("not-seen", "skipped")],
        failed=[row for row in rows if row["verdict"] in ("fail", "warn", "known")],
        passed=[row for row in rows if row["verdict"] == "pass"],
    )


def page(package: str, **values: Any) -> str:
    """The report of a package as its template shows these values."""
    from jinja2 import Environment  # only a report as a page needs it

    template = files(package).joinpath("report.html.j2").read_text(encoding="utf-8")
    return Environment(autoescape=True).from_string(template).render(values)
