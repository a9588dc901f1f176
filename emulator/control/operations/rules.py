"""`rules`: what is scripted (CONTRACT 9.5, 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank.errors import BankError
from emulator.control.operation import LIMIT, ControlCall, ControlOperation, object_of
from emulator.scenario import loader
from emulator.scenario.part import Part

if TYPE_CHECKING:
    from emulator.scenario.rule import Rule


def _rules(call: ControlCall) -> Response:
    rules, most = call.scenario_target.rules, call.query["limit"]
    return json_response(200, {"rules": rules.sources()[:most], "counts": rules.counts()[:most]})


def _add_rules(call: ControlCall) -> Response:
    value, rules = call.body.value, call.scenario_target.rules
    named = isinstance(value, dict) and "rules" in value
    part = call.body.members(("rules",))["rules"] if named else call.body
    added = loader.read_rules(part) if named or isinstance(value, list) else _one_rule(part)
    if not added and not part.report:
        part.wrong("Expected a rule, or a list of rules.")
    call.refuse_mistakes()
    rules.add(added)
    call.tell("rules", "added")
    return json_response(201, {"rules": rules.sources(), "counts": rules.counts()})


def _one_rule(part: Part) -> tuple[Rule, ...]:
    # What reads rules is imported where there are any: a start is quicker without it.
    from emulator.scenario import rule

    found = rule.read(part)
    return () if found is None else (found,)


def _clear_rules(call: ControlCall) -> Response:
    call.scenario_target.rules.clear()
    call.tell("rules", "removed")
    return Response(204)


def _remove_rule(call: ControlCall) -> Response:
    if not call.scenario_target.rules.remove(call.params["name"]):
        raise BankError("RESOURCE_UNKNOWN", f"There is no rule {call.params['name'][:100]}.")
    call.tell("rules", "removed")
    return Response(204)


_RULE = {"type": "object", "required": ["then"], "description": "A rule, as in /_emulator/scenario-schema.json."}
_RULES = {"type": "array", "items": _RULE}

OPERATIONS = (
    ControlOperation(
        id="listRules",
        method="GET",
        path="/rules",
        summary="The rules in the order in which they are asked, and how often each has matched and acted.",
        handler=_rules,
        answers={200: "rules, and counts beside them."},
        query=(LIMIT,),
    ),
    ControlOperation(
        id="addRules",
        method="POST",
        path="/rules",
        summary="Add a rule, or several; they are asked after those that are there.",
        handler=_add_rules,
        answers={201: "All rules."},
        body={"oneOf": [_RULE, _RULES, object_of(("rules",), rules=_RULES)]},
        example={"when": {"operation": "createPayment"}, "times": {"first": 1}, "then": {"disconnect": "after"}},
    ),
    ControlOperation(
        id="clearRules",
        method="DELETE",
        path="/rules",
        summary="Take out all rules.",
        handler=_clear_rules,
        answers={204: "Done."},
    ),
    ControlOperation(
        id="removeRule",
        method="DELETE",
        path="/rules/{name}",
        summary="Take out the rules of this name.",
        handler=_remove_rule,
        answers={204: "Done.", 404: "There is no such rule."},
    ),
)
