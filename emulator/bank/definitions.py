"""What fixtures and a scenario's `add` may define: people, customers, accounts, cards, agreements, transactions.

These models are the one description of the format: the loader checks with them, and `fixtures/fixture.schema.json`
is made from them. Amounts are decimal text or numbers; dates are days before (`-3d`) or after (`+2d`) bank time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

_OFFSET = re.compile(r"[+-]?(0|[1-9][0-9]{0,3})d", re.ASCII)
_INTERVAL = re.compile(r"[1-9][0-9]{0,3}d", re.ASCII)
_AMOUNT = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,5})?", re.ASCII)


def _offset(value: Any) -> int:
    if isinstance(value, str) and _OFFSET.fullmatch(value):
        return int(value[:-1])
    raise ValueError("days before or after bank time were expected, such as -3d, 0d or +2d")


def _interval(value: Any) -> int:
    if isinstance(value, str) and _INTERVAL.fullmatch(value):
        return int(value[:-1])
    raise ValueError("a number of days was expected, such as 7d")


def _amount(value: Any) -> Decimal:
    text = repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    if isinstance(text, str) and _AMOUNT.fullmatch(text):
        return Decimal(text)
    raise ValueError('an amount was expected, such as "-412.50"')


def _number_as_text(value: Any) -> Any:
    """Digits without quotes are a number to YAML; where text is meant they are taken as it."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _pattern(pattern: str) -> dict[str, Any]:
    return {"anyOf": [{"type": "string", "pattern": pattern}, {"type": "integer"}]}


_UP_TO_11_DIGITS = r"^[0-9]{8,11}$"
_NINE_DIGITS = r"^[0-9]{9}$"
_BBAN = r"^[0-9A-Z]{1,30}$"
_ACCOUNT = r"^[0-9A-Z]{1,34}$"
_REFERENCE = r"^[^\x00-\x1f]{1,35}$"
_IBAN = r"^[A-Z]{2}[0-9]{2}[0-9A-Z]{1,30}$"
_BIC = r"^[A-Z]{6}[A-Z2-9][A-NP-Z0-9]([A-Z0-9]{3})?$"
_CURRENCY = r"^[A-Z]{3}$"
_RATE = r"^[0-9]{1,7}(\.[0-9]{1,10})?$"
_FOUR_DIGITS = r"^[0-9]{4}$"
_COUNTRY = r"^[A-Z]{2}$"
_MASKED = r"^[0-9Xx*]{8,35}$"
_NAME = r"^[a-z0-9][a-z0-9-]{0,62}$"

Offset = Annotated[int, BeforeValidator(_offset), WithJsonSchema({"type": "string", "pattern": f"^{_OFFSET.pattern}$"})]
Interval = Annotated[
    int, BeforeValidator(_interval), WithJsonSchema({"type": "string", "pattern": f"^{_INTERVAL.pattern}$"})
]
Amount = Annotated[
    Decimal,
    BeforeValidator(_amount),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": f"^{_AMOUNT.pattern}$"}, {"type": "number"}]}),
]
Number = Annotated[
    str,
    BeforeValidator(_number_as_text),
    Field(pattern=_UP_TO_11_DIGITS),
    WithJsonSchema(_pattern(_UP_TO_11_DIGITS)),
]
OrganisationNumber = Annotated[
    str, BeforeValidator(_number_as_text), Field(pattern=_NINE_DIGITS), WithJsonSchema(_pattern(_NINE_DIGITS))
]
Bban = Annotated[str, BeforeValidator(_number_as_text), Field(pattern=_BBAN), WithJsonSchema(_pattern(_BBAN))]
AnyAccount = Annotated[
    str, BeforeValidator(_number_as_text), Field(pattern=_ACCOUNT), WithJsonSchema(_pattern(_ACCOUNT))
]
Reference = Annotated[
    str, BeforeValidator(_number_as_text), Field(pattern=_REFERENCE), WithJsonSchema(_pattern(_REFERENCE))
]
Iban = Annotated[str, Field(pattern=_IBAN)]
Bic = Annotated[str, Field(pattern=_BIC)]
CurrencyCode = Annotated[str, Field(pattern=_CURRENCY)]
Rate = Annotated[str, Field(pattern=_RATE)]
Text35 = Annotated[str, Field(min_length=1, max_length=35)]
Text70 = Annotated[str, Field(min_length=1, max_length=70)]
Text140 = Annotated[str, Field(min_length=1, max_length=140)]
BankTransactionCode = Annotated[str, Field(min_length=4, max_length=14)]
Role = Literal["VIEW", "REGISTER"]


