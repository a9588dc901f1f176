"""The answers of account information (accounts.md; Berlin Group 1.3)."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from emulator.api.shapes.parts import (
    AccountRef,
    Bic,
    Currency,
    DateTime,
    IsoDate,
    Links,
    ShownAmount,
    ShownText,
    StructuredReference,
    Text35,
    Text70,
    Text140,
    closed,
)
from emulator.api.shapes.payments import CardReference
from emulator.bank.accounts.accounts import BalanceType
from emulator.bank.documents import Usage

BankTransactionCode = Annotated[str, Field(min_length=4, max_length=14)]


@closed
class Balance(TypedDict):
    """One balance."""

    balanceAmount: ShownAmount
    balanceType: BalanceType
    referenceDate: IsoDate
    lastChangeDateTime: DateTime


@closed
class AccountMembers(TypedDict):
    """The members of an account without its links."""

    resourceId: str
    bban: str
    iban: str
    currency: Currency
    name: str
    product: str
    cashAccountType: str
    bic: Bic
    usage: Usage
    status: str
    balances: NotRequired[list[Balance]]


@closed
class Account(AccountMembers):
    """An account; before the fix cash-account-type-iso cashAccountType says Current, Savings and so on."""

    _links: Links


@closed
class Accounts(TypedDict):
    """The accounts that the customer shares."""

    accounts: list[Account]


@closed
class AccountDetails(TypedDict):
    """One account."""

    account: Account


@closed
class Balances(TypedDict):
    """The balances of an account."""

    account: AccountRef
    balances: list[Balance]


@closed
class CurrencyExchange(TypedDict):
    """The rate at which an amount was converted; unitCurrency is the base of the rate."""

    sourceCurrency: Currency
    exchangeRate: ShownText
    unitCurrency: Currency
    targetCurrency: Currency
    quotationDate: IsoDate
    contractIdentification: NotRequired[str]


@closed
class EntryDetail(TypedDict):
    """A transaction inside a batch; corporate context only."""

    transactionAmount: ShownAmount
    creditorName: NotRequired[Text70]
    creditorAccount: NotRequired[AccountRef]
    debtorName: NotRequired[Text70]
    debtorAccount: NotRequired[AccountRef]
    remittanceInformationUnstructured: NotRequired[Text140]
    remittanceInformationUnstructuredArray: NotRequired[list[Text140]]
    remittanceInformationStructuredArray: NotRequired[list[StructuredReference]]
    _links: NotRequired[Links]


@closed
class Transaction(TypedDict):
    """A transaction; creditorId, ultimateCreditor and ultimateDebtor are not offered."""

    batchIndicator: NotRequired[bool]
    batchNumberOfTransactions: NotRequired[int]
    bankTransactionCode: NotRequired[BankTransactionCode]
    transactionId: NotRequired[str]
    endToEndId: NotRequired[Text35]
    bookingDate: NotRequired[IsoDate]
    valueDate: NotRequired[IsoDate]
    transactionAmount: ShownAmount
    currencyExchange: NotRequired[CurrencyExchange]
    creditorName: NotRequired[Text70]
    creditorAccount: NotRequired[AccountRef]
    creditorAgent: NotRequired[Bic]
    debtorName: NotRequired[Text70]
    debtorAccount: NotRequired[AccountRef]
    debtorAgent: NotRequired[Bic]
    remittanceInformationUnstructured: NotRequired[Text140]
    remittanceInformationUnstructuredArray: NotRequired[list[Text140]]
    remittanceInformationStructuredArray: NotRequired[list[StructuredReference]]
    purposeCode: NotRequired[Annotated[str, Field(min_length=1, max_length=4)]]
    proprietaryBankTransactionCode: NotRequired[Text35]
    _links: NotRequired[Links]


@closed
class DetailedTransaction(Transaction):
    """A transaction with the entries of a batch."""

    entryDetails: NotRequired[list[EntryDetail]]


@closed
class TransactionDetails(TypedDict):
    """One transaction in full."""

    transactionsDetails: DetailedTransaction


@closed
class TransactionLists(TypedDict):
    """A page of booked and pending transactions, newest first; links `next` and `previous` lead to other pages."""

    booked: NotRequired[list[Transaction]]
    pending: NotRequired[list[Transaction]]
    _links: Links


@closed
class Transactions(TypedDict):
    """The transactions of an account."""

    account: AccountRef
    transactions: TransactionLists


@closed
class CardRef(TypedDict):
    """A card account by its masked number."""

    maskedPan: str
    currency: Currency


@closed
class RelatedAccount(TypedDict):
    """The account that payments from a card account are debited to."""

    bban: NotRequired[str]
    iban: NotRequired[str]
    currency: NotRequired[Currency]
    other: CardReference


@closed
class CardAccountMembers(TypedDict):
    """The members of a card account without its links."""

    resourceId: str
    maskedPan: str
    currency: Currency
    name: Text70
    product: str
    status: str
    usage: Usage
    creditLimit: ShownAmount
    relatedAccount: NotRequired[RelatedAccount]
    balances: NotRequired[list[Balance]]


@closed
class CardAccount(CardAccountMembers):
    """A card account; its name has up to 35 characters before the fix longer-names."""

    _links: Links


@closed
class CardAccounts(TypedDict):
    """The card accounts that the customer shares."""

    cardAccounts: list[CardAccount]


@closed
class CardAccountDetails(TypedDict):
    """One card account."""

    cardAccount: CardAccount


@closed
class CardBalances(TypedDict):
    """The balances of a card account."""

    cardAccount: CardRef
    balances: list[Balance]


@closed
class AcceptorAddress(TypedDict):
    """Where a card was used."""

    street: NotRequired[str]
    buildingNumber: NotRequired[str]
    postalCode: NotRequired[str]
    city: NotRequired[str]
    country: NotRequired[str]


@closed
class CardTransaction(TypedDict):
    """A card transaction; before its fix transactionAmount and originalAmount are swapped."""

    cardTransactionId: NotRequired[Text35]
    terminalId: NotRequired[str]
    transactionDate: NotRequired[IsoDate]
    bookingDate: NotRequired[IsoDate]
    transactionAmount: ShownAmount
    originalAmount: NotRequired[ShownAmount]
    markupFee: NotRequired[ShownAmount]
    markupFeePercentage: NotRequired[str | int | float]
    cardAcceptorId: NotRequired[str]
    cardAcceptorAddress: NotRequired[AcceptorAddress]
    merchantCategoryCode: NotRequired[str]
    maskedPan: NotRequired[str]
    transactionDetails: NotRequired[str]
    invoiced: NotRequired[bool]
    proprietaryBankTransactionCode: NotRequired[str]


@closed
class CardTransactionLists(TypedDict):
    """A page of booked and pending card transactions, newest first."""

    booked: NotRequired[list[CardTransaction]]
    pending: NotRequired[list[CardTransaction]]
    _links: Links


@closed
class CardTransactions(TypedDict):
    """The transactions of a card account."""

    cardAccount: CardRef
    cardTransactions: CardTransactionLists
