"""Sandbox data and contact information: bodies with lenient texts and amounts, answers, and rules (sandbox-data.md).

The bank's own answers may be posted back: a text that is "" counts as absent, and blanks in account numbers and the
dots of a BBAN are removed.

A new member is also stored (`bank/sandbox`; what only has to be returned is kept as `posted`), put into the answer
(`api/operations/sandbox.py`) and posted by `BODIES` in `tests/api/test_sandbox_bodies.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, TypeAdapter

from emulator.api.shapes.answers import AcceptorAddress, BankTransactionCode, CardTransaction, Warned
from emulator.api.shapes.parts import (
    BBAN,
    IBAN,
    AccountRef,
    Closed,
    Currency,
    Filled,
    Filled70,
    Fits,
    Link,
    Links,
    LooseAmount,
    LooseMoney,
    Rule,
    Text35,
    Text70,
    Text140,
    each,
    inner,
    loose_amount,
    loose_amount_rule,
)
from emulator.bank.accounts.accounts import OLD_ACCOUNT_TYPES, STATUSES
from emulator.bank.documents import Role
from emulator.bank.errors import Message
from emulator.bank.formats import DATE, EARLIEST, END, NATIONAL_NUMBER, YEARS, Format, matching, one_of, where, whole
from emulator.bank.money import CURRENCIES
from emulator.bank.validation import Mismatch, Reads, typed

_MONEY = TypeAdapter(LooseMoney)


def _limit(value: Any) -> Any:
    """A credit limit: an amount alone, or with its currency, as clients of the hosted sandboxes post it."""
    if not isinstance(value, dict):
        return loose_amount(value)
    limit = _MONEY.validate_python(value)
    if str(limit["amount"]).startswith("-"):
        raise Mismatch("an amount of 0 or more")
    return limit


def _expected_date(text: Any) -> str | None:
    if not text:
        return None
    return DATE.check(text) or (None if EARLIEST.year <= int(text[:4]) < END.year else f"a date {YEARS}")


_NUMBER = matching(NATIONAL_NUMBER, "a customer number of 8 to 11 digits")
_BBAN = matching(r"[0-9A-Za-z]{1,30}", "an account number of at most 30 letters and digits", pattern=BBAN)
_CARD_BBAN = matching(r"[0-9A-Za-z]{0,30}", "a BBAN of at most 30 letters and digits", maxLength=35)
_IBAN = matching(
    r"[A-Z]{2}[0-9]{2}[0-9A-Z]{11,30}", "an IBAN in capital letters and digits, 15 to 34 of them,", pattern=IBAN
)
_CODE = matching(r"(.{4,14})?", "a code of 4 to 14 characters")
_MAIL = matching(
    r"[^@\s]{1,64}@[A-Za-z0-9]([A-Za-z0-9-]{0,62})(\.[A-Za-z0-9]([A-Za-z0-9-]{0,62}))+",
    "an e-mail address such as open-banking@tpp.example",
    format="email",
    maxLength=254,
)

CustomerNumber = Annotated[str, Fits(_NUMBER)]
CustomerType = Annotated[str, Fits(one_of("private", "corporate", any_case=True))]
CashAccountType = Annotated[str, Fits(one_of(*OLD_ACCOUNT_TYPES, *OLD_ACCOUNT_TYPES.values(), any_case=True))]
AccountStatus = Annotated[str, Fits(one_of(*STATUSES, any_case=True))]
Owners = Annotated[
    list[Filled],
    Field(max_length=20, description="customerNumber or customerId of the other private customers to whom it belongs."),
]
OwnBban = Annotated[str, Fits(_BBAN, without=". ")]
OwnIban = Annotated[str, Fits(_IBAN, without=" ")]
CreditLimit = Annotated[
    Any,
    Reads(
        _limit,
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
        },
    ),
]
# The empty text is what clients of the hosted sandboxes post for an absent value.
_FLAG = where(
    "true or false",
    {"anyOf": [{"type": "boolean"}, {"const": ""}]},
    lambda value: isinstance(value, bool) or value == "",
)
LooseFlag = Annotated[Any, typed(_FLAG)]
Signatures = Annotated[Any, typed(where("1 or 2", {"type": "integer", "enum": [1, 2]}, whole(1, 2).fits))]
_LOOSE_DATE = {"type": "string", "description": f"YYYY-MM-DD, {YEARS}, or empty"}
LooseDate = Annotated[str, Fits(Format(DATE.words, _LOOSE_DATE, _expected_date))]
TransactionCode = Annotated[str, Fits(_CODE)]
Mail = Annotated[str, Field(max_length=254), Fits(_MAIL)]


class PostedCustomer(Closed):
    """A customer."""

    customerNumber: CustomerNumber
    name: Filled70
    type: CustomerType


class PostedBalance(Closed):
    """A balance of an account or card account."""

    balanceType: NotRequired[Text35]
    balanceAmount: LooseMoney


class PostedAccount(Closed):
    """An account; the lengths of a Norwegian IBAN and its BBAN are checked, check digits are not.

    A blocked or deleted one stays in lists and refuses payments; a deleted one cannot be read otherwise.
    """

    customerNumber: Filled70
    accountName: NotRequired[Text70]
    bban: OwnBban
    iban: OwnIban
    currency: Currency
    product: NotRequired[Text70]
    cashAccountType: NotRequired[CashAccountType]
    creditLine: NotRequired[LooseAmount]
    balances: NotRequired[list[PostedBalance]]
    status: NotRequired[AccountStatus]
    owners: NotRequired[Owners]


class PostedTransaction(Closed):
    """A booked transaction of an account."""

    amount: LooseAmount
    currency: NotRequired[Currency]
    valueDate: NotRequired[LooseDate]
    bookingDate: NotRequired[LooseDate]
    remittanceInformationUnstructured: NotRequired[Text140]
    creditorName: NotRequired[Text70]
    creditorAccount: NotRequired[AccountRef]
    debtorName: NotRequired[Text70]
    debtorAccount: NotRequired[AccountRef]
    bankTransactionCode: NotRequired[TransactionCode]
    ultimateDebtor: NotRequired[Text70]
    ultimateCreditor: NotRequired[Text70]
    purposeCode: NotRequired[Annotated[str, Field(max_length=4)]]
    creditorId: NotRequired[Annotated[Text35, Field(description="Stored, and not shown to TPPs.")]]
    endToEndId: NotRequired[Text35]
    proprietaryBankTransactionCode: NotRequired[Text35]


PostedTransactions = PostedTransaction | list[PostedTransaction]


class PostedCardAccount(Closed):
    """A card account; accountNumber is the BBAN that it is settled through."""

    customerNumber: Filled70
    maskedPan: Annotated[str, Field(min_length=1, max_length=35)]
    currency: Currency
    creditLimit: NotRequired[CreditLimit]
    balances: NotRequired[list[PostedBalance]]
    cardId: NotRequired[Text70]
    cardIdVNo: NotRequired[Text70]
    accountNumber: NotRequired[Annotated[str, Fits(_CARD_BBAN, without=". ")]]
    expiry: NotRequired[Text35]
    name: NotRequired[Text70]
    product: NotRequired[Text70]
    status: NotRequired[Text35]


class PostedCardTransaction(Closed):
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
    cardAcceptorAddress: NotRequired[AcceptorAddress]
    maskedPan: NotRequired[Text35]
    transactionDetails: NotRequired[Annotated[str, Field(max_length=1000)]]
    invoiced: NotRequired[LooseFlag]
    proprietaryBankTransactionCode: NotRequired[Text35]


PostedCardTransactions = PostedCardTransaction | list[PostedCardTransaction]


class EngagedAccount(Closed):
    """The account of an engagement."""

    iban: OwnIban


class PostedEngagement(Closed):
    """The rights that an agreement gives on an account; `customer` is a customerNumber or customerId."""

    customer: Filled
    account: EngagedAccount
    roles: Annotated[list[Role], Field(min_length=1)]
    registerLimit: NotRequired[LooseAmount]
    approvalLimit: NotRequired[LooseAmount]


class PostedAgreement(Closed):
    """An agreement; `owner` is a customerNumber or customerId, `signatures` the number that a payment needs."""

    owner: Filled
    name: Filled70
    signatures: NotRequired[Signatures]
    engagements: NotRequired[list[PostedEngagement]]


class ContactInformation(Closed):
    """The address for the bank's messages about downtime."""

    email: Mail


