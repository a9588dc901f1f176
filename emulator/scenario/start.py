"""`start` and `story_start` of a scenario: documents, clock and settings, then changes (scenario-language.md#start)."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from emulator.bank import fixtures
from emulator.bank.accounts import accounts, ledger
from emulator.bank.bank import Bank
from emulator.bank.clock import date_time
from emulator.bank.conditions import wildcard
from emulator.bank.customers import access, consents, people, sessions
from emulator.bank.documents import Account, Agreement
from emulator.bank.errors import BankError
from emulator.bank.fixtures.definitions import Additions
from emulator.bank.fixtures.entries import DefinitionError, wrong
from emulator.bank.formats import digits_of
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CONSENT, CUSTOMER, SESSION
from emulator.bank.money import plain, too_fine
from emulator.bank.payment import progression
from emulator.bank.problems import Path
from emulator.bank.validation import (
    Mismatch,
    Model,
    Moment,
    Omittable,
    Text100,
    Text200,
    amount,
    filled,
    one_of,
    refuse,
)
from emulator.scenario.values import Feed, Settings, by_member

if TYPE_CHECKING:
    from emulator.bank.snapshots import Snapshots
    from emulator.store import Image

CURRENT = "current"
SNAPSHOT = "snapshot:"
LONGEST_PERSON = 11


def _base(value: str) -> str:
    if value == SNAPSHOT:
        refuse(Mismatch(text="Expected the name of a snapshot after snapshot:."))
    known = (*fixtures.names(), CURRENT)
    if not value.startswith(SNAPSHOT) and value not in known:
        refuse(Mismatch(text="There is no fixture", known=known, value=value))
    return value


class _BaseSchema:
    """The base; its schema has the fixtures that this process offers when it is asked for."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        del schema, handler
        named = {"enum": [*fixtures.names(), CURRENT]}
        return {"anyOf": [named, {"type": "string", "pattern": f"^{SNAPSHOT}.", "maxLength": 200}]}


