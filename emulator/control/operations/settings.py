"""`settings`: the settings of the bank (CONTRACT 9.1)."""

from __future__ import annotations

from typing import Any

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.control.answers import AnyObject
from emulator.control.operation import AnswerSpec, ControlCall, ControlOperation
from emulator.scenario.values import Settings


def _settings(call: ControlCall[Any]) -> Response:
    return json_response(200, call.bank.settings.as_document())


def _change_settings(call: ControlCall[Any]) -> Response:
    with call.bank.documents.transaction():
        settings = call.bank.change_settings(call.body)
    call.publish("settings", "changed")
    return json_response(200, settings.as_document())


OPERATIONS = (
    ControlOperation(
        id="getSettings",
        method="GET",
        path="/settings",
        summary="Get all settings of the bank.",
        handler=_settings,
        answers={200: AnswerSpec("The settings by name.", AnyObject)},
    ),
    ControlOperation(
        id="putSettings",
        method="PUT",
        path="/settings",
        summary="Change the given settings; the others stay.",
        handler=_change_settings,
        answers={200: AnswerSpec("All settings.", AnyObject)},
        body=Settings,
        example={"progression": "immediate", "calendar": "norway"},
    ),
)
