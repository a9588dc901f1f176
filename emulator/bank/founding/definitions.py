"""What fixtures and a scenario's `add` may define: people, customers, accounts, cards, agreements, transactions.

These models are the one description of the format: the loader checks with them, and `fixtures/fixture.schema.json`
is made from them. Amounts are decimal text or numbers; dates are days before (`-3d`) or after (`+2d`) bank time.
Accounts, their transactions and agreements may also be written with the members of sandbox bodies (CONTRACT 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from emulator.bank.founding.definition_values import (
    Amount,
    AnyAccount,
    BankTransactionCode,
    Bban,
    Bic,
    CategoryCode,
    Country,
    CurrencyCode,
    ExchangeRate,
    FixtureName,
    Iban,
    Interval,
    Masked,
    Number,
    Offset,
    OrganisationNumber,
    Rate,
    Reference,
    Role,
    Text35,
    Text70,
    Text140,
)


class Definition(BaseModel):
    """A part of a fixture: unknown members are refused, values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)


class Person(Definition):
    """Somebody with a national identity number who acts for corporate customers."""

    national_id: Number
    name: Text70


class Exchange(Definition):
    """The currency exchange of a transaction (SPEC 2.9); the rate was quoted on the booking date."""

    source_currency: CurrencyCode
    target_currency: CurrencyCode
    unit_currency: CurrencyCode
    exchange_rate: ExchangeRate
    contract_identification: Text35 | None = None


class BatchEntry(Definition):
    """One payment inside a batch; the amounts of a batch's entries add up to the transaction's."""

    amount: Amount
    name: Text70
    bban: Bban | None = None
    iban: Iban | None = None
    text: Text140 | None = None
    kid: Reference | None = None


class Money(Definition):
    """An amount as sandbox bodies have it."""

    amount: Amount
    currency: CurrencyCode


class PostedBalance(Definition):
    """A balance as sandbox bodies have it."""

    balance_type: Text35 | None = None
    balance_amount: Money


class AccountReference(Definition):
    """An account by its numbers, as sandbox bodies have it."""

    iban: Iban | None = None
    bban: Bban | None = None
    currency: CurrencyCode | None = None


class Transaction(Definition):
    """Money in (positive) or out (negative): `name`, `bban`, `iban` and `bic` are the other side's.

    `amounts` with `every` stand for one transaction each: the first on `date`, the next `every` days earlier.
    `pending: true` with `books: +1d` is pending until that day. The last eight members are those of sandbox bodies.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": [name], "properties": {name: {"type": "string"}}} for name in ("date", "bookingDate")
            ]
        }
    )

    date: Offset | None = None
    value_date: Offset | None = None
    amount: Amount | None = None
    amounts: Annotated[list[Amount], Field(min_length=1, max_length=1000)] | None = None
    every: Interval | None = None
    pending: bool = False
    books: Offset | None = None
    name: Text70 | None = None
    bban: Bban | None = None
    iban: Iban | None = None
    bic: Bic | None = None
    text: Text140 | Annotated[list[Text140], Field(min_length=1)] | None = None
    kid: Reference | None = None
    reference: Reference | None = None
    end_to_end_id: Text35 | None = None
    purpose_code: Annotated[str, Field(min_length=1, max_length=4)] | None = None
    bank_transaction_code: BankTransactionCode | None = None
    code: Text35 | None = None
    exchange: Exchange | None = None
    batch: Annotated[list[BatchEntry], Field(min_length=1, max_length=500)] | None = None
    booking_date: Offset | None = None
    currency: CurrencyCode | None = None
    creditor_name: Text70 | None = None
    creditor_account: AccountReference | None = None
    debtor_name: Text70 | None = None
    debtor_account: AccountReference | None = None
    remittance_information_unstructured: Text140 | None = None
    proprietary_bank_transaction_code: Text35 | None = None

    @model_validator(mode="after")
    def _is_dated(self) -> Self:
        if self.date is None and self.booking_date is None:
            raise ValueError("the member date is missing")
        return self


class AccountTransaction(Transaction):
    """A transaction that names its account (IBAN or BBAN), where it does not stand inside one."""

    account: AnyAccount


class Account(Definition):
    """An account; `balance` is what is booked at bank time, after the transactions that stand here.

    Of `balances`, as sandbox bodies have them, the booked one counts.
    """

    customer_number: Number
    account_name: Text70
    bban: Bban
    iban: Iban | None = None
    currency: CurrencyCode = "NOK"
    product: Text70 = "Brukskonto"
    cash_account_type: Literal["CACC", "SVGS", "LOAN", "TRAN", "TAXE"] = "CACC"
    credit_line: Amount = Decimal(0)
    balance: Amount | None = None
    balances: Annotated[list[PostedBalance], Field(max_length=10)] | None = None
    demands_kid: bool = False
    transactions: list[Transaction] = []


class CardTransaction(Definition):
    """A card purchase (negative) or repayment (positive) in the card's currency; dates as in `Transaction`."""

    date: Offset
    transaction_date: Offset | None = None
    amount: Amount | None = None
    amounts: Annotated[list[Amount], Field(min_length=1, max_length=1000)] | None = None
    every: Interval | None = None
    pending: bool = False
    original_amount: Amount | None = None
    original_currency: CurrencyCode | None = None
    markup_fee: Amount | None = None
    markup_fee_percentage: Rate | None = None
    name: Text70
    merchant_category_code: CategoryCode
    city: Text70 | None = None
    country: Country | None = None
    invoiced: bool = False


