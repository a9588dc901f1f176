"""What the control interface answers: the forms of its bodies and events, for the OpenAPI document and its tests."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

closed = with_config(ConfigDict(extra="forbid"))


@closed
class Message(TypedDict):
    """What is wrong, and with which member, header or parameter."""

    category: Literal["ERROR", "WARNING"]
    code: str
    path: NotRequired[str]
    text: NotRequired[str]


@closed
class Error(TypedDict):
    """A refusal; nothing was changed, and every problem is named."""

    tppMessages: list[Message]
    _links: NotRequired[dict[str, Any]]


class Event(TypedDict):
    """What happened, sent as JSON in the data of a server-sent event of the same `type`.

    `request` events have the members of a line of `GET requests` besides; those that tell how far long work is have
    `done` and `of`, how much there is to do.
    """

    type: str
    id: str
    at: str
    status: NotRequired[str | int]
    target: NotRequired[str | None]
    done: NotRequired[int]
    of: NotRequired[int]
    tpp: NotRequired[str | None]


@closed
class Bank(TypedDict):
    """A bank of the process and its base address."""

    name: str
    baseUrl: str


@closed
class Banks(TypedDict):
    """The banks of the process."""

    banks: list[Bank]


@closed
class ClockTime(TypedDict):
    """Bank time."""

    now: str
    mode: Literal["live", "frozen"]


@closed
class Consent(TypedDict):
    """What a customer shares with a TPP."""

    consentId: str
    tpp: str
    nationalId: str
    context: str
    agreement: str | None
    accounts: list[str]
    cards: list[str]
    status: str
    lastSca: str
    validUntil: str


@closed
class Consents(TypedDict):
    """Consents, newest first."""

    consents: list[Consent]


@closed
class Counts(TypedDict):
    """How much was generated."""

    customers: int
    accounts: int
    transactions: int


@closed
class GeneratedCustomer(TypedDict):
    """A generated customer; nationalId is of the person who acts for it."""

    customerId: str
    customerNumber: str
    customerType: str
    customerName: str
    nationalId: str
    accounts: list[str]


@closed
class Generated(TypedDict):
    """What was generated."""

    counts: Counts
    customers: list[GeneratedCustomer]


@closed
class LedgerAccount(TypedDict):
    """An account recomputed from its bookings."""

    accountId: str
    iban: str
    currency: str
    opening: str
    bookings: str
    reserved: str
    balance: str


@closed
class Ledger(TypedDict):
    """The ledger of the bank; totals by currency."""

    balanced: bool
    accounts: list[LedgerAccount]
    totals: dict[str, str]


@closed
class Amount(TypedDict):
    """An amount."""

    amount: str
    currency: str


@closed
class StatusChange(TypedDict):
    """A status of a payment, and since when in bank time."""

    status: str
    at: str


@closed
class PayeeVerification(TypedDict):
    """How the creditor's name matches that of the account's holder; `matchedName`: of a close match."""

    partyNameMatch: Literal["MTCH", "CMTC", "NMTC", "NOAP"]
    matchedName: NotRequired[str]


@closed
class NotificationDelivery(TypedDict):
    """An attempt: the HTTP status of the receiver's answer, or why there was none."""

    at: str
    status: NotRequired[int]
    error: NotRequired[str]


@closed
class Notification(TypedDict):
    """A change of status that a TPP is notified of; `place`: in the order of its target's notifications."""

    id: str
    target: str
    tpp: str
    uri: str
    place: int
    state: Literal["waiting", "sending", "delivered", "failed", "dropped"]
    body: dict[str, str]
    created: str
    nextAttempt: str | None
    forged: bool
    deliveries: list[NotificationDelivery]


@closed
class Notifications(TypedDict):
    """Notifications, newest first."""

    notifications: list[Notification]


