"""The parts of shapes: texts, codes, amounts, account numbers, addresses.

Shapes are typed dictionaries: pydantic returns plain dictionaries with the values as sent. They are strict, so nothing
is converted, and an unknown member is an error of its own kind, which `validate` turns into a warning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, GetPydanticSchema, with_config
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from emulator.bank.errors import Message
from emulator.bank.formats import BIC, DATE, NOT_BLANK, Format, one_of
from emulator.bank.money import CURRENCIES, MINOR_UNITS, MOST_DIGITS, parse_amount, too_fine
from emulator.bank.reference import COUNTRIES
from emulator.bank.validation import Mismatch, Reads, filled, refuse


def _as_documented(schema: dict[str, Any]) -> None:
    """Remove from the JSON schema that unknown members are refused: they are ignored, with a warning."""
    schema.pop("additionalProperties", None)
    for member in schema.get("properties", {}).values():
        member.pop("title", None)


@with_config(ConfigDict(extra="forbid", strict=True, json_schema_extra=_as_documented))
class Closed(TypedDict):
    """A shape that refuses unknown members and converts nothing."""


# A rule over several members; it takes the body as sent, whose members may have any type.
Rule = Callable[[Any], Iterable[Message]]

_CURRENCIES = frozenset(CURRENCIES)

AMOUNT = r"^[0-9]+(\.[0-9]+)?$"
BBAN = r"^[0-9A-Za-z. ]*[0-9A-Za-z][0-9A-Za-z. ]*$"
IBAN = r"^ *[A-Z] *[A-Z] *[0-9] *[0-9][0-9A-Z ]*$"
_BIC = f"^{BIC}$"
_AMOUNT = re.compile(AMOUNT)
DAY_OF_EXECUTION = r"^([1-9]|[12][0-9]|3[01])$"
MONTH = r"^([1-9]|1[0-2])$"

# Descriptions of the texts that fit a pattern.
EXPECTED: Mapping[str, str] = {
    NOT_BLANK: "Text that is more than blanks",
    AMOUNT: 'An amount as digits with an optional fraction and no sign, such as "100.00",',
    BBAN: "An account number of letters and digits",
    IBAN: "An IBAN in capital letters and digits",
    _BIC: "A BIC of 8 or 11 characters",
    DAY_OF_EXECUTION: 'A day of the month from "1" to "31"',
    MONTH: 'A month from "1" to "12"',
}


@dataclass(frozen=True, eq=False)
class Fits:
    """Text of a format; of the text, the characters `without` are removed first."""

    form: Format
    without: str = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        removed = str.maketrans("", "", self.without)

        def checked(text: str) -> str:
            plain = text.translate(removed) if self.without else text
            expected = self.form.check(plain)
            if expected is not None:
                refuse(Mismatch(expected, value=text))
            return plain

        return core_schema.no_info_after_validator_function(checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        del schema, handler
        return dict(self.form.schema)


_CURRENCY = one_of(*CURRENCIES, words="a currency code that the bank knows (ISO 4217), such as NOK,")
_COUNTRY = one_of(*COUNTRIES, words="a country code of two capital letters (ISO 3166-1), such as NO,")
Currency = Annotated[str, Fits(_CURRENCY)]
Country = Annotated[str, Fits(_COUNTRY)]
IsoDate = Annotated[str, Fits(DATE)]

AnyText = str
Text35 = Annotated[str, Field(max_length=35)]
Text70 = Annotated[str, Field(max_length=70)]
Text140 = Annotated[str, Field(max_length=140)]
# "Non-empty": at least one character that is not a blank (assumed).
Filled = Annotated[str, Field(pattern=NOT_BLANK)]
Filled35 = Annotated[str, filled(35)]
Filled70 = Annotated[str, filled(70)]
Filled140 = Annotated[str, filled(140)]
Bban = Annotated[str, Field(max_length=30, pattern=BBAN)]
Iban = Annotated[str, Field(max_length=34, pattern=IBAN)]
Bic = Annotated[str, Field(pattern=_BIC)]
AmountText = Annotated[str, Field(pattern=AMOUNT)]


class Amount(Closed):
    """A positive amount with exactly the minor units of its currency."""

    amount: AmountText
    currency: Currency


class Address(Closed):
    """A postal address."""

    street: NotRequired[Text70]
    buildingNumber: NotRequired[AnyText]
    postalCode: NotRequired[AnyText]
    city: NotRequired[AnyText]
    country: Country


class StructuredReference(Closed):
    """A structured remittance reference, such as an OCR/KID."""

    reference: Filled35
    referenceType: NotRequired[Filled35]
    referenceIssuer: NotRequired[Filled35]


def inner(value: Any, *names: str) -> Any:
    """The nested member with these names in a value of any type, or None."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def each(member: str | None, *rules: Rule) -> Rule:
    """The rules applied to each item of the list `member`; None: to the body, or to each of its items."""

    def rule(body: Any) -> Iterator[Message]:
        value = body if member is None else inner(body, member)
        if isinstance(value, list):
            for index, item in enumerate(value):
                for item_rule in rules:
                    for message in item_rule(item):
                        yield Message(message.code, message.text, f"{member or ''}[{index}].{message.path}")
        elif member is None:
            for item_rule in rules:
                yield from item_rule(value)

    return rule


