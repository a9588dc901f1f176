"""`reset`: the bank starts again (CONTRACT 9.1)."""

from __future__ import annotations

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank import fixtures
from emulator.bank.validation import Maybe, Model, Text
from emulator.control import answers
from emulator.control.forms import ScenarioChoice, chosen_fixture
from emulator.control.operation import Answer, ControlCall, ControlOperation
from emulator.scenario import target


class Reset(Model):
    """What the bank starts from; fixtures left out: what it was created with, whatever an earlier reset named."""

    fixtures: Maybe[Text] = None
    scenario: ScenarioChoice = None


def _reset(call: ControlCall[Reset]) -> Response:
    made_with = call.banks.made_with(call.bank)
    fixture = chosen_fixture(call.body.fixtures, own=made_with.source)
    scenario = call.body.scenario
    target.reset(call.scenario_target, fixture or made_with, scenario)
    stands_on = fixtures.of(call.bank).source
    return json_response(200, {"fixtures": stands_on, "scenario": scenario.name if scenario else None})


OPERATIONS = (
    ControlOperation(
        id="reset",
        method="POST",
        path="/reset",
        summary="Reset the bank: documents, clock, settings, rules and request log; snapshots stay.",
        handler=_reset,
        answers={200: Answer("The fixture, and the scenario that was applied.", answers.Reset)},
        body=Reset,
        example={"fixtures": "known-state"},
    ),
)