@closed
class Payment(TypedDict):
    """A payment of any TPP."""

    paymentId: str
    service: str
    product: str
    tpp: str
    nationalId: NotRequired[str]
    context: NotRequired[str]
    agreement: NotRequired[str]
    transactionStatus: str
    fundsAvailable: NotRequired[bool]
    instructedAmount: Amount
    creditorName: NotRequired[str]
    debtorAccountId: str
    psuMessage: NotRequired[str]
    payeeVerification: NotRequired[PayeeVerification]
    basketId: NotRequired[str]
    created: str
    due: NotRequired[str]
    history: list[StatusChange]


@closed
class Payments(TypedDict):
    """Payments, newest first."""

    payments: list[Payment]


@closed
class PersonAccount(TypedDict):
    """An account that a person may act on."""

    id: str
    iban: str
    bban: str
    currency: str
    name: str


@closed
class PersonAgreement(TypedDict):
    """An agreement under which a person acts."""

    psuCorporateId: str
    name: str
    organisationNumber: str | None


@closed
class Person(TypedDict):
    """A person of the bank."""

    nationalId: str
    name: str
    accounts: list[PersonAccount]
    agreements: list[PersonAgreement]


@closed
class People(TypedDict):
    """Persons, newest first."""

    people: list[Person]


@closed
class OwnAccount(TypedDict):
    """An account (iban, bban) or card (maskedPan) as its holder sees it."""

    resourceId: str
    name: str
    iban: NotRequired[str]
    bban: NotRequired[str]
    maskedPan: NotRequired[str]
    currency: str
    booked: str
    available: str


@closed
class OwnContext(TypedDict):
    """As what a person acts, with the accounts and cards that it sees there."""

    context: str
    psuCorporateId: NotRequired[str]
    name: NotRequired[str]
    accounts: list[OwnAccount]


@closed
class OwnPayment(TypedDict):
    """A payment (or, `cancels`, the cancellation of one) that waits for a person's approval."""

    paymentId: str
    cancels: bool
    transactionStatus: str
    tpp: str
    tppName: str
    agreement: str | None
    signedBy: list[str]
    summary: list[dict[str, Any]]


@closed
class Read(TypedDict):
    """How often an account was read in the last 24 hours without the customer, of how many times at most."""

    resourceId: str
    operation: str
    count: int
    limit: int


class OwnConsent(Consent):
    """A consent as the customer sees it; `lastUse` is a date."""

    tppName: str
    lastUse: str | None
    reads: list[Read]


@closed
class Customer(TypedDict):
    """What a person sees at the bank: accounts, payments that wait for approval, consents."""

    nationalId: str
    name: str
    contexts: list[OwnContext]
    payments: list[OwnPayment]
    consents: list[OwnConsent]


@closed
class Decision(TypedDict):
    """What became of a payment; `code`: why its SCA failed."""

    paymentId: str
    transactionStatus: str | None
    code: NotRequired[str]


@closed
class Repeated(TypedDict):
    """The new request in the log, and the status of its answer."""

    id: str
    status: int


@closed
class Exchange(TypedDict):
    """A request of a TPP and its answer in one line."""

    id: str
    at: str
    method: str
    target: str
    operation: NotRequired[str]
    status: int
    tpp: NotRequired[str]
    paymentId: NotRequired[str]
    rules: NotRequired[list[str]]
    messages: NotRequired[list[Message]]
    milliseconds: float


@closed
class Exchanges(TypedDict):
    """Requests, newest first."""

    requests: list[Exchange]


@closed
class SentRequest(TypedDict):
    """A request as it was sent, identity numbers masked."""

    method: str
    target: str
    headers: list[list[str]]
    body: str


@closed
class SentAnswer(TypedDict):
    """An answer as it was sent."""

    status: int
    headers: list[list[str]]
    body: str


class ExchangeDetail(Exchange):
    """A whole exchange; `signature` is the diagnosis of its signature: valid, the signing string, what differs."""

    request: SentRequest
    response: NotRequired[SentAnswer]
    signature: NotRequired[dict[str, Any]]


