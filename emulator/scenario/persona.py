"""`as` of a story or a step: which TPP acts, for which customer, in which context (CONTRACT 13, Story steps)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import ConfigDict, Discriminator, Field, Tag

from emulator.bank.validation import Maybe, Model, Reads, Text, Text100, Unfit, one_of
from emulator.ca import FLAWS, TPP_NAME
from emulator.scenario.values import Context

ROLES = ("PISP", "AISP")
DEFAULT_TPP = "demo"
# Stored under other names, the story's certificates never take the place of a TPP's own.
STORED_AS = "story-"
LONGEST_NAME = 63 - len(STORED_AS)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Unfit("text")
    if len(value) > LONGEST_NAME:
        raise Unfit(text=f"Expected text of at most {LONGEST_NAME} characters.")
    if not re.fullmatch(TPP_NAME, value):
        raise Unfit("a TPP's name of letters, digits, blanks, dots, dashes and underscores")
    return value


TppName = Annotated[
    str, Reads(_name, {"type": "string", "pattern": f"^{TPP_NAME.pattern}$", "maxLength": LONGEST_NAME})
]


class NewTpp(Model):
    """A TPP that the story describes."""

    name: TppName
    roles: Annotated[list[Annotated[str, one_of("role", ROLES)]], Field(min_length=1)] = Field(
        default_factory=lambda: [*ROLES]
    )
    organization_identifier: Maybe[Annotated[str, Field(pattern=r"\S", max_length=256)]] = None
    flaw: Maybe[Annotated[str, one_of("flaw", FLAWS)]] = None


class As(Model):
    """Who acts; what is left out is as the story says, or as the bank suggests."""

    model_config = ConfigDict(title="as")

    tpp: Maybe[
        Annotated[
            Annotated[TppName, Tag("(name)")] | Annotated[NewTpp, Tag("(new)")],
            Discriminator(lambda value: "(new)" if isinstance(value, dict | NewTpp) else "(name)"),
        ]
    ] = Field(None, description="The TPP whose certificate signs; a name alone: as it was described last.")
    national_id: Maybe[Text100] = Field(None, description="The customer; left out: who owns the account that pays.")
    context: Maybe[Context] = None
    agreement: Maybe[Text100] = Field(None, description="psuCorporateId of the agreement.")
    accounts: Maybe[list[Text]] = Field(None, description="What is shared: iban, bban or resourceId.")
    session: bool = Field(True, description="false: the TPP does not know the customer yet.")


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


def acting(form: As, base: Persona, declared: Declared) -> Persona:
    """The persona that `as` states, over that of the story.

    `declared`: the TPPs that the story has described so far; a name alone means the one described last under it.
    """
    changes: dict[str, Any] = {name: getattr(form, name) for name in form.model_fields_set}
    if form.accounts is not None:
        changes["accounts"] = tuple(form.accounts)
    if isinstance(form.tpp, NewTpp):
        tpp = form.tpp
        declared[tpp.name] = TppWish(tpp.name, tuple(tpp.roles), tpp.organization_identifier, tpp.flaw)
        changes["tpp"] = declared[tpp.name]
    elif form.tpp is not None:
        changes["tpp"] = declared.get(form.tpp) or TppWish(form.tpp)
    if form.national_id is not None:
        # Another person acts in another context: what the story says of the first does not hold for it.
        changes = {"context": None, "agreement": None, "accounts": None, **changes}
    return replace(base, **changes)
