"""`as` of a story or a step: which TPP acts, for which customer, in which context (CONTRACT 13, Story steps)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from emulator.ca import FLAWS, TPP_NAME
from emulator.scenario.part import Part
from emulator.scenario.vocabulary import CONTEXTS

MEMBERS = ("tpp", "nationalId", "context", "agreement", "accounts", "session")
TPP_MEMBERS = ("name", "roles", "organizationIdentifier", "flaw")
ROLES = ("PISP", "AISP")
DEFAULT_TPP = "demo"
# Kept under other names, the story's certificates never take the place of a TPP's own.
STORED_AS = "story-"
LONGEST_NAME = 63 - len(STORED_AS)
LONGEST_IDENTIFIER = 256
LONGEST = 100  # of what names a person or an agreement


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

    def filled(self, fill: Callable[[Any], Any]) -> Persona:
        """The persona with what `fill` makes of the names in it, for an earlier step may have saved who acts."""
        texts = {"national_id": self.national_id, "agreement": self.agreement}
        changes: dict[str, Any] = {name: str(fill(text)) for name, text in texts.items() if text is not None}
        if self.accounts is not None:
            changes["accounts"] = tuple(str(fill(name)) for name in self.accounts)
        return replace(self, **changes)


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
            changes["national_id" if name == "nationalId" else name] = member.text(longest=LONGEST)
    if "nationalId" in members:
        # Another person acts in another context: what the story says of the first does not hold for it.
        changes = {"context": None, "agreement": None, "accounts": None, **changes}
    return replace(base, **changes)


def _tpp(part: Part, declared: Declared) -> TppWish:
    if not isinstance(part.value, dict):
        name = _name(part)
        return declared.get(name) or TppWish(name)
    members = part.members(TPP_MEMBERS, required=("name",))
    name = _name(members["name"]) if "name" in members else DEFAULT_TPP
    roles: tuple[str, ...] = ROLES
    if "roles" in members:
        roles = tuple(role for item in members["roles"].items(least=1) if (role := item.one_of(ROLES, "role")))
    identifier = (
        members["organizationIdentifier"].text(longest=LONGEST_IDENTIFIER)
        if "organizationIdentifier" in members
        else None
    )
    flaw = members["flaw"].one_of(FLAWS, "flaw") if "flaw" in members else None
    declared[name] = TppWish(name, roles, identifier, flaw)
    return declared[name]


def _name(part: Part) -> str:
    name = part.text(longest=LONGEST_NAME)
    if name is not None and not TPP_NAME.fullmatch(name):
        part.expected("a TPP's name of letters, digits, blanks, dots, dashes and underscores")
    return name or DEFAULT_TPP
