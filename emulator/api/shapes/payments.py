"""The bodies of payment initiation, one for each product (payments.md#members-of-a-body), and of signing baskets.

Limits of length and number are here, and in consents.md#all-limits; lengths of texts also in payments.md and
`tests/api/test_openapi.py`, the number of payments of a basket in baskets.md and `tests/unit/shapes/test_baskets.py`. A
text that is booked has the same one in `answers.py` and `sandbox.py`, and `bank/settlement.py` cuts it
there. Checks that need the bank's documents or clock (accounts, dates, amounts), and check digits, belong to the
products.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field

from emulator.api.shapes.parts import (
    DAY_OF_EXECUTION,
    MONTH,
    Address,
    Amount,
    Bban,
    Bic,
    Closed,
    Currency,
    Filled,
    Filled35,
    Filled70,
    Filled140,
    Iban,
    IsoDate,
    Rule,
    StructuredReference,
    Text35,
    Text70,
    each,
    inner,
    instructed_amount,
)
from emulator.bank.errors import Message
from emulator.bank.scheme.execution import FREQUENCIES, VARIABLE

PurposeCode = Literal[
    "INVS", "SALA", "IDCP", "CASH", "CORT", "INTC", "PENS", "SSBE", "SUPP", "TAXS", "TREA", "VATX", "LOAN", "OTHR"
]
Frequency = Literal[
    "Daily", "Weekly", "EveryTwoWeeks", "Monthly", "EveryTwoMonths", "Quarterly", "SemiAnnual", "Annual",
    "MonthlyVariable",
]  # fmt: skip
References = Annotated[list[StructuredReference], Field(min_length=1)]


class CardReference(Closed):
    """The account that a card account is settled through, as a card account to pay from."""

    identification: Filled35
    schemeNameProprietary: Literal["creditCardAccount"]


class DomesticCreditor(Closed):
    """A Norwegian creditor account."""

    bban: Bban
    currency: Currency


class DomesticDebtor(Closed):
    """The account to pay from: exactly one of bban and other."""

    currency: Currency
    bban: NotRequired[Bban]
    other: NotRequired[CardReference]


class IbanAccount(Closed):
    """An account by its IBAN."""

    iban: Iban
    currency: Currency


class ForeignCreditor(Closed):
    """A creditor account abroad: exactly one of iban and bban."""

    iban: NotRequired[Iban]
    bban: NotRequired[Bban]
    currency: Currency


class _Remittance(Closed):
    """The remittance members of domestic payments; a message or structured references, not both."""

    ultimateDebtor: NotRequired[Text70]
    purposeCode: NotRequired[PurposeCode]
    remittanceInformationUnstructured: NotRequired[Filled140]
    remittanceInformationStructured: NotRequired[StructuredReference]
    remittanceInformationStructuredArray: NotRequired[References]


class InstantTransfer(_Remittance):
    """An instant Norwegian domestic credit transfer, INDCTS."""

    instructedAmount: Amount
    creditorName: Filled70
    creditorAccount: DomesticCreditor
    creditorAddress: Address
    debtorAccount: DomesticDebtor


class _DomesticCore(_Remittance):
    instructedAmount: Amount
    creditorName: Filled70
    creditorAccount: DomesticCreditor
    creditorAddress: NotRequired[Address]
    endToEndIdentification: NotRequired[Text35]


class DomesticTransfer(_DomesticCore):
    """A Norwegian domestic credit transfer."""

    debtorAccount: DomesticDebtor
    requestedExecutionDate: NotRequired[IsoDate]


class PeriodicTransfer(_DomesticCore):
    """A standing order for Norwegian domestic credit transfers."""

    debtorAccount: DomesticDebtor
    startDate: IsoDate
    endDate: NotRequired[IsoDate]
    frequency: Frequency
    executionRule: NotRequired[Literal["following", "preceding", "preceeding"]]
    dayOfExecution: NotRequired[Annotated[str, Field(pattern=DAY_OF_EXECUTION)]]
    monthsOfExecution: NotRequired[
        Annotated[list[Annotated[str, Field(pattern=MONTH)]], Field(min_length=1, max_length=11)]
    ]


class BulkEntry(_DomesticCore):
    """One payment of a bulk: a domestic one without debtor account; its date is the bulk's."""