# Answers


Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]


class SandboxAccount(Warned):
    """An account as posted, with its current balance; `status` where it was posted or is not enabled."""

    status: NotRequired[str]
    owners: NotRequired[list[str]]
    customerNumber: str
    accountName: str
    bban: str
    iban: str
    currency: Currency
    product: str
    cashAccountType: str
    creditLine: LooseAmount
    balances: list[PostedBalance]
    id: str
    _links: Links


SandboxAccountList = list[SandboxAccount]


class SandboxEngagement(Warned):
    """The rights that an agreement gives on an account."""

    engagementId: str
    customer: str
    account: EngagedAccount
    roles: list[Role]
    registerLimit: NotRequired[LooseAmount]
    approvalLimit: NotRequired[LooseAmount]
    _links: Links


SandboxEngagementList = list[SandboxEngagement]


class SandboxAgreement(Warned):
    """An agreement; without `signatures` a payment needs one."""

    agreementId: str
    owner: str
    name: str
    signatures: NotRequired[int]
    engagements: list[SandboxEngagement]
    _links: Links


SandboxAgreementList = list[SandboxAgreement]


class SandboxCustomer(Warned):
    """A customer."""

    customerId: str
    customerNumber: str
    customerType: Literal["private", "corporate"]
    customerName: str
    _links: Links
    accounts: NotRequired[list[SandboxAccount]]
    agreements: NotRequired[list[SandboxAgreement]]


