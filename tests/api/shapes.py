"""Answers compared with what the rows of their operations, and so the OpenAPI document, declare; that document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from openapi_spec_validator.schemas import openapi_v31_schema_validator
from pydantic import ValidationError

from emulator.api.json_body import shape
from emulator.api.operation import Operation


def fault(row: Operation, status: int, body: Any) -> str | None:
    """Why an answer is not the one that its row declares."""
    if status not in row.answers:
        return f"{row.id} answers {status} without declaring it"
    declared = row.answers[status]
    if declared is None:
        return None if body is None else f"{row.id} answers {status} with a body"
    wanted = shape(declared)
    types = wanted.listed if wanted.listed is not None and isinstance(body, list) else wanted.types
    try:
        types.validate_python(body)
    except ValidationError as error:
        return f"{row.id} {status}: {error}"
    return None


def check_document(document: dict[str, Any]) -> None:
    """It fits the schema of OpenAPI, each reference leads somewhere, and each path has its parameters.

    All that the validator of OpenAPI says of it is in test_openapi.py, and takes a hundred times as long.
    """
    assert [error.message for error in openapi_v31_schema_validator.iter_errors(document)] == []
    for reference in _references(document):
        assert _declared(document, reference) is not None, reference
    for path, operations in document["paths"].items():
        for operation in operations.values():
            listed = [
                _declared(document, one["$ref"]) if "$ref" in one else one for one in operation.get("parameters", ())
            ]
            named = [(one["in"], one["name"]) for one in listed]
            assert len(named) == len(set(named)), operation["operationId"]
            assert {name for place, name in named if place == "path"} == set(re.findall("{(.*?)}", path)), path


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _references(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name == "$ref" and isinstance(one, str):
                yield one
            else:
                yield from _references(one)


def _declared(document: dict[str, Any], reference: str) -> Any:
    place: Any = document
    for name in reference.removeprefix("#/").split("/"):
        place = place.get(name) if isinstance(place, dict) else None
    return place
