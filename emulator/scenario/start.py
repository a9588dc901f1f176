"""`start` and `story_start` of a scenario: the forms; `target` brings them about."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

from emulator.bank import fixtures
from emulator.bank.fixtures.definitions import Additions
from emulator.bank.validation import Maybe, Model, Moment, Reads, Text100, Unfit, refuse
from emulator.scenario.values import Settings, amount

CURRENT = "current"
SNAPSHOT = "snapshot:"
LONGEST_PERSON = 11


def _base(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Unfit("text")
    if len(value) > 200:
        raise Unfit(text="Expected text of at most 200 characters.")
    if value == SNAPSHOT:
        raise Unfit(text="Expected the name of a snapshot after snapshot:.")
    known = (*fixtures.names(), CURRENT)
    if not value.startswith(SNAPSHOT) and value not in known:
        raise Unfit(text="There is no fixture", known=known)
    return value


_BASES = [{"enum": [*fixtures.names(), CURRENT]}, {"type": "string", "pattern": f"^{SNAPSHOT}.", "maxLength": 200}]


class _Change(Model):
    """A change to an account or an agreement that is there; at least one member besides its name."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 2})

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if len(self.model_fields_set) == 1:
            names = [field.alias or name for name, field in list(type(self).model_fields.items())[1:]]
            refuse(Unfit(text=f"What is to change is missing: one of {', '.join(names)}."))
        return self

    def members(self) -> dict[str, Any]:
        """What changes, by the names that documents have."""
        _, *others = type(self).model_fields.items()
        return {field.alias or key: getattr(self, key) for key, field in others if key in self.model_fields_set}


class AccountChange(_Change):
    """A change to the account of this IBAN, BBAN or resourceId."""

    account: Text100
    balance: Maybe[Annotated[str, amount(r"-?[0-9]{1,13}(\.[0-9]{1,5})?")]] = None
    credit_line: Maybe[Annotated[str, amount(r"[0-9]{1,13}(\.[0-9]{1,5})?")]] = None
    payments_removed: Maybe[bool] = None
    demands_kid: Maybe[bool] = None
    name: Maybe[Annotated[str, Field(pattern=r"\S", max_length=70)]] = None


class AgreementChange(_Change):
    """A change to the agreement of this psuCorporateId, name or organisation number."""

    agreement: Text100
    signatures: Maybe[Literal[1, 2]] = None
    persons: Maybe[
        Annotated[list[Annotated[str, Field(pattern=r"\S", max_length=LONGEST_PERSON)]], Field(min_length=1)]
    ] = None


def _no_change(value: Any) -> Any:
    if not isinstance(value, dict):
        raise Unfit("a mapping")
    raise Unfit(text="A change names an account or an agreement.")


def _what_changes(value: Any) -> str:
    named = [name for name in ("account", "agreement") if isinstance(value, dict) and name in value]
    if isinstance(value, _Change):
        return "(account)" if isinstance(value, AccountChange) else "(agreement)"
    return f"({named[0]})" if len(named) == 1 else "(nothing)"


Change = Annotated[
    Annotated[AccountChange, Tag("(account)")]
    | Annotated[AgreementChange, Tag("(agreement)")]
    | Annotated[Any, Reads(_no_change, {"not": {}}), Tag("(nothing)")],
    Discriminator(_what_changes),
]


class Start(Model):
    """What the bank starts from, and what is changed then."""

    model_config = ConfigDict(title="start")

    base: Annotated[str, Reads(_base, {"anyOf": _BASES})] = Field(
        CURRENT, alias="from", description="A fixture, current, or snapshot:NAME."
    )
    clock: Maybe[Moment] = Field(
        None, description="A moment with its zone; bank time stands still there until advanced."
    )
    settings: Settings = Field(default_factory=dict)
    add: Maybe[Additions] = None
    change: list[Change] = Field(default_factory=list)

    @property
    def resets(self) -> bool:
        """Whether the documents of the bank are replaced."""
        return self.base != CURRENT