SandboxCustomerList = list[SandboxCustomer]


class SandboxCustomers(Closed):
    """The customers of the known state."""

    customers: list[SandboxCustomer]


class OwnLink(Closed):
    """The link to the transaction itself."""

    self: Link


class BothNumbers(Closed):
    """An account by its numbers; an unknown number is empty."""

    iban: str
    bban: str


class SandboxTransaction(Closed):
    """A transaction of an account: `amount` in whole currency units, absent text is empty."""

    id: str
    amount: Int32
    currency: str
    valueDate: str
    remittanceInformationUnstructured: str
    creditorName: str
    creditorAccount: BothNumbers
    debtorName: str
    debtorAccount: BothNumbers
    bankTransactionCode: BankTransactionCode
    ultimateDebtor: str
    ultimateCreditor: str
    purposeCode: str
    bookingDate: str
    _links: OwnLink


SandboxTransactionList = list[SandboxTransaction]


class MadeTransaction(PostedTransaction, Warned):
    """A transaction that has been created: the posted members, and its id."""

    id: str
    _links: OwnLink


SandboxTransactions = MadeTransaction | list[MadeTransaction]


class SandboxCardAccount(Warned):
    """A card account as posted, with its current balance."""

    customerNumber: str
    maskedPan: str
    currency: Currency
    creditLimit: CreditLimit
    balances: list[PostedBalance]
    cardId: str
    cardIdVNo: str
    accountNumber: str
    expiry: str
    name: str
    product: str
    status: str
    resourceId: str
    _links: Links


SandboxCardAccountList = list[SandboxCardAccount]


class SandboxCardTransaction(CardTransaction):
    """A card transaction, with its amounts never swapped, whatever x-accept-fix says."""

    id: str
    _links: OwnLink


SandboxCardTransactionList = list[SandboxCardTransaction]


class MadeCardTransaction(PostedCardTransaction, Warned):
    """A card transaction that has been created: the posted members, and its id."""

    id: str
    _links: OwnLink


SandboxCardTransactions = MadeCardTransaction | list[MadeCardTransaction]


class StoredContact(ContactInformation, Warned):
    """The address for the bank's messages about downtime."""


# Rules over several members


def _norwegian_lengths(body: Any) -> Iterator[Message]:
    """A Norwegian IBAN has 15 characters and its BBAN 11 digits."""
    iban, bban = inner(body, "iban"), inner(body, "bban")
    if not isinstance(iban, str) or not (iban := iban.replace(" ", "")).startswith("NO"):
        return
    if not re.fullmatch(r"NO[0-9]{13}", iban):
        yield Message("FORMAT_ERROR", "A Norwegian IBAN has 13 digits after NO.", "iban")
    if isinstance(bban, str) and not re.fullmatch(r"[0-9]{11}", bban.replace(" ", "").replace(".", "")):
        yield Message("FORMAT_ERROR", "A Norwegian account number has 11 digits.", "bban")


def _not_negative(*names: str) -> Rule:
    """Amounts without a currency must be 0 or more."""

    def rule(body: Any) -> Iterator[Message]:
        for name in names:
            if str(inner(body, name)).startswith("-"):
                yield Message("FORMAT_ERROR", "An amount of 0 or more was expected.", name)

    return rule


def _digits(*names: str) -> Rule:
    """Amounts must fit their currency; that of the body, if they have none beside them."""

    def rule(body: Any) -> Iterator[Message]:
        for name in names:
            value = inner(body, name)
            if isinstance(value, dict):
                yield from loose_amount_rule(value.get("amount"), value.get("currency"), f"{name}.amount")
            else:
                yield from loose_amount_rule(value, inner(body, "currency"), name)

    return rule


_balance_rule: Rule = each("balances", _digits("balanceAmount"))


def _own_currency(*names: str) -> Rule:
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


_LIMITS = _not_negative("registerLimit", "approvalLimit")

RULES: Mapping[str, tuple[Rule, ...]] = {
    "PostedAccount": (
        _norwegian_lengths,
        _not_negative("creditLine"),
        _digits("creditLine"),
        _balance_rule,
        _own_currency(),
    ),
    "PostedCardAccount": (
        _not_negative("creditLimit"),
        _digits("creditLimit"),
        _balance_rule,
        _own_currency("creditLimit"),
    ),
    "PostedTransactions": (each(None, _digits("amount")),),
    "PostedCardTransactions": (each(None, _digits("transactionAmount", "originalAmount", "markupFee")),),
    "PostedEngagement": (_LIMITS,),
    "PostedAgreement": (each("engagements", _LIMITS),),
}