_USUAL = {
    currency: re.compile(rf"(?=.*[1-9])[0-9]{{1,{MOST_DIGITS - units}}}\.[0-9]{{{units}}}", re.ASCII).fullmatch
    for currency, units in MINOR_UNITS.items()
    if units and currency != "XDR"
}


def is_amount(value: Any) -> bool:
    """A quick check of `{amount, currency}`: True only if `parse_amount` accepts it; may be False for a valid one."""
    try:
        return _USUAL[value["currency"]](value["amount"]) is not None
    except (KeyError, TypeError):
        return False


def instructed_amount(body: Any) -> Iterable[Message]:
    """instructedAmount has exactly the minor units of its currency, is more than 0, and has at most 18 digits."""
    value = body.get("instructedAmount") if isinstance(body, dict) else None
    return () if is_amount(value) else _amount_mistakes(value)


def _amount_mistakes(value: Any) -> Iterator[Message]:
    amount, currency = inner(value, "amount"), inner(value, "currency")
    if not isinstance(amount, str) or not _AMOUNT.fullmatch(amount):
        return  # reported by the shape
    valid_currency = currency if isinstance(currency, str) and currency in _CURRENCIES else None
    try:
        parse_amount(amount, valid_currency or _fitting_currency(amount))
    except ValueError as error:
        yield Message("FORMAT_ERROR", str(error), "instructedAmount.amount")


def _fitting_currency(amount: str) -> str:
    """A currency with as many digits after the point as `amount` has, for an amount whose currency is unknown."""
    digits = len(amount.partition(".")[2])
    return next((code for code in ("NOK", "JPY", "BHD") if MINOR_UNITS[code] == digits), "XDR")


# Sandbox data: amounts are numbers or text, may be negative and may have fewer digits than the currency.

_LOOSE_AMOUNT = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def loose_amount(value: Any) -> Any:
    """A number, or decimal text, of sandbox data; raises Mismatch."""
    if isinstance(value, str):
        number = Decimal(value) if len(value) <= 40 and _LOOSE_AMOUNT.fullmatch(value) else None
    elif isinstance(value, int | Decimal) and not isinstance(value, bool):
        number = Decimal(value)
    elif isinstance(value, float) and isfinite(value):
        number = Decimal(repr(value))
    else:
        number = None
    if number is None:
        raise Mismatch(text='An amount was expected, a number or text such as "-100.50"')
    exponent = number.as_tuple().exponent
    fraction = -exponent if isinstance(exponent, int) and exponent < 0 else 0
    if fraction > 5 or number.adjusted() + 1 + fraction > MOST_DIGITS:
        raise Mismatch(text=f"An amount has at most {MOST_DIGITS} digits, 5 of them after the point")
    return value if isinstance(value, str | int) else _as_json(number)


def _as_json(number: Decimal) -> int | float:
    """The number as a JSON number with the same digits."""
    if number == number.to_integral_value():
        return int(number)
    if Decimal(repr(float(number))) != number:
        raise Mismatch(text="This number has more digits than a JSON number can hold: write the amount as text")
    return float(number)


LooseAmount = Annotated[
    Any,
    Reads(loose_amount, {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]{1,5})?$"}]}),
]


class LooseMoney(Closed):
    """An amount of sandbox data."""

    amount: LooseAmount
    currency: Currency


def loose_amount_rule(amount: Any, currency: Any, path: str) -> Iterator[Message]:
    """At most the minor units of the currency, if both are valid, so that no amount is rounded silently.

    Without a currency, the account's own applies (`bank.sandbox.accounts`).
    """
    if not isinstance(currency, str) or currency not in _CURRENCIES:
        return
    with suppress(Mismatch):  # reported by the shape
        reason = too_fine(Decimal(str(loose_amount(amount))), currency)
        if reason is not None:
            yield Message("FORMAT_ERROR", reason, path)


# Parts of answers only


def values_of(literal: Any) -> GetPydanticSchema:
    """The values of a Literal, for a text that is any `str` for the type checker."""
    return GetPydanticSchema(lambda _, schema_of: schema_of(literal))


ShownText = Annotated[str, Field(pattern=r"^-?[0-9]+(\.[0-9]+)?$")]
DateTime = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+00:00$")]


Verb = Literal["GET", "PUT", "POST", "DELETE"]


class Link(Closed):
    """A link and the methods that it allows."""

    href: str
    verbs: list[Verb]


Links = dict[str, Link]


class ShownAmount(Closed):
    """An amount as text with the minor units of its currency; an outgoing amount is negative."""

    amount: ShownText
    currency: Currency


class AccountRef(Closed):
    """An account by its numbers."""

    bban: NotRequired[Annotated[str, Field(max_length=30)]]
    iban: NotRequired[Annotated[str, Field(max_length=34)]]
    currency: NotRequired[Currency]
