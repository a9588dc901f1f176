"""`reset`: the whole bank new (CONTRACT 9.1)."""

from __future__ import annotations

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank import fixtures
from emulator.control.choices import chosen_fixture, chosen_scenario
from emulator.control.operation import TEXT, ControlCall, ControlOperation, object_of
from emulator.scenario import target


def _reset(call: ControlCall) -> Response:
    members = call.body.members(("fixtures", "scenario"))
    made_with = call.banks.made_with(call.bank)
    fixture = chosen_fixture(members.get("fixtures"), own=made_with.source)
    scenario = chosen_scenario(members.get("scenario"))
    call.refuse_mistakes()
    target.reset(call.scenario_target, fixture or made_with, scenario)
    stands_on = fixtures.of(call.bank).source
    return json_response(200, {"fixtures": stands_on, "scenario": scenario.name if scenario else None})


FIXTURES = {**TEXT, "description": "Left out: what the bank was made with, whatever an earlier reset named."}
OPERATIONS = (
    ControlOperation(
        id="reset",
        method="POST",
        path="/reset",
        summary="The whole bank new: documents, clock, settings, rules and request log; snapshots stay.",
        handler=_reset,
        answers={200: "The fixture it stands on now, and the scenario that was applied."},
        body=object_of(fixtures=FIXTURES, scenario={"description": "A name, or a scenario."}),
        example={"fixtures": "known-state"},
    ),
)
