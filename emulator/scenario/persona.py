"""`as` of a story or a step: which TPP acts, for which customer, in which context (CONTRACT 13, Story steps)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from emulator.scenario.part import Part
from emulator.scenario.vocabulary import CONTEXTS

MEMBERS = ("tpp", "nationalId", "context", "agreement", "accounts", "session")
TPP_MEMBERS = ("name", "roles", "organizationIdentifier", "flaw")
ROLES = ("PISP", "AISP")
DEFAULT_TPP = "demo"


@dataclass(frozen=True, slots=True)
class TppWish:
    """The certificate that a story's TPP holds."""

    name: str = DEFAULT_TPP
    roles: tuple[str, ...] = ROLES
    organization_identifier: str | None = None
    flaw: str | None = None


@dataclass(frozen=True, slots=True)
class Persona:
    """Who acts. Without `national_id` it is whoever owns the account that the request is about.

    `session` False: the TPP does not know the customer yet, and the story shows how it comes to.
    """

    tpp: TppWish = TppWish()
    national_id: str | None = None
    context: str | None = None
    agreement: str | None = None
    accounts: tuple[str, ...] | None = None
    session: bool = True


Declared = dict[str, TppWish]


def read(part: Part, base: Persona, declared: Declared) -> Persona:
    """The persona that `as` states, over that of the story; mistakes are noted.

    `declared`: the TPPs that the story has described so far; a name alone means the one described last under it.
    """
    members = part.members(MEMBERS)
    changes: dict[str, Any] = {}
    for name, member in members.items():
        if name == "tpp":
            changes["tpp"] = _tpp(member, declared)
        elif name == "context":
            changes["context"] = member.one_of(CONTEXTS, "context")
        elif name == "session":
            changes["session"] = bool(member.boolean())
        elif name == "accounts":
            changes["accounts"] = tuple(text for item in member.items() if (text := item.text()))
        else:
            changes["national_id" if name == "nationalId" else name] = member.text(longest=100)
    if "nationalId" in members:
        # Another person acts in another context: what the story says of the first does not hold for it.
        changes = {"context": None, "agreement": None, "accounts": None, **changes}
    return replace(base, **changes)


def _tpp(part: Part, declared: Declared) -> TppWish:
    if not isinstance(part.value, dict):
        name = part.text(longest=60) or DEFAULT_TPP
        return declared.get(name) or TppWish(name)
    members = part.members(TPP_MEMBERS, required=("name",))
    texts: Mapping[str, str | None] = {name: m.text(longest=256) for name, m in members.items() if name != "roles"}
    roles: tuple[str, ...] = ROLES
    if "roles" in members:
        roles = tuple(role for item in members["roles"].items() if (role := item.one_of(ROLES, "role")))
    wish = TppWish(texts.get("name") or DEFAULT_TPP, roles, texts.get("organizationIdentifier"), texts.get("flaw"))
    declared[wish.name] = wish
    return wish
