"""The documents of a bank, one TypedDict per kind of `kinds`: JSON objects, as they are stored.

Members are required unless marked NotRequired. Unless a comment says otherwise: ids are text in the form of `--ids`;
amounts are decimal text with exactly the minor units of their currency (`money.plain`); dates are YYYY-MM-DD in Oslo;
moments are stamps of bank time (`clock.stamp`: UTC with microseconds, so that text order is time order). `tpp` is the
TPP's id (`AuthenticatedTpp.id`), `nationalId` a national identity number, `context` PRIVATE or CORPORATE, `agreement`
the id of an agreement (psuCorporateId) or None.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict  # forms of answers contain some of them, and pydantic reads these

# ---- meta: one document each, so that snapshots include them (see `kinds.Singleton`)


class ClockDocument(TypedDict):
    id: Literal["clock"]
    mode: Literal["live", "frozen"]
    now: NotRequired[str]  # frozen: the moment; live: only in a snapshot, bank time when it was saved
    offset: NotRequired[float]  # live: bank time minus real time, in seconds


class FixtureSource(TypedDict):
    """A fixture, stored so that a restart uses the same one."""

    fixtures: str  # NAME or FILE, as specified
    text: NotRequired[str]  # of a file: its content, since the file may change


class Restored(TypedDict, total=False):
    """What a bank was made with besides its fixture; what is left out comes from the flags of the process."""

    now: str  # a stamp
    clock: Literal["live", "frozen"]
    settings: dict[str, Any]
    scenarios: list[dict[str, Any]]  # JSON of each, in the order in which they are applied


class InitialState(FixtureSource, Restored):
    """All that a bank was made with: the only source of reset, initialize and a restart."""


class BankDocument(FixtureSource):
    """The fixture that the last reset or scenario loaded; earlier versions wrote its text too."""

    id: Literal["bank"]
    madeWith: NotRequired[InitialState]  # what the bank was made with; earlier versions wrote it only if it was more
    seed: NotRequired[int]  # the seed that the bank was created with
    stream: NotRequired[str]  # the name from which its ids are derived, if it is not the bank's


class ConsoleDocument(TypedDict):
    """Console logins that were ended before they expired; stored in the default bank, for the whole process."""

    id: Literal["console"]
    ended: dict[str, int]  # when they started, in seconds of Unix time, by their id


class ExchangeDocument(TypedDict):
    """The fixture's exchange rates and fees, which override the built-in ones."""

    id: Literal["exchange"]
    rates: NotRequired[dict[str, str]]  # currency -> NOK for one unit
    fees: NotRequired[dict[str, str]]  # conversion, crossBorder -> NOK


class RuleEntry(TypedDict):
    rule: dict[str, Any]  # the rule as JSON of its YAML
    scenario: str | None  # the scenario that added it
    added: str  # the moment it was added
    serial: str  # unique among the bank's rules


class RulesDocument(TypedDict):
    id: Literal["rules"]
    rules: list[RuleEntry]


class ScenarioDocument(TypedDict):
    """The scenario that was applied last."""

    id: Literal["scenario"]
    source: dict[str, Any]  # the scenario as JSON of its YAML


# ---- customers


class SandboxIdentity(TypedDict):
    """The members of a sandbox document that are kept when the others are replaced."""

    id: str
    created: NotRequired[str]


class Customer(TypedDict):
    """An owner of accounts."""

    id: str
    customerNumber: str  # private: the national identity number; corporate: the organisation number, usually
    type: Literal["private", "corporate"]
    name: str
    organisationNumber: NotRequired[str]
    created: NotRequired[str]  # absent for a customer of the fixture; so for accounts, cards and agreements


class Person(TypedDict):
    """A person who authenticates: a private customer, or somebody who acts for a company."""

    id: str  # the national identity number
    name: str


Role = Literal["VIEW", "REGISTER"]  # of a customer on an account


