"""The forms of the answers and events of the control interface, for the OpenAPI document and its tests."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

closed = with_config(ConfigDict(extra="forbid"))


@closed
class Message(TypedDict):
    """A problem, and the member, header or parameter that has it (`path`)."""

    category: Literal["ERROR", "WARNING"]
    code: str
    path: NotRequired[str]
    text: NotRequired[str]


@closed
class Error(TypedDict):
    """A refused request: every problem is listed, and nothing was changed."""

    tppMessages: list[Message]
    _links: NotRequired[dict[str, Any]]


class Event(TypedDict):
    """A change or request, sent as JSON in the data of a server-sent event of the same `type`.

    `request` events also have the members of a line of `GET requests`. Events about the progress of long work have
    `done` and `of`, the amount of work.
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
    """The accounts and cards that a customer shares with a TPP."""

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
    """How many customers, accounts and transactions were generated."""

    customers: int
    accounts: int
    transactions: int


@closed
class GeneratedCustomer(TypedDict):
    """A generated customer; `nationalId` is that of the person who acts for it."""

    customerId: str
    customerNumber: str
    customerType: str
    customerName: str
    nationalId: str
    accounts: list[str]


@closed
class Generated(TypedDict):
    """The generated customers, and counts."""

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
    """A status of a payment, and the bank time at which it began."""

    status: str
    at: str


@closed
class PayeeVerification(TypedDict):
    """How the creditor's name matches that of the account holder; `matchedName` is given for a close match."""

    partyNameMatch: Literal["MTCH", "CMTC", "NMTC", "NOAP"]
    matchedName: NotRequired[str]


@closed
class NotificationDelivery(TypedDict):
    """An attempt: the HTTP status of the answer, or why there was none."""

    at: str
    status: NotRequired[int]
    error: NotRequired[str]


@closed
class Notification(TypedDict):
    """A notification about a change of status; `place` is its number among those of its target."""

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
    """A context in which a person acts, with the accounts and cards visible in it."""

    context: str
    psuCorporateId: NotRequired[str]
    name: NotRequired[str]
    accounts: list[OwnAccount]


@closed
class OwnPayment(TypedDict):
    """A payment that waits for approval by a person; `cancels`: its cancellation waits."""

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
    """How often an account was read without the customer in the last 24 hours, and the limit."""

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
    """What a person sees at the bank: accounts, payments that wait for approval, and consents."""

    nationalId: str
    name: str
    contexts: list[OwnContext]
    payments: list[OwnPayment]
    consents: list[OwnConsent]


@closed
class Decision(TypedDict):
    """The status of a payment after a decision; `code`: why its SCA failed."""

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
    """A summary of a request of a TPP and its answer."""

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
    """A request with its answer; `signature` is the diagnosis: validity, signing strings, differences."""

    request: SentRequest
    response: NotRequired[SentAnswer]
    signature: NotRequired[dict[str, Any]]


@closed
class Count(TypedDict):
    """How many requests match."""

    count: int


@closed
class Reset(TypedDict):
    """The fixture and the scenario that the bank was reset to."""

    fixtures: str
    scenario: str | None


@closed
class RuleCount(TypedDict):
    """How often a rule has matched and acted since it was added; `setting` names the setting that added it, if any."""

    name: str
    scenario: str | None
    setting: NotRequired[str]
    matched: int
    acted: int


@closed
class Rules(TypedDict):
    """The rules, as JSON of the same structure as their YAML, and their counts; both in evaluation order."""

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
    """The address that the browser would go to; null for none."""

    redirect: str | None


@closed
class ScenarioLine(TypedDict):
    """A ready scenario: what it does, whether it can be applied, and what applying it replaces.

    `parameters`: `{default, about?}` by name; `reset`: whether the documents of the bank are replaced; `clock`: the
    bank time that is set.
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
    """The result of applying a scenario: whether the bank was reset, bank time, number of rules, settings."""

    scenario: str
    reset: bool
    clock: ClockTime
    rules: int
    settings: dict[str, Any]


class Preview(Applied):
    """The expected result of applying a scenario; `lost` describes the data of the bank that it would replace."""

    lost: list[str]


class PlayedStep(TypedDict):
    """The result of a step of a story."""

    step: int
    action: str
    outcome: Literal["passed", "failed", "skipped"]
    expected: NotRequired[Any]
    found: NotRequired[dict[str, Any]]
    differences: NotRequired[list[str]]


@closed
class Played(TypedDict):
    """The result of a story."""

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
    """A new TPP with its key and the CA in PEM; `keystore`: certificate and key as PKCS #12 in base64, on request."""

    key: str
    caCertificate: str
    keystore: NotRequired[str]


@closed
class CreatedBank(Bank):
    """A new bank, and its TPP if one was requested."""

    tpp: NotRequired[IssuedTpp]


@closed
class BankCertificate(TypedDict):
    """The certificate that signs answers, in PEM."""

    certificate: str


# The documents of the bank by kind, settings by name, a scenario, or a document about the interface.
AnyObject = dict[str, Any]
