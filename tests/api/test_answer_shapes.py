"""What operations answer is what their rows, and so the OpenAPI document, say they answer."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from emulator.api.operation import Operation
from emulator.api.operations import table
from emulator.api.validate import shape
from tests.api.desk import DeskClient, advance, approve
from tests.api.test_payments import BODIES, DOMESTIC, KARI

SIRI = "21909220006"  # acts for the bakery, which books batches


def fault(row: Operation, status: int, body: Any) -> str | None:
    """Why an answer is not the one that its row declares."""
    if status not in row.answers:
        return f"{row.id} answers {status} without declaring it"
    declared = row.answers[status]
    if declared is None:
        return None if body is None else f"{row.id} answers {status} with a body"
    wanted = shape(declared)
    types = wanted.listed if wanted.listed is not None and isinstance(body, list) else wanted.types
    try:
        types.validate_python(body)
    except ValidationError as error:
        return f"{row.id} {status}: {error}"
    return None


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
