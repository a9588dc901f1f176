"""`psu: approve ${payment}`: the customer approves or rejects an SCA, or withdraws a consent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Self
from urllib.parse import quote

from pydantic import Field, model_validator

from emulator.bank.authentication.sca import ACCOUNT_ACCESS, METHODS, PASSING
from emulator.bank.conditions import OrSaved
from emulator.bank.errors import STATUS
from emulator.bank.formats import NOT_BLANK
from emulator.bank.validation import Mismatch, Omittable, Reads, Text512, one_of, refuse
from emulator.scenario.actors import Actors, As
from emulator.scenario.steps import Step
from emulator.scenario.transport import ReceivedAnswer
from emulator.scenario.values import CONTEXTS, in_two

_Name = Annotated[str, Field(pattern=NOT_BLANK)]
# The members that each word takes, as in the control interface.
TAKES: Mapping[str, tuple[str, ...]] = {
    "approve": ("method", "context", "agreement", "accounts"),
    "reject": (),
    "expire": (),
    "withdraw": (),
    "fail": ("status", "code", "message", "system"),
}


def _action(text: Any) -> str:
    word, target = in_two(text, TAKES, "A customer cannot")
    named = target.split()
    if word == "withdraw":
        if len(named) != 1 or named == ["latest"]:  # latest is an SCA
            raise Mismatch(text="Expected withdraw and the id of a consent, such as withdraw ${consent}.")
    elif len(named) != 1:
        raise Mismatch(text=f"Expected {word} and its target, such as {word} ${{payment}} or {word} latest.")
    return str(text)


class PsuStep(Step):
    """An action of the customer in the SCA of a payment, basket, consent or scaRedirect, or in the latest SCA.

    `withdraw` is an action on a consent: the customer withdraws it at the bank.
    """

    word = "psu"
    summary = (
        "The customer approves or rejects an SCA, lets its time run out, or meets a server error in it; or withdraws a"
        " consent."
    )
    example: ClassVar = {"psu": "approve ${payment}"}

    psu: Annotated[str, Reads(_action, {"type": "string", "pattern": rf"^({'|'.join(TAKES)}) \S+$"})]
    method: Omittable[Annotated[str, one_of("method", METHODS), OrSaved()]] = None
    context: Omittable[Annotated[str, one_of("context", CONTEXTS), OrSaved()]] = None
    agreement: Omittable[Text512] = None
    accounts: Omittable[Annotated[list[_Name], OrSaved()]] = Field(
        None, description="iban, bban or resourceId of each."
    )
    status: Omittable[Annotated[int, Field(ge=400, le=599), OrSaved()]] = None
    code: Omittable[Annotated[str, one_of("code", tuple(STATUS)), OrSaved()]] = None
    message: Omittable[Text512] = None
    system: Omittable[Text512] = None

    @model_validator(mode="after")
    def _takes_its_own(self) -> Self:
        word = self.psu.partition(" ")[0]
        others = {name for names in TAKES.values() for name in names} - set(TAKES[word])
        wrong = [
            Mismatch(text=f"{word} takes no {name}.", path=(name,)) for name in sorted(others & self.model_fields_set)
        ]
        if wrong:
            refuse(*wrong)
        return self

    def play(self, actors: Actors, persona: As, fill: Callable[[Any], Any]) -> ReceivedAnswer:
        persona = persona.filled(fill)
        word, _, target = self.psu.partition(" ")
        body = {name: fill(getattr(self, name)) for name in TAKES[word] if name in self.model_fields_set}
        name = str(fill(target.strip())).rpartition("/")[2]
        address = f"/sca/{quote(name, safe='!=')}"
        if word == "withdraw":
            return actors.transport.control("POST", f"/consents/{quote(name, safe='!=')}/revoke", {})
        person = actors.person(persona)
        if word == "approve":
            body = {**_known(actors, persona, address, person), **body}
        answer = actors.transport.control("POST", f"{address}/{word}", body)
        redirect = (answer.json() or {}).get("redirect") if answer.status == 200 else None
        if isinstance(redirect, str):
            actors.actor(persona, person).remember(redirect)
        return answer


def _known(actors: Actors, persona: As, address: str, person: str | None) -> dict[str, Any]:
    """Members of approve that follow from the persona: person, agreement and accounts."""
    opened = actors.transport.control("GET", address).json() or {}
    known: dict[str, Any] = {}
    if person is not None and (persona.national_id is not None or "nationalId" not in opened):
        known["nationalId"] = person
    purpose = opened.get("purpose")
    if persona.agreement is not None and purpose in PASSING:
        known["agreement"] = persona.agreement
    if persona.accounts is not None and purpose in ACCOUNT_ACCESS:
        known["accounts"] = persona.accounts
    return known
