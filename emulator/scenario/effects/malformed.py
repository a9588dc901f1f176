"""`malformed: truncated|not-json|wrong-type|empty|html|new-members`: the bank acts, but its answer is not as usual."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Annotated, Any

from emulator.api.messages import Response
from emulator.api.render import encode
from emulator.bank.validation import Model, one_of
from emulator.scenario.effects import Effect, EffectKind
from emulator.scenario.values import either

NOT_JSON = b"<html><body><h1>Service temporarily unavailable</h1></body></html>"
GATEWAY_PAGE = (
    b"<!DOCTYPE html>\n<html>\n<head><title>502 Bad Gateway</title></head>\n"
    b"<body>\n<center><h1>502 Bad Gateway</h1></center>\n</body>\n</html>\n"
)
HTML = ("Content-Type", "text/html; charset=utf-8")
NEW = {"kind": "new"}
NEW_LINK = {"href": "/v1/new", "verbs": ["GET"], **NEW}


def _wrong_type(body: bytes) -> bytes:
    """Valid JSON in which every member has a wrong type."""
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


def _new_members(body: bytes) -> bytes:
    """Valid JSON with a member that nobody knows in every object; in `_links`, a map, it is a link as the others."""
    try:
        return encode(_extended(json.loads(body)))
    except ValueError:
        return body


def _extended(value: Any, new: Mapping[str, Any] = NEW) -> Any:
    if isinstance(value, dict):
        extended = {name: _extended(member, NEW_LINK if name == "_links" else NEW) for name, member in value.items()}
        return {**extended, "newMember": new}
    return [_extended(entry) for entry in value] if isinstance(value, list) else value


MALFORMED: Mapping[str, Callable[[bytes], bytes]] = {
    "truncated": lambda body: body[: max(len(body) // 2, 1)],
    "not-json": lambda _: NOT_JSON,
    "wrong-type": _wrong_type,
    "empty": lambda _: b"",
    "html": lambda _: GATEWAY_PAGE,
    "new-members": _new_members,
}


class Html(Model):
    """The HTML page of a gateway, with its own content type or with that of JSON."""

    html: Annotated[str, one_of("content type", ("own", "json"))]


def effect(value: str | Html) -> Effect:
    """A body is replaced; status and headers stay, except the content type of a page."""
    form = "html" if isinstance(value, Html) else value
    own_type = value.html == "own" if isinstance(value, Html) else value == "html"

    def after(response: Response, _dice: Random) -> None:
        if response.body:
            response.body = MALFORMED[form](response.body)
            if own_type:
                others = [header for header in response.headers if header[0].lower() != "content-type"]
                response.headers[:] = [*others, HTML]

    return Effect(after=after)


EFFECT = EffectKind(
    name="malformed",
    summary=(
        "The bank acts, but its answer is truncated, not JSON, JSON of wrong types, empty, has new members, or is the"
        " HTML page of a gateway, with its own content type or ({html: json}) with that of JSON."
    ),
    form=either(Annotated[str, one_of("malformed answer", tuple(MALFORMED))], Html),
    effect=effect,
    example="truncated",
)
