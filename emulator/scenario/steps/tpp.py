"""`tpp: METHOD PATH`: the TPP sends a signed request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from emulator.bank.validation import Mismatch, Omittable, Reads, filled, one_of, refuse
from emulator.client import TAMPERINGS
from emulator.scenario.actors import Actors, As
from emulator.scenario.steps import Step
from emulator.scenario.transport import ReceivedAnswer, TransportFailed
from emulator.scenario.values import address


def _header(value: Any) -> Any:
    if isinstance(value, dict | list | bool):
        raise Mismatch("text, or null to omit the header")
    return value


_Header = Annotated[Any, Reads(_header, {"type": ["string", "number", "null"]})]


class TppStep(Step):
    """A signed request of a TPP; `tamper` changes it after it was signed."""

    word = "tpp"
    summary = "The TPP sends a signed request; required headers, session and signature are added."
    example: ClassVar = {"tpp": "GET /v1/accounts", "expect": {"status": 200}}

    tpp: Annotated[str, address()]
    json_body: Any = Field(None, alias="json", description="The body, as JSON.")
    body: Omittable[Annotated[str, filled(1_000_000)]] = Field(None, description="The body as text, instead of json.")
    headers: dict[str, _Header] = Field({}, description="Further headers, signed if they must be; null omits one.")
    tamper: Omittable[Annotated[str, one_of("tampering", sorted(TAMPERINGS))]] = Field(
        None, description="A change of the request after it was signed."
    )

    @model_validator(mode="after")
    def _has_one_body(self) -> Self:
        if self.body is not None and "json_body" in self.model_fields_set:
            refuse(Mismatch(text="A request has json or body, not both.", path=("body",)))
        return self

    def play(self, actors: Actors, persona: As, fill: Callable[[Any], Any]) -> ReceivedAnswer:
        persona = persona.filled(fill)
        method, _, path = str(fill(self.tpp)).partition(" ")
        value = fill(self.json_body)
        headers = {name: None if text is None else str(fill(text)) for name, text in self.headers.items()}
        if path.partition("/v1/")[2].startswith("sandbox/"):
            tpp = actors.without_customer(persona)
        else:
            debtor = value.get("debtorAccount") if isinstance(value, dict) else None
            tpp = actors.actor(persona, actors.person(persona, debtor, path))
        body = None if self.body is None else str(fill(self.body))
        try:
            prepared = tpp.prepare(method, path, json=value, body=body, headers=headers, tamper=self.tamper)
        except (ValueError, TypeError) as error:
            raise TransportFailed(f"The request cannot be sent: {error}.") from None
        return actors.transport.send(prepared)
