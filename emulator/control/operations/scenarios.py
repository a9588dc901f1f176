"""`scenarios` and `scenario`: what is ready, what is applied, and playing a story (CONTRACT 9.5, 10)."""

from __future__ import annotations

from typing import Any

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank.errors import BankError
from emulator.control.choices import scenario_in
from emulator.control.operation import LIMIT, TEXT, ControlCall, ControlOperation, object_of
from emulator.scenario import loader, target
from emulator.scenario.mistakes import Origin, ScenarioRefused
from emulator.scenario.model import Scenario


def _list(call: ControlCall) -> Response:
    found = [_line(loader.named(name)) for name in loader.library()]
    return json_response(200, {"scenarios": found[: call.query["limit"]]})


def _line(scenario: Scenario) -> dict[str, Any]:
    return {
        "name": scenario.name,
        "summary": scenario.summary,
        "rules": len(scenario.rules),
        "steps": len(scenario.story),
    }


def _named(call: ControlCall) -> Scenario:
    name = call.params["name"]
    if name not in loader.library():
        try:
            return loader.named(name)
        except ScenarioRefused as refused:
            raise BankError("RESOURCE_UNKNOWN", refused.mistakes[0].text) from None
    return loader.named(name)


def _show(call: ControlCall) -> Response:
    return json_response(200, dict(_named(call).source))


def _applied(call: ControlCall) -> Response:
    source = target.applied(call.bank)
    if source is None:
        raise BankError("RESOURCE_UNKNOWN", "No scenario has been applied.")
    return json_response(200, source)


def _apply(call: ControlCall) -> Response:
    part, origin = (call.body, Origin("scenario")) if call.text is None else loader.parsed(call.text, "scenario")
    scenario = scenario_in(part, origin)
    target.apply(scenario, call.scenario_target)
    return json_response(200, dict(scenario.source))


def _withdraw(call: ControlCall) -> Response:
    target.withdraw(call.scenario_target)
    return Response(204)


def _play(call: ControlCall) -> Response:
    """Play on a bank of its own, which is gone afterwards."""
    # What plays stories signs requests as well: imported when a story is played.
    from emulator.scenario.player import play

    return json_response(200, play(_named(call), call.banks.transport()).as_json())


_SCENARIO = {
    "oneOf": [
        object_of(("name",), name={**TEXT, "description": "A ready scenario."}),
        {
            "type": "object",
            "required": ["scenario"],
            "description": "A scenario, as /_emulator/scenario-schema.json says.",
        },
    ]
}

OPERATIONS = (
    ControlOperation(
        id="listScenarios",
        method="GET",
        path="/scenarios",
        summary="The ready scenarios, by name.",
        handler=_list,
        answers={200: "Name, summary, and how many rules and steps each has."},
        query=(LIMIT,),
    ),
    ControlOperation(
        id="getScenario",
        method="GET",
        path="/scenarios/{name}",
        summary="A ready scenario, as JSON of the YAML's shape.",
        handler=_show,
        answers={200: "The scenario.", 404: "There is no such scenario."},
    ),
    ControlOperation(
        id="playScenario",
        method="POST",
        path="/scenarios/{name}/play",
        summary="Play the story of a ready scenario on a bank of its own; this one is not touched.",
        handler=_play,
        answers={200: "How each step went.", 404: "There is no such scenario."},
    ),
    ControlOperation(
        id="getAppliedScenario",
        method="GET",
        path="/scenario",
        summary="The scenario that was applied last, as JSON of the YAML's shape.",
        handler=_applied,
        answers={200: "The scenario.", 404: "None has been applied."},
    ),
    ControlOperation(
        id="applyScenario",
        method="POST",
        path="/scenario",
        summary="Start the bank as a scenario says and add its rules; one with mistakes changes nothing.",
        handler=_apply,
        answers={200: "The scenario.", 400: "Every mistake, with line and column where it came as YAML."},
        body=_SCENARIO,
        example={"name": "insufficient-funds"},
        yaml=True,
    ),
    ControlOperation(
        id="withdrawScenario",
        method="DELETE",
        path="/scenario",
        summary="Forget the applied scenario with its rules, and those of earlier ones; what it changed stays.",
        handler=_withdraw,
        answers={204: "Done."},
    ),
)
