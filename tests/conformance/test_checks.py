"""Each check by a good TPP and by one that does just that wrong."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
import yaml

from emulator.api.messages import Request
from emulator.cli import main
from emulator.conformance.check import FOLDER, Check, ready
from emulator.scenario import durations
from tests.conformance.mutants import MORE_MUTANTS, MUTANTS
from tests.conformance.plan import HOST, Plan
from tests.explore.merchant import Merchant

CHECKS = {check.check: check for check in ready()}


def failed(rows: dict[str, dict[str, Any]]) -> list[str]:
    return [name for name, row in rows.items() if row["verdict"] in ("fail", "warn")]


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_a_good_tpp_passes(check: Check) -> None:
    rows = Plan(check).judge()
    wrong = {name: row["failures"] for name, row in rows.items() if row["verdict"] in ("fail", "warn")}
    assert wrong == {}
    assert rows[check.check]["verdict"] == "pass", rows[check.check]


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_is_shown_as_json_with_the_conditions_of_its_file(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["conformance", "show", name, "--output", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    in_file = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    expected = in_file.pop("expect")
    assert [each.get("of") for each in shown.pop("expect")] == [
        each.get("of") for each in ([expected] if isinstance(expected, dict) else expected)
    ]
    assert shown["seen"] == in_file["seen"]


@pytest.mark.parametrize("name", ["waits-for-the-sca", "ends-at-the-last-page"])
def test_a_good_tpp_is_not_blamed_for_repeating_what_was_lost(name: str) -> None:
    plan = Plan(CHECKS[name])
    plan.control("POST", "/rules", {"name": "loses", "times": {"every": 2}, "then": {"disconnect": "after"}})
    rows = plan.judge()
    assert {one: row["failures"] for one, row in rows.items() if row["verdict"] == "fail"} == {}


# One check for each form of a clause: how long its occasions stay open does not depend on what it looks at.
OF_A_FORM = {
    (clause.kind, clause.clock, clause.within is not None): name
    for name in sorted(CHECKS)
    for clause in CHECKS[name].expect
}.values()


@pytest.mark.parametrize(
    ("name", "mutant"), [*((name, MUTANTS[name]) for name in MUTANTS if name not in OF_A_FORM), *MORE_MUTANTS]
)
def test_a_bad_tpp_fails_that_check_and_no_other(name: str, mutant: type[Merchant]) -> None:
    rows = Plan(CHECKS[name], mutant).judge()
    assert failed(rows) == [name]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in OF_A_FORM else pytest.mark.long) for name in MUTANTS]
)
def test_a_tpp_that_is_good_twice_and_bad_the_third_time_fails_that_check_too(name: str) -> None:
    plan = Plan(CHECKS[name], MUTANTS[name], frozen=True)
    plan.play(Merchant)
    for shop in (Merchant, MUTANTS[name]):
        plan.another_day()
        plan.play(shop)
    assert failed(plan.report()) == [name]


def test_a_tpp_is_not_blamed_for_what_is_booked_after_it_has_read_an_account() -> None:
    plan = Plan(CHECKS["balance-follows-the-ledger"], frozen=True)
    plan.play(Merchant)
    plan.control("POST", "/clock/advance", {"by": "P3D"})  # what is pending in the fixture is booked
    assert failed(plan.report()) == []


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_what_a_fast_tpp_does_wrong_is_not_hidden_by_bank_time_that_passes_meanwhile(check: Check) -> None:
    steps = [durations.exact(step.advance) for step in check.arm.clock if step.advance is not None and step.customer]
    windows = [one.within for one in check.expect if one.kind in ("never", "at_most") and one.clock == "bank"]
    assert all(step < window for step in steps for window in windows if isinstance(window, timedelta))


def test_the_occasion_of_a_lost_answer_says_that_it_was_lost() -> None:
    name = "repeats-a-lost-answer"
    (failure,) = Plan(CHECKS[name], MUTANTS[name]).judge()[name]["failures"]
    assert failure["occasion"].endswith(" answered 201 (the answer was lost)")


def test_every_check_has_a_bad_tpp() -> None:
    assert set(CHECKS) == set(MUTANTS)


def test_the_log_of_a_bank_that_was_replaced_begins_at_any_number() -> None:
    """The bank of a check that was killed is replaced by the next run, and its numbering goes on."""
    name = "stops-on-a-revoked-consent"
    plan = Plan(CHECKS[name])
    for _ in range(3):
        plan.application.handle(Request("GET", "/v1/accounts", (HOST,)))
    plan.control("DELETE", "/requests")
    assert plan.judge()[name]["verdict"] == "pass"
