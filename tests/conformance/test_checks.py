"""Each check by a good TPP and by one that does just that wrong."""

from __future__ import annotations

import pytest

from emulator.conformance.check import Check, ready
from tests.conformance.mutants import MUTANTS
from tests.conformance.plan import Plan

CHECKS = {check.check: check for check in ready()}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_a_good_tpp_passes(check: Check) -> None:
    rows = Plan(check).judge()
    wrong = {name: row["failures"] for name, row in rows.items() if row["verdict"] in ("fail", "warn")}
    assert wrong == {}
    assert rows[check.check]["verdict"] == "pass", rows[check.check]


@pytest.mark.parametrize("name", MUTANTS)
def test_a_bad_tpp_fails_that_check_and_no_other(name: str) -> None:
    rows = Plan(CHECKS[name], MUTANTS[name]).judge()
    assert [n for n, row in rows.items() if row["verdict"] in ("fail", "warn")] == [name]


def test_every_check_has_a_bad_tpp() -> None:
    assert set(CHECKS) == set(MUTANTS)
