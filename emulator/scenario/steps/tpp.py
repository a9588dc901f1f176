"""`tpp: METHOD PATH`: the TPP sends a signed request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from emulator.client import TAMPERINGS
from emulator.scenario.actors import Actors
from emulator.scenario.address import ADDRESS_SCHEMA, read_address
from emulator.scenario.part import Part, text_schema
from emulator.scenario.persona import Persona
from emulator.scenario.step import Action, StepKind
from emulator.scenario.transport import Answer

MISSING = object()
LONGEST_BODY = 1_000_000


@dataclass(frozen=True, slots=True)
class TppRequest:
    """A request with its body and headers; `tamper` spoils it after it was made."""

    address: str
    json: Any
    body: str | None
    headers: Mapping[str, Any]
    tamper: str | None

    def play(self, cast: Actors, persona: Persona, fill: Callable[[Any], Any]) -> Answer:
        persona = persona.filled(fill)
        method, _, path = str(fill(self.address)).partition(" ")
        value = None if self.json is MISSING else fill(self.json)
        headers = {name: None if held is None else str(fill(held)) for name, held in self.headers.items()}
        if path.partition("/v1/")[2].startswith("sandbox/"):
            tpp = cast.stranger(persona)
        else:
            debtor = value.get("debtorAccount") if isinstance(value, dict) else None
            tpp = cast.actor(persona, cast.person(persona, debtor, path))
        body = None if self.body is None else str(fill(self.body))
        return cast.send(lambda: tpp.prepare(method, path, json=value, body=body, headers=headers, tamper=self.tamper))


def read(members: Mapping[str, Part]) -> Action | None:
    """The request that a step states."""
    address = read_address(members["tpp"])
    if "json" in members and "body" in members:
        members["body"].wrong("A request has a json or a body, not both.")
    headers: dict[str, Any] = {}
    for name, member in members["headers"].mapping().items() if "headers" in members else ():
        if isinstance(member.value, dict | list | bool):
            member.expected("text, or nothing to leave the header out")
        headers[name] = member.value
    tamper = members["tamper"].one_of(TAMPERINGS, "tampering") if "tamper" in members else None
    body = members["body"].text(longest=LONGEST_BODY) if "body" in members else None
    json = members["json"].value if "json" in members else MISSING
    return None if address is None else TppRequest(address, json, body, headers, tamper)


STEP = StepKind(
    name="tpp",
    summary="The TPP sends a signed request; required headers, session and signature come by themselves.",
    schema=ADDRESS_SCHEMA,
    members={
        "json": {"description": "The body, as JSON."},
        "body": {**text_schema(LONGEST_BODY), "description": "The body as it stands, in place of json."},
        "headers": {
            "type": "object",
            "additionalProperties": {"type": ["string", "number", "null"]},
            "description": "Further headers, signed where they must be; null leaves one out.",
        },
        "tamper": {"enum": sorted(TAMPERINGS), "description": "Spoils the request after it was made."},
    },
    read=read,
    example={"tpp": "GET /v1/accounts", "expect": {"status": 200}},
)