class Engagement(TypedDict):
    """What an agreement allows with one account."""

    id: str
    customer: str  # id of the customer who may act; for a corporate one everybody under the agreement may
    accountId: str
    iban: str  # of the account
    roles: list[Role]
    registerLimit: NotRequired[str | float]  # the largest single payment, in the account's currency
    approvalLimit: NotRequired[str | float]  # above it a second signature is needed
    admits: NotRequired[bool]  # its private customer may act under the agreement only because of this engagement
    joined: NotRequired[bool]  # only in answers: an owner's account that belongs to the agreement automatically


class Agreement(TypedDict):
    """A corporate agreement: which persons may use which accounts."""

    id: str  # psuCorporateId, a UUID
    owner: str  # id of a customer
    name: str
    signatures: int  # that a payment needs: 1 or 2
    persons: list[str]  # national identity numbers of those who act under it
    engagements: list[Engagement]
    accounts: list[str]  # ids of the accounts of the engagements
    organisationNumber: NotRequired[str]
    created: NotRequired[str]


class Psu(TypedDict):
    """A person as one TPP knows it."""

    id: str  # PSU-ID, a UUID
    tpp: str
    nationalId: str
    key: str  # `tpp|nationalId`
    created: str


class Contact(TypedDict):
    id: str  # the TPP's id
    email: str


# ---- accounts


class AccountRef(TypedDict, total=False):
    """An account as transactions name it."""

    bban: str
    iban: str
    currency: str


class Amount(TypedDict):
    """An amount."""

    amount: str
    currency: str


Usage = Literal["PRIV", "ORGA"]  # of a private customer, or of an organisation


class Account(TypedDict):
    """An account. Always: opening + booked transactions == booked; reserved == what its payments hold."""

    id: str
    customerId: str
    bban: str
    iban: str
    currency: str
    name: str
    product: str
    cashAccountType: str  # ISO 20022: CACC, SVGS, LOAN, TRAN, TAXE
    bic: str
    usage: Usage
    status: str  # enabled, blocked or deleted
    creditLine: str
    opening: str  # balance before the first transaction
    booked: str  # balance
    reserved: str  # reserved for payments and for pending items of the fixture
    lastChange: str  # moment
    demandsKid: NotRequired[bool]  # only accepts payments with a KID
    paymentsRemoved: NotRequired[bool]  # the bank allows no payments from it
    owners: NotRequired[list[str]]  # ids of the other private customers to whom it belongs too
    posted: NotRequired[dict[str, Any]]  # some members as posted to the sandbox interface
    created: NotRequired[str]


class StructuredReference(TypedDict):
    """A payment reference."""

    reference: str
    referenceType: NotRequired[str]  # SCOR, or left out: a KID


class CurrencyExchange(TypedDict):
    """How an amount was converted."""

    sourceCurrency: str
    targetCurrency: str
    unitCurrency: str
    exchangeRate: str  # the price of one unit
    quotationDate: str
    contractIdentification: NotRequired[str]


class Texts(TypedDict, total=False):
    """The two sides of a payment and its texts, as its transactions show them."""

    creditorName: str
    creditorAccount: AccountRef
    creditorAgent: str  # BIC
    debtorName: str
    debtorAccount: AccountRef
    debtorAgent: str  # BIC
    endToEndId: str
    purposeCode: str
    ultimateDebtor: str
    ultimateCreditor: str
    creditorId: str
    remittanceInformationUnstructured: str
    remittanceInformationUnstructuredArray: list[str]
    remittanceInformationStructuredArray: list[StructuredReference]


class BatchEntry(Texts):
    """One payment inside a batch."""

    amount: str  # signed, as the transaction's
    currency: str


class Batch(TypedDict):
    entries: list[BatchEntry]


class TransactionDetails(Texts, total=False):
    """The members that only some transactions have."""

    bookingDate: str  # not while pending
    due: str  # the moment at which a pending transaction of the fixture is booked
    bankTransactionCode: str  # ISO 20022, PMNT-ICDT-DMCT
    proprietaryBankTransactionCode: str
    currencyExchange: CurrencyExchange
    batch: Batch
    paymentId: str  # the payment that it executes
    feeFor: str  # the payment whose fee it is