class Card(Definition):
    """A card account; `account` is the account (IBAN or BBAN) that payments from the card are taken from."""

    customer_number: Number
    name: Text70
    masked_pan: Masked
    product: Text70
    currency: CurrencyCode = "NOK"
    credit_limit: Amount = Decimal(0)
    balance: Amount = Decimal(0)
    account: AnyAccount | None = None
    transactions: list[CardTransaction] = []


class Engagement(Definition):
    """What an agreement lets its persons do with an account; a private `customer` becomes one of the persons."""

    account: AnyAccount
    customer: Number | None = None
    roles: Annotated[list[Role], Field(min_length=1, max_length=2)] = ["VIEW", "REGISTER"]
    register_limit: Amount | None = None
    approval_limit: Amount | None = None


class Agreement(Definition):
    """Who acts for whom: `owner` is a customer number, `persons` those who may act, `signatures` how many sign.

    Without `engagements` every account of the owner is in it. A private owner acts for itself and its accounts are
    in it by themselves; `organisationNumber` is then its firm's.
    """

    owner: Number
    name: Text70
    organisation_number: OrganisationNumber | None = None
    persons: Annotated[list[Number], Field(max_length=100)] = []
    signatures: Literal[1, 2] = 1
    engagements: list[Engagement] | None = None


class Customer(Definition):
    """A customer; a private one's number is the national identity number (CONTRACT 13)."""

    customer_number: Number
    name: Text70
    type: Literal["private", "corporate"]
    organisation_number: OrganisationNumber | None = None


class Additions(Definition):
    """What may be added to a bank: a scenario's `add`, and the body of a fixture."""

    people: list[Person] = []
    customers: list[Customer] = []
    accounts: list[Account] = []
    cards: list[Card] = []
    agreements: list[Agreement] = []
    transactions: list[AccountTransaction] = []


def members_at(path: Sequence[str | int]) -> list[str]:
    """The members that the definition at `path` of a scenario's `add` may have."""
    model: type[Definition] = Additions
    for part in path:
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        if isinstance(part, str) and part in fields:
            model = _definition_in(fields[part].annotation) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _definition_in(annotation: Any) -> type[Definition] | None:
    if isinstance(annotation, type) and issubclass(annotation, Definition):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _definition_in(inner))), None)


class ExchangeTable(Definition):
    """Exchange rates (NOK for one unit of a currency) and fees in NOK, laid over the built-in ones (CONTRACT 6)."""

    rates: dict[CurrencyCode, ExchangeRate] = {}
    fees: dict[Literal["conversion", "crossBorder"], Rate] = {}


class FixtureFile(Additions):
    """A whole fixture: the state that initialize and reset restore."""

    fixture: FixtureName
    summary: Text140
    exchange: ExchangeTable | None = None
