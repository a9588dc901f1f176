"""What answers are made of (SPEC 2.3, 2.6, 2.9)."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from emulator.api.shapes.parts import Currency, closed

# SPEC 7; which status each comes with stands in CONTRACT 3.3.
Code = Literal[
    "SYSTEM_ERROR",
    "BAD_REQUEST",
    "FORBIDDEN",
    "NOT_FOUND",
    "CONFLICT",
    "HTTP_HEADER_REQUIRED",
    "QUERY_PARAMETER_REQUIRED",
    "SCA_NOT_FOUND",
    "SCA_EXPIRED",
    "SCA_INVALID",
    "FORMAT_ERROR",
    "RESOURCE_UNKNOWN",
    "PSU_CREDENTIALS_INVALID",
    "CONSENT_UNKNOWN",
    "CONSENT_INVALID",
    "CONSENT_EXPIRED",
    "ACCESS_EXCEEDED",
    "PRODUCT_UNKNOWN",
    "PRODUCT_INVALID",
    "KID_MISSING",
    "KID_INVALID",
    "PAYMENT_FAILED",
    "EXECUTION_DATE_INVALID",
    "REFERENCE_MIX_INVALID",
]
AmountText = Annotated[str, Field(pattern=r"^-?[0-9]+(\.[0-9]+)?$")]
DateTime = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+00:00$")]


@closed
class Link(TypedDict):
    """A link and what may be done with it (SPEC 2.3)."""

    href: str
    verbs: list[Literal["GET", "PUT", "POST", "DELETE"]]


Links = dict[str, Link]


@closed
class ShownAmount(TypedDict):
    """An amount as text with the minor units of its currency; what leaves an account is negative."""

    amount: AmountText
    currency: Currency


@closed
class AccountRef(TypedDict):
    """An account by its numbers (SPEC 2.9)."""

    bban: NotRequired[Annotated[str, Field(max_length=30)]]
    iban: NotRequired[Annotated[str, Field(max_length=34)]]
    currency: NotRequired[Currency]
