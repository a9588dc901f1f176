"""Each planted bug is found by the search, shrunk, and replayed red, and green when it is mended; no check finds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.conformance.check import Check, ready
from emulator.explore.judge import play
from emulator.explore.schedule import TASKS, from_path, of, read
from emulator.explore.search import Breakage, Search, SearchProgress
from tests.conformance.mutants import OrdersAgain
from tests.conformance.plan import Plan
from tests.explore.merchant import Merchant
from tests.explore.planted import PLANTED
from tests.explore.world import InProcess, house

MOST_FAULTS = 3


class Enough(Exception):
    """The first failure is found."""


def first_found(shop: type[Merchant], seed: int, runs: int = 200) -> Breakage:
    def stop(progress: SearchProgress) -> None:
        if progress.found:
            raise Enough

    search = Search(house(), InProcess(shop), TASKS, base=seed)
    with pytest.raises(Enough):
        search.run(runs, report=stop)
    return search.progress.found[0]


def judged(breakage: Breakage, shop: type[Merchant]) -> set[str]:
    saved = read(breakage.outcome.schedule.text(), "found.yaml")
    return {finding.what for finding in play(saved, house(), InProcess(shop), "replay").findings}


@pytest.mark.long
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found_within_200_runs(name: str) -> None:
    shop, names = PLANTED[name]
    breakage = first_found(shop, seed=1)
    assert breakage.finding.what in names
    assert len(breakage.outcome.schedule.faults) <= MOST_FAULTS
    assert breakage.finding.what in judged(breakage, shop)
    assert judged(breakage, Merchant) == set()
    assert (breakage.failed, breakage.played) == (3, 3)


@pytest.mark.long
@pytest.mark.parametrize("shop", [shop for shop, _ in PLANTED.values()], ids=PLANTED)
def test_no_check_finds_it(shop: type[Merchant]) -> None:
    def wrong(check: Check) -> list[str]:
        rows = Plan(check, shop).judge()
        failed = [name for name, row in rows.items() if row["verdict"] in ("fail", "warn")]
        return failed if rows[check.check]["verdict"] == "pass" else [*failed, check.check]

    assert {check.check: wrong(check) for check in ready() if wrong(check)} == {}


SAVED = {file.stem: schedule for file, schedule in from_path(Path(__file__).parent / "found")}


@pytest.mark.parametrize("name", PLANTED)
def test_a_saved_schedule_is_red_with_the_bug_and_green_without(name: str) -> None:
    shop, names = PLANTED[name]
    red, green = (play(SAVED[name], house(), InProcess(one), "replay").findings for one in (shop, Merchant))
    assert {finding.what for finding in red} & set(names)
    assert green == []


def test_a_failure_is_found_and_shrunk() -> None:
    shop, names = PLANTED["never-takes-forbidden"]
    breakage = first_found(shop, seed=4, runs=20)
    assert breakage.finding.what in names
    schedule = breakage.outcome.schedule
    assert ([fault.fault for fault in schedule.faults], len(schedule.tasks), schedule.restarts) == (
        ["permission"],
        1,
        [],
    )
    assert (breakage.failed, breakage.played) == (3, 3)
    assert judged(breakage, Merchant) == set()


def test_an_order_whose_answer_was_lost_is_not_ordered_again() -> None:
    lost = {"fault": "lost", "of": "createPayment", "at": 1}
    again = play(of({"tasks": ["pay"], "faults": [lost]}), house(), InProcess(OrdersAgain), "again")
    assert [finding.what for finding in again.findings] == ["check-repeats-a-lost-answer"]


class ReadsForever(Merchant):
    most_reads = 10**6

    def ended(self, status: str | None) -> bool:
        return False


def test_what_a_tpp_that_is_stopped_has_not_read_yet_is_not_held_against_it() -> None:
    stopped = play(of({"tasks": ["basket"]}), house(), InProcess(ReadsForever), "endless")
    assert [finding.what for finding in stopped.findings] == ["endless", "check-stops-at-a-final-status"]
    assert any("is stopped" in row.text for row in stopped.rows)


def test_a_forged_notification_is_shown_when_it_comes() -> None:
    forged = {"fault": "notification", "of": "createPayment", "at": 1, "effect": "forged"}
    rows = play(of({"tasks": ["pay"], "faults": [forged]}), house(), InProcess(), "forged").rows
    marked = [row.fault for row in rows if "forged notification delivered: " in row.text and "is ACSC" in row.text]
    assert marked == [True]
    assert any(row.text.startswith("notification delivered: ") for row in rows)
