"""Content negotiation (SPEC 2.1, CONTRACT 13): JSON only, in English or Norwegian."""

from __future__ import annotations

import re

from emulator.api.headers import Headers
from emulator.bank.errors import Message

_JSON = ("application/json", "application/*", "*/*")
_WEIGHT = re.compile(r"[01](?:\.[0-9]*)?")


def _weighted(value: str) -> list[tuple[str, float]]:
    """The entries of an Accept-like header with their q values, a malformed q counting as 1."""
    entries = []
    for part in value.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                weight = float(parameter[2:]) if _WEIGHT.fullmatch(parameter, 2) else 1.0
        if name:
            entries.append((name, weight))
    return entries


def unacceptable(headers: Headers) -> Message | None:
    """What is wrong with an Accept header that excludes JSON, alone a 406; None where JSON will do.

    The most specific range that fits decides (RFC 9110 12.5.1).
    """
    accept = headers.get("accept")
    if accept is None or accept in ("*/*", "application/json"):
        return None
    weights = dict(_weighted(accept))
    if next((weights[name] > 0 for name in _JSON if name in weights), not weights):
        return None
    return Message("BAD_REQUEST", "The bank answers application/json only.", "Accept")


def content_language(headers: Headers) -> str:
    """`nb` when Norwegian is preferred to English, else `en`."""
    accept = headers.get("accept-language")
    if accept is None:
        return "en"
    best, best_weight = "en", 0.0
    for name, weight in _weighted(accept):
        language = {"nb": "nb", "no": "nb", "nn": "nb", "en": "en"}.get(name.split("-")[0])
        if language is not None and weight > best_weight:
            best, best_weight = language, weight
    return best
