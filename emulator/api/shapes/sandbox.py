"""The bodies of sandbox data and contact information (CONTRACT 8, 13).

The bank's own answers may be posted back: a text that is "" counts as absent, and blanks in account numbers and the
dots of a BBAN are removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from emulator.api.shapes.parts import (
    Country,
    Currency,
    Filled,
    Filled70,
    LooseAmount,
    LooseMoney,
    Rule,
    Text35,
    Text70,
    Text140,
    closed,
)
from emulator.api.shapes.sandbox_parts import (
    CashAccountType,
    CreditLimit,
    CustomerNumber,
    CustomerType,
    LooseDate,
    LooseFlag,
    Mail,
    OwnBban,
    OwnIban,
    Signatures,
    TransactionCode,
    balance_rule,
    each,
    lone_digits,
    money_digits,
    norwegian_lengths,
    not_negative,
    own_currency,
    without,
)


@closed
class PostedCustomer(TypedDict):
    """A customer."""

    customerNumber: CustomerNumber
    name: Filled70
    type: CustomerType


@closed
class PostedBalance(TypedDict):
    """A balance of an account or card account."""

    balanceType: NotRequired[Text35]
    balanceAmount: LooseMoney


@closed
class PostedAccount(TypedDict):
    """An account; the lengths of a Norwegian IBAN and its BBAN are checked, check digits are not."""

    customerNumber: Filled70
    accountName: NotRequired[Text70]
    bban: OwnBban
    iban: OwnIban
    currency: Currency
    product: NotRequired[Text70]
    cashAccountType: NotRequired[CashAccountType]
    creditLine: NotRequired[LooseAmount]
    balances: NotRequired[list[PostedBalance]]


@closed
class AccountReference(TypedDict):
    """The counterparty's account."""

    iban: NotRequired[Annotated[str, Field(max_length=34)]]
    bban: NotRequired[Annotated[str, Field(max_length=30)]]
    currency: NotRequired[Currency]


@closed
class PostedTransaction(TypedDict):
    """A booked transaction of an account (SPEC 2.10)."""

    amount: LooseAmount
    currency: NotRequired[Currency]
    valueDate: NotRequired[LooseDate]
    bookingDate: NotRequired[LooseDate]
    remittanceInformationUnstructured: NotRequired[Text140]
    creditorName: NotRequired[Text70]
    creditorAccount: NotRequired[AccountReference]
    debtorName: NotRequired[Text70]
    debtorAccount: NotRequired[AccountReference]
    bankTransactionCode: NotRequired[TransactionCode]
    ultimateDebtor: NotRequired[Text70]
    ultimateCreditor: NotRequired[Text70]
    purposeCode: NotRequired[Annotated[str, Field(max_length=4)]]
    creditorId: NotRequired[Text35]
    endToEndId: NotRequired[Text35]
    proprietaryBankTransactionCode: NotRequired[Text35]


PostedTransactions = PostedTransaction | list[PostedTransaction]


@closed
class PostedCardAccount(TypedDict):
    """A card account; accountNumber is the BBAN that it is settled through."""

    customerNumber: Filled70
    maskedPan: Annotated[str, Field(min_length=1, max_length=35)]
    currency: Currency
    creditLimit: NotRequired[CreditLimit]
    balances: NotRequired[list[PostedBalance]]
    cardId: NotRequired[Text70]
    cardIdVNo: NotRequired[Text70]
    accountNumber: NotRequired[
        Annotated[str, AfterValidator(without(". ", r"[0-9A-Za-z]{0,30}", "A BBAN of at most 30 letters and digits"))]
    ]
    expiry: NotRequired[Text35]
    name: NotRequired[Text70]
    product: NotRequired[Text70]
    status: NotRequired[Text35]


@closed
class PostedAcceptorAddress(TypedDict):
    """Where a card was used."""

    street: NotRequired[Text70]
    buildingNumber: NotRequired[Text70]
    postalCode: NotRequired[Text70]
    city: NotRequired[Text70]
    country: NotRequired[Country]


@closed
class PostedCardTransaction(TypedDict):
    """A booked transaction of a card account."""

    cardTransactionId: NotRequired[Text35]
    terminalId: NotRequired[Text70]
    bookingDate: NotRequired[LooseDate]
    transactionDate: NotRequired[LooseDate]
    transactionAmount: LooseMoney
    originalAmount: NotRequired[LooseMoney]
    merchantCategoryCode: NotRequired[Annotated[str, Field(max_length=4)]]
    markupFee: NotRequired[LooseMoney]
    markupFeePercentage: NotRequired[LooseAmount]
    cardAcceptorId: NotRequired[Text70]
    cardAcceptorAddress: NotRequired[PostedAcceptorAddress]
    maskedPan: NotRequired[Text35]
    transactionDetails: NotRequired[Annotated[str, Field(max_length=1000)]]
    invoiced: NotRequired[LooseFlag]
    proprietaryBankTransactionCode: NotRequired[Text35]


PostedCardTransactions = PostedCardTransaction | list[PostedCardTransaction]


@closed
class EngagedAccount(TypedDict):
    """The account of an engagement."""

    iban: OwnIban


@closed
class PostedEngagement(TypedDict):
    """The rights that an agreement gives on an account; `customer` is a customerNumber or customerId."""

    customer: Filled
    account: EngagedAccount
    roles: Annotated[list[Literal["VIEW", "REGISTER"]], Field(min_length=1)]
    registerLimit: NotRequired[LooseAmount]
    approvalLimit: NotRequired[LooseAmount]


@closed
class PostedAgreement(TypedDict):
    """An agreement; `owner` is a customerNumber or customerId, `signatures` the number that a payment needs."""

    owner: Filled
    name: Filled70
    signatures: NotRequired[Signatures]
    engagements: NotRequired[list[PostedEngagement]]


@closed
class ContactInformation(TypedDict):
    """The address for the bank's messages about downtime."""

    email: Mail


_LIMITS = not_negative("registerLimit", "approvalLimit")

RULES: Mapping[str, tuple[Rule, ...]] = {
    "PostedAccount": (
        norwegian_lengths,
        not_negative("creditLine"),
        lone_digits("creditLine"),
        balance_rule,
        own_currency(),
    ),
    "PostedCardAccount": (
        not_negative("creditLimit"),
        lone_digits("creditLimit"),
        money_digits("creditLimit"),
        balance_rule,
        own_currency("creditLimit"),
    ),
    "PostedTransactions": (each(None, lone_digits("amount")),),
    "PostedCardTransactions": (each(None, money_digits("transactionAmount", "originalAmount", "markupFee")),),
    "PostedEngagement": (_LIMITS,),
    "PostedAgreement": (each("engagements", _LIMITS),),
}
