"""The answers of account information (accounts.md; Berlin Group 1.3)."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field

from emulator.api.shapes.parts import (
    AccountRef,
    Bic,
    Closed,
    Country,
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
)
from emulator.api.shapes.payments import CardReference
from emulator.bank.accounts.accounts import BalanceType
from emulator.bank.documents import Usage

BankTransactionCode = Annotated[str, Field(min_length=4, max_length=14)]


class Balance(Closed):
    """One balance."""

    balanceAmount: ShownAmount
    balanceType: BalanceType
    referenceDate: IsoDate
    lastChangeDateTime: DateTime


class AccountMembers(Closed):
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


class Account(AccountMembers):
    """An account; before the fix cash-account-type-iso cashAccountType says Current, Savings and so on."""

    _links: Links


class Accounts(Closed):
    """The accounts that the customer shares."""

    accounts: list[Account]


class AccountDetails(Closed):
    """One account."""

    account: Account


class Balances(Closed):
    """The balances of an account."""

    account: AccountRef
    balances: list[Balance]


class CurrencyExchange(Closed):
    """The rate at which an amount was converted; unitCurrency is the base of the rate."""

    sourceCurrency: Currency
    exchangeRate: ShownText
    unitCurrency: Currency
    targetCurrency: Currency
    quotationDate: IsoDate
    contractIdentification: NotRequired[str]


class EntryDetail(Closed):
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


class Transaction(EntryDetail):
    """A transaction; creditorId, ultimateCreditor and ultimateDebtor are not offered."""

    batchIndicator: NotRequired[bool]
    batchNumberOfTransactions: NotRequired[int]
    bankTransactionCode: NotRequired[BankTransactionCode]
    transactionId: NotRequired[str]
    endToEndId: NotRequired[Text35]
    bookingDate: NotRequired[IsoDate]
    valueDate: NotRequired[IsoDate]
    currencyExchange: NotRequired[CurrencyExchange]
    creditorAgent: NotRequired[Bic]
    debtorAgent: NotRequired[Bic]
    purposeCode: NotRequired[Annotated[str, Field(min_length=1, max_length=4)]]
    proprietaryBankTransactionCode: NotRequired[Text35]


class DetailedTransaction(Transaction):
    """A transaction with the entries of a batch."""

    entryDetails: NotRequired[list[EntryDetail]]


class TransactionDetails(Closed):
    """One transaction in full."""

    transactionsDetails: DetailedTransaction


class TransactionLists(Closed):
    """A page of booked and pending transactions, newest first; links `next` and `previous` lead to other pages."""

    booked: NotRequired[list[Transaction]]
    pending: NotRequired[list[Transaction]]
    _links: Links


class Transactions(Closed):
    """The transactions of an account."""

    account: AccountRef
    transactions: TransactionLists


class CardRef(Closed):
    """A card account by its masked number."""

    maskedPan: str
    currency: Currency


class RelatedAccount(AccountRef):
    """The account that payments from a card account are debited to."""

    other: CardReference


class CardAccountMembers(Closed):
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


class CardAccount(CardAccountMembers):
    """A card account; its name has up to 35 characters before the fix longer-names."""

    _links: Links


class CardAccounts(Closed):
    """The card accounts that the customer shares."""

    cardAccounts: list[CardAccount]


class CardAccountDetails(Closed):
    """One card account."""

    cardAccount: CardAccount


class CardBalances(Closed):
    """The balances of a card account."""

    cardAccount: CardRef
    balances: list[Balance]


class AcceptorAddress(Closed):
    """Where a card was used."""

    street: NotRequired[Text70]
    buildingNumber: NotRequired[Text70]
    postalCode: NotRequired[Text70]
    city: NotRequired[Text70]
    country: NotRequired[Country]


class CardTransaction(Closed):
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


class CardTransactionLists(Closed):
    """A page of booked and pending card transactions, newest first."""

    booked: NotRequired[list[CardTransaction]]
    pending: NotRequired[list[CardTransaction]]
    _links: Links


class CardTransactions(Closed):
    """The transactions of a card account."""

    cardAccount: CardRef
    cardTransactions: CardTransactionLists
