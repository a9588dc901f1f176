"""The OpenAPI 3.1 document of the control interface, made from its table and the forms that it names."""

from __future__ import annotations

import re
from typing import Any

from pydantic import TypeAdapter

from emulator import __version__
from emulator.api.query import Parameter
from emulator.bank.validation import Schema
from emulator.control import answers
from emulator.control.operation import Answer, ControlOperation, form
from emulator.control.operations import table

_PARAMETER = re.compile(r"\{(\w+)\}")
_JSON = "application/json"


def document(base: str) -> dict[str, Any]:
    """The document, with `base` as the server's address."""
    schemas = _Schemas()
    refused = {"description": "Refused, every problem named; nothing was changed."}
    paths: dict[str, dict[str, Any]] = {}
    for row in table():
        paths.setdefault(f"/_emulator{row.path}", {})[row.method.lower()] = _operation(row, schemas)
    content = {_JSON: {"schema": schemas.use(answers.Error)}}
    shapes = schemas.made()
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
            "responses": {"refused": {**refused, "content": content}},
            "schemas": shapes,
        },
    }


class _Schemas:
    """The forms in use. Their schemas are made together at the end, so that each stands once, by its own name."""

    def __init__(self) -> None:
        self._forms: dict[str, Any] = {}

    def use(self, reference: Any, name: str | None = None) -> dict[str, Any]:
        """The schema of a form, by its name or, where it has none, by `name`."""
        used = form(reference)
        name = name or used.__name__
        self._forms[name] = used
        return {"$ref": f"#/components/schemas/{name}"}

    def made(self) -> dict[str, Any]:
        """All schemas that are referred to, by name."""
        roots, shared = TypeAdapter.json_schemas(
            [(name, "validation", TypeAdapter(used)) for name, used in self._forms.items()],
            ref_template="#/components/schemas/{model}",
            schema_generator=Schema,
        )
        made: dict[str, Any] = dict(shared.get("$defs", {}))
        for (name, _), schema in roots.items():
            if schema.get("$ref") != f"#/components/schemas/{name}":
                made[str(name)] = schema
        return dict(sorted(made.items()))


def _operation(row: ControlOperation, schemas: _Schemas) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(row.path)
    ]
    parameters += [_query(parameter) for parameter in row.query]
    shown: dict[str, Any] = {
        "operationId": row.id,
        "tags": [row.handler.__module__.rpartition(".")[2]],
        "summary": row.summary,
        "responses": {str(status): _answer(row, status, answer, schemas) for status, answer in row.answers.items()},
    }
    shown["responses"]["default"] = {"$ref": "#/components/responses/refused"}
    if parameters:
        shown["parameters"] = parameters
    if row.body is not None:
        schema = schemas.use(row.body, f"{row.id[0].upper()}{row.id[1:]}Body")
        content: dict[str, Any] = {_JSON: {"schema": schema, "example": row.example}}
        if row.yaml:
            content["application/yaml"] = {"schema": {"type": "object"}, "example": row.example}
        shown["requestBody"] = {"required": row.required, "content": content}
    return shown


def _answer(row: ControlOperation, status: int, answer: Answer, schemas: _Schemas) -> dict[str, Any]:
    if status >= 400:
        return {"description": answer.text, "content": {_JSON: {"schema": schemas.use(answers.Error)}}}
    if answer.form is None:
        return {"description": answer.text}
    named = None if isinstance(answer.form, str | type) else f"{row.id[0].upper()}{row.id[1:]}Answer"
    schema = schemas.use(answer.form, named)
    return {"description": answer.text, "content": {answer.media: {"schema": schema}}}


def _query(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if parameter.type == "int":
        schema = {"type": "integer", "minimum": parameter.minimum, "maximum": parameter.maximum}
    if parameter.default is not None:
        schema["default"] = parameter.default
    return {"name": parameter.name, "in": "query", "description": parameter.text, "schema": schema}
