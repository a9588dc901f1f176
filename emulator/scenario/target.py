"""Applies scenarios to a bank, in one transaction each.

In this order: the base (a fixture, a snapshot, or what the bank has), clock, settings, additions, changes (`start.py`),
then the rules, which replace those of an earlier application. What is due at the new time is done in the same
transaction. If anything does not fit the bank, ScenarioRefused names the place in the file, the transaction is undone,
and nothing has changed. The counters of rules and the request log, which are in memory, follow the transaction.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from emulator.api.log import RequestLog
from emulator.bank import fixtures
from emulator.bank.bank import Bank, reports_preparing
from emulator.bank.clock import date_time
from emulator.bank.documents import Restored
from emulator.bank.errors import BankError, counted
from emulator.bank.fixtures import AnyFixture
from emulator.bank.fixtures.entries import DefinitionError
from emulator.bank.kinds import ACCOUNT, CONSENT, CUSTOMER, PAYMENT, SCENARIO, SESSION
from emulator.bank.payment import progression
from emulator.bank.problems import Problem
from emulator.bank.snapshots import Snapshots
from emulator.scenario import loader
from emulator.scenario.loader import Scenario
from emulator.scenario.rules import RuleSet
from emulator.store import Image


@dataclass(frozen=True, slots=True)
class ScenarioTarget:
    """A bank with all that a scenario changes: documents, clock, settings, rules, request log, snapshots."""

    bank: Bank
    rules: RuleSet
    log: RequestLog
    snapshots: Snapshots


def reset(
    scenario_target: ScenarioTarget, fixture: AnyFixture, restored: Restored, scenario: Scenario | None = None
) -> None:
    """Restore a fixture and all else that the bank was made with, and clear the request log; snapshots stay.

    `scenario` is applied in place of the scenarios that it was made with, after its settings. Raises ScenarioRefused
    for one that does not fit the bank; then nothing has changed.
    """
    bank = scenario_target.bank
    with bank.documents.transaction():
        fixtures.reset(bank, fixture, now=fixtures.begins_at(restored), mode=restored.get("clock"))
        scenarios = () if scenario is not None else map(loader.from_value, restored.get("scenarios", ()))
        furnish(scenario_target, scenarios, restored.get("settings"))
        if scenario is not None:
            _perform(scenario, scenario_target)
        progression.run_due(bank)
        bank.documents.undoing(scenario_target.log.clear())
    _publish(bank, "reset", bank.name, "reset")


def furnish(scenario_target: ScenarioTarget, scenarios: Iterable[Scenario], settings: Mapping[str, Any] | None) -> None:
    """Apply the scenarios and then the settings that a bank is made with; raises ScenarioRefused."""
    for scenario in scenarios:
        apply(scenario, scenario_target)
    if settings:
        scenario_target.bank.change_settings(settings)


def prepare(
    scenario: Scenario, scenario_target: ScenarioTarget, *, status: str = "preparing"
) -> Generator[object, None, Image | None]:
    """Prepare the snapshot that a scenario starts from, for `apply`; a large one is read beside other work.

    Events about it have this `status`. None: `apply` needs nothing, or refuses the scenario. Raises CONFLICT if the
    bank is replaced or deleted meanwhile.
    """
    snapshot = scenario.start.snapshot
    if snapshot is None:
        return None
    bank = scenario_target.bank
    report = reports_preparing(bank, "scenario", status=status, name=scenario.name)
    with bank.preparing():
        try:
            return (yield from scenario_target.snapshots.prepare(bank, snapshot, report))
        except BankError:
            return None


def apply(scenario: Scenario, scenario_target: ScenarioTarget, content: Image | None = None) -> dict[str, Any]:
    """Apply the start and the rules of a scenario; returns `{scenario, reset, clock, rules, settings, notes?}`.

    Its rules follow the existing ones; those of an earlier application of the scenario are replaced.
    `content`: the result of `prepare`. Raises ScenarioRefused; then nothing has changed.
    """
    bank = scenario_target.bank
    with bank.documents.transaction():
        _perform(scenario, scenario_target, content)
        progression.run_due(bank)
        if scenario.start.snapshot is not None:
            scenario_target.rules.restart()
        if scenario.start.resets:
            bank.documents.undoing(scenario_target.log.clear())
    if scenario.start.resets:
        _publish(bank, "reset", bank.name, "reset")
    _publish(bank, "scenario", scenario.name, "applied")
    return _done(scenario, bank)


def _done(scenario: Scenario, bank: Bank) -> dict[str, Any]:
    return {
        "scenario": scenario.name,
        "reset": scenario.start.resets,
        "clock": {"now": date_time(bank.clock.now()), "mode": bank.clock.mode},
        "rules": len(scenario.rules),
        "settings": dict(scenario.start.changed_settings),
        **({"notes": scenario.notes} if scenario.notes else {}),
    }


_COUNTED = (
    (CUSTOMER, "customer"),
    (ACCOUNT, "account"),
    (SESSION, "session"),
    (CONSENT, "consent"),
    (PAYMENT, "payment"),
)


class _Previewed(Exception):
    """Rolls the transaction of a preview back."""


def preview(scenario: Scenario, scenario_target: ScenarioTarget, content: Image | None = None) -> dict[str, Any]:
    """The result of `apply`, with `losses` as `lost`, without changing anything; raises ScenarioRefused.

    `content`: the result of `prepare`.
    """
    bank = scenario_target.bank
    done: dict[str, Any] = {}
    try:
        lost = losses(scenario, bank)
        with bank.documents.transaction():
            _perform(scenario, scenario_target, content)
            done = _done(scenario, bank)
            raise _Previewed
    except _Previewed:
        return {**done, "lost": lost}


def contents(bank: Bank) -> list[str]:
    """What a reset deletes, counted in words: `4 customers`, `12 payments`."""
    return [counted(number, one) for kind, one in _COUNTED if (number := bank.documents.count(kind))]


def losses(scenario: Scenario, bank: Bank) -> list[str]:
    """The data of the bank that applying the scenario would replace, one phrase each, without moments."""
    start, lost = scenario.start, list[str]()
    if start.resets:
        lost += [*contents(bank), "the rules", "the settings", "the request log"]
    if start.resets or start.clock is not None:
        lost.append("the bank time")
    return lost


def _perform(scenario: Scenario, scenario_target: ScenarioTarget, content: Image | None = None) -> None:
    """Apply start and rules, in the transaction of the caller; raises ScenarioRefused, also for one without either."""
    if scenario.play_only:
        name = scenario.name
        text = f"{name} only has a story and changes nothing; play it: bank-emulator scenario play {name}"
        raise scenario.origin.refused([Problem(("play",), f"{text}.")])
    try:
        scenario.start.apply(scenario_target.bank, scenario_target.snapshots, content)
    except DefinitionError as error:
        raise scenario.origin.refused(error.problems) from None
    scenario_target.rules.remove_scenario(scenario.name)
    scenario_target.rules.add(zip(scenario.rules, scenario.rule_sources, strict=True), scenario=scenario.name)
    SCENARIO.write(scenario_target.bank.documents, {"id": "scenario", "source": dict(scenario.source)})


def applied(bank: Bank) -> dict[str, Any] | None:
    """The scenario that was applied last, as JSON of the same structure as its YAML."""
    stored = SCENARIO.read(bank.documents)
    return None if stored is None else stored["source"]


def withdraw(scenario_target: ScenarioTarget) -> None:
    """Remove the applied scenario and the rules of all applied scenarios.

    Their changes stay, and so do rules that were added otherwise (assumed).
    """
    source = applied(scenario_target.bank)
    if source is not None:
        with scenario_target.bank.documents.transaction():
            SCENARIO.delete(scenario_target.bank.documents)
            scenario_target.rules.remove_scenarios()
        _publish(scenario_target.bank, "scenario", source["scenario"], "withdrawn")


def _publish(bank: Bank, kind: str, identity: str, status: str) -> None:
    bank.publish({"type": kind, "id": identity, "status": status, "at": bank.clock.stamp()})