class _ChangeModel(Model):
    """A change to an existing account or agreement; at least one member besides its name."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 2})

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if len(self.model_fields_set) == 1:
            names = [field.alias or name for name, field in list(type(self).model_fields.items())[1:]]
            refuse(Mismatch(text=f"The change is missing: one of {', '.join(names)}."))
        return self

    def members(self) -> dict[str, Any]:
        """The changed members, by their names in documents."""
        _, *others = type(self).model_fields.items()
        return {field.alias or key: getattr(self, key) for key, field in others if key in self.model_fields_set}


class AccountChange(_ChangeModel):
    """A change to the account with this IBAN, BBAN or resourceId; with `*` (any characters) to all that match."""

    account: Text100
    balance: Omittable[Annotated[str, amount(r"-?[0-9]{1,13}(\.[0-9]{1,5})?")]] = None
    credit_line: Omittable[Annotated[str, amount(r"[0-9]{1,13}(\.[0-9]{1,5})?", minimum=0)]] = None
    payments_removed: Omittable[bool] = None
    demands_kid: Omittable[bool] = None
    name: Omittable[Annotated[str, filled(70)]] = None
    status: Omittable[Annotated[str, one_of("status of an account", accounts.STATUSES)]] = None
    owners: Omittable[Annotated[list[Text100], Field(max_length=20)]] = Field(
        None, description="Numbers of the private customers to whom it belongs too; * for all of the bank."
    )

    def apply(self, bank: Bank, path: Path) -> None:
        """Change the accounts; raises DefinitionError if there is none."""
        named = _accounts(bank, self.account)
        if not named:
            text = f"There is no account {self.account}; an IBAN, BBAN or resourceId was expected."
            raise wrong((*path, "account"), text)
        for account in named:
            values = self.members()
            if self.owners is not None:
                values["owners"] = self._owners(bank, account, (*path, "owners"))
            balance = values.pop("balance", None)
            if self.credit_line is not None:
                line = _amount(self.credit_line, account["currency"], (*path, "creditLine"))
                values["creditLine"] = plain(line, account["currency"])
            bank.documents.put(ACCOUNT, cast(Account, {**account, **values}))
            if balance is not None:
                ledger.restate(bank, account["id"], _amount(balance, account["currency"], (*path, "balance")))

    def _owners(self, bank: Bank, account: Account, path: Path) -> list[str]:
        """The ids of the other owners; none of an account that does not belong to a private customer."""
        private = {c["customerNumber"]: c["id"] for c in bank.documents.all(CUSTOMER) if c["type"] == "private"}
        for index, number in enumerate(self.owners or ()):
            if number != "*" and number not in private:
                raise wrong((*path, index), f"The bank has no private customer with the number {number}.")
        if account["customerId"] not in private.values():
            return []
        chosen = [i for number, i in private.items() if "*" in (self.owners or ()) or number in (self.owners or ())]
        return [identity for identity in chosen if identity != account["customerId"]]


class AgreementChange(_ChangeModel):
    """A change to the agreement with this psuCorporateId, name or organisation number.

    With `*` (any characters) to all agreements of corporate customers that match; one with too few persons for two
    signatures gets another person of the bank.
    """

    agreement: Text100
    signatures: Omittable[Literal[1, 2]] = None
    persons: Omittable[Annotated[list[Annotated[str, filled(LONGEST_PERSON)]], Field(min_length=1)]] = None

    def apply(self, bank: Bank, path: Path) -> None:
        """Change the agreements; raises DefinitionError for none, several, unknown persons and too few persons."""
        several = "*" in self.agreement
        named = [agreement for agreement in bank.documents.all(AGREEMENT) if self._names(bank, agreement)]
        if len(named) != 1 and not (several and named):
            there_is = "There is no agreement" if not named else f"There are {len(named)} agreements called"
            text = f"{there_is} {self.agreement}; its name or psuCorporateId was expected."
            raise wrong((*path, "agreement"), text)
        for index, person in enumerate(self.persons or ()):
            if people.person(bank, person) is None:
                raise wrong((*path, "persons", index), f"The bank has no person with the number {person}.")
        for agreement in named:
            changed = cast(Agreement, {**agreement, **self.members()})
            changed["persons"] = list(dict.fromkeys(changed["persons"]))
            if several and self.persons is None:
                changed["persons"] = _enough_persons(bank, changed)
            if changed["signatures"] > len(changed["persons"]):
                raise wrong((*path, "signatures"), "Two signatures require two persons.")
            bank.documents.put(AGREEMENT, changed)

    def _names(self, bank: Bank, agreement: Agreement) -> bool:
        names = (agreement["id"], agreement["name"], agreement.get("organisationNumber") or "")
        if "*" not in self.agreement:
            return self.agreement in names
        owner = bank.documents.get(CUSTOMER, agreement["owner"])
        is_corporate = owner is not None and owner["type"] == "corporate"
        return is_corporate and any(wildcard(self.agreement, one) for one in names)


ACCESS = ("consents", "sessions", "quotas")


class AccessChange(Model):
    """A change to the access of TPPs: all valid consents, sessions or quotas end, as if by themselves."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    consents: Omittable[Annotated[str, one_of("state of consents", ("expired", "revoked"))]] = None
    sessions: Omittable[Annotated[str, one_of("state of sessions", ("expired",))]] = None
    quotas: Omittable[Annotated[str, one_of("state of quotas", ("exhausted",))]] = Field(
        None, description="Reads without the PSU in the next 24 hours, of every account that a consent covers."
    )

    def apply(self, bank: Bank, path: Path) -> None:
        """End the valid consents, sessions or quotas."""
        del path
        documents = bank.documents
        for consent in list(documents.all(CONSENT)):
            valid = consents.status(bank, consent) == "valid"
            if valid and self.quotas is not None:
                access.use_up(bank, consent)
            if valid and self.consents == "revoked":
                consents.revoke(bank, consent["id"])
            elif valid and self.consents == "expired":
                consents.expire(bank, consent)
        for session in list(documents.all(SESSION)) if self.sessions is not None else ():
            sessions.expire(bank, session)


def _amount(text: str, currency: str, path: Path) -> Decimal:
    amount = Decimal(text)
    if too_fine(amount, currency):
        raise wrong(path, f"{text} has more decimals than {currency}.")
    return amount