_FORMS = {
    _UP_TO_11_DIGITS: "8 to 11 digits",
    _NINE_DIGITS: "9 digits",
    _BBAN: "an account number of 1 to 30 digits or capital letters",
    _ACCOUNT: "an IBAN or BBAN",
    _REFERENCE: "1 to 35 characters on one line",
    _IBAN: "an IBAN",
    _BIC: "a BIC",
    _CURRENCY: "a currency code such as NOK",
    _RATE: 'a number in quotes such as "11.7350"',
    _FOUR_DIGITS: "4 digits",
    _COUNTRY: "a country code such as NO",
    _MASKED: "a masked card number such as 4500********1234",
    _NAME: "a name of small letters, digits and dashes",
}


def expected(detail: Mapping[str, Any]) -> str | None:
    """What a mistake that pydantic found (one of `errors()`) is about, in our words; None where it says so itself."""
    ctx: Mapping[str, Any] = detail.get("ctx", {})
    match detail["type"]:
        case "string_type":
            return "text"
        case "bool_type":
            return "true or false"
        case "list_type":
            return "a list"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "a mapping"
        case "literal_error":
            return f"one of {ctx['expected'].replace(' or ', ', ')}".replace("'", "")
        case "string_pattern_mismatch":
            return _FORMS.get(ctx["pattern"], f"text that fits {ctx['pattern']}")
        case "string_too_short":
            return f"text of at least {_count(ctx['min_length'], 'character')}"
        case "string_too_long":
            return f"text of at most {_count(ctx['max_length'], 'character')}"
        case "too_short":
            return f"a list of at least {_count(ctx['min_length'], 'entry', 'entries')}"
        case "too_long":
            return f"a list of at most {_count(ctx['max_length'], 'entry', 'entries')}"
    return None


def _count(number: int, one: str, several: str | None = None) -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"


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
    exchange_rate: Rate
    contract_identification: Text35 | None = None


class BatchEntry(Definition):
    """One payment inside a batch; the amounts of a batch's entries add up to the transaction's."""

    amount: Amount
    name: Text70
    bban: Bban | None = None
    iban: Iban | None = None
    text: Text140 | None = None
    kid: Reference | None = None


class Transaction(Definition):
    """Money in (positive) or out (negative): `name`, `bban`, `iban` and `bic` are the other side's.

    `amounts` with `every` stand for one transaction each: the first on `date`, the next `every` days earlier.
    `pending: true` with `books: +1d` is pending until that day.
    """

    date: Offset
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
    text: Text140 | list[Text140] | None = None
    kid: Reference | None = None
    reference: Reference | None = None
    end_to_end_id: Text35 | None = None
    purpose_code: Annotated[str, Field(min_length=1, max_length=4)] | None = None
    bank_transaction_code: BankTransactionCode | None = None
    code: Text35 | None = None
    exchange: Exchange | None = None
    batch: Annotated[list[BatchEntry], Field(min_length=1, max_length=500)] | None = None


class AccountTransaction(Transaction):
    """A transaction that names its account (IBAN or BBAN), where it does not stand inside one."""

    account: AnyAccount


class Account(Definition):
    """An account; `balance` is what is booked at bank time, after the transactions that stand here."""

    customer_number: Number
    account_name: Text70
    bban: Bban
    iban: Iban | None = None
    currency: CurrencyCode = "NOK"
    product: Text70 = "Brukskonto"
    cash_account_type: Literal["CACC", "SVGS", "LOAN", "TRAN", "TAXE"] = "CACC"
    credit_line: Amount = Decimal(0)
    balance: Amount = Decimal(0)
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
    merchant_category_code: Annotated[
        str, BeforeValidator(_number_as_text), Field(pattern=_FOUR_DIGITS), WithJsonSchema(_pattern(_FOUR_DIGITS))
    ]
    city: Text70 | None = None
    country: Annotated[str, Field(pattern=_COUNTRY)] | None = None
    invoiced: bool = False


class Card(Definition):
    """A card account; `account` is the account (IBAN or BBAN) that payments from the card are taken from."""

    customer_number: Number
    name: Text70
    masked_pan: Annotated[str, Field(pattern=_MASKED)]
    product: Text70
    currency: CurrencyCode = "NOK"
    credit_limit: Amount = Decimal(0)
    balance: Amount = Decimal(0)
    account: AnyAccount | None = None
    transactions: list[CardTransaction] = []


class Engagement(Definition):
    """What an agreement lets its persons do with an account (IBAN or BBAN)."""

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

    rates: dict[CurrencyCode, Rate] = {}
    fees: dict[Literal["conversion", "crossBorder"], Rate] = {}


class FixtureFile(Additions):
    """A whole fixture: the state that initialize and reset restore."""

    fixture: Annotated[str, Field(pattern=_NAME)]
    summary: Text140
    exchange: ExchangeTable | None = None