class TransactionMembers(TransactionDetails):
    """A transaction before the ledger enters it on an account; not stored in this form."""

    amount: str | Decimal  # signed, in the account's currency: negative leaves the account
    valueDate: NotRequired[str]  # else the booking date


Status = Literal["booked", "pending"]  # of a transaction


class Shelved(TypedDict):
    """Where lists show a transaction of an account or card."""

    status: Status
    shelf: str  # `accountId|status` or `cardId|status`, the group of the order `shelf`
    order: str  # `date|moment`: the date under which it is listed, and when it was created


class Transaction(TransactionDetails, Shelved):
    """A transaction of an account, booked or pending."""

    id: str
    accountId: str
    amount: str  # signed: negative leaves the account
    currency: str
    valueDate: str


class DriftedTransaction(Transaction):
    """A transaction as a drifting feed shows it."""

    unidentified: NotRequired[bool]  # without its id


class Card(TypedDict):
    id: str
    customerId: str
    maskedPan: str
    currency: str
    name: str
    product: str
    status: str
    usage: Usage
    creditLimit: str
    booked: str  # balance; a debt is negative
    lastChange: str  # moment
    accountNumber: NotRequired[str]  # BBAN of the account that it is settled through
    posted: NotRequired[dict[str, Any]]  # creditLimit, balances as posted to the sandbox interface
    cardId: NotRequired[str]
    cardIdVNo: NotRequired[str]
    expiry: NotRequired[str]
    created: NotRequired[str]


class CardTransactionDetails(TypedDict, total=False):
    """The members that only some card transactions have."""

    bookingDate: str  # not while pending
    markupFee: Amount
    markupFeePercentage: str | float  # as posted
    terminalId: str
    merchantCategoryCode: str
    cardAcceptorId: str
    cardAcceptorAddress: dict[str, str]  # city, country, ...
    transactionDetails: str
    invoiced: bool
    proprietaryBankTransactionCode: str


class CardTransaction(CardTransactionDetails, Shelved):
    """A purchase with a card, or a payment to it."""

    id: str
    cardTransactionId: str  # at most 35 characters
    cardId: str
    transactionDate: str  # of the purchase
    transactionAmount: Amount  # signed, in the card's currency
    originalAmount: Amount  # in the currency of the purchase
    maskedPan: str


# ---- access


class Session(TypedDict):
    """A completed SCA under a TPP-Session-ID, valid for an hour."""

    id: str
    key: str  # `tpp|TPP-Session-ID`
    tpp: str
    nationalId: str
    psuId: str
    tppSessionId: str
    context: str
    agreement: str | None
    created: str
    expires: str  # moment
    owner: NotRequired[str]  # `tpp|nationalId|context`, until a newer session replaces it
    past: NotRequired[Literal["yes"]]  # replaced: the oldest are evicted
    ended: NotRequired[str]  # moment, if it ended before it expired


class Consent(TypedDict):
    """The accounts that a person shares with a TPP in one context."""

    id: str
    owner: str  # `tpp|nationalId|context|agreement`
    tpp: str
    nationalId: str
    context: str
    agreement: str | None
    accounts: list[str]  # ids
    cards: list[str]  # ids
    created: str
    lastSca: str  # moment; valid for 180 days from it
    tppName: NotRequired[str]  # for people
    due: NotRequired[str]  # moment at which it expires, if that may be notified
    lastUse: NotRequired[str]  # date
    revoked: NotRequired[str]  # moment
    replaced: NotRequired[str]  # moment at which a newer consent took its place
    ownIds: NotRequired[bool]  # given with the setting account_ids at renewed: accounts have resourceIds of its own
    terminated: NotRequired[bool]  # `revoked` is the moment at which the TPP deleted it


class Acting(TypedDict):
    """The context in which a person acts."""

    context: str
    agreement: str | None


class Approach(TypedDict, total=False):
    """The requirements on the SCA from a request's headers; an absent header has no member."""

    redirectUri: str  # TPP-Redirect-URI; every SCA has it
    tppName: str  # for people
    app: bool  # shown as if in the bank's app (TPP-Redirect-Preferred: false)
    sessionId: str  # TPP-Session-ID
    identityHint: str  # X-PSU-IDENTITY: preselected
    presumed: str  # the person whom the bank expects when no header names one
    method: str  # X-PSU-AuthMethod-Preferred, then the chosen one
    language: str  # nb or en
    outcome: str  # how a scripted rule ends it: reject, expire, fail, abandon
    delay: float  # scripted: seconds of real time that each of its pages takes


