"""The parts of the shapes of sandbox data: lenient texts and amounts, and rules over them (CONTRACT 8, 13)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from emulator.api.shapes.parts import BBAN, IBAN, Rule, inner, is_real_date, loose_amount, loose_amount_rule
from emulator.bank.errors import Message
from emulator.bank.money import CURRENCIES

_CUSTOMER_TYPES = ("private", "corporate")
_ACCOUNT_TYPES = ("CACC", "SVGS", "LOAN", "TRAN", "TAXE")
_OLD_ACCOUNT_TYPES = ("Current", "Savings", "Loan", "Transaction", "Tax")  # before cash-account-type-iso (SPEC 9)


def without(characters: str, pattern: str, expected: str) -> Callable[[str], str]:
    """A validator that removes separators and matches the rest with a pattern."""
    table, compiled = str.maketrans("", "", characters), re.compile(pattern)

    def validator(text: str) -> str:
        plain = text.translate(table)
        if not compiled.fullmatch(plain):
            raise ValueError(f"{expected} was expected")
        return plain

    return validator


def _fitting(pattern: str, expected: str) -> Callable[[str], str]:
    return without("", pattern, expected)


def _one_of(*names: str) -> Callable[[str], str]:
    """A validator for one of `names` in any case."""
    allowed = {name.lower() for name in names}

    def validator(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError(f"One of {', '.join(names)} was expected")
        return text

    return validator


def _limit(value: Any) -> Any:
    """A credit limit: an amount alone, or with its currency, as clients of the hosted sandboxes post it."""
    if not isinstance(value, dict):
        return loose_amount(value)
    if value.get("currency") not in CURRENCIES:
        raise ValueError("A known currency was expected in it")
    amount = loose_amount(value.get("amount"))
    if str(amount).startswith("-"):
        raise ValueError("An amount of 0 or more was expected")
    return {"amount": amount, "currency": value["currency"]}


def _one_or_two(value: Any) -> int:
    if value in (1, 2) and type(value) is int:
        return int(value)
    raise ValueError("1 or 2 signatures were expected")


def _yes_or_no(value: Any) -> Any:
    """true, false, or the empty text that clients of the hosted sandboxes post for an absent value."""
    if isinstance(value, bool) or value == "":
        return value
    raise ValueError("true or false was expected")


def _pattern(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^({pattern})$"})


_NUMBER = r"[0-9]{8,11}"
_BBAN = r"[0-9A-Za-z]{1,30}"
_IBAN = r"[A-Z]{2}[0-9]{2}[0-9A-Z]{11,30}"
_MAIL = r"[^@\s]{1,64}@[A-Za-z0-9]([A-Za-z0-9-]{0,62})(\.[A-Za-z0-9]([A-Za-z0-9-]{0,62}))+"
_CODE = r"(.{4,14})?"

CustomerNumber = Annotated[
    str, AfterValidator(_fitting(_NUMBER, "A customer number of 8 to 11 digits")), _pattern(_NUMBER)
]
CustomerType = Annotated[
    str,
    AfterValidator(_one_of(*_CUSTOMER_TYPES)),
    WithJsonSchema({"type": "string", "enum": list(_CUSTOMER_TYPES), "description": "In any case."}),
]
CashAccountType = Annotated[
    str,
    AfterValidator(_one_of(*_ACCOUNT_TYPES, *_OLD_ACCOUNT_TYPES)),
    WithJsonSchema({"type": "string", "enum": [*_ACCOUNT_TYPES, *_OLD_ACCOUNT_TYPES], "description": "In any case."}),
]
OwnBban = Annotated[
    str,
    AfterValidator(without(". ", _BBAN, "An account number of at most 30 letters and digits")),
    WithJsonSchema({"type": "string", "pattern": BBAN}),
]
OwnIban = Annotated[
    str,
    AfterValidator(without(" ", _IBAN, "An IBAN in capital letters and digits, 15 to 34 of them,")),
    WithJsonSchema({"type": "string", "pattern": IBAN}),
]
CreditLimit = Annotated[
    Any,
    BeforeValidator(_limit),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number"},
                {"type": "string", "pattern": r"^[0-9]+(\.[0-9]{1,5})?$"},
                {
                    "type": "object",
                    "properties": {"amount": {"type": ["number", "string"]}, "currency": {"type": "string"}},
                    "required": ["amount", "currency"],
                },
            ]
        }
    ),
]
LooseFlag = Annotated[
    Any,
    BeforeValidator(_yes_or_no),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"const": ""}]}),
]
Signatures = Annotated[Any, BeforeValidator(_one_or_two), WithJsonSchema({"type": "integer", "enum": [1, 2]})]
LooseDate = Annotated[
    str,
    AfterValidator(lambda text: is_real_date(text) if text else text),
    WithJsonSchema({"type": "string", "description": "YYYY-MM-DD, or empty"}),
]
TransactionCode = Annotated[str, AfterValidator(_fitting(_CODE, "A code of 4 to 14 characters")), _pattern(_CODE)]
Mail = Annotated[
    str,
    Field(max_length=254),
    AfterValidator(_fitting(_MAIL, "An e-mail address such as open-banking@tpp.example")),
    WithJsonSchema({"type": "string", "format": "email", "maxLength": 254}),
]


def norwegian_lengths(body: Any) -> Iterator[Message]:
    """A Norwegian IBAN has 15 characters and its BBAN 11 digits (CONTRACT 8: right characters and length)."""
    iban, bban = inner(body, "iban"), inner(body, "bban")
    if not isinstance(iban, str) or not iban.lstrip().startswith("NO"):
        return
    if not re.fullmatch(r"NO[0-9]{13}", iban.replace(" ", "")):
        yield Message("FORMAT_ERROR", "A Norwegian IBAN has 13 digits after NO.", "iban")
    if isinstance(bban, str) and not re.fullmatch(r"[0-9]{11}", bban.replace(" ", "").replace(".", "")):
        yield Message("FORMAT_ERROR", "A Norwegian account number has 11 digits.", "bban")


def not_negative(*names: str) -> Rule:
    """Amounts without a currency must be 0 or more."""

    def rule(body: Any) -> Iterator[Message]:
        for name in names:
            if str(inner(body, name)).startswith("-"):
                yield Message("FORMAT_ERROR", "An amount of 0 or more was expected.", name)

    return rule


def lone_digits(name: str) -> Rule:
    """An amount without a currency must fit the currency of the body."""
    return lambda body: loose_amount_rule(inner(body, name), inner(body, "currency"), name)


def money_digits(*names: str) -> Rule:
    """An amount must fit the currency beside it."""

    def rule(body: Any) -> Iterator[Message]:
        for name in names:
            amount, currency = inner(body, name, "amount"), inner(body, name, "currency")
            yield from loose_amount_rule(amount, currency, f"{name}.amount")

    return rule


def each(member: str | None, *rules: Rule) -> Rule:
    """The rules applied to one object, or to each item of a list."""

    def rule(body: Any) -> Iterator[Message]:
        value = body if member is None else inner(body, member)
        is_list = isinstance(value, list)
        for index, item in enumerate(value if isinstance(value, list) else [value]):
            for item_rule in rules:
                for message in item_rule(item):
                    prefix = f"{member or ''}[{index}]." if is_list else ""
                    yield Message(message.code, message.text, prefix + (message.path or ""))

    return rule


balance_rule: Rule = each("balances", money_digits("balanceAmount"))


def own_currency(*names: str) -> Rule:
    """Balances, and amounts under `names` with a currency of their own, must be in the currency of the body."""

    def rule(body: Any) -> Iterator[Message]:
        own, balances = inner(body, "currency"), inner(body, "balances")
        if own not in CURRENCIES:
            return
        amounts = {name: inner(body, name) for name in names}
        if isinstance(balances, list):
            amounts |= {f"balances[{n}].balanceAmount": inner(one, "balanceAmount") for n, one in enumerate(balances)}
        for path, amount in amounts.items():
            currency = inner(amount, "currency")
            if currency != own and currency in CURRENCIES:
                yield Message("FORMAT_ERROR", f"The currency is not the account's, {own}.", f"{path}.currency")

    return rule
