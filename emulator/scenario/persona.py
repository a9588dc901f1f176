"""`as` of a story or a step: the TPP that acts, its customer and the context (CONTRACT 13, Story steps)."""

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
# The prefix keeps the certificates of stories apart from those of the user.
STORED_AS = "story-"
LONGEST_NAME = 63 - len(STORED_AS)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Unfit("text")
    if len(value) > LONGEST_NAME:
        raise Unfit(text=f"Expected text of at most {LONGEST_NAME} characters.")
    if not re.fullmatch(TPP_NAME, value):
        raise Unfit("the name of a TPP, of letters, digits, blanks, dots, dashes and underscores")
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
    """Who acts; omitted members are those of the story, or defaults of the bank."""

    model_config = ConfigDict(title="as")

    tpp: Maybe[
        Annotated[
            Annotated[TppName, Tag("(name)")] | Annotated[NewTpp, Tag("(new)")],
            Discriminator(lambda value: "(new)" if isinstance(value, dict | NewTpp) else "(name)"),
        ]
    ] = Field(None, description="The TPP that signs; a name alone: as it was described last.")
    national_id: Maybe[Text100] = Field(None, description="The customer; omitted: the owner of the account that pays.")
    context: Maybe[Context] = None
    agreement: Maybe[Text100] = Field(None, description="psuCorporateId of the agreement.")
    accounts: Maybe[list[Text]] = Field(None, description="The accounts to share: iban, bban or resourceId.")
    session: bool = Field(True, description="false: the TPP does not know the customer yet.")


@dataclass(frozen=True, slots=True)
class TppWish:
    """The certificate of a TPP of the story."""

    name: str = DEFAULT_TPP
    roles: tuple[str, ...] = ROLES
    organization_identifier: str | None = None
    flaw: str | None = None


@dataclass(frozen=True, slots=True)
class Persona:
    """Who acts. Without `national_id` it is the owner of the account in the request.

    `session` False: the TPP does not know the customer yet.
    """

    tpp: TppWish = TppWish()
    national_id: str | None = None
    context: str | None = None
    agreement: str | None = None
    accounts: tuple[str, ...] | None = None
    session: bool = True

    def filled(self, fill: Callable[[Any], Any]) -> Persona:
        """The persona with the `${names}` in it replaced by `fill`, as an earlier step may have saved them."""
        texts = {"national_id": self.national_id, "agreement": self.agreement}
        changes: dict[str, Any] = {name: str(fill(text)) for name, text in texts.items() if text is not None}
        if self.accounts is not None:
            changes["accounts"] = tuple(str(fill(name)) for name in self.accounts)
        return replace(self, **changes)


Declared = dict[str, TppWish]


def acting(form: As, base: Persona, declared: Declared) -> Persona:
    """The persona of `as`, over that of the story.

    `declared`: the TPPs that the story has described so far; a name alone means the last one of that name.
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
        # Another person has another context: that of the story does not apply to it.
        changes = {"context": None, "agreement": None, "accounts": None, **changes}
    return replace(base, **changes)
