"""The OpenAPI 3.1 document of the control interface, read from its table."""

from __future__ import annotations

import re
from typing import Any

from emulator import __version__
from emulator.api.query import Parameter
from emulator.control.operation import ControlOperation
from emulator.control.operations import table

_PARAMETER = re.compile(r"\{(\w+)\}")
_ERROR = {"$ref": "#/components/responses/refused"}
_ERROR_ANSWER = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/refusal"}}}}


def document(base: str) -> dict[str, Any]:
    """The document, with `base` as the server's address."""
    paths: dict[str, dict[str, Any]] = {}
    for row in table():
        paths.setdefault(f"/_emulator{row.path}", {})[row.method.lower()] = _operation(row)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bank emulator: control interface",
            "version": __version__,
            "description": "Unsigned JSON for tests and tools: reset, clock, SCA, scenarios, rules, banks and more.",
        },
        "servers": [{"url": base}],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "--control-token"}},
            "responses": {
                "refused": {**_ERROR_ANSWER, "description": "Refused, every mistake named; nothing was changed."}
            },
            "schemas": {"refusal": _refusal()},
        },
    }


def _refusal() -> dict[str, Any]:
    message = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("category", "code", "path", "text")},
        "required": ["category", "code", "text"],
    }
    return {
        "type": "object",
        "properties": {"tppMessages": {"type": "array", "items": message}},
        "required": ["tppMessages"],
    }


def _operation(row: ControlOperation) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(row.path)
    ]
    parameters += [_query(parameter) for parameter in row.query]
    shown: dict[str, Any] = {
        "operationId": row.id,
        "tags": [row.handler.__module__.rpartition(".")[2]],
        "summary": row.summary,
        "responses": {str(status): _answer(row, status, text) for status, text in row.answers.items()},
    }
    shown["responses"]["default"] = _ERROR
    if parameters:
        shown["parameters"] = parameters
    if row.body is not None:
        content = {"application/json": {"schema": dict(row.body), "example": row.example}}
        if row.yaml:
            content["application/yaml"] = {"schema": {"type": "object"}, "example": row.example}
        shown["requestBody"] = {"content": content}
    return shown


def _answer(row: ControlOperation, status: int, text: str) -> dict[str, Any]:
    if status == 204:
        return {"description": text}
    if status >= 400:
        return {**_ERROR_ANSWER, "description": text}
    if row.id == "watchEvents":
        return {"description": text, "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    return {"description": text, "content": {"application/json": {"schema": {"type": "object"}}}}


def _query(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if parameter.type == "int":
        schema = {"type": "integer", "minimum": parameter.minimum, "maximum": parameter.maximum}
    if parameter.default is not None:
        schema["default"] = parameter.default
    return {"name": parameter.name, "in": "query", "description": parameter.text, "schema": schema}
