"""Clients written for hosted sandboxes work here: what they post, as they post it.

Amounts are JSON numbers, transactions come as arrays, customer numbers have 8 digits, account numbers no valid check
digit, and every request carries the same X-Request-ID.
"""

from __future__ import annotations

from typing import Any

import pytest

from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, CARD_TRANSACTION, TRANSACTION
from emulator.client.clients import TppResponse
from tests.api.desk import DeskClient

SAME = {"X-Request-ID": "INSERT_X_REQUEST_ID", "Content-Type": "application/json; charset=UTF-8"}


class Script:
    """Posts one thing after the other, all under one X-Request-ID."""

    def __init__(self, client: DeskClient) -> None:
        self.client = client

    def post(self, path: str, body: Any) -> Any:
        answer: TppResponse = self.client.post(f"/v1/sandbox{path}", json=body, headers=SAME)
        assert answer.status == 201, answer.json()
        return answer.json()

    def get(self, path: str) -> Any:
        answer = self.client.get(f"/v1/sandbox{path}", headers=SAME)
        assert answer.status == 200, answer.json()
        return answer.json()


@pytest.fixture
def script(tpp: DeskClient) -> Script:
    return Script(tpp)


def account(
    number: str, bban: str, iban: str, amount: Any, currency: str = "NOK", kind: str = "CACC"
) -> dict[str, Any]:
    return {
        "customerNumber": number,
        "accountName": "Konto",
        "bban": bban,
        "iban": iban,
        "currency": currency,
        "product": "Konto",
        "cashAccountType": kind,
        "creditLine": 0,
        "balances": [{"balanceType": "EXPECTED", "balanceAmount": {"amount": amount, "currency": currency}}],
    }


HOSTED_CARD = {
    "customerNumber": "55555555",
    "maskedPan": "1234xxxxxxxx4321",
    "currency": "NOK",
    "creditLimit": {"currency": "NOK", "amount": 1000},
    "balances": [
        {
            "balanceAmount": {"currency": "NOK", "amount": 0},
            "balanceType": kind,
            "referenceDate": "2020-01-01",
            "lastChangeDateTime": "2019-10-14T13:55:45.494Z",
            "lastCommittedTransaction": "test",
        }
        for kind in ("EXPECTED", "AUTHORISED")
    ],
    "cardId": "1",
    "cardIdVNo": "2",
    "accountNumber": "123412341234",
    "expiry": "2020-01-01",
    "name": "Test",
    "product": "Basic Credit",
    "status": "ENABLED",
}

HOSTED_ENTRIES = [
    {
        "cardTransactionId": f"test-{number}",
        "terminalId": "tid",
        "bookingDate": "2019-05-08",
        "transactionDate": "2019-05-08",
        "transactionAmount": {"currency": "NOK", "amount": amount},
        "originalAmount": {"currency": "NOK", "amount": amount},
        "merchantCategoryCode": code,
        "markupFee": {"currency": "NOK", "amount": 10},
        "markupFeePercentage": "20",
        "cardAcceptorId": "",
        "cardAcceptorAddress": {},
        "maskedPan": "",
        "transactionDetails": "",
        "invoiced": "",
        "proprietaryBankTransactionCode": "",
    }
    for number, amount, code in ((1, 100, "BOB"), (2, 1000, "TEST"))
]


def transaction(amount: Any, name: str) -> dict[str, Any]:
    return {
        "amount": amount,
        "currency": "NOK",
        "valueDate": "2019-05-13",
        "bookingDate": "2019-05-12",
        "remittanceInformationUnstructured": "63444766",
        "creditorId": "1",
        "creditorName": name,
        "creditorAccount": {"iban": "NO4073787675014", "bban": "73787675014"},
        "ultimateCreditor": "Test",
        "debtorName": "Testperson 2",
        "debtorAccount": {"iban": "NO6290491105990", "bban": "90491105990"},
        "ultimateDebtor": "test",
        "purposeCode": "code",
        "bankTransactionCode": "PMNT",
    }


