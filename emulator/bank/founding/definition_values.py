"""The values that members of fixtures and scenarios take, and what is said of one that does not fit.

Where YAML reads a number and text is meant, as in an account number without quotes, the digits are taken as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from emulator.bank.errors import counted

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


def _above_zero(rate: str) -> str:
    if Decimal(rate):
        return rate
    raise ValueError("a rate greater than 0 was expected")


def _number_as_text(value: Any) -> Any:
    """Digits without quotes are a number to YAML; where text is meant they are taken as it."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _account(value: Any) -> Any:
    """An account by its number, or by the member that sandbox bodies put it in: `{iban: ...}`, `{bban: ...}`."""
    if isinstance(value, Mapping) and len(value) == 1:
        value = value.get("iban", value.get("bban", value))
    return _number_as_text(value)


def _pattern(pattern: str, **bounds: int) -> dict[str, Any]:
    """JSON Schema of such text, or of a number within `bounds` that is such text when it is written out."""
    return {"anyOf": [{"type": "string", "pattern": pattern}, {"type": "integer", **bounds}]}


_EIGHT_TO_11_DIGITS = r"^[0-9]{8,11}$"
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
    Field(pattern=_EIGHT_TO_11_DIGITS),
    WithJsonSchema(_pattern(_EIGHT_TO_11_DIGITS, minimum=10**7, maximum=10**11 - 1)),
]
OrganisationNumber = Annotated[
    str,
    BeforeValidator(_number_as_text),
    Field(pattern=_NINE_DIGITS),
    WithJsonSchema(_pattern(_NINE_DIGITS, minimum=10**8, maximum=10**9 - 1)),
]
Bban = Annotated[
    str, BeforeValidator(_number_as_text), Field(pattern=_BBAN), WithJsonSchema(_pattern(_BBAN, minimum=0))
]
AnyAccount = Annotated[
    str,
    BeforeValidator(_account),
    Field(pattern=_ACCOUNT),
    WithJsonSchema(
        {
            "anyOf": [
                *_pattern(_ACCOUNT, minimum=0)["anyOf"],
                {
                    "type": "object",
                    "properties": dict.fromkeys(("iban", "bban"), _pattern(_ACCOUNT, minimum=0)),
                    "additionalProperties": False,
                    "minProperties": 1,
                    "maxProperties": 1,
                },
            ]
        }
    ),
]
Reference = Annotated[
    str, BeforeValidator(_number_as_text), Field(pattern=_REFERENCE), WithJsonSchema(_pattern(_REFERENCE))
]
Iban = Annotated[str, Field(pattern=_IBAN)]
Bic = Annotated[str, Field(pattern=_BIC)]
CurrencyCode = Annotated[str, Field(pattern=_CURRENCY)]
Rate = Annotated[str, Field(pattern=_RATE)]
ExchangeRate = Annotated[Rate, AfterValidator(_above_zero)]
Country = Annotated[str, Field(pattern=_COUNTRY)]
Masked = Annotated[str, Field(pattern=_MASKED)]
CategoryCode = Annotated[
    str,
    BeforeValidator(_number_as_text),
    Field(pattern=_FOUR_DIGITS),
    WithJsonSchema(_pattern(_FOUR_DIGITS, minimum=1000, maximum=9999)),
]
FixtureName = Annotated[str, Field(pattern=_NAME)]
Text35 = Annotated[str, Field(min_length=1, max_length=35)]
Text70 = Annotated[str, Field(min_length=1, max_length=70)]
Text140 = Annotated[str, Field(min_length=1, max_length=140)]
BankTransactionCode = Annotated[str, Field(min_length=4, max_length=14)]
Role = Literal["VIEW", "REGISTER"]


_FORMS = {
    _EIGHT_TO_11_DIGITS: "8 to 11 digits",
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


def standing(path: Sequence[int | str], value: Any) -> tuple[int | str, ...]:
    """Where a mistake that pydantic found stands: its path without the names of the branches of a union."""
    kept: list[int | str] = []
    for position, part in enumerate(path):
        last = position == len(path) - 1
        if isinstance(value, dict) and isinstance(part, str) and (part in value or last):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            continue
        kept.append(part)
    return tuple(kept)


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
            return f"text of at least {counted(ctx['min_length'], 'character')}"
        case "string_too_long":
            return f"text of at most {counted(ctx['max_length'], 'character')}"
        case "too_short":
            return f"a list of at least {counted(ctx['min_length'], 'entry', 'entries')}"
        case "too_long":
            return f"a list of at most {counted(ctx['max_length'], 'entry', 'entries')}"
    return None
