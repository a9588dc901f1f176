"""What a client made for Berlin Group 1.3 reads: answers fit its models, but for what the manual lists as deviations.

The models are written from the framework's own description of its answers (1.3.12, which is 1.3.11 with additions);
members that they do not name are ignored, as generated clients do.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NotRequired

import pytest
from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from emulator import manual
from tests.api.desk import DeskClient, approve, ok
from tests.unit.payments.world import domestic, sepa

KARI = "14888520059"
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Moment = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}")]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
Bic = Annotated[str, Field(pattern=r"^[A-Z]{6}[A-Z2-9][A-NP-Z0-9]([A-Z0-9]{3})?$")]
Max35, Max70, Max140 = (Annotated[str, Field(max_length=most)] for most in (35, 70, 140))
Max512 = Annotated[str, Field(max_length=512)]
ConsentStatus = Literal[
    "received", "rejected", "valid", "revokedByPsu", "expired", "terminatedByTpp", "partiallyAuthorised"
]
TransactionStatus = Literal[
    "ACCC", "ACCP", "ACSC", "ACSP", "ACTC", "ACWC", "ACWP", "RCVD", "PDNG", "RJCT", "CANC", "ACFC", "PATC", "PART"
]


class Href(TypedDict):
    href: str


Links = dict[str, Href]


class Amount(TypedDict):
    currency: Currency
    amount: Annotated[str, Field(pattern=r"^-?[0-9]{1,14}(\.[0-9]{1,3})?$")]


class Other(TypedDict):
    identification: Max35
    schemeNameProprietary: NotRequired[Max35]


class Reference(TypedDict):
    iban: NotRequired[Annotated[str, Field(pattern=r"^[A-Z]{2}[0-9]{2}[a-zA-Z0-9]{1,30}$")]]
    bban: NotRequired[Annotated[str, Field(pattern=r"^[a-zA-Z0-9]{1,30}$")]]
    maskedPan: NotRequired[Max35]
    other: NotRequired[Other]
    currency: NotRequired[Currency]


class Address(TypedDict):
    streetName: Max70
    postCode: str
    townName: str
    country: Annotated[str, Field(pattern=r"^[A-Z]{2}$")]


class Balance(TypedDict):
    balanceAmount: Amount
    balanceType: Literal[
        "closingBooked",
        "expected",
        "openingBooked",
        "interimAvailable",
        "interimBooked",
        "forwardAvailable",
        "nonInvoiced",
    ]
    creditLimitIncluded: NotRequired[bool]
    lastChangeDateTime: NotRequired[Moment]
    referenceDate: NotRequired[Day]


class Account(TypedDict):
    resourceId: str
    iban: NotRequired[str]
    bban: NotRequired[str]
    currency: Currency
    name: NotRequired[Max70]
    product: NotRequired[Max35]
    cashAccountType: Annotated[str, Field(pattern=r"^[A-Z]{4}$")]
    status: NotRequired[Literal["enabled", "deleted", "blocked"]]
    bic: NotRequired[Bic]
    usage: NotRequired[Literal["PRIV", "ORGA"]]
    balances: NotRequired[list[Balance]]
    _links: NotRequired[Links]


class Accounts(TypedDict):
    accounts: list[Account]


class OneAccount(TypedDict):
    account: Account


class Balances(TypedDict):
    account: NotRequired[Reference]
    balances: list[Balance]


class Rate(TypedDict):
    sourceCurrency: Currency
    exchangeRate: str
    unitCurrency: Currency
    targetCurrency: Currency
    quotationDate: Day
    contractIdentification: NotRequired[Max35]


class Structured(TypedDict):
    reference: Max35
    referenceType: NotRequired[Max35]
    referenceIssuer: NotRequired[Max35]


class Transaction(TypedDict):
    transactionId: NotRequired[str]
    entryReference: NotRequired[Max35]
    endToEndId: NotRequired[Max35]
    bookingDate: NotRequired[Day]
    valueDate: NotRequired[Day]
    transactionAmount: Amount
    currencyExchange: NotRequired[list[Rate]]
    creditorName: NotRequired[Max70]
    creditorAccount: NotRequired[Reference]
    creditorAgent: NotRequired[Bic]
    debtorName: NotRequired[Max70]
    debtorAccount: NotRequired[Reference]
    debtorAgent: NotRequired[Bic]
    remittanceInformationUnstructured: NotRequired[Max140]
    remittanceInformationUnstructuredArray: NotRequired[list[Max140]]
    remittanceInformationStructured: NotRequired[Max140]
    remittanceInformationStructuredArray: NotRequired[list[Structured]]
    bankTransactionCode: NotRequired[str]
    proprietaryBankTransactionCode: NotRequired[Max35]
    purposeCode: NotRequired[Annotated[str, Field(max_length=4)]]
    _links: NotRequired[Links]


class Report(TypedDict):
    booked: NotRequired[list[Transaction]]
    pending: NotRequired[list[Transaction]]
    _links: Links


class Transactions(TypedDict):
    account: NotRequired[Reference]
    transactions: Report


class TransactionDetails(TypedDict):
    transactionDetails: Transaction


class CardAccount(TypedDict):
    resourceId: str
    maskedPan: Max35
    currency: Currency
    name: NotRequired[Max70]
    product: NotRequired[Max35]
    status: NotRequired[Literal["enabled", "deleted", "blocked"]]
    usage: NotRequired[Literal["PRIV", "ORGA"]]
    creditLimit: NotRequired[Amount]
    balances: NotRequired[list[Balance]]
    _links: NotRequired[Links]


class CardAccounts(TypedDict):
    cardAccounts: list[CardAccount]


class OneCardAccount(TypedDict):
    cardAccount: CardAccount


class CardBalances(TypedDict):
    cardAccount: NotRequired[Reference]
    balances: list[Balance]


class CardTransaction(TypedDict):
    cardTransactionId: NotRequired[Max35]
    terminalId: NotRequired[Max35]
    transactionDate: NotRequired[Day]
    bookingDate: NotRequired[Day]
    transactionAmount: Amount
    originalAmount: NotRequired[Amount]
    markupFee: NotRequired[Amount]
    markupFeePercentage: NotRequired[str]
    cardAcceptorId: NotRequired[Max35]
    cardAcceptorAddress: NotRequired[Address]
    merchantCategoryCode: NotRequired[Annotated[str, Field(min_length=4, max_length=4)]]
    maskedPAN: str
    transactionDetails: NotRequired[str]
    invoiced: NotRequired[bool]
    proprietaryBankTransactionCode: NotRequired[Max35]


class CardReport(TypedDict):
    booked: NotRequired[list[CardTransaction]]
    pending: NotRequired[list[CardTransaction]]
    _links: Links


class CardTransactions(TypedDict):
    cardAccount: NotRequired[Reference]
    cardTransactions: CardReport


class Message(TypedDict):
    category: Literal["ERROR", "WARNING"]
    code: str
    path: NotRequired[str]
    text: NotRequired[Max512]


class Refusal(TypedDict):
    tppMessages: list[Message]
    _links: NotRequired[Links]


class PaymentCreated(TypedDict):
    transactionStatus: TransactionStatus
    paymentId: str
    transactionFees: NotRequired[Amount]
    transactionFeeIndicator: NotRequired[bool]
    tppMessages: NotRequired[list[Message]]
    _links: Links


class PaymentStatus(TypedDict):
    transactionStatus: TransactionStatus
    fundsAvailable: NotRequired[bool]
    psuMessage: NotRequired[Max512]


class Payment(TypedDict):
    debtorAccount: Reference
    instructedAmount: Amount
    creditorAccount: Reference
    creditorName: Max70
    creditorAddress: NotRequired[Address]
    transactionStatus: NotRequired[TransactionStatus]
    remittanceInformationUnstructured: NotRequired[Max140]


class ConsentCreated(TypedDict):
    consentStatus: ConsentStatus
    consentId: str
    _links: Links


class Access(TypedDict):
    accounts: NotRequired[list[Reference]]
    balances: NotRequired[list[Reference]]
    transactions: NotRequired[list[Reference]]


class Consent(TypedDict):
    access: Access
    recurringIndicator: bool
    validUntil: Day
    frequencyPerDay: int
    lastActionDate: Day
    consentStatus: ConsentStatus


class ConsentState(TypedDict):
    consentStatus: ConsentStatus


class Sca(TypedDict):
    scaStatus: str


class Authorisations(TypedDict):
    authorisationIds: list[str]


# Where answers do not fit: by the path of the member, what the manual names it by.
DEVIATIONS = {
    "transactionDetails": "transactionsDetails",
    "currencyExchange": "currencyExchange",
    "transactions.currencyExchange": "currencyExchange",
    "creditorAddress.streetName": "streetName",
    "creditorAddress.postCode": "postCode",
    "creditorAddress.townName": "townName",
    "cardTransactions.cardAcceptorAddress.streetName": "streetName",
    "cardTransactions.cardAcceptorAddress.postCode": "postCode",
    "cardTransactions.cardAcceptorAddress.townName": "townName",
    "cardTransactions.maskedPAN": "maskedPAN",
}


def deviations(model: Any, answer: Any) -> set[str]:
    """The members of an answer that a model does not take."""
    try:
        TypeAdapter(model).validate_python(answer, strict=True)
    except ValidationError as error:
        return {
            ".".join(part for part in one["loc"] if isinstance(part, str) and part not in ("booked", "pending"))
            for one in error.errors()
        }
    return set()


@pytest.fixture
def kari(tpp: DeskClient) -> DeskClient:
    return tpp.log_in(KARI)


def answers(kari: DeskClient) -> list[tuple[str, Any, Any]]:
    """What a client reads on a whole journey: name, model, answer."""
    wide = "bookingStatus=both&dateFrom=2025-12-01"
    fixed = {"x-accept-fix": "amount-as-string,card-transaction-amounts,cash-account-type-iso"}
    accounts = ok(kari.get("/v1/accounts?withBalance=true"))
    read: list[tuple[str, Any, Any]] = [("accounts", Accounts, accounts)]
    for account in accounts["accounts"]:
        at = f"/v1/accounts/{account['resourceId']}"
        listed = ok(kari.get(f"{at}/transactions?{wide}&limit=500"))
        read += [
            ("account", OneAccount, ok(kari.get(at))),
            ("balances", Balances, ok(kari.get(f"{at}/balances"))),
            ("transactions", Transactions, listed),
        ]
        for one in listed["transactions"]["booked"]:
            details = ok(kari.get(f"{at}/transactions/{one['transactionId']}"))
            read += [
                ("details", TransactionDetails, details),
                ("the details themselves", Transaction, details["transactionsDetails"]),
            ]
    cards = ok(kari.get("/v1/card-accounts"))
    read.append(("cards", CardAccounts, cards))
    for card in cards["cardAccounts"]:
        at = f"/v1/card-accounts/{card['resourceId']}"
        read += [
            ("card", OneCardAccount, ok(kari.get(at))),
            ("card balances", CardBalances, ok(kari.get(f"{at}/balances"))),
            ("card transactions", CardTransactions, ok(kari.get(f"{at}/transactions?{wide}", headers=fixed))),
        ]
    own = {"iban": "NO8599901000014", "currency": "NOK"}
    address = {"street": "Gata", "buildingNumber": "1", "postalCode": "0001", "city": "Oslo", "country": "NO"}
    for product, body in (
        ("sepa-credit-transfers", sepa(debtorAccount=own)),
        ("norwegian-domestic-credit-transfers", domestic(creditorAddress=address)),
    ):
        created = ok(kari.post(f"/v1/payments/{product}", json=body), 201)
        at = f"/v1/payments/{product}/{created['paymentId']}"
        started = ok(kari.post(f"{at}/authorisations"), 201)
        approve(kari.service, created["paymentId"])
        read += [
            ("payment created", PaymentCreated, created),
            ("payment status", PaymentStatus, ok(kari.get(f"{at}/status"))),
            ("payment", Payment, ok(kari.get(at))),
            ("authorisation started", Sca, started),
            ("authorisations", Authorisations, ok(kari.get(f"{at}/authorisations"))),
            ("authorisation", Sca, ok(kari.get(f"{at}/authorisations/{started['authorisationId']}"))),
        ]
    consent = ok(kari.post("/v1/consents"), 201)
    at = f"/v1/consents/{consent['consentId']}"
    return [
        *read,
        ("consent created", ConsentCreated, consent),
        ("consent status", ConsentState, ok(kari.get(f"{at}/status"))),
        ("consent", Consent, ok(kari.get(at))),
        ("refusal", Refusal, kari.get("/v1/accounts/no-such").json()),
        ("refused payment", Refusal, kari.post("/v1/payments/sepa-credit-transfers", json={}).json()),
    ]


def test_every_answer_fits_but_for_the_deviations_that_the_manual_lists(kari: DeskClient) -> None:
    seen = answers(kari)
    found = {(name, path) for name, model, answer in seen for path in deviations(model, answer)}
    assert {path for _, path in found} == set(DEVIATIONS), found


@pytest.mark.parametrize("word", sorted(set(DEVIATIONS.values())))
def test_the_manual_names_each_deviation(word: str) -> None:
    assert re.search(rf"`{word}`", manual.pages()["reference/berlin-group"].text)