def test_a_customer_with_accounts_transactions_and_a_card(script: Script) -> None:
    customer = script.post("/customers", {"customerNumber": "55555555", "name": "Testkunde", "type": "PRIVATE"})
    assert list(customer) == ["customerId", "customerNumber", "customerType", "customerName", "_links"]
    assert (customer["customerType"], customer["customerName"]) == ("private", "Testkunde")

    body = account("55555555", "73787675014", "NO4073787675014", 15000)
    answered = script.post("/accounts", body)
    resource = answered.pop("id")
    answered.pop("_links")
    assert answered == body
    euro = account("55555555", "45860903420", "NO2545860903420", 3326011, "EUR")
    script.post("/accounts", euro)
    script.post("/accounts", account("55555555", "74242359720", "NO5774242359720", 15000.5, kind="TAXE"))

    posted = [transaction(1500, "Avisen"), transaction(1500.5, "Kraft"), transaction(-99.5, "Testperson To")]
    listed = script.post(f"/accounts/{resource}/transactions", posted)
    assert [{n: v for n, v in entry.items() if n not in ("id", "_links")} for entry in listed] == posted
    shown = script.get(f"/accounts/{resource}/transactions")
    assert [(entry["amount"], entry["creditorName"]) for entry in shown] == [
        (-100, "Testperson To"),
        (1500, "Kraft"),
        (1500, "Avisen"),
    ]

    card = script.post("/card-accounts", HOSTED_CARD)
    assert card["creditLimit"] == {"currency": "NOK", "amount": 1000}
    entries = script.post(f"/card-accounts/{card['resourceId']}/transactions", HOSTED_ENTRIES)
    assert [entry["cardTransactionId"] for entry in entries] == ["test-1", "test-2"]

    reader = script.client.log_in("55555555")
    accounts = reader.get("/v1/accounts?withBalance=true").json()["accounts"]
    assert [a["balances"][0]["balanceAmount"] for a in accounts] == [
        {"amount": "15000.50", "currency": "NOK"},
        {"amount": "3326011.00", "currency": "EUR"},
        {"amount": "15000.00", "currency": "NOK"},
    ]
    path = f"/v1/accounts/{resource}/transactions?dateFrom=2019-01-01"
    booked = reader.get(path).json()["transactions"]["booked"]
    assert [e["transactionAmount"]["amount"] for e in booked] == ["-99.50", "1500.50", "1500.00"]
    cards = reader.get("/v1/card-accounts").json()["cardAccounts"]
    assert cards[0]["status"] == "enabled"
    path = f"/v1/card-accounts/{card['resourceId']}/transactions?dateFrom=2019-01-01"
    bought = reader.get(path).json()["cardTransactions"]["booked"]
    assert [e["transactionAmount"]["amount"] for e in bought] == ["1000.00", "100.00"]


def test_a_firm_whose_account_a_private_customer_acts_on(script: Script) -> None:
    script.post("/customers", {"customerNumber": "44444444", "name": "Testfirma", "type": "corporate"})
    script.post("/customers", {"customerNumber": "55555555", "name": "Testkunde", "type": "private"})
    script.post("/accounts", account("44444444", "43427943320", "NO6243427943320", 30000))
    script.post("/accounts", account("55555555", "73787675014", "NO4073787675014", 100))
    agreement = script.post(
        "/agreements",
        {
            "owner": "44444444",
            "name": "Testavtale 1 ",
            "engagements": [
                {"customer": "55555555", "account": {"iban": "NO6243427943320"}, "roles": ["VIEW", "REGISTER"]}
            ],
        },
    )
    reader = script.client.log_in("55555555", context="CORPORATE")
    assert reader.psu_corporate_id == agreement["agreementId"]
    assert [a["iban"] for a in reader.get("/v1/accounts").json()["accounts"]] == ["NO6243427943320"]


def test_cleaning_up_first_as_such_scripts_do(script: Script) -> None:
    for customer in script.get("/customers"):
        answer = script.client.delete(f"/v1/sandbox/customers/{customer['customerId']}", headers=SAME)
        assert answer.status == 204
    assert script.get("/customers") == []
    documents = script.client.service.bank.documents
    for kind in (ACCOUNT, TRANSACTION, CARD, CARD_TRANSACTION, AGREEMENT):
        assert documents.count(kind) == 0, kind