def _accounts(bank: Bank, name: str) -> list[Account]:
    """The account with this IBAN, BBAN or resourceId; with `*`, every account whose IBAN or BBAN matches."""
    documents = bank.documents
    if "*" in name:
        return [a for a in documents.all(ACCOUNT) if wildcard(name, a["iban"]) or wildcard(name, a["bban"])]
    number = digits_of(name)
    by_number = documents.first(ACCOUNT, iban=number) or documents.first(ACCOUNT, bban=number)
    account = by_number or documents.get(ACCOUNT, consents.resource_shown_as(bank, name))
    return [] if account is None else [account]


def _enough_persons(bank: Bank, agreement: Agreement) -> list[str]:
    """The persons of an agreement, with others of the bank if there are fewer than signatures."""
    others = [number for number in people.names(bank) if number not in agreement["persons"]]
    missing = max(0, agreement["signatures"] - len(agreement["persons"]))
    return [*agreement["persons"], *others[:missing]]


_CHANGED = {"account": AccountChange, "agreement": AgreementChange, **dict.fromkeys(ACCESS, AccessChange)}

if TYPE_CHECKING:
    Change = AccountChange | AgreementChange | AccessChange
else:
    Change = by_member(_CHANGED, lambda _: Mismatch(text=f"A change names one of {', '.join(_CHANGED)}."))


class Start(Model):
    """The state that the bank starts from, and changes to it."""

    model_config = ConfigDict(title="start")

    base: Annotated[Text200, AfterValidator(_base), _BaseSchema()] = Field(
        CURRENT, alias="from", description="A fixture, current, or snapshot:NAME."
    )
    clock: Omittable[Moment] = Field(
        None, description="A time with a UTC offset; bank time stands still there until it is advanced."
    )
    settings: Settings = Field(default_factory=dict)
    feed: Omittable[Feed] = Field(None, description="Effects on the account feed: the setting `feed`.")
    add: Omittable[Additions] = None
    change: list[Change] = Field(default_factory=list)

    @model_validator(mode="after")
    def _names_the_feed_once(self) -> Self:
        if self.feed is not None and "feed" in self.settings:
            refuse(Mismatch(text="feed is also in settings; write it once.", path=("feed",)))
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
    def snapshot(self) -> str | None:
        """The name of the snapshot that the bank starts from; None if it starts from something else."""
        return self.base.removeprefix(SNAPSHOT) if self.base.startswith(SNAPSHOT) else None

    def apply(self, bank: Bank, snapshots: Snapshots, content: Image | None) -> None:
        """Apply it; raises DefinitionError for changes to something that the bank does not have.

        `content`: the snapshot that it starts from, where that was prepared.
        """
        self._apply_base(bank, snapshots, content)
        if self.changed_settings:
            bank.change_settings(self.changed_settings)
        if self.add is not None:
            try:
                fixtures.add(bank, self.add)
            except DefinitionError as error:
                problems = (replace(problem, path=("start", "add", *problem.path)) for problem in error.problems)
                raise DefinitionError(*problems) from None
        for index, change in enumerate(self.change):
            change.apply(bank, ("start", "change", index))

    def _apply_base(self, bank: Bank, snapshots: Snapshots, content: Image | None) -> None:
        """Set documents and clock; the clock is set back only with the documents."""
        if not self.resets:
            if self.clock is not None and self.clock < bank.clock.now():
                standing = date_time(bank.clock.now())
                text = f"Bank time is already {standing}; only a start from a fixture or a snapshot sets it back."
                raise wrong(("start", "clock"), text)
        elif self.snapshot is not None:
            try:
                snapshots.restore(bank, self.snapshot, content)
            except BankError as error:
                raise wrong(("start", "from"), error.messages[0].text) from None
        else:
            fixtures.reset(bank, self.base, now=self.clock, mode=None if self.clock is None else "frozen")
            return
        if self.clock is not None:
            bank.clock.set(now=self.clock, mode="frozen")
            progression.run_due(bank)  # what fell due before the changes has happened before them
