"""Examples that work with the fixture known-state: shown in the OpenAPI document, and sent by the tests.

The answers are in `answers.json`, which `python -m tests.docs.answers` records from a bank.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from emulator.bank import products

UUID = "5f0f3b0e-8a53-4c2f-9d0e-6a1f7c2b9e41"

# By name: a description, and an example for the headers of requests.
HEADERS: Mapping[str, tuple[str, str | None]] = json.loads(files(__package__).joinpath("headers.json").read_bytes())

REFUSED = "refused"  # the key of the answers that any operation may give, beside the operationIds

PATH: dict[str, str] = {
    "payment-service": "payments",
    "payment-product": "sepa-credit-transfers",
    "tppId": "PSDNO-SBX-demo",
}

_ACCOUNT: dict[str, Any] = {
    "customerNumber": "14888520059",
    "accountName": "Hyttekonto",
    "bban": "99931000051",
    "iban": "NO1199931000051",
    "currency": "NOK",
    "product": "Brukskonto",
    "cashAccountType": "CACC",
    "creditLine": 0,
    "balances": [{"balanceType": "interimAvailable", "balanceAmount": {"amount": "1000.00", "currency": "NOK"}}],
}
_CARD: dict[str, Any] = {
    "customerNumber": "14888520059",
    "maskedPan": "541234******0042",
    "currency": "NOK",
    "creditLimit": "30000.00",
    "balances": [{"balanceType": "expected", "balanceAmount": {"amount": "-1200.00", "currency": "NOK"}}],
    "accountNumber": "99901000014",
    "expiry": "2029-12",
    "name": "Reisekort",
    "product": "Kredittkort",
    "status": "enabled",
}
_ENGAGEMENT: dict[str, Any] = {
    "customer": "310001031",
    "account": {"iban": "NO8199911100017"},
    "roles": ["VIEW", "REGISTER"],
    "registerLimit": "50000.00",
    "approvalLimit": "20000.00",
}


def bodies(today: date) -> dict[str, dict[str, Any]]:
    """Example bodies by operationId and title; their dates are relative to `today`.

    createSigningBasket has a placeholder for the ids of payments; all other examples work unchanged.
    """
    customer = {"customerNumber": "14888520059", "name": "Kari Kladd", "type": "private"}
    return {
        "createPayment": _payments(today),
        "createSigningBasket": {"a payment": {"paymentIds": [UUID]}},
        "createSandboxCustomer": {
            "private": {"customerNumber": "12888512345", "name": "Per Påfunn", "type": "private"}
        },
        "updateSandboxCustomer": {"private": customer},
        "createSandboxAccount": {"an account": _ACCOUNT},
        "updateSandboxAccount": {"an account": {**_ACCOUNT, "accountName": "Båtkonto"}},
        "createSandboxAccountTransactions": _transactions(today),
        "createSandboxCardAccount": {"a card account": _CARD},
        "updateSandboxCardAccount": {"a card account": {**_CARD, "creditLimit": "45000.00"}},
        "createSandboxCardAccountTransactions": _card_transactions(today),
        "createSandboxAgreement": {
            "two accounts": {
                "owner": "310001031",
                "name": "Nettbank bedrift",
                "engagements": [
                    _ENGAGEMENT,
                    {**_ENGAGEMENT, "account": {"iban": "NO5999911100025"}, "roles": ["VIEW"]},
                ],
            },
        },
        "createSandboxEngagement": {"an account": _ENGAGEMENT},
        "putContactInformation": {"a mailbox": {"email": "operations@tpp.example"}},
    }


def answers(operation: str, status: int | str) -> Mapping[str, Any]:
    """Recorded answers of an operation with a status, by title; those of REFUSED are common to all operations."""
    answers: Mapping[str, Any] = _answers().get(operation, {}).get(str(status), {})
    return answers


@cache
def _answers() -> dict[str, Any]:
    """All recorded answers by operationId, status and title; `python -m tests.docs.answers` records them."""
    answers: dict[str, Any] = json.loads(files(__package__).joinpath("answers.json").read_bytes())
    return answers


def _payments(today: date) -> dict[str, Any]:
    return {
        # the inverse of `product_of`
        f"{product.service.removesuffix('payments').replace('-', ' ')}{product.name}": {
            name: (today + value).isoformat() if isinstance(value, timedelta) else value
            for name, value in product.example.items()
        }
        for product in sorted(products.table().values(), key=lambda one: products.SERVICES.index(one.service))
    }


def _transactions(today: date) -> dict[str, Any]:
    day = (today - timedelta(days=3)).isoformat()
    bought: dict[str, Any] = {
        "amount": -349.5,
        "currency": "NOK",
        "bookingDate": day,
        "valueDate": day,
        "creditorName": "Kafé Prøvekopp",
        "creditorAccount": {"bban": "99921100090"},
        "remittanceInformationUnstructured": "Lunsj",
        "bankTransactionCode": "PMNT-CCRD-POSD",
    }
    paid = {**bought, "amount": 1250, "debtorName": "Even Eksempel", "remittanceInformationUnstructured": "Billetter"}
    return {"one": bought, "several": [bought, paid]}


def _card_transactions(today: date) -> dict[str, Any]:
    day = (today - timedelta(days=2)).isoformat()
    spent: dict[str, Any] = {
        "bookingDate": day,
        "transactionDate": day,
        "transactionAmount": {"amount": -586.75, "currency": "NOK"},
        "originalAmount": {"amount": -50, "currency": "EUR"},
        "merchantCategoryCode": "5942",
        "cardAcceptorId": "LIBRAIRIE",
        "cardAcceptorAddress": {"city": "Paris", "country": "FR"},
        "transactionDetails": "Librairie Exemple Paris",
        "invoiced": False,
    }
    return {"one": spent, "several": [spent, {**spent, "transactionDetails": "Librairie Exemple Lyon"}]}


def product_of(title: str) -> tuple[str, str]:
    """payment-service and payment-product of an example of createPayment, from its title."""
    kind, _, product = title.rpartition(" ")
    return (f"{kind}-payments" if kind else "payments"), product
