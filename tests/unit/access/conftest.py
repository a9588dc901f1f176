"""A small bank for the rules of access: one private customer with two accounts, a firm with an agreement."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from emulator.bank.bank import Bank
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, CUSTOMER, KINDS, PERSON
from emulator.store import memory_store

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
KARI = "41818012345"
OLA = "41818054321"
TPP = "PSDNO-FSA-1234"


def account(name: str, customer: str) -> dict[str, object]:
    return {
        "id": name,
        "customerId": customer,
        "bban": f"9990{name[-1] * 7}",
        "status": "enabled",
        "iban": f"NO009990{name[-1] * 7}",
        "currency": "NOK",
        "name": name,
    }


def small_bank() -> Bank:
    bank = Bank(memory_store(KINDS), seed=1)
    put = bank.documents.put
    put(CUSTOMER, {"id": "c-kari", "customerNumber": KARI, "type": "private", "name": "Kari Prøve"})
    put(PERSON, {"id": KARI, "name": "Kari Prøve"})
    put(PERSON, {"id": OLA, "name": "Ola Prøve"})
    put(CUSTOMER, {"id": "c-firm", "customerNumber": "999900001", "type": "corporate", "name": "Prøve AS"})
    for name, customer in (("a-1", "c-kari"), ("a-2", "c-kari"), ("f-3", "c-firm"), ("f-4", "c-firm")):
        put(ACCOUNT, account(name, customer))
    put(CARD, {"id": "card-1", "customerId": "c-kari", "accountNumber": "x", "status": "enabled"})
    put(
        AGREEMENT,
        {
            "id": "7d3b4b6a-8f1c-4a9e-9d53-0f3c2b1a0e01",
            "owner": "c-firm",
            "name": "Prøve AS nettbank",
            "organisationNumber": "999900001",
            "persons": [OLA],
            "accounts": ["f-3", "f-4"],
            "engagements": [
                {"id": "e-1", "customer": "c-firm", "accountId": "f-3", "roles": ["VIEW", "REGISTER"]},
                {"id": "e-2", "customer": "c-firm", "accountId": "f-4", "roles": ["VIEW"]},
            ],
        },
    )
    bank.clock.set(now=NOW, mode="frozen")
    return bank


@pytest.fixture
def bank() -> Bank:
    return small_bank()


AGREEMENT_ID = "7d3b4b6a-8f1c-4a9e-9d53-0f3c2b1a0e01"


def advance(bank: Bank, **by: float) -> None:
    bank.clock.advance(timedelta(**by))
