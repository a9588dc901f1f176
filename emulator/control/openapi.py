"""The OpenAPI document of the control interface, generated from the table of its operations."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from emulator.api.description import JSON_TYPE, Writer, content, path_parameter, query_parameter, resolved
from emulator.bank import fixtures
from emulator.bank.validation import validate_as
from emulator.control.forms import Error
from emulator.control.operation import AnswerSpec, ControlOperation
from emulator.control.operations import table

_PARAMETER = re.compile(r"\{(\w+)\}")
# The groups of operations by the first part of their path, where that is not the name of the group itself.
_TAGS = {
    "scenario": "scenarios",
    "certificate": "tpps",
    "events": "requests",
    "openapi.json": "documents",
    "scenario-schema.json": "documents",
}


def document(base: str) -> dict[str, Any]:
    """The OpenAPI document, with `base` as the address of the server; the rest is cached: do not change it."""
    return {**_document(tuple(fixtures.names())), "servers": [{"url": base}]}


@lru_cache(maxsize=1)
def _document(_fixtures: tuple[str, ...]) -> dict[str, Any]:
    """The document with these fixtures, which takes a fifth of a second in which the bank answers nobody."""
    writer = Writer()
    refused = content(writer.schema(Error))
    for row in table():
        writer.add(row.method, f"/_emulator{row.path}", _operation(row, writer))
    return writer.document(
        title="Bank emulator, control interface",
        description="Unsigned JSON for tests and tools: reset, clock, SCA, scenarios, rules, banks and more.",
        servers=[],
        security=[{}, {"token": []}],
        tags=[{"name": tag} for tag in sorted(set(map(_tag, table())))],
        components={
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "--control-token"}},
            "responses": {
                "refused": {
                    "description": "Refused: every problem is listed, and nothing was changed.",
                    "content": refused,
                }
            },
        },
    )


def _tag(row: ControlOperation) -> str:
    name = row.path.split("/")[1]
    return _TAGS.get(name, name)


def _operation(row: ControlOperation, writer: Writer) -> dict[str, Any]:
    responses = {str(status): _answer(row, status, answer, writer) for status, answer in row.answers.items()}
    return {
        "operationId": row.id,
        "tags": [_tag(row)],
        "summary": row.summary,
        "description": row.description,
        "parameters": [*map(path_parameter, _PARAMETER.findall(row.path)), *map(query_parameter, row.query)],
        "requestBody": _body(row, writer),
        "responses": {**responses, "default": {"$ref": "#/components/responses/refused"}},
    }


def _name(row: ControlOperation, form: Any, ending: str) -> str | None:
    """The name of the schema of a form that has none itself, such as a list."""
    return None if isinstance(form, str | type) else f"{row.id[0].upper()}{row.id[1:]}{ending}"


def _body(row: ControlOperation, writer: Writer) -> dict[str, Any] | None:
    if row.body is None:
        return None
    schema = writer.schema(row.body, _name(row, row.body, "Body"))
    shown: dict[str, Any] = {JSON_TYPE: {"schema": schema, "example": row.example}}
    if row.yaml:
        shown["application/yaml"] = {"schema": {"type": "object"}, "example": row.example}
    _, problems_of_empty = validate_as(resolved(row.body), {})
    return {"required": bool(problems_of_empty), "content": shown}


def _answer(row: ControlOperation, status: int, answer: AnswerSpec, writer: Writer) -> dict[str, Any]:
    if status >= 400:
        return {"description": answer.text, "content": content(writer.schema(Error))}
    if answer.form is None:
        return {"description": answer.text}
    return {
        "description": answer.text,
        "content": content(writer.schema(answer.form, _name(row, answer.form, "Answer")), media=answer.media),
    }
