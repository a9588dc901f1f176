"""The answers of operations, except sandbox data: payments, baskets and consents, then accounts and cards.

The schemas of the OpenAPI document are generated from these shapes.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field

from emulator.api.shapes.parts import (
    AccountRef,
    Address,
    Bban,
    Bic,
    Closed,
    Country,
    Currency,
    DateTime,
    Iban,
    IsoDate,
    Links,
    ShownAmount,
    ShownText,
    StructuredReference,
    Text35,
    Text70,
    Text140,
    values_of,
)
from emulator.api.shapes.payments import CardReference, Frequency, PurposeCode
from emulator.bank.accounts.accounts import BalanceType
from emulator.bank.documents import Usage
from emulator.bank.errors import Code
from emulator.bank.scheme.transitions import BasketTransactionStatus

# The real bank's statuses, and PATC for a payment that waits for its second signature.
# Not a Literal for the type checker, as a script may set any four letters.
TransactionStatus = Annotated[
    str,
    values_of(
        Literal["ACCP", "ACSC", "ACSP", "ACTC", "ACWC", "ACWP", "RCVD", "PDNG", "RJCT", "CANC", "PART", "PATC"],
    ),
]
PsuMessage = Annotated[str, Field(max_length=512)]


class TppMessage(Closed):
    """One operational message to the TPP."""

    category: Literal["ERROR", "WARNING"]
    code: Code
    path: NotRequired[str]
    text: NotRequired[Annotated[str, Field(max_length=512)]]


class Warned(Closed):
    """Warnings about the request, such as those about members that the bank does not know."""

    tppMessages: NotRequired[list[TppMessage]]


class Error(Closed):
    """A refusal; a 401 has `_links.scaRedirect`."""

    tppMessages: list[TppMessage]
    _links: NotRequired[Links]


class PayeeVerification(Closed):
    """How well the creditor's name matches the account holder's: match, close match, no match, or not possible.

    `matchedName` is the holder's name, for a close match.
    """

    partyNameMatch: Literal["MTCH", "CMTC", "NMTC", "NOAP"]
    matchedName: NotRequired[str]


class PaymentCreated(Warned):
    """A payment that has been created."""

    paymentId: str
    transactionStatus: TransactionStatus
    transactionFees: NotRequired[ShownAmount]
    transactionFeeIndicator: NotRequired[bool]
    payeeVerification: NotRequired[PayeeVerification]
    psuMessage: NotRequired[PsuMessage]
    _links: NotRequired[Links]


class PaymentStatus(Closed):
    """The status of a payment."""

    paymentId: str
    transactionStatus: TransactionStatus
    fundsAvailable: NotRequired[bool]
    psuMessage: NotRequired[PsuMessage]
    _links: Links


class CancellationStarted(Closed):
    """The customer must approve that an authorised payment is cancelled."""

    paymentId: str
    transactionStatus: TransactionStatus
    _links: Links


class NamedAccount(Closed):
    """An account as the initiation named it."""

    bban: NotRequired[Bban]
    iban: NotRequired[Iban]
    other: NotRequired[CardReference]
    currency: Currency


class InitiatedPayment(Closed):
    """The members of a payment's initiation, of every product."""

    endToEndIdentification: NotRequired[str]
    instructedAmount: NotRequired[ShownAmount]
    creditorName: NotRequired[str]
    creditorAccount: NotRequired[NamedAccount]
    creditorAgent: NotRequired[Bic]
    creditorAddress: NotRequired[Address]
    ultimateDebtor: NotRequired[str]
    purposeCode: NotRequired[PurposeCode]
    remittanceInformationUnstructured: NotRequired[str]
    remittanceInformationStructured: NotRequired[StructuredReference]
    remittanceInformationStructuredArray: NotRequired[list[StructuredReference]]


class Execution(Closed):
    """One execution of a standing order: booked (ACSC), or skipped for lack of funds (RJCT)."""

    executionDate: IsoDate
    transactionStatus: TransactionStatus


class PaymentDetails(InitiatedPayment):
    """A payment: the members of its initiation and its state."""

    paymentId: str
    transactionStatus: TransactionStatus
    transactionFees: NotRequired[ShownAmount]
    transactionFeeIndicator: NotRequired[bool]
    payeeVerification: NotRequired[PayeeVerification]
    psuMessage: NotRequired[PsuMessage]
    debtorName: NotRequired[str]
    debtorAccount: NamedAccount
    requestedExecutionDate: NotRequired[IsoDate]
    startDate: NotRequired[IsoDate]
    endDate: NotRequired[IsoDate]
    frequency: NotRequired[Frequency]
    executionRule: NotRequired[str]
    dayOfExecution: NotRequired[str]
    monthsOfExecution: NotRequired[list[str]]
    executions: NotRequired[list[Execution]]
    payments: NotRequired[list[InitiatedPayment]]
    entryStatuses: NotRequired[list[TransactionStatus]]
    batchBookingPreferred: NotRequired[bool]
    paymentInformationId: NotRequired[str]
    _links: Links


class Authorisation(Warned):
    """An explicit authorisation that has been started."""

    scaStatus: Literal["started"]
    authorisationId: str
    _links: Links


class ScaStatus(Closed):
    """The status of an authorisation."""

    scaStatus: Literal["started", "finalised", "failed"]


class Authorisations(Closed):
    """The authorisations that the TPP has started, by id."""

    authorisationIds: list[str]


class BasketStatus(Closed):
    """The worst of the statuses of a basket's payments."""

    transactionStatus: BasketTransactionStatus
    _links: NotRequired[Links]


class BasketCreated(BasketStatus, Warned):
    """A signing basket that has been created."""

    basketId: str


class BasketDetails(BasketStatus):
    """A signing basket."""

    payments: list[str]


class Consent(Warned):
    """A consent that the customer grants at scaRedirect."""

    consentId: str
    consentStatus: Literal["received"]
    _links: Links


ConsentStatus = Literal["received", "rejected", "valid", "revokedByPsu", "expired", "terminatedByTpp"]


class SharedAccount(Closed):
    """An account or card account that a consent covers."""

    bban: NotRequired[Bban]
    iban: NotRequired[Iban]
    maskedPan: NotRequired[str]
    currency: NotRequired[Currency]


class AccountAccess(Closed):
    """The accounts that a consent covers: the same ones in all three members, chosen by the customer at the bank."""

    accounts: list[SharedAccount]
    balances: list[SharedAccount]
    transactions: list[SharedAccount]


class ConsentDetails(Closed):
    """A consent."""

    access: AccountAccess
    recurringIndicator: bool
    validUntil: IsoDate
    frequencyPerDay: int
    lastActionDate: IsoDate
    consentStatus: ConsentStatus
    _links: Links


class ConsentState(Closed):
    """The status of a consent."""

    consentStatus: ConsentStatus


class User(Closed):
    """The PSU with a PSU-ID."""

    psuId: str
    psuCorporateId: NotRequired[str]
    name: str | None
    context: Annotated[str, values_of(Literal["PRIVATE", "CORPORATE"])]


class Agreement(Closed):
    """A corporate agreement of the PSU."""

    psuCorporateId: str
    name: str
    organisationNumber: str


class Agreements(Closed):
    """The corporate agreements of the PSU."""

    agreements: list[Agreement]


# Account information (accounts.md; Berlin Group 1.3)

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
