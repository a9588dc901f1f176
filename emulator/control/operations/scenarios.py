"""Scenarios and rules: list, apply, withdraw and play scenarios; add and remove rules."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from itertools import islice
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from emulator.bank.clock import date_time
from emulator.bank.errors import BankError
from emulator.bank.threads import in_thread
from emulator.control.operation import LIMIT, ControlCall, Json, Work, operation
from emulator.control.operations import AnyObject, Closed, scenario_in
from emulator.control.operations.clock import ClockTime
from emulator.scenario import loader, target
from emulator.scenario.loader import Origin, Scenario, ScenarioRefused
from emulator.scenario.rules import WEATHER

LARGE = 1 << 16  # bytes of a body; a larger one is read in a thread


class ScenarioLine(Closed):
    """A ready scenario: what it does, whether it can be applied, and what applying it replaces.

    `parameters`: `{default, about?}` by name; `reset`: whether the documents of the bank are replaced; `clock`: the
    bank time that is set. `problem`: why the file of a team's own scenario cannot be used.
    """

    name: str
    summary: str
    play: Literal["only"] | None
    parameters: dict[str, dict[str, Any]]
    reset: bool
    clock: str | None
    rules: int
    steps: int
    problem: NotRequired[str]


class Applied(Closed):
    """The result of applying a scenario: whether the bank was reset, bank time, number of rules, settings.

    `notes`: the payments that its rules do not change.
    """

    scenario: str
    reset: bool
    clock: ClockTime
    rules: int
    settings: dict[str, Any]
    notes: NotRequired[list[str]]


class Preview(Applied):
    """The expected result of applying a scenario; `lost` describes the data of the bank that it would replace."""

    lost: list[str]


class PlayedStep(TypedDict):
    """The result of a step of a story."""

    step: int
    action: str
    outcome: Literal["passed", "failed", "skipped"]
    expected: NotRequired[Any]
    found: NotRequired[dict[str, Any]]
    differences: NotRequired[list[str]]


_PROBLEMS = "Every problem; in YAML with line and column."
_with_scenario = partial(
    operation,
    "POST",
    body="emulator.control.operations:ScenarioBody",
    example={"name": "insufficient-funds", "parameters": {}},
    yaml=True,
)


@operation("GET", "/scenarios", {200: ("The scenarios, by name.", {"scenarios": list[ScenarioLine]})}, query=(LIMIT,))
def list_scenarios(call: ControlCall[Any]) -> Json:
    """List the ready scenarios: what each does, its parameters, and what applying it replaces."""
    return {"scenarios": [_listed(*one) for one in islice(loader.listed(), call.query["limit"])]}


def _listed(name: str, scenario: Scenario | ScenarioRefused) -> dict[str, Any]:
    if isinstance(scenario, ScenarioRefused):
        nothing: dict[str, Any] = {"parameters": {}, "reset": False, "clock": None, "rules": 0, "steps": 0}
        return {"name": name, "summary": "", "play": None, **nothing, "problem": scenario.one_line()}
    start = scenario.start
    return {
        "name": name,
        "summary": scenario.summary,
        "play": "only" if scenario.play_only else None,
        "parameters": dict(scenario.source.get("parameters", {})),
        "reset": start.resets,
        "clock": None if start.clock is None else date_time(start.clock),
        "rules": len(scenario.rules),
        "steps": len(scenario.story),
    }


def _named(call: ControlCall[Any]) -> Scenario:
    try:
        return loader.named(call.params["name"])
    except ScenarioRefused as refused:
        raise BankError("RESOURCE_UNKNOWN", refused.problems[0].text) from None


@operation("GET", "/scenarios/{name}", {200: ("The scenario.", AnyObject), 404: "There is no such scenario."})
def get_scenario(call: ControlCall[Any]) -> Json:
    """Get a ready scenario, as JSON of the same structure as its YAML."""
    return dict(_named(call).source)


@operation("GET", "/scenario", {200: ("The scenario.", AnyObject), 404: "None has been applied."})
def get_applied_scenario(call: ControlCall[Any]) -> Json:
    """Get the scenario that was applied last, as JSON of the same structure as its YAML."""
    source = target.applied(call.bank)
    if source is None:
        raise BankError("RESOURCE_UNKNOWN", "No scenario has been applied.")
    return source


def _given(call: ControlCall[Any]) -> Generator[object, None, Scenario]:
    """The scenario of the body: a ready one by its name, JSON or YAML; raises ScenarioRefused."""

    def read() -> Scenario:
        value, origin = (call.value, Origin("scenario")) if call.text is None else loader.parsed(call.text, "scenario")
        return scenario_in(value, origin)

    return (yield from in_thread(read)) if len(call.request.body) > LARGE else read()


@_with_scenario("/scenario", {200: ("What was changed.", Applied), 400: _PROBLEMS})
def apply_scenario(call: ControlCall[Any]) -> Work:
    """Apply a scenario: its start, then its rules. One with problems changes nothing."""
    scenario = yield from _given(call)
    content = yield from target.prepare(scenario, call.scenario_target)
    return target.apply(scenario, call.scenario_target, content)


@_with_scenario("/scenario/preview", {200: ("What would be changed.", Preview), 400: _PROBLEMS})
def preview_scenario(call: ControlCall[Any]) -> Work:
    """Preview what applying a scenario would change and replace; nothing is changed."""
    scenario = yield from _given(call)
    content = yield from target.prepare(scenario, call.scenario_target, status="previewing")
    return target.preview(scenario, call.scenario_target, content)


@operation("DELETE", "/scenario", {204: "Done."})
def withdraw_scenario(call: ControlCall[Any]) -> None:
    """Remove the applied scenario and the rules of all applied scenarios; what they changed stays."""
    target.withdraw(call.scenario_target)


@operation(
    "POST",
    "/scenarios/{name}/play",
    {
        200: ("The result of each step.", {"scenario": str, "summary": str, "passed": bool, "steps": list[PlayedStep]}),
        404: "There is no such scenario.",
        409: "The request is a step of a story that is being played.",
    },
)
def play_scenario(call: ControlCall[Any]) -> Json:
    """Play the story of a ready scenario on a new bank; this bank is not changed.

    Play on a new bank, which is deleted afterwards.
    """
    # Imported on use: most processes never play a story.
    from emulator.scenario.player import play

    return play(_named(call), call.banks.transport()).as_json()


class RuleCount(Closed):
    """How often a rule has matched and acted since it was added; `setting` names the setting that added it, if any.

    `notes`: the payments that it does not change, although they match.
    """

    name: str
    scenario: str | None
    setting: NotRequired[str]
    matched: int
    acted: int
    notes: NotRequired[list[str]]


class Rules(Closed):
    """The rules, as JSON of the same structure as their YAML, and their counts; both in evaluation order."""

    rules: list[dict[str, Any]]
    counts: list[RuleCount]


@operation("GET", "/rules", {200: ("The rules and their counts.", Rules)}, query=(LIMIT,))
def list_rules(call: ControlCall[Any]) -> Json:
    """List the rules in evaluation order, with how often each has matched and acted."""
    rules, most = call.scenario_target.rules, call.query["limit"]
    return {"rules": rules.sources()[:most], "counts": rules.counts()[:most]}


@operation(
    "POST",
    "/rules",
    {201: ("All rules.", Rules)},
    body="emulator.scenario.rule:RulesBody",
    example={"when": {"operation": "createPayment"}, "times": {"first": 1}, "then": {"disconnect": "after"}},
)
def add_rules(call: ControlCall[Any]) -> Json:
    """Add one or more rules after the existing ones."""
    rules = call.scenario_target.rules
    added, sources = _several(call.body), _several(call.value)
    if not added:
        path = "rules" if isinstance(call.value, dict) else None
        raise BankError("FORMAT_ERROR", "Expected a rule, or a list of rules.", path)
    brought = [dict(rule) for weather in WEATHER.values() for rule in weather]
    rules.add(pair for pair in zip(added, sources, strict=True) if pair[1] not in brought)
    call.publish("rules", "added")
    return {"rules": rules.sources(), "counts": rules.counts()}


def _several(given: Any) -> list[Any]:
    """The rules of a body, validated or as JSON: a list, the list in its member rules, or a single one."""
    listed = given.get("rules", given) if isinstance(given, dict) else getattr(given, "rules", given)
    return listed if isinstance(listed, list) else [listed]


@operation("DELETE", "/rules", {204: "Done."})
def clear_rules(call: ControlCall[Any]) -> None:
    """Remove all rules."""
    call.scenario_target.rules.clear()
    call.publish("rules", "removed")


@operation("DELETE", "/rules/{name}", {204: "Done.", 404: "There is no such rule."})
def remove_rule(call: ControlCall[Any]) -> None:
    """Remove the rules with this name."""
    if not call.scenario_target.rules.remove(call.params["name"]):
        raise BankError("RESOURCE_UNKNOWN", f"There is no rule {call.params['name'][:100]}.")
    call.publish("rules", "removed")
