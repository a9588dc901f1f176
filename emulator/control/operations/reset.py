"""`reset`: reset the bank (CONTRACT 9.1)."""

from __future__ import annotations

from typing_extensions import TypedDict

from emulator.api.messages import Steps
from emulator.api.render import json_response
from emulator.bank import fixtures
from emulator.bank.bank import reports_preparing
from emulator.bank.kinds import BANK
from emulator.bank.validation import Maybe, Model, Text
from emulator.control.answers import closed
from emulator.control.forms import ScenarioChoice, chosen_fixture
from emulator.control.operation import AnswerSpec, ControlCall, ControlOperation
from emulator.scenario import target
from emulator.store import discarded_on_failure


class ResetBody(Model):
    """The fixture and scenario to reset to; fixtures omitted: the fixture that the bank was created with."""

    fixtures: Maybe[Text] = None
    scenario: ScenarioChoice = None


@closed
class Reset(TypedDict):
    """The fixture and the scenario that the bank was reset to."""

    fixtures: str
    scenario: str | None


def _reset(call: ControlCall[ResetBody]) -> Steps:
    bank, scenario = call.bank, call.body.scenario
    source = fixtures.initial(bank)
    fixture = chosen_fixture(call.body.fixtures, own=source["fixtures"])
    if fixture is not None:
        source = {"fixtures": fixture}
    ready = yield from fixtures.prepare(
        bank.documents,
        source,
        today=fixtures.first_day(bank.begins),
        ids_form=bank.ids.form,
        report=reports_preparing(bank),
    )
    with discarded_on_failure(ready.content):
        target.reset(call.scenario_target, ready, scenario)
    stands_on = BANK.read(bank.documents)
    return json_response(
        200,
        {
            "fixtures": source["fixtures"] if stands_on is None else stands_on["fixtures"],
            "scenario": scenario.name if scenario else None,
        },
    )


OPERATIONS = (
    ControlOperation(
        id="reset",
        method="POST",
        path="/reset",
        summary="Reset the bank: documents, clock, settings, rules and request log; snapshots stay.",
        handler=_reset,
        answers={200: AnswerSpec("The fixture, and the scenario that was applied.", Reset)},
        body=ResetBody,
        example={"fixtures": "known-state"},
    ),
)
