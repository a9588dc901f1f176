"""`rules`: the scripted rules of the bank (CONTRACT 9.5, 10)."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank.errors import BankError
from emulator.control.answers import closed
from emulator.control.operation import LIMIT, AnswerSpec, ControlCall, ControlOperation
from emulator.scenario.rules import AddedRule
from emulator.scenario.weather import WEATHER


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


def _rules(call: ControlCall[Any]) -> Response:
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
        id="listRules",
        method="GET",
        path="/rules",
        summary="List the rules in evaluation order, with how often each has matched and acted.",
        handler=_rules,
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
        required=True,
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
