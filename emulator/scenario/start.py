"""The forms of `start` and `story_start` in a scenario; `applying` applies them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

from emulator.bank import fixtures
from emulator.bank.fixtures.definitions import Additions
from emulator.bank.validation import Maybe, Model, Moment, Reads, Text100, Unfit, one_of, refuse
from emulator.scenario.values import Feed, Settings, amount

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


class _ChangeModel(Model):
    """A change to an existing account or agreement; at least one member besides its name."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 2})

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if len(self.model_fields_set) == 1:
            names = [field.alias or name for name, field in list(type(self).model_fields.items())[1:]]
            refuse(Unfit(text=f"The change is missing: one of {', '.join(names)}."))
        return self

    def members(self) -> dict[str, Any]:
        """The changed members, by their names in documents."""
        _, *others = type(self).model_fields.items()
        return {field.alias or key: getattr(self, key) for key, field in others if key in self.model_fields_set}


class AccountChange(_ChangeModel):
    """A change to the account with this IBAN, BBAN or resourceId; with `*` (any characters) to all that match."""

    account: Text100
    balance: Maybe[Annotated[str, amount(r"-?[0-9]{1,13}(\.[0-9]{1,5})?")]] = None
    credit_line: Maybe[Annotated[str, amount(r"[0-9]{1,13}(\.[0-9]{1,5})?")]] = None
    payments_removed: Maybe[bool] = None
    demands_kid: Maybe[bool] = None
    name: Maybe[Annotated[str, Field(pattern=r"\S", max_length=70)]] = None


class AgreementChange(_ChangeModel):
    """A change to the agreement with this psuCorporateId, name or organisation number.

    With `*` (any characters) to all agreements of corporate customers that match; one with too few persons for two
    signatures gets another person of the bank.
    """

    agreement: Text100
    signatures: Maybe[Literal[1, 2]] = None
    persons: Maybe[
        Annotated[list[Annotated[str, Field(pattern=r"\S", max_length=LONGEST_PERSON)]], Field(min_length=1)]
    ] = None


class AccessChange(Model):
    """A change to the access of TPPs: all valid consents, sessions or quotas end, as if by themselves."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    consents: Maybe[Annotated[str, one_of("state of consents", ("expired", "revoked"))]] = None
    sessions: Maybe[Annotated[str, one_of("state of sessions", ("expired",))]] = None
    quotas: Maybe[Annotated[str, one_of("state of quotas", ("exhausted",))]] = Field(
        None, description="Reads without the PSU in the next 24 hours, of every account that a consent covers."
    )


def _no_change(value: Any) -> Any:
    if not isinstance(value, dict):
        raise Unfit("a mapping")
    raise Unfit(text=f"A change names one of {', '.join(_CHANGED)}.")


def _what_changes(value: Any) -> str:
    if isinstance(value, AccountChange | AgreementChange | AccessChange):
        return next(tag for tag, form in _FORMS.items() if isinstance(value, form))
    tags = {tag for name, tag in _CHANGED.items() if isinstance(value, dict) and name in value}
    return tags.pop() if len(tags) == 1 else "(nothing)"


_FORMS = {"(account)": AccountChange, "(agreement)": AgreementChange, "(access)": AccessChange}
_CHANGED = {
    "account": "(account)",
    "agreement": "(agreement)",
    "consents": "(access)",
    "sessions": "(access)",
    "quotas": "(access)",
}


Change = Annotated[
    Annotated[AccountChange, Tag("(account)")]
    | Annotated[AgreementChange, Tag("(agreement)")]
    | Annotated[AccessChange, Tag("(access)")]
    | Annotated[Any, Reads(_no_change, {"not": {}}), Tag("(nothing)")],
    Discriminator(_what_changes),
]


class Start(Model):
    """The state that the bank starts from, and changes to it."""

    model_config = ConfigDict(title="start")

    base: Annotated[str, Reads(_base, {"anyOf": _BASES})] = Field(
        CURRENT, alias="from", description="A fixture, current, or snapshot:NAME."
    )
    clock: Maybe[Moment] = Field(
        None, description="A time with a UTC offset; bank time stands still there until it is advanced."
    )
    settings: Settings = Field(default_factory=dict)
    feed: Maybe[Feed] = Field(None, description="Effects on the account feed: the setting `feed`.")
    add: Maybe[Additions] = None
    change: list[Change] = Field(default_factory=list)

    @model_validator(mode="after")
    def _names_the_feed_once(self) -> Self:
        if self.feed is not None and "feed" in self.settings:
            refuse(Unfit(text="feed is also in settings; write it once.", path=("feed",)))
        return self

    @property
    def changed_settings(self) -> dict[str, Any]:
        """The settings that it changes, the feed included."""
        return self.settings if self.feed is None else {**self.settings, "feed": self.feed}

    @property
    def resets(self) -> bool:
        """Whether the documents of the bank are replaced."""
        return self.base != CURRENT

    @property
    def from_snapshot(self) -> bool:
        """Whether the bank starts from a snapshot."""
        return self.base.startswith(SNAPSHOT)

    @property
    def snapshot(self) -> str:
        """The name of that snapshot."""
        return self.base.removeprefix(SNAPSHOT)
