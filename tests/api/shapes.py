"""Answers compared with what the rows of their operations, and so the OpenAPI document, declare."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from emulator.api.operation import Operation
from emulator.api.validate import shape


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
