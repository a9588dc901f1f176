"""Texts in Unicode's composed form (NFC): Apple's systems and PDF files write `å` as two characters."""

from __future__ import annotations

from typing import Any, TypeVar
from unicodedata import normalize

Value = TypeVar("Value")


def composed(value: Value) -> Value:
    """A JSON value with all its texts in NFC, so that equal texts are equal and every letter counts once."""
    return _composed(value)  # type: ignore[no-any-return]


def _composed(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else normalize("NFC", value)
    if isinstance(value, dict):
        return {_composed(name): _composed(inner) for name, inner in value.items()}
    return [_composed(inner) for inner in value] if isinstance(value, list) else value