class BulkTransfer(Closed):
    """A bulk of Norwegian domestic credit transfers."""

    debtorAccount: DomesticDebtor
    payments: Annotated[list[BulkEntry], Field(min_length=1, max_length=500)]
    requestedExecutionDate: NotRequired[IsoDate]
    batchBookingPreferred: NotRequired[bool]
    paymentInformationId: NotRequired[Text35]


class _International(Closed):
    endToEndIdentification: NotRequired[Text35]
    instructedAmount: Amount
    creditorName: Filled70
    creditorAddress: NotRequired[Address]
    debtorAccount: IbanAccount
    remittanceInformationUnstructured: NotRequired[Filled140]
    requestedExecutionDate: NotRequired[IsoDate]


class SepaTransfer(_International):
    """A SEPA credit transfer, SCT."""

    creditorAccount: IbanAccount


class CrossBorderTransfer(_International):
    """A cross-border credit transfer."""

    creditorAccount: ForeignCreditor
    creditorAgent: NotRequired[Bic]


def _one_remittance(body: Any) -> Iterator[Message]:
    """A message or structured references, not both in one request."""
    if inner(body, "remittanceInformationUnstructured") is None:
        return
    for name in ("remittanceInformationStructured", "remittanceInformationStructuredArray"):
        if inner(body, name) is not None:
            text = f"Only one of remittanceInformationUnstructured and {name} may be set in one request."
            yield Message("FORMAT_ERROR", text, name)


def _exactly_one(account: str, *names: str) -> Rule:
    """Exactly one of these members of an account."""

    def rule(body: Any) -> Iterator[Message]:
        value = inner(body, account)
        if isinstance(value, dict) and sum(name in value for name in names) != 1:
            received = "both" if all(name in value for name in names) else "neither"
            yield Message(
                "FORMAT_ERROR", f"Exactly one of {' and '.join(names)} was expected; received {received}.", account
            )

    return rule


def _months_of_execution(body: Any) -> Iterator[Message]:
    """monthsOfExecution is required with MonthlyVariable and not allowed otherwise; each month once."""
    months, frequency = inner(body, "monthsOfExecution"), inner(body, "frequency")
    path = "monthsOfExecution"
    if frequency == VARIABLE and months is None:
        yield Message("FORMAT_ERROR", f"With the frequency {VARIABLE} this member is required.", path)
    if frequency in FREQUENCIES and frequency != VARIABLE and months is not None:
        yield Message("FORMAT_ERROR", f"This member is allowed with the frequency {VARIABLE} only.", path)
    if isinstance(months, list):
        texts = [month for month in months if isinstance(month, str)]
        if len(set(texts)) != len(texts):
            yield Message("FORMAT_ERROR", "A month appears more than once.", path)


_PAYMENT: tuple[Rule, ...] = (instructed_amount, _one_remittance)
_DOMESTIC: tuple[Rule, ...] = (*_PAYMENT, _exactly_one("debtorAccount", "bban", "other"))


class SigningBasket(Closed):
    """1 to 10 different payments, by the identifiers that their creation returned."""

    paymentIds: Annotated[list[Filled], Field(min_length=1, max_length=10)]


def _different(body: Any) -> Iterator[Message]:
    ids = inner(body, "paymentIds")
    texts = [one for one in ids if isinstance(one, str)] if isinstance(ids, list) else []
    if len(set(texts)) != len(texts):
        yield Message("FORMAT_ERROR", "A payment appears more than once.", "paymentIds")


RULES: Mapping[str, tuple[Rule, ...]] = {
    "SigningBasket": (_different,),
    "InstantTransfer": _DOMESTIC,
    "DomesticTransfer": _DOMESTIC,
    "PeriodicTransfer": (*_DOMESTIC, _months_of_execution),
    "BulkTransfer": (_exactly_one("debtorAccount", "bban", "other"), each("payments", *_PAYMENT)),
    "SepaTransfer": (instructed_amount,),
    "CrossBorderTransfer": (instructed_amount, _exactly_one("creditorAccount", "iban", "bban")),
}
