"""`METHOD PATH` as `tpp` and `control` steps state it."""

from __future__ import annotations

from typing import Any

from emulator.scenario.part import Part
from emulator.scenario.vocabulary import METHODS

ADDRESS_SCHEMA: dict[str, Any] = {"type": "string", "pattern": f"^({'|'.join(METHODS)}) \\S+$"}


def read_address(part: Part, *, absolute: bool = True) -> str | None:
    """The address as `METHOD PATH`; `absolute`: the path starts with a slash, or is a saved link."""
    text = part.text(longest=8000)
    if text is None:
        return None
    method, _, path = text.partition(" ")
    if method not in METHODS:
        part.unknown(method, METHODS, "There is no method")
        return None
    starts = path.startswith(("/", "${", "http://", "https://")) if absolute else bool(path)
    if not starts or any(sign.isspace() for sign in path):
        part.wrong(f"Expected {method} and a path without blanks, such as {method} /v1/accounts.")
        return None
    return text
