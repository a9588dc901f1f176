"""Schedules: every effect can be drawn, each kind of fault fits the bank, and a file says what is wrong with it."""

from __future__ import annotations

import pytest

from emulator.bank.problems import InputRefused
from emulator.explore import schedule
from emulator.explore.faults import ENDS, ChangeFault, PlannedFault, kinds
from emulator.explore.judge import play
from emulator.explore.search import Search
from emulator.scenario import loader
from emulator.scenario.effects import effects
from emulator.scenario.start import ACCESS
from tests.explore.world import InProcess, house


def test_every_effect_can_be_drawn() -> None:
    examples = schedule.of(
        {"tasks": ["pay"], "faults": [{"fault": kind.name, **kind.example} for kind in kinds().values()]}
    )
    drawn = {effect for rule in schedule.rules_of(examples) for effect in rule["then"]}
    assert set(effects()) - drawn == set(), "these effects are drawn by no fault of emulator/explore/faults.py"
    assert {name for change in ENDS.values() for name in change} == set(ACCESS)


@pytest.mark.parametrize("kind", kinds().values(), ids=kinds())
def test_a_kind_of_fault_fits_the_bank(kind: type[PlannedFault]) -> None:
    fault = {"fault": kind.name, **kind.example}
    tasks = ["read" if fault.get("of") in ("getTransactions", "getBalances") or kind.name == "feed" else "pay"]
    drawn = schedule.of({"tasks": tasks, "faults": [fault]})
    again = schedule.read(drawn.text(), "fault.yaml")
    assert again == drawn
    outcome = play(again, house(), InProcess(), "example")
    assert outcome.findings == []
    met = [row for row in outcome.rows if row.fault]
    assert drawn.faults[0].described() in {row.text for row in met}
    if kind.name not in ("feed",):  # which shows in what is read
        assert len(met) > 1 or isinstance(drawn.faults[0], ChangeFault), "no request has met the fault"


def test_what_is_drawn_can_happen() -> None:
    search = Search(house(), InProcess(), schedule.TASKS, base=1)
    for number in range(8):
        drawn = search.drawn(number)
        assert schedule.read(drawn.text(), "drawn.yaml") == drawn


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tasks: [pya]", "f.yaml:1:1: Expected one of pay, read, pay-and-cancel, basket, pay-bulk, read-unattended"),
        ("tasks: []", "tasks"),
        ("faults: []", "tasks"),
        ("tasks: [pay]\nfoults: []", "f.yaml:2:1: There is no member 'foults'; did you mean faults? (foults)"),
        ("tasks: [pay]\nfaults: [{fault: losst}]", "There is no fault 'losst'; did you mean lost?"),
        ("tasks: [pay]\nfaults: [lost]", "a mapping"),
        ("tasks: [pay]\nfaults: [{fault: lost, of: createPaymnt}]", "did you mean createPayment?"),
        ("tasks: [pay]\nfaults: [{fault: fee, of: createPayment, amount: lots}]", "f.yaml:2:1: Expected an amount"),
        ("tasks: [pay]\nfaults: [{fault: notification, of: getBalances}]", "notification has no effect on getBalances"),
        (
            "tasks: [pay]\nfaults: [{fault: statuses, of: createPayment, path: [{ACWC: 1h}]}]",
            "has no step from ACTC to ACWC, so progress does not change its payments.",
        ),
        ("tasks: [pay]\ntime: [{after: 1, passes: 1 month}]", "a duration"),
        ("tasks: [pay]\ntime: [{after: 1, passes: 9999d}]", "At most 400 days"),
        ("tasks: [pay]\nrestarts: [0]", "restarts[0]"),
        ("{", "f.yaml"),
        ("[pay]", "f.yaml"),
    ],
)
def test_a_file_that_is_no_schedule_says_why(text: str, problem: str) -> None:
    with pytest.raises(InputRefused) as refused:
        schedule.read(text, "f.yaml")
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_schedule_of_faults_only_is_a_scenario() -> None:
    faults = [
        {"fault": "lost", "of": "createPayment", "at": 1, "count": 2, "when": "after"},
        {"fault": "feed", "effect": "duplicate", "chance": 1.0},
    ]
    text = schedule.scenario_of(schedule.of({"tasks": ["pay"], "faults": faults}), "found")
    scenario = loader.from_text(text, "found.yaml")
    assert [rule.times and rule.times.at for rule in scenario.rules] == [2, 1]
    assert scenario.start.changed_settings == {"feed": [{"effect": "duplicate", "chance": 1.0}]}
    assert not scenario.start.resets


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ({"customer": ["decline"]}, "customer"),
        ({"time": [{"after": 1, "passes": "1h"}]}, "time"),
        ({"begins": "midnight"}, "begins"),
        ({"restarts": [1]}, "restarts"),
        ({"faults": [{"fault": "money", "of": "createPayment"}]}, "faults (money)"),
    ],
)
def test_what_a_scenario_cannot_say_is_named(part: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match="cannot be part of a scenario") as refused:
        schedule.scenario_of(schedule.of({"tasks": ["pay"], **part}), "found")
    assert str(refused.value).startswith(named)
