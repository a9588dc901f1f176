"""The OpenAPI 3.1 document of the TPP interface, read from the operation table and the shapes (CONTRACT 2)."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from datetime import date
from functools import lru_cache
from typing import Any, Literal

from emulator import __version__
from emulator.api import examples, headers, render
from emulator.api.messages import Request, Response
from emulator.api.operation import Operation, Params, Route
from emulator.api.operations import table
from emulator.api.query import Parameter
from emulator.api.signature.rules import DEMANDED as SIGNATURE_DEMANDS
from emulator.bank import products
from emulator.bank.clock import oslo_date, real_now

JSON_TYPE = "application/json"
REFUSALS = {
    "400": "The request is wrong; every message names what and where.",
    "401": "The customer must come first: send the PSU to scaRedirect.",
    "403": "The certificate or the customer's rights do not allow this.",
    "404": "There is no such resource.",
    "409": "The request is at odds with what the bank holds.",
    "429": "The calls without the PSU are used up.",
}


def respond(request: Request) -> Response:
    """`GET /openapi.json`: the document with the address it was asked at as its server."""
    body = _written(oslo_date(real_now()), request.base + request.prefix)
    return Response(200, [render.JSON], body)


@lru_cache(maxsize=4)
def _written(today: date, server: str) -> bytes:
    """The document as it is sent: making it takes a tenth of a second, in which nobody else would be served."""
    return render.json_response(200, {**document(today=today), "servers": [{"url": server}]}).body


def document(operations: Iterable[Operation] | None = None, *, today: date | None = None) -> dict[str, Any]:
    """The whole document, built anew at each call; dates of examples lie around `today`."""
    shown = examples.bodies(today or oslo_date(real_now()))
    schemas = _Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations or table():
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schemas, shown)
    schemas.use("emulator.api.shapes.answers:Error")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bank emulator, TPP interface",
            "version": __version__,
            "description": (
                "Every request is signed (SPEC 5.2) and carries TPP-Signature-Certificate. "
                "`bank-emulator proxy` signs what a plain client sends."
            ),
            "license": {"name": "see the distribution"},
        },
        "tags": [{"name": tag} for tag in dict.fromkeys(row.tag for row in operations or table() if row.tag)],
        "paths": paths,
        "components": {
            "schemas": schemas.found(),
            "parameters": {_component(name): _header(name) for name in _LISTED},
            "responses": {
                name: _refusal(text, examples.answers(examples.REFUSED, name)) for name, text in REFUSALS.items()
            },
        },
    }


class _Schemas:
    """The shapes in use, each once under components/schemas, by its own name: generators make classes of them."""

    def __init__(self) -> None:
        self._models: dict[str, Any] = {}

    def use(self, reference: str) -> dict[str, Any]:
        """The schema of `module:Name`."""
        module, _, name = reference.partition(":")
        self._models[name] = getattr(importlib.import_module(module), name)
        return {"$ref": f"#/components/schemas/{name}"}

    def found(self) -> dict[str, Any]:
        """All schemas that are referred to, by name."""
        from pydantic import TypeAdapter

        inputs: list[tuple[str, Literal["validation"], TypeAdapter[Any]]] = [
            (name, "validation", TypeAdapter(model)) for name, model in self._models.items()
        ]
        roots, shared = TypeAdapter.json_schemas(inputs, ref_template="#/components/schemas/{model}")
        found: dict[str, Any] = dict(shared.get("$defs", {}))
        for (name, _), schema in roots.items():
            if schema.get("$ref") != f"#/components/schemas/{name}":
                found[str(name)] = schema
        return dict(sorted(found.items()))


def _operation(operation: Operation, schemas: _Schemas, examples_of: Mapping[str, Any]) -> dict[str, Any]:
    description = f"SPEC {operation.spec}. {(operation.handler.__doc__ or '').strip()}"
    shown: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.summary,
        "description": description,
        "tags": [operation.tag] if operation.tag else [],
        "parameters": [*_path(operation), *map(_query, operation.query), *_headers(operation)],
        "responses": _responses(operation, schemas),
    }
    if operation.body is not None:
        shown["requestBody"] = _body(operation, schemas, examples_of[operation.id])
    return shown


def _path(operation: Operation) -> list[dict[str, Any]]:
    found = []
    for name in re.findall(r"{([^}]+)}", operation.path):
        schema: dict[str, Any] = {"type": "string", "minLength": 1}
        if name in operation.values:
            schema["enum"] = list(operation.values[name])
        elif name == "payment-product":
            schema["enum"] = sorted({product for _, product in products.table()})
        entry = {"name": name, "in": "path", "required": True, "schema": schema}
        example = examples.PATH.get(name)
        if example is not None:
            entry["example"] = example
        found.append(entry)
    return found


def _query(parameter: Parameter) -> dict[str, Any]:
    schemas: Mapping[str, dict[str, Any]] = {
        "boolean": {"type": "boolean"},
        "int": {"type": "integer", "minimum": parameter.minimum, "maximum": parameter.maximum},
        "date": {"type": "string", "format": "date"},
        "enum": {"type": "string", "enum": list(parameter.values)},
        "text": {"type": "string"},
    }
    schema = dict(schemas[parameter.type])
    if parameter.default is not None:
        schema["default"] = parameter.default
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.text,
        "schema": schema,
    }


def _is_reserved(name: str) -> bool:
    """Headers that OpenAPI describes by other means, or that belong to HTTP itself."""
    return name in ("Accept", "Host") or name.startswith("Accept-")


_LISTED = [name for name in (*headers.MATRIX, "Date") if not _is_reserved(name)]


def _component(name: str) -> str:
    return name.replace("-", "")


def _variants() -> list[Params]:
    return [{"payment-service": service, "payment-product": name} for service, name in sorted(products.table())]


def _headers(operation: Operation) -> list[dict[str, Any]]:
    """The headers of the operation's columns, and Date; one is required where every product demands it."""
    routes = [Route.of(operation, params) for params in (_variants() if callable(operation.column) else [{}])]
    required = frozenset[str].intersection(*map(_demanded, routes))
    found: list[dict[str, Any]] = []
    for name in _LISTED:
        if name.lower() in required:
            found.append({**_header(name), "required": True})
        elif any(headers.MATRIX[name][route.column] != "-" for route in routes):
            found.append({"$ref": f"#/components/parameters/{_component(name)}"})
    return found


