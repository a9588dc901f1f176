"""The OpenAPI document of the control interface, and the JSON Schema of scenarios."""

from __future__ import annotations

from typing import Any

from emulator.api.messages import Response
from emulator.api.render import json_response
from emulator.control.answers import AnyObject
from emulator.control.operation import AnswerSpec, ControlCall, ControlOperation


def _openapi(call: ControlCall[Any]) -> Response:
    return json_response(200, call.openapi(call.request.base + call.request.prefix))


def _schema(_call: ControlCall[Any]) -> Response:
    from emulator.scenario.model import scenario_schema  # only on use: most processes never show it

    return json_response(200, scenario_schema())


OPERATIONS = (
    ControlOperation(
        id="getControlOpenapi",
        method="GET",
        path="/openapi.json",
        summary="Get the OpenAPI 3.1 document of the control interface.",
        handler=_openapi,
        answers={200: AnswerSpec("The document.", AnyObject)},
    ),
    ControlOperation(
        id="getScenarioSchema",
        method="GET",
        path="/scenario-schema.json",
        summary="Get the JSON Schema of scenario files.",
        handler=_schema,
        answers={200: AnswerSpec("The schema.", AnyObject)},
    ),
)
