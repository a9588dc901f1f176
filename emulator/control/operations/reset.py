"""`reset`: the whole bank new (CONTRACT 9.1)."""

from __future__ import annotations

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank import fixtures
from emulator.control.choices import chosen_fixture, chosen_scenario
from emulator.control.operation import TEXT, ControlCall, ControlOperation, object_of
from emulator.scenario import staging


def _reset(call: ControlCall) -> Response:
    members = call.body.members(("fixtures", "scenario"))
    fixture = chosen_fixture(members.get("fixtures"), call.bank)
    scenario = chosen_scenario(members.get("scenario"))
    call.refuse_mistakes()
    if fixture is None and call.bank is call.banks.default.bank and call.banks.usual_fixture != _made_from(call):
        # An earlier reset may have named another fixture; one that names none goes back to --fixtures.
        fixture = call.banks.usual_fixture
    staging.reset(call.theatre, fixture, scenario)
    return json_response(200, {"fixtures": _made_from(call), "scenario": scenario.name if scenario else None})


def _made_from(call: ControlCall) -> str:
    return fixtures.of(call.bank).source


OPERATIONS = (
    ControlOperation(
        id="reset",
        method="POST",
        path="/reset",
        summary="The whole bank new: documents, clock, settings, rules and request log; snapshots stay.",
        handler=_reset,
        answers={200: "The fixture it was made from, and the scenario that was applied."},
        body=object_of(fixtures=TEXT, scenario={"description": "A name, or a scenario."}),
        example={"fixtures": "known-state"},
    ),
)
