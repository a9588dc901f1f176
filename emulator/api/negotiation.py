"""Content negotiation (SPEC 2.1, CONTRACT 13): JSON only, in English or Norwegian."""

from __future__ import annotations

import re

from emulator.api.headers import Headers
from emulator.bank.errors import Message

_JSON = ("application/json", "application/*", "*/*")
_LANGUAGES = {"nb": "nb", "no": "nb", "nn": "nb", "en": "en"}
_WEIGHT = re.compile(r"[01](?:\.[0-9]*)?")


def weighted(value: str, *, malformed: float) -> list[tuple[str, float]]:
    """The entries of an Accept-like header, lower case, with their q values; what a `malformed` q counts as."""
    entries = []
    for part in value.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                weight = float(parameter[2:]) if _WEIGHT.fullmatch(parameter, 2) else malformed
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
    weights = dict(weighted(accept, malformed=1.0))
    if next((weights[name] > 0 for name in _JSON if name in weights), not weights):
        return None
    return Message("BAD_REQUEST", "The bank answers application/json only.", "Accept")


def preferred_language(accept_language: str | None) -> str | None:
    """`nb` or `en` by an Accept-Language value (first of the highest weight), None when it asks for neither."""
    best: str | None = None
    best_weight = 0.0
    for name, weight in weighted(accept_language or "", malformed=0.0):
        language = _LANGUAGES.get(name.partition("-")[0])
        if language is not None and weight > best_weight:
            best, best_weight = language, weight
    return best


def content_language(headers: Headers) -> str:
    """`nb` when Norwegian is preferred to English, else `en`."""
    accept = headers.get("accept-language")
    if accept is None:
        return "en"
    return preferred_language(accept) or "en"