def _demanded(route: Route) -> frozenset[str]:
    """What the gates demand, by lower-case name."""
    operation = route.operation
    named = headers.demanded(route.column, operation.needs, operation.before_first_sca)
    return named.union(SIGNATURE_DEMANDS, ["digest"] if route.digest else [])


def _header(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": examples.HEADER_TEXTS.get(name, f"{name} (SPEC 2.1)"),
        "schema": dict(examples.HEADER_SCHEMAS.get(name, {"type": "string"})),
        "example": examples.HEADERS[name],
    }


def _body(operation: Operation, schemas: _Schemas, shown: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(operation.body, str):
        schema = schemas.use(operation.body)
    elif operation.body is not None:
        shapes = dict.fromkeys(operation.body(params) for params in _variants())
        schema = {"anyOf": [schemas.use(shape) for shape in shapes]}
    return {"required": True, "content": {JSON_TYPE: {"schema": schema, **_named(shown)}}}


def _named(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Values by title, as OpenAPI writes several examples."""
    return {"examples": {name: {"summary": name, "value": value} for name, value in shown.items()}} if shown else {}


def _responses(operation: Operation, schemas: _Schemas) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, shape in operation.answers.items():
        found[str(status)] = {"description": operation.summary}
        if shape is not None:
            content = {"schema": schemas.use(shape), **_named(examples.answers(operation.id, status))}
            found[str(status)]["content"] = {JSON_TYPE: content}
    for refused in REFUSALS:
        found.setdefault(refused, {"$ref": f"#/components/responses/{refused}"})
    found["default"] = _refusal("Any other refusal.", {})
    return found


def _refusal(text: str, shown: Mapping[str, Any]) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": text, "content": {JSON_TYPE: {"schema": schema, **_named(shown)}}}
