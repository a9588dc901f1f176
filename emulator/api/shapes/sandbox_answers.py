"""The answers of operations on sandbox data and contact information."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from emulator.api.shapes.account_answers import BankTransactionCode, CardTransaction
from emulator.api.shapes.answers import TppMessage
from emulator.api.shapes.parts import Currency, Link, Links, LooseAmount, closed
from emulator.api.shapes.sandbox import (
    ContactInformation,
    CreditLimit,
    EngagedAccount,
    PostedBalance,
    PostedCardTransaction,
    PostedTransaction,
)
from emulator.bank.documents import Role

Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]


class Warned(TypedDict):
    """Warnings about members that the bank does not know."""

    tppMessages: NotRequired[list[TppMessage]]


class SandboxAccountExtras(Warned):
    """Members of an account that most accounts do not have."""

    status: NotRequired[str]
    owners: NotRequired[list[str]]


@closed
class SandboxAccount(SandboxAccountExtras):
    """An account as posted, with its current balance; `status` where it was posted or is not enabled."""

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


@closed
class EngagementMembers(Warned):
    """The members of an engagement without its links."""

    engagementId: str
    customer: str
    account: EngagedAccount
    roles: list[Role]
    registerLimit: NotRequired[LooseAmount]
    approvalLimit: NotRequired[LooseAmount]


@closed
class SandboxEngagement(EngagementMembers):
    """The rights that an agreement gives on an account."""

    _links: Links


SandboxEngagementList = list[SandboxEngagement]


@closed
class AgreementMembers(Warned):
    """The members of an agreement without its engagements and links."""

    agreementId: str
    owner: str
    name: str
    signatures: NotRequired[int]


@closed
class SandboxAgreement(AgreementMembers):
    """An agreement; without `signatures` a payment needs one."""

    engagements: list[SandboxEngagement]
    _links: Links


SandboxAgreementList = list[SandboxAgreement]


@closed
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


@closed
class SandboxCustomers(TypedDict):
    """The customers of the known state."""

    customers: list[SandboxCustomer]


@closed
class OwnLink(TypedDict):
    """The link to the transaction itself."""

    self: Link


@closed
class BothNumbers(TypedDict):
    """An account by its numbers; an unknown number is empty."""

    iban: str
    bban: str


@closed
class SandboxTransaction(TypedDict):
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


@closed
class MadeTransaction(PostedTransaction, Warned):
    """A transaction that has been created: the posted members, and its id."""

    id: str
    _links: OwnLink


SandboxTransactions = MadeTransaction | list[MadeTransaction]


@closed
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


@closed
class SandboxCardTransaction(CardTransaction):
    """A card transaction, with its amounts never swapped, whatever x-accept-fix says."""

    id: str
    _links: OwnLink


SandboxCardTransactionList = list[SandboxCardTransaction]


@closed
class MadeCardTransaction(PostedCardTransaction, Warned):
    """A card transaction that has been created: the posted members, and its id."""

    id: str
    _links: OwnLink


SandboxCardTransactions = MadeCardTransaction | list[MadeCardTransaction]


@closed
class StoredContact(ContactInformation, Warned):
    """The address for the bank's messages about downtime."""