class ScaTarget(Approach, total=False):
    """The members with which an SCA is opened: its approach, its target and its customer where known."""

    target: str  # id of the payment, basket or consent that is approved
    nationalId: str  # the only person who may complete it
    context: str  # the only one it is for
    agreement: str  # the only one it is for


class Sca(ScaTarget):
    """A strong customer authentication; its id is the token of the scaRedirect."""

    id: str  # 43 URL-safe characters
    tpp: str
    purpose: str  # access, consent, user, payment, basket or cancellation
    status: Literal["started", "finalised", "failed"]
    created: str
    passing: NotRequired[Literal["yes"]]  # may be evicted: the oldest are deleted when there are many
    person: NotRequired[str]  # national identity number of the identified person
    chosen: NotRequired[Acting]  # the context that the person chose
    ended: NotRequired[str]  # moment
    redirect: NotRequired[str]  # where the browser was sent at the end
    due: NotRequired[str]  # moment at which its time is over, of one whose end may be notified
    timedOut: NotRequired[Literal[True]]  # its time was over before it ended
    passed: NotRequired[list[str]]  # the steps that the customer has completed
    mistyped: NotRequired[bool]  # an unknown identity number was typed once


class Login(TypedDict):
    """A customer logged in at the bank itself (/my)."""

    id: str  # the token that the browser stores
    nationalId: str
    expires: str  # moment
    passing: Literal["yes"]  # may be evicted: the oldest are deleted when there are many


class Quota(TypedDict):
    """Calls without the customer present, of one TPP, account and operation."""

    id: str  # `tpp|accountId|operation`
    calls: list[str]  # moments of the last 24 hours


# ---- payments


class StatusChange(TypedDict):
    """A status of a payment, and when it was reached."""

    status: str
    at: str  # moment


class Execution(TypedDict):
    """One execution of a standing order."""

    executionDate: str
    transactionStatus: str  # ACSC: booked, RJCT: skipped


class Price(TypedDict):
    """The cost of a payment for its debtor, in the currency of the debtor's account."""

    amount: str
    fee: NotRequired[str]  # if there is one
    rate: NotRequired[str]  # account currency for one unit of the instructed currency, if they differ
    creditorAccountId: NotRequired[str]  # the creditor's account, if this bank holds it


class BulkEntry(Price):
    """The state of one entry of a bulk, whose data is in `initiation.payments`."""

    status: str  # OPEN (not funded yet), HELD, ACSC, RJCT, CANC
    pendingId: NotRequired[str]  # its pending transaction


PartyNameMatch = Literal["MTCH", "CMTC", "NMTC", "NOAP"]


class PayeeVerification(TypedDict):
    """How well the creditor's name matches the name of the account's holder."""

    partyNameMatch: PartyNameMatch
    matchedName: NotRequired[str]  # the holder's name, of CMTC


# Messages to the customer about a payment; `payment_views.TEXTS` has the texts.
PsuMessage = Literal[
    "declined",
    "notApproved",
    "notApprovedTwice",
    "noMoney",
    "rejected",
    "dateChanged",
    "textChanged",
    "changed",
]


