"""Verdicts, baselines and the forms of the report; files of checks that cannot be read."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from emulator.bank.problems import InputRefused
from emulator.conformance import report
from emulator.conformance.auditor import Auditor, Evidence, Record
from emulator.conformance.check import read, ready
from emulator.conformance.report import Report
from emulator.failure import Failed
from tests.conformance.mutants import MUTANTS
from tests.conformance.plan import Plan
from tests.known_state import DOMESTIC

CHECKS = {check.check: check for check in ready()}


@pytest.fixture(scope="module")
def failing() -> dict[str, Any]:
    """The report on a TPP that sends again what was refused."""
    plan = Plan(CHECKS["no-blind-repeats"], MUTANTS["no-blind-repeats"])
    plan.judge()
    shown: dict[str, Any] = plan.control("GET", "/conformance")
    return shown


def test_a_bank_that_saw_nothing_has_seen_no_occasion_and_passes_nothing() -> None:
    shown = report.report(ready(), Auditor(ready()).verdicts(0.0, 0.0))
    assert {row["verdict"] for row in shown["checks"]} == {"not-seen"}
    assert shown["summary"]["not-seen"] == len(CHECKS)
    assert report.exit_status(shown) == 0
    assert report.exit_status(shown, require_seen=True) == 1


def test_a_failure_names_the_rule_the_requests_and_how_to_repeat_them(failing: dict[str, Any]) -> None:
    (row,) = [row for row in failing["checks"] if row["verdict"] == "fail"]
    assert row["check"] == "no-blind-repeats"
    assert row["requests"] == ["1", "2"]
    (failure,) = row["failures"]
    assert "sent again unchanged" in failure["text"]
    assert failure["curl"][0].startswith(f"curl -g --path-as-is -X POST $PROXY{DOMESTIC} ")
    assert "Signature" not in failure["curl"][0]
    assert report.exit_status(failing) == 1


def test_a_shell_reads_the_curl_of_a_report_as_the_request_was() -> None:
    target = "/v1/accounts/$(id)/transactions?bookingStatus=both&limit=1"
    sent = Evidence("1", "", "GET", target, (("Date", "now"), ("X-A", ""), ("X-B", "it's")), "@file")
    words = [
        "-g",
        "--path-as-is",
        "-X",
        "GET",
        f"$PROXY{target}",
        "-H",
        "X-A;",
        "-H",
        "X-B: it's",
        "--data-raw",
        "@file",
    ]
    assert shlex.split(report.curl(sent)) == ["curl", *words]
    assert report.curl(sent).count(f"$PROXY'{target}'") == 1


def test_the_report_has_the_form_that_the_interface_describes(failing: dict[str, Any]) -> None:
    Report.model_validate(failing, strict=True)


def test_junit_has_a_test_for_each_check_and_a_failure_for_each_must(failing: dict[str, Any]) -> None:
    suite = ElementTree.fromstring(report.junit_report(failing))
    assert suite.get("tests") == str(len(CHECKS))
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["no-blind-repeats"]


def test_junit_is_xml_whatever_the_tpp_has_sent(failing: dict[str, Any]) -> None:
    spoiled = {
        **failing,
        "checks": [{**row, "text": "a \ufffe\x01", "failures": ["\ufffe"]} for row in failing["checks"]],
    }
    assert ElementTree.fromstring(report.junit_report(spoiled)).find("testcase/failure") is not None


def test_the_page_names_first_what_was_not_seen_and_escapes_what_the_tpp_sent(failing: dict[str, Any]) -> None:
    spoiled = {**failing, "checks": [{**row, "about": "<script>"} for row in failing["checks"]]}
    page = report.html(spoiled)
    assert page.index("Not seen") < page.index("Failures") < page.index("Passed")
    assert "<script>" not in page
    assert "http" not in page.partition("<body>")[0]


def test_each_form_says_why_a_check_was_skipped(failing: dict[str, Any]) -> None:
    record = Record(skipped=1)
    shown = report.report(ready(), {"balance-follows-the-ledger": record})
    (row,) = [row for row in shown["checks"] if row["verdict"] == "skipped"]
    why = "--claims names their address"
    assert why in row["text"]
    assert why in report.terminal(shown)
    assert why in report.html(shown)
    skipped = ElementTree.fromstring(report.junit_report(shown)).find(
        "testcase[@name='balance-follows-the-ledger']/skipped"
    )
    assert skipped is not None
    assert why in str(skipped.get("message"))


def test_a_plan_does_not_refer_to_the_logs_of_its_deleted_banks(failing: dict[str, Any]) -> None:
    assert "bank-emulator requests show " in report.terminal(failing)
    assert "requests show" not in report.terminal(failing, planned=True)


def test_a_baseline_turns_a_known_failure_green_and_names_one_that_passes_now(
    failing: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "known.yaml"
    file.write_text(report.baseline(failing))
    known = report.read_baseline(file, CHECKS)
    assert known == {"no-blind-repeats"}
    laid, fixed = report.with_baseline(failing, known)
    assert report.exit_status(laid) == 0
    warned = [{**row, "verdict": "warn"} if row["check"] in known else row for row in failing["checks"]]
    assert report.exit_status(report.summed(warned)) == 0
    assert fixed == []
    good = [{**row, "verdict": "pass"} if row["check"] in known else row for row in failing["checks"]]
    laid, fixed = report.with_baseline(report.summed(good), known)
    assert fixed == ["no-blind-repeats"]
    assert "known" not in {row["verdict"] for row in laid["checks"]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("known-failures: [no-such-check]", "there is no check 'no-such-check'"),
        ("known-failures: [[a, list]]", "there is no check"),
        ("failures: []", "expected known-failures"),
        ("[", "known.yaml"),
        ("[" * 50_000, "known.yaml"),
        ("known-failures: 2026-99-99", "expected known-failures"),
        ("known-failures: &all [*all]", "known.yaml"),
    ],
)
def test_a_baseline_that_cannot_be_used_is_named(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "known.yaml"
    file.write_text(text)
    with pytest.raises(Failed, match=problem):
        report.read_baseline(file, CHECKS)


def test_two_reports_are_one_with_the_worse_verdict(failing: dict[str, Any]) -> None:
    seen_nothing = report.report(ready(), Auditor(ready()).verdicts(0.0, 0.0))
    merged = report.merged([seen_nothing, failing])
    assert merged["summary"] == failing["summary"]


GOOD = """
check: a-check
about: Something that a TPP does.
practice: Banks do so.
advice: Do it well.
level: must
group: signing
role: any
spec: signature
seen: {operation: createPayment}
expect: {never: {}}
"""


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("level: must", "level: musst", "a-check.yaml:6:1: .*'musst'"),
        ("seen: {operation", "seen: {operatoin", "a-check.yaml:10:8: .*did you mean operation"),
        ("expect: {never", "expect: {nevver", "did you mean never"),
        ("{never: {}}", "{never: {}, at_most: 1}", "Exactly one of"),
        ("{never: {}}", "{never: {}, within: soon}", "a duration"),
        ("createPayment}", "{near: x}}", "There is no member 'near'"),
        ("about: Something that a TPP does.", "", "about"),
        ("check: a-check", "check: another", "but not that of the file"),
    ],
)
def test_a_check_with_an_unknown_word_is_refused_with_file_line_and_a_guess(old: str, new: str, problem: str) -> None:
    with pytest.raises(InputRefused, match=problem):
        read(GOOD.replace(old, new), "a-check.yaml")
