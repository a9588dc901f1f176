"""`malformed: truncated|not-json|wrong-type|empty`: the bank acts, and what it answers cannot be read as it should."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from emulator.api.messages import Response
from emulator.api.render import encode
from emulator.scenario.effect import Effect, EffectKind
from emulator.scenario.part import Part

NOT_JSON = b"<html><body><h1>Service temporarily unavailable</h1></body></html>"


def _truncated(body: bytes) -> bytes:
    return body[: max(len(body) // 2, 1)]


def _wrong_type(body: bytes) -> bytes:
    """Valid JSON in which every member has another type than it should have."""
    try:
        value = json.loads(body)
    except ValueError:
        return b"[]"
    if isinstance(value, dict):
        return encode({name: _other_type(member) for name, member in value.items()})
    return encode(_other_type(value))


def _other_type(value: Any) -> Any:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return {str(index): entry for index, entry in enumerate(value)}
    return json.dumps(value)


FORMS: Mapping[str, Callable[[bytes], bytes]] = {
    "truncated": _truncated,
    "not-json": lambda _: NOT_JSON,
    "wrong-type": _wrong_type,
    "empty": lambda _: b"",
}


def _spoilt(form: str) -> Effect:
    """The body, where there is one, is changed; status and headers stay."""

    def after(response: Response, _dice: Random) -> None:
        if response.body:
            response.body = FORMS[form](response.body)

    return Effect(after=after)


def read(part: Part) -> Effect | None:
    """One of the forms."""
    form = part.one_of(FORMS, "malformed answer")
    return None if form is None else _spoilt(form)


EFFECT = EffectKind(
    name="malformed",
    summary="The bank acts, but its answer is cut off, no JSON, JSON of the wrong types, or empty.",
    schema={"enum": list(FORMS)},
    read=read,
    example="truncated",
)