class Payment(Price):
    """A payment: a transfer, a standing order or a bulk."""

    id: str
    service: str  # payments, periodic-payments, bulk-payments
    product: str
    tpp: str
    nationalId: str | None  # None: the customer is not known before the first SCA (lenient profile only)
    context: str
    agreement: str | None
    initiation: Mapping[str, Any]  # the TPP's body as sent, in the shape of the product
    status: str  # transactionStatus
    history: list[StatusChange]  # oldest first
    created: str
    debtorAccountId: str
    debtorName: NotRequired[str]  # missing in documents of earlier versions
    currency: str  # of the debtor's account
    likeness: str  # a hash, the same for logical duplicates
    entries: NotRequired[list[BulkEntry]]  # of a bulk
    sca: NotRequired[str]  # token of the open SCA that its links name
    basketId: NotRequired[str]
    signedBy: NotRequired[list[str]]  # national identity numbers, in order
    due: NotRequired[str]  # moment of the next step, if it depends on time
    executeAt: NotRequired[str]  # moment of the (next) execution, once it is authorised
    executeOn: NotRequired[str]  # standing order: date of the next execution
    executions: NotRequired[list[Execution]]  # standing order: the last 100, oldest first
    giveUpAt: NotRequired[str]  # moment at which it is rejected if it is still not funded
    fundsAvailable: NotRequired[bool]  # from authorisation on
    held: NotRequired[str]  # reserved on the debtor's account, fee included
    pendingId: NotRequired[str]  # its pending transaction
    feePendingId: NotRequired[str]  # the pending transaction of its fee
    progress: NotRequired[list[tuple[str, float]]]  # scripted: the next statuses, and the seconds before each
    polls: NotRequired[int]  # status reads since the last step, with progression {polls: N}
    psuMessages: NotRequired[list[PsuMessage]]  # of ACWC and RJCT
    payeeVerification: NotRequired[PayeeVerification]  # with the setting payee_check


class Authorisation(TypedDict):
    """An SCA that a TPP requested, with the id for reading its scaStatus."""

    id: str
    target: str  # id of a payment or basket
    sca: str  # token
    cancels: bool  # of a cancellation


class Basket(TypedDict):
    id: str
    tpp: str
    nationalId: str | None
    context: str
    agreement: str | None
    payments: list[str]  # ids, in the order of the request
    created: str
    sca: NotRequired[str]  # token of the open SCA that its links name
    signed: NotRequired[str]  # moment


# ---- notifications


class Subscription(TypedDict):
    """Where a TPP wants to be notified of a payment, basket or consent (Berlin Group 1.3, TPP-Notification-URI)."""

    id: str  # of the payment, basket or consent
    resource: Literal["payment", "basket", "consent"]
    tpp: str
    uri: str
    content: list[str]  # of SCA, PROCESS, LAST
    queued: int  # notifications so far
    effect: NotRequired[str]  # scripted: late, twice, reordered, dropped or forged
    delay: NotRequired[float]  # of the effect late: seconds of bank time
    traceparent: NotRequired[str]  # of the request that asked for it
    passing: NotRequired[Literal["yes"]]  # of a consent that is not granted yet: deleted when there are many


class DeliveryAttempt(TypedDict):
    """One attempt to deliver a notification."""

    at: str  # moment
    status: NotRequired[int]  # HTTP status of the receiver's answer
    error: NotRequired[str]  # why there was no answer


class Notification(TypedDict):
    id: str  # a UUID, the X-Request-ID of the notification
    target: str  # id of the payment, basket or consent
    tpp: str
    uri: str
    body: dict[str, str]  # as it is sent
    place: int  # its position among the target's notifications
    created: str
    state: Literal["waiting", "sending", "delivered", "failed", "dropped"]
    deliveries: list[DeliveryAttempt]  # oldest first
    traceparent: NotRequired[str]  # sent as a header
    lane: NotRequired[str]  # the target, until the notification is answered: a lane sends one at a time
    due: NotRequired[str]  # moment of the next attempt; only the first in its lane has it
    notBefore: NotRequired[str]  # scripted: the moment of the first attempt
    copies: NotRequired[int]  # scripted: the number of deliveries left
    held: NotRequired[Literal["yes"]]  # scripted: the next notification of its target is sent before it
    forged: NotRequired[Literal["yes"]]  # scripted: its content is not true
    done: NotRequired[Literal["yes"]]  # delivered, failed or dropped: deleted when there are many


# ---- the interface


class Repeat(TypedDict):
    """The stored answer to a creation, for repeats under the same X-Request-ID."""

    id: str  # `tpp|x-request-id`
    created: str
    print: str  # a hash of the request
    headers: list[tuple[str, str]]  # of the answer
    body: Any  # of the answer, JSON
