"""Scenarios and rules: list, apply, withdraw and play scenarios; add and remove rules (CONTRACT 9.5, 10, 14)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from emulator.api.messages import Response, Steps
from emulator.api.render import json_response
from emulator.bank.clock import date_time
from emulator.bank.errors import BankError
from emulator.bank.threads import in_thread
from emulator.control.forms import AnyObject, closed, scenario_in
from emulator.control.operation import LIMIT, AnswerSpec, ControlCall, ControlOperation
from emulator.control.operations.clock import ClockTime
from emulator.scenario import loader, target
from emulator.scenario.loader import Origin, Scenario, ScenarioRefused
from emulator.scenario.rules import AddedRule
from emulator.scenario.weather import WEATHER

LARGE = 1 << 16  # bytes of a body; a larger one is read in a thread


@closed
class ScenarioLine(TypedDict):
    """A ready scenario: what it does, whether it can be applied, and what applying it replaces.

    `parameters`: `{default, about?}` by name; `reset`: whether the documents of the bank are replaced; `clock`: the
    bank time that is set.
    """

    name: str
    summary: str
    play: Literal["only"] | None
    parameters: dict[str, dict[str, Any]]
    reset: bool
    clock: str | None
    rules: int
    steps: int


@closed
class Scenarios(TypedDict):
    """The ready scenarios."""

    scenarios: list[ScenarioLine]


@closed
class Applied(TypedDict):
    """The result of applying a scenario: whether the bank was reset, bank time, number of rules, settings."""

    scenario: str
    reset: bool
    clock: ClockTime
    rules: int
    settings: dict[str, Any]


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


@closed
class Played(TypedDict):
    """The result of a story."""

    scenario: str
    summary: str
    passed: bool
    steps: list[PlayedStep]


def _list_scenarios(call: ControlCall[Any]) -> Response:
    ready = [_listed(loader.named(name)) for name in loader.library()]
    return json_response(200, {"scenarios": ready[: call.query["limit"]]})


def _listed(scenario: Scenario) -> dict[str, Any]:
    start = scenario.start
    return {
        "name": scenario.name,
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


def _show_scenario(call: ControlCall[Any]) -> Response:
    return json_response(200, dict(_named(call).source))


def _applied(call: ControlCall[Any]) -> Response:
    source = target.applied(call.bank)
    if source is None:
        raise BankError("RESOURCE_UNKNOWN", "No scenario has been applied.")
    return json_response(200, source)


def _given(call: ControlCall[Any]) -> Generator[object, None, Scenario]:
    """The scenario of the body: a ready one by its name, JSON or YAML; raises ScenarioRefused."""

    def read() -> Scenario:
        value, origin = (call.value, Origin("scenario")) if call.text is None else loader.parsed(call.text, "scenario")
        return scenario_in(value, origin)

    return (yield from in_thread(read)) if len(call.request.body) > LARGE else read()


def _apply(call: ControlCall[Any]) -> Steps:
    scenario = yield from _given(call)
    content = yield from target.prepare(scenario, call.scenario_target)
    return json_response(200, target.apply(scenario, call.scenario_target, content))


def _preview(call: ControlCall[Any]) -> Steps:
    scenario = yield from _given(call)
    content = yield from target.prepare(scenario, call.scenario_target, status="previewing")
    return json_response(200, target.preview(scenario, call.scenario_target, content))


def _withdraw(call: ControlCall[Any]) -> Response:
    target.withdraw(call.scenario_target)
    return Response(204)


def _play(call: ControlCall[Any]) -> Response:
    """Play on a new bank, which is deleted afterwards."""
    # Imported on use: most processes never play a story.
    from emulator.scenario.player import play

    return json_response(200, play(_named(call), call.banks.transport()).as_json())


_BODY = "emulator.control.forms:ScenarioBody"
_EXAMPLE = {"name": "insufficient-funds", "parameters": {}}


@closed
class RuleCount(TypedDict):
    """How often a rule has matched and acted since it was added; `setting` names the setting that added it, if any."""

    name: str
    scenario: str | None
    setting: NotRequired[str]
    matched: int
    acted: int


@closed
class Rules(TypedDict):
    """The rules, as JSON of the same structure as their YAML, and their counts; both in evaluation order."""

    rules: list[dict[str, Any]]
    counts: list[RuleCount]


def _list_rules(call: ControlCall[Any]) -> Response:
    rules, most = call.scenario_target.rules, call.query["limit"]
    return json_response(200, {"rules": rules.sources()[:most], "counts": rules.counts()[:most]})


def _add_rules(call: ControlCall[Any]) -> Response:
    rules = call.scenario_target.rules
    added, sources = _several(call.body), _several(call.value)
    if not added:
        path = "rules" if isinstance(call.value, dict) else None
        raise BankError("FORMAT_ERROR", "Expected a rule, or a list of rules.", path)
    brought = [dict(rule) for weather in WEATHER.values() for rule in weather]
    rules.add(AddedRule(rule, source) for rule, source in zip(added, sources, strict=True) if source not in brought)
    call.publish("rules", "added")
    return json_response(201, {"rules": rules.sources(), "counts": rules.counts()})


def _several(given: Any) -> list[Any]:
    """The rules of a body, validated or as JSON: a list, the list in its member rules, or a single one."""
    listed = given.get("rules", given) if isinstance(given, dict) else getattr(given, "rules", given)
    return listed if isinstance(listed, list) else [listed]


def _clear_rules(call: ControlCall[Any]) -> Response:
    call.scenario_target.rules.clear()
    call.publish("rules", "removed")
    return Response(204)


def _remove_rule(call: ControlCall[Any]) -> Response:
    if not call.scenario_target.rules.remove(call.params["name"]):
        raise BankError("RESOURCE_UNKNOWN", f"There is no rule {call.params['name'][:100]}.")
    call.publish("rules", "removed")
    return Response(204)


OPERATIONS = (
    ControlOperation(
        id="listScenarios",
        method="GET",
        path="/scenarios",
        summary="List the ready scenarios: what each does, its parameters, and what applying it replaces.",
        handler=_list_scenarios,
        answers={200: AnswerSpec("The scenarios, by name.", Scenarios)},
        query=(LIMIT,),
    ),
    ControlOperation(
        id="getScenario",
        method="GET",
        path="/scenarios/{name}",
        summary="Get a ready scenario, as JSON of the same structure as its YAML.",
        handler=_show_scenario,
        answers={200: AnswerSpec("The scenario.", AnyObject), 404: AnswerSpec("There is no such scenario.")},
    ),
    ControlOperation(
        id="playScenario",
        method="POST",
        path="/scenarios/{name}/play",
        summary="Play the story of a ready scenario on a new bank; this bank is not changed.",
        handler=_play,
        answers={
            200: AnswerSpec("The result of each step.", Played),
            404: AnswerSpec("There is no such scenario."),
        },
    ),
    ControlOperation(
        id="getAppliedScenario",
        method="GET",
        path="/scenario",
        summary="Get the scenario that was applied last, as JSON of the same structure as its YAML.",
        handler=_applied,
        answers={200: AnswerSpec("The scenario.", AnyObject), 404: AnswerSpec("None has been applied.")},
    ),
    ControlOperation(
        id="applyScenario",
        method="POST",
        path="/scenario",
        summary="Apply a scenario: its start, then its rules. One with problems changes nothing.",
        handler=_apply,
        answers={
            200: AnswerSpec("What was changed.", Applied),
            400: AnswerSpec("Every problem; in YAML with line and column."),
        },
        body=_BODY,
        example=_EXAMPLE,
        yaml=True,
    ),
    ControlOperation(
        id="previewScenario",
        method="POST",
        path="/scenario/preview",
        summary="Preview what applying a scenario would change and replace; nothing is changed.",
        handler=_preview,
        answers={
            200: AnswerSpec("What would be changed.", Preview),
            400: AnswerSpec("Every problem; in YAML with line and column."),
        },
        body=_BODY,
        example=_EXAMPLE,
        yaml=True,
    ),
    ControlOperation(
        id="withdrawScenario",
        method="DELETE",
        path="/scenario",
        summary="Remove the applied scenario and the rules of all applied scenarios; what they changed stays.",
        handler=_withdraw,
        answers={204: AnswerSpec("Done.")},
    ),
    ControlOperation(
        id="listRules",
        method="GET",
        path="/rules",
        summary="List the rules in evaluation order, with how often each has matched and acted.",
        handler=_list_rules,
        answers={200: AnswerSpec("The rules and their counts.", Rules)},
        query=(LIMIT,),
    ),
    ControlOperation(
        id="addRules",
        method="POST",
        path="/rules",
        summary="Add one or more rules after the existing ones.",
        handler=_add_rules,
        answers={201: AnswerSpec("All rules.", Rules)},
        body="emulator.scenario.rule:RulesBody",
        example={"when": {"operation": "createPayment"}, "times": {"first": 1}, "then": {"disconnect": "after"}},
    ),
    ControlOperation(
        id="clearRules",
        method="DELETE",
        path="/rules",
        summary="Remove all rules.",
        handler=_clear_rules,
        answers={204: AnswerSpec("Done.")},
    ),
    ControlOperation(
        id="removeRule",
        method="DELETE",
        path="/rules/{name}",
        summary="Remove the rules with this name.",
        handler=_remove_rule,
        answers={204: AnswerSpec("Done."), 404: AnswerSpec("There is no such rule.")},
    ),
)
