"""`psu: approve ${payment}`: the customer authenticates, or does not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from emulator.api.render import STATUS
from emulator.bank.authentication.sca import ACCOUNT_ACCESS, METHODS, PASSING
from emulator.scenario.actors import Actors
from emulator.scenario.part import Part, text_schema
from emulator.scenario.persona import Persona
from emulator.scenario.step import Action, StepKind
from emulator.scenario.transport import Answer
from emulator.scenario.variables import SAVED
from emulator.scenario.vocabulary import CONTEXTS

WORDS = ("approve", "reject", "expire", "fail")
# Which members each word takes, under the names that the control interface has for them.
MEMBERS: Mapping[str, tuple[str, ...]] = {
    "approve": ("method", "context", "agreement", "accounts"),
    "reject": (),
    "expire": (),
    "fail": ("status", "code", "message", "system"),
}
CHOICES: Mapping[str, Collection[str]] = {"context": CONTEXTS, "method": METHODS, "code": tuple(STATUS)}
LONGEST = 512


@dataclass(frozen=True, slots=True)
class Authentication:
    """What the customer does with the SCA of `target`: a payment, basket or consent, a scaRedirect, or `latest`."""

    word: str
    target: str
    values: Mapping[str, Any]

    def play(self, cast: Actors, persona: Persona, fill: Callable[[Any], Any]) -> Answer:
        persona = persona.filled(fill)
        body = {name: fill(value) for name, value in self.values.items()}
        target = str(fill(self.target)).rpartition("/")[2]
        address = f"/sca/{quote(target, safe='!=')}"
        person = cast.person(persona)
        if self.word == "approve":
            body = {**self._known(cast, persona, address, person), **body}
        answer = cast.transport.control("POST", f"{address}/{self.word}", body)
        redirect = (answer.json() or {}).get("redirect") if answer.status == 200 else None
        if isinstance(redirect, str):
            cast.actor(persona, person).remember(redirect)
        return answer

    def _known(self, cast: Actors, persona: Persona, address: str, person: str | None) -> dict[str, Any]:
        """Who approves, where the request has not said it or the story says somebody else."""
        opened = cast.transport.control("GET", address).json() or {}
        known: dict[str, Any] = {}
        if person is not None and (persona.national_id is not None or "nationalId" not in opened):
            known["nationalId"] = person
        purpose = opened.get("purpose")
        if persona.agreement is not None and purpose in PASSING:
            known["agreement"] = persona.agreement
        if persona.accounts is not None and purpose in ACCOUNT_ACCESS:
            known["accounts"] = list(persona.accounts)
        return known


def read(members: Mapping[str, Part]) -> Action | None:
    """What a step states."""
    part = members["psu"]
    text = part.text(longest=2000)
    if text is None:
        return None
    word, _, target = text.partition(" ")
    if word not in WORDS:
        part.unknown(word, WORDS, "A customer cannot")
        return None
    if len(target.split()) != 1:
        part.wrong(f"Expected {word} and what is meant, such as {word} ${{payment}} or {word} latest.")
    values = {}
    for name, member in members.items():
        if name == "psu":
            continue
        if name not in MEMBERS[word]:
            member.wrong(f"{word} takes no {name}.")
        _check(name, member)
        values[name] = member.value
    return Authentication(word, target.strip(), values)


def _check(name: str, part: Part) -> None:
    if "${" in str(part.value):
        return
    if name in CHOICES:
        part.one_of(CHOICES[name], name)
    elif name == "status":
        part.whole(400, 599)
    elif name == "accounts":
        for item in part.items():
            item.text()
    else:
        part.text(longest=LONGEST)


def _or_saved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """JSON Schema of a value that may be one that an earlier step has saved."""
    return {"anyOf": [schema, SAVED]}


STEP = StepKind(
    name="psu",
    summary="The customer approves, rejects, is too late for, or meets a server error in the SCA of what is named.",
    schema={"type": "string", "pattern": r"^(approve|reject|expire|fail) \S+$"},
    members={
        **{name: _or_saved({"enum": list(words)}) for name, words in CHOICES.items()},
        **{name: text_schema(LONGEST) for name in ("agreement", "message", "system")},
        "accounts": _or_saved({"type": "array", "items": text_schema()}),
        "status": _or_saved({"type": "integer", "minimum": 400, "maximum": 599}),
    },
    read=read,
    example={"psu": "approve ${payment}"},
)