@closed
class Count(TypedDict):
    """How many requests match."""

    count: int


@closed
class Reset(TypedDict):
    """What the bank starts from now."""

    fixtures: str
    scenario: str | None


@closed
class RuleCount(TypedDict):
    """How often a rule has matched and acted since it was added; `setting`: where a setting brought it."""

    name: str
    scenario: str | None
    setting: NotRequired[str]
    matched: int
    acted: int


@closed
class Rules(TypedDict):
    """The rules as JSON of exactly the YAML's shape, in their order, and their counts in the same order."""

    rules: list[dict[str, Any]]
    counts: list[RuleCount]


@closed
class Sca(TypedDict):
    """An authentication of a customer."""

    id: str
    purpose: str
    tpp: str
    target: NotRequired[str]
    status: str
    step: NotRequired[str]
    nationalId: NotRequired[str]
    redirectUri: str
    redirect: NotRequired[str]
    created: str
    expires: str


@closed
class Scas(TypedDict):
    """Authentications, newest first."""

    sca: list[Sca]


@closed
class Redirect(TypedDict):
    """Where the browser would go; null: nowhere."""

    redirect: str | None


@closed
class ScenarioLine(TypedDict):
    """A ready scenario: what it does, whether it can be applied, and what applying it replaces.

    `parameters`: `{default, about?}` by name; `reset`: the documents of the bank are replaced; `clock`: the time set.
    """

    name: str
    summary: str
    play: Literal["only"] | None
    parameters: dict[str, dict[str, Any]]
    reset: bool
    clock: str | None
    rules: int
    steps: int


@closed
class Scenarios(TypedDict):
    """The ready scenarios."""

    scenarios: list[ScenarioLine]


@closed
class Applied(TypedDict):
    """What applying a scenario did: whether the bank was reset, bank time, how many rules, which settings."""

    scenario: str
    reset: bool
    clock: ClockTime
    rules: int
    settings: dict[str, Any]


class Preview(Applied):
    """What applying a scenario would do; `lost`: the data of the bank that would be lost, in sentences."""

    lost: list[str]


class PlayedStep(TypedDict):
    """How a step of a story went."""

    step: int
    action: str
    outcome: Literal["passed", "failed", "skipped"]
    expected: NotRequired[Any]
    found: NotRequired[dict[str, Any]]
    differences: NotRequired[list[str]]


@closed
class Played(TypedDict):
    """How a story went."""

    scenario: str
    summary: str
    passed: bool
    steps: list[PlayedStep]


@closed
class Session(TypedDict):
    """A session with its consent."""

    psuId: str
    tppSessionId: str
    psuCorporateId: NotRequired[str]
    context: str


@closed
class Snapshot(TypedDict):
    """A snapshot; `created` is real time."""

    name: str
    created: str


@closed
class Snapshots(TypedDict):
    """Snapshots, newest first."""

    snapshots: list[Snapshot]


@closed
class SnapshotName(TypedDict):
    """The snapshot that was restored."""

    name: str


@closed
class Tpp(TypedDict):
    """A TPP and its certificate in PEM."""

    tppId: str
    name: str
    roles: list[str]
    organizationIdentifier: str
    certificate: str


@closed
class Tpps(TypedDict):
    """TPPs, newest first."""

    tpps: list[Tpp]


@closed
class IssuedTpp(Tpp):
    """A new TPP with its key and the CA in PEM; `keystore`: both as PKCS #12 in base64, where it was asked for."""

    key: str
    caCertificate: str
    keystore: NotRequired[str]


@closed
class MadeBank(Bank):
    """A new bank, and its TPP if one was requested."""

    tpp: NotRequired[IssuedTpp]


@closed
class BankCertificate(TypedDict):
    """The certificate that signs answers, in PEM."""

    certificate: str


# Documents of the bank by kind, settings by name, a scenario or a document about the interface.
AnyObject = dict[str, Any]
