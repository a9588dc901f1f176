"""`settings`: what the bank does differently (CONTRACT 9.1)."""

from __future__ import annotations

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.bank.settings import SCHEMAS
from emulator.control.operation import ControlCall, ControlOperation, object_of


def _settings(call: ControlCall) -> Response:
    return json_response(200, call.bank.settings.as_document())


def _change_settings(call: ControlCall) -> Response:
    changes = {name: member.value for name, member in call.body.mapping().items()}
    call.refuse_mistakes()
    with call.scenario_target.all_or_nothing():
        settings = call.bank.change_settings(changes)
    call.tell("settings", "changed")
    return json_response(200, settings.as_document())


OPERATIONS = (
    ControlOperation(
        id="getSettings",
        method="GET",
        path="/settings",
        summary="All settings of the bank.",
        handler=_settings,
        answers={200: "The settings by name."},
    ),
    ControlOperation(
        id="putSettings",
        method="PUT",
        path="/settings",
        summary="Change the settings that are named; the others stay.",
        handler=_change_settings,
        answers={200: "All settings."},
        body=object_of(**SCHEMAS),
        example={"progression": "immediate", "calendar": "norway"},
    ),
)
