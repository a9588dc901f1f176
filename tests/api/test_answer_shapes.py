"""What operations answer is what their rows, and so the OpenAPI document, say they answer."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.api.operations import table
from tests.api.desk import DeskClient, advance, approve, ok
from tests.api.shapes import fault
from tests.api.test_payments import BODIES
from tests.known_state import BULK, CROSS_BORDER, DOMESTIC, KARI, PERIODIC, SEPA, SIRI, STRAKS
from tests.unit.payments.world import bulk, domestic, sepa

SETTLED_BY_CARD = {"identification": "99901000014", "schemeNameProprietary": "creditCardAccount"}
TRANSACTION = {
    "amount": -349.5,
    "currency": "NOK",
    "valueDate": "2026-02-20",
    "bookingDate": "2026-02-20",
    "remittanceInformationUnstructured": "Lunsj",
    "creditorName": "Kafé",
    "creditorAccount": {"bban": "99921100090", "iban": "NO4099921100090", "currency": "NOK"},
    "debtorName": "Kari",
    "debtorAccount": {"bban": "99901000014"},
    "bankTransactionCode": "PMNT-CCRD-POSD",
    "ultimateDebtor": "Datter",
    "ultimateCreditor": "Eier",
    "purposeCode": "SALA",
    "creditorId": "X1",
    "endToEndId": "ORDER-1",
    "proprietaryBankTransactionCode": "VARE",
}
CARD_TRANSACTION = {
    "cardTransactionId": "CT-1",
    "terminalId": "T1",
    "bookingDate": "2026-02-20",
    "transactionDate": "2026-02-20",
    "transactionAmount": {"amount": -586.75, "currency": "NOK"},
    "originalAmount": {"amount": -50, "currency": "EUR"},
    "merchantCategoryCode": "5942",
    "markupFee": {"amount": -1.5, "currency": "NOK"},
    "markupFeePercentage": 1.75,
    "cardAcceptorId": "LIBRAIRIE",
    "cardAcceptorAddress": {
        "street": "Rue",
        "buildingNumber": "1",
        "postalCode": "75000",
        "city": "Paris",
        "country": "FR",
    },
    "maskedPan": "541234******0042",
    "transactionDetails": "Librairie",
    "invoiced": False,
    "proprietaryBankTransactionCode": "VARE",
}


class Walk:
    """Calls operations and checks each answer against the row of its operation."""

    def __init__(self, client: DeskClient) -> None:
        self.client = client
        self.rows = {row.id: row for row in table()}
        self.seen: set[str] = set()

    def __call__(self, operation: str, path: str, body: Any = None, *, status: int | None = None) -> Any:
        row = self.rows[operation]
        options = {} if body is None else {"json": body}
        answer = self.client.request(row.method, path, **options)
        content = answer.json() if answer.body else None
        assert answer.status in (row.answers if status is None else (status,)), content
        wrong = fault(row, answer.status, content)
        assert wrong is None, wrong
        self.seen.add(operation)
        return content


@pytest.fixture
def walk(tpp: DeskClient) -> Walk:
    return Walk(tpp)


def payments(walk: Walk) -> None:
    for product, body in BODIES.items():
        path = f"{product}/{walk('createPayment', product, body)['paymentId']}"
        walk("getPayment", path)
        walk("getPaymentStatus", f"{path}/status")
        started = walk("startAuthorisation", f"{path}/authorisations")
        walk("getAuthorisations", f"{path}/authorisations")
        walk("getAuthorisation", f"{path}/authorisations/{started['authorisationId']}")
        approve(walk.client.service, path.rpartition("/")[2])
        walk("getPayment", path)
    walk("deletePayment", f"{DOMESTIC}/{walk('createPayment', DOMESTIC, BODIES[DOMESTIC])['paymentId']}", status=204)
    later = {**BODIES[DOMESTIC], "requestedExecutionDate": "2026-03-20", "unknown": 1}
    path = f"{DOMESTIC}/{walk('createPayment', DOMESTIC, later)['paymentId']}"
    approve(walk.client.service, path.rpartition("/")[2])
    advance(walk.client.service, seconds=5)
    walk("deletePayment", path, status=202)
    started = walk("startCancellationAuthorisation", f"{path}/cancellation-authorisations")
    walk("getCancellationAuthorisations", f"{path}/cancellation-authorisations")
    walk("getCancellationAuthorisation", f"{path}/cancellation-authorisations/{started['authorisationId']}")
    walk("getPaymentStatus", f"{path}/status")


def baskets(walk: Walk) -> None:
    ids = [walk("createPayment", DOMESTIC, BODIES[DOMESTIC])["paymentId"] for _ in range(2)]
    path = f"/v1/signing-baskets/{walk('createSigningBasket', '/v1/signing-baskets', {'paymentIds': ids})['basketId']}"
    walk("getSigningBasket", path)
    walk("getSigningBasketStatus", f"{path}/status")
    started = walk("startSigningBasketAuthorisation", f"{path}/authorisations")
    walk("getSigningBasketAuthorisations", f"{path}/authorisations")
    walk("getSigningBasketAuthorisation", f"{path}/authorisations/{started['authorisationId']}")
    walk("deleteSigningBasket", path)


def account_information(walk: Walk) -> None:
    for account in walk("getAccounts", "/v1/accounts?withBalance=true")["accounts"]:
        path = f"/v1/accounts/{account['resourceId']}"
        walk("getAccount", path)
        walk("getBalances", f"{path}/balances")
        listed = walk("getTransactions", f"{path}/transactions?limit=500")["transactions"]
        for entry in [*listed["booked"], *listed["pending"]]:
            walk("getTransactionDetails", f"{path}/transactions/{entry['transactionId']}")
    for card in walk("getCardAccounts", "/v1/card-accounts?withBalance=true")["cardAccounts"]:
        path = f"/v1/card-accounts/{card['resourceId']}"
        walk("getCardAccount", path)
        walk("getCardBalances", f"{path}/balances")
        walk("getCardTransactions", f"{path}/transactions?limit=500")


def customer(walk: Walk) -> None:
    path = f"/v1/consents/{walk('createConsent', '/v1/consents')['consentId']}"
    walk("getConsent", path)
    walk("getConsentStatus", f"{path}/status")
    approve(walk.client.service, path.rpartition("/")[2])
    walk("getConsent", path)
    walk("deleteConsent", path)
    walk("createBankOfferedConsent", "/v1/bank-offered-consents")
    walk("getUser", "/v1/user")
    walk("getUsers", "/v1/users")
    walk("getAgreements", "/v1/agreements")


def sandbox_customers(walk: Walk) -> None:
    everybody = "/v1/sandbox/customers?includeAccounts=true&includeAgreements=true"
    walk("listSandboxCustomers", everybody)
    person = {"customerNumber": "55555555", "name": "Ny Kunde", "type": "private"}
    path = f"/v1/sandbox/customers/{walk('createSandboxCustomer', '/v1/sandbox/customers', person)['customerId']}"
    walk("getSandboxCustomer", path)
    walk("updateSandboxCustomer", path, person)
    sandbox_accounts(walk)
    sandbox_cards(walk)
    sandbox_agreements(walk)
    walk("deleteSandboxCustomer", path)
    walk("initializeSandbox", "/v1/sandbox/initialize")


def sandbox_accounts(walk: Walk) -> None:
    account = {
        "customerNumber": "55555555",
        "bban": "12345678901",
        "iban": "NO1112345678901",
        "currency": "NOK",
        "creditLine": 100.5,
        "balances": [{"balanceType": "EXPECTED", "balanceAmount": {"amount": 10.5, "currency": "NOK"}}],
    }
    path = f"/v1/sandbox/accounts/{walk('createSandboxAccount', '/v1/sandbox/accounts', account)['id']}"
    walk("updateSandboxAccount", path, account)
    walk("getSandboxAccount", path)
    walk("listSandboxAccounts", "/v1/sandbox/accounts")
    one = walk("createSandboxAccountTransactions", f"{path}/transactions", {"amount": -10.5, "creditorName": ""})
    walk("createSandboxAccountTransactions", f"{path}/transactions", [{"amount": "1"}])
    walk("getSandboxAccountTransaction", f"{path}/transactions/{one['id']}")
    walk("listSandboxAccountTransactions", f"{path}/transactions")
    walk("deleteSandboxAccountTransactions", f"{path}/transactions")
    walk("deleteSandboxAccount", path)


def sandbox_cards(walk: Walk) -> None:
    card = {"customerNumber": "55555555", "maskedPan": "1234xxxxxxxx4321", "currency": "NOK", "creditLimit": "1000"}
    path = (
        f"/v1/sandbox/card-accounts/{walk('createSandboxCardAccount', '/v1/sandbox/card-accounts', card)['resourceId']}"
    )
    walk("updateSandboxCardAccount", path, card)
    walk("getSandboxCardAccount", path)
    walk("listSandboxCardAccounts", "/v1/sandbox/card-accounts")
    spent = {"transactionAmount": {"amount": -10.5, "currency": "NOK"}, "invoiced": False, "markupFeePercentage": 1.75}
    one = walk("createSandboxCardAccountTransactions", f"{path}/transactions", spent)
    walk("createSandboxCardAccountTransactions", f"{path}/transactions", [spent])
    walk("getSandboxCardAccountTransaction", f"{path}/transactions/{one['id']}")
    walk("listSandboxCardAccountTransactions", f"{path}/transactions")
    walk("deleteSandboxCardAccountTransactions", f"{path}/transactions")
    walk("deleteSandboxCardAccount", path)


def sandbox_agreements(walk: Walk) -> None:
    engagement = {"customer": "55555555", "account": {"iban": "NO2799911000012"}, "roles": ["VIEW"], "registerLimit": 5}
    agreement = {"owner": "310001007", "name": "Avtale", "engagements": [engagement]}
    path = (
        f"/v1/sandbox/agreements/{walk('createSandboxAgreement', '/v1/sandbox/agreements', agreement)['agreementId']}"
    )
    walk("getSandboxAgreement", path)
    walk("listSandboxAgreements", "/v1/sandbox/agreements")
    other = {**engagement, "account": {"iban": "NO0599911000020"}}
    second = walk("createSandboxEngagement", f"{path}/engagements", other)
    walk("getSandboxEngagement", f"{path}/engagements/{second['engagementId']}")
    walk("listSandboxEngagements", f"{path}/engagements")
    walk("deleteSandboxEngagement", f"{path}/engagements/{second['engagementId']}")
    walk("deleteSandboxAgreement", path)


def contact_information(walk: Walk) -> None:
    path = f"/v1/tpps/{walk.client.tpp_id}/contact-information"
    walk("putContactInformation", path, {"email": "open-banking@tpp.example"})
    walk("getContactInformation", path)


def test_every_operation_answers_in_the_shape_that_its_row_declares(walk: Walk) -> None:
    walk.client.log_in(KARI)
    payments(walk)
    baskets(walk)
    account_information(walk)
    customer(walk)
    contact_information(walk)
    sandbox_customers(walk)
    assert walk.seen == set(walk.rows)


def test_in_the_corporate_context_batches_fit_their_shape_too(walk: Walk) -> None:
    walk.client.log_in(SIRI, context="CORPORATE")
    account_information(walk)


REFERENCE = {"reference": "2345676", "referenceType": "KID", "referenceIssuer": "Bank"}
ADDRESS = {"street": "Storgata", "buildingNumber": "1", "postalCode": "0001", "city": "Oslo", "country": "NO"}
EVERYTHING = {
    "creditorAddress": ADDRESS,
    "endToEndIdentification": "ORDER-1",
    "ultimateDebtor": "Datter Eksempel",
    "purposeCode": "SALA",
}
LATER = {"requestedExecutionDate": "2026-03-20"}
EVERY_MEMBER = {
    "message": (DOMESTIC, domestic(**EVERYTHING, **LATER, remittanceInformationUnstructured="Takk")),
    "reference": (DOMESTIC, domestic(**EVERYTHING, remittanceInformationStructured=REFERENCE)),
    "references": (DOMESTIC, domestic(**EVERYTHING, remittanceInformationStructuredArray=[REFERENCE] * 2)),
    "instant": (STRAKS, domestic(creditorAddress=ADDRESS, ultimateDebtor="Datter", purposeCode="SALA")),
    "card": (DOMESTIC, domestic(debtorAccount={"other": SETTLED_BY_CARD, "currency": "NOK"})),
    "standing": (
        PERIODIC,
        domestic(
            **EVERYTHING,
            startDate="2026-03-10",
            endDate="2027-03-10",
            frequency="MonthlyVariable",
            monthsOfExecution=["3", "6"],
            dayOfExecution="10",
            executionRule="following",
        ),
    ),
    "bulk": (
        BULK,
        {
            **bulk("1.00"),
            **LATER,
            "payments": [{**bulk("1.00")["payments"][0], **EVERYTHING, "remittanceInformationUnstructured": "Takk"}],
            "batchBookingPreferred": True,
            "paymentInformationId": "LOT-1",
        },
    ),
    "SEPA": (
        SEPA,
        sepa(
            debtorAccount={"iban": "NO8599901000014", "currency": "NOK"},
            creditorAddress={**ADDRESS, "country": "DE"},
            endToEndIdentification="ORDER-1",
            remittanceInformationUnstructured="Takk",
            **LATER,
        ),
    ),
    "cross-border": (
        CROSS_BORDER,
        sepa(debtorAccount={"iban": "NO8599901000014", "currency": "NOK"}, creditorAgent="EXAMDE33"),
    ),
}


def test_a_payment_shows_every_member_of_its_initiation(tpp: DeskClient) -> None:
    for case in EVERY_MEMBER:
        path, body = EVERY_MEMBER[case]
        tpp.log_in(KARI)
        created = ok(tpp.post(path, json=body), 201)
        details = ok(tpp.get(f"{path}/{created['paymentId']}"))
        assert details | body == details, case


def test_transactions_of_the_sandbox_show_every_member_that_was_posted(tpp: DeskClient) -> None:
    accounts = ok(tpp.get("/v1/sandbox/accounts"))
    cards = ok(tpp.get("/v1/sandbox/card-accounts"))
    own = f"/v1/sandbox/accounts/{accounts[0]['id']}/transactions"
    posted = ok(tpp.post(own, json=TRANSACTION), 201)
    assert posted | TRANSACTION == posted
    card = f"/v1/sandbox/card-accounts/{cards[0]['resourceId']}/transactions"
    posted = ok(tpp.post(card, json=CARD_TRANSACTION), 201)
    assert posted | CARD_TRANSACTION == posted
    shown = ok(tpp.get(f"{card}/{posted['id']}"))
    assert set(CARD_TRANSACTION) <= set(shown)
