"""Descriptions of the TPP interface for other programs: its OpenAPI document, collections for REST clients, examples.

The OpenAPI documents of both interfaces use this module: `Writer` collects operations and schemas, the functions write
the parts of an operation. `openapi.py` and `control/operations` decide from its row which parts an operation has.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from emulator import __version__
from emulator.api.query import QueryParameter

JSON_TYPE = "application/json"
JsonObject = dict[str, Any]


class Writer:
    """Builds a document; schemas are generated together at the end, so that each appears once, under its own name."""

    def __init__(self) -> None:
        self._models: dict[str, Any] = {}
        self._paths: dict[str, JsonObject] = {}

    def schema(self, reference: Any, name: str | None = None) -> JsonObject:
        """A reference to the schema of a type or `module:Name`, under its own name or under `name`."""
        model = resolved(reference)
        name = name or (reference.partition(":")[2] if isinstance(reference, str) else model.__name__)
        self._models[name] = model
        return {"$ref": f"#/components/schemas/{name}"}

    def add(self, method: str, path: str, operation: JsonObject) -> None:
        """Add one operation, without its empty members."""
        shown = {name: value for name, value in operation.items() if value not in (None, [], {})}
        self._paths.setdefault(path, {})[method.lower()] = shown

    def document(self, *, title: str, description: str, components: JsonObject, **members: Any) -> JsonObject:
        """The complete document; `components` are added to the schemas, `members` to the root."""
        return {
            "openapi": "3.1.0",
            "info": {"title": title, "version": __version__, "description": description},
            **members,
            "paths": self._paths,
            "components": {"schemas": self._schemas(), **components},
        }

    def _schemas(self) -> JsonObject:
        from pydantic import TypeAdapter

        from emulator.bank.validation import Schema

        roots, shared = TypeAdapter.json_schemas(
            [(name, "validation", TypeAdapter(model)) for name, model in self._models.items()],
            ref_template="#/components/schemas/{model}",
            schema_generator=Schema,
        )
        schemas: JsonObject = dict(shared.get("$defs", {}))
        for (name, _), schema in roots.items():
            if schema.get("$ref") != f"#/components/schemas/{name}":
                schemas[str(name)] = schema
        return {
            name: schema if "properties" in schema else _replaced(schema, {"$ref": f"#/components/schemas/{name}"})
            for name, schema in sorted(schemas.items())
        }


def _replaced(value: Any, own: JsonObject) -> Any:
    """Replace the references of a union to itself by "any": TypeScript generators cannot express recursive unions."""
    if value == own:
        return {}
    if isinstance(value, dict):
        return {member: _replaced(inner, own) for member, inner in value.items()}
    return [_replaced(inner, own) for inner in value] if isinstance(value, list) else value


def resolved(reference: Any) -> Any:
    """The type that a row names: a type, or `module:Name`, whose module is imported only here."""
    if not isinstance(reference, str):
        return reference
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


def query_parameter(parameter: QueryParameter) -> JsonObject:
    schema = dict(parameter.format.schema)
    if parameter.default is not None:
        schema["default"] = parameter.default
    return {
        "name": parameter.name,
        "in": "query",
        "required": False,
        "description": parameter.text,
        "schema": schema,
    }


def path_parameter(name: str, *, values: Sequence[str] = (), example: Any = None) -> JsonObject:
    """A parameter of the path: non-empty text, or one of `values`."""
    shown = {"type": "string", "enum": list(values)} if values else {"type": "string", "minLength": 1}
    entry: JsonObject = {"name": name, "in": "path", "required": True, "schema": shown}
    return entry if example is None else {**entry, "example": example}


def content(schema: JsonObject, examples: Mapping[str, Any] | None = None, *, media: str = JSON_TYPE) -> JsonObject:
    """A body of one media type, with examples by title."""
    shown: JsonObject = {"schema": schema}
    if examples:
        shown["examples"] = {title: {"summary": title, "value": value} for title, value in examples.items()}
    return {media: shown}
