"""A small bank whose customers meet the pages: two private ones, one of them also acting for a firm."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from emulator.bank.authentication import authorisations
from emulator.bank.bank import Bank
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, CUSTOMER, KINDS, PERSON
from emulator.bank.payment import baskets, payments
from emulator.store import memory_store

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
KARI = "15838512345"
OLA = "03897654321"
FIRM = "7d3b4b6a-8f1c-4a9e-9d53-0f3c2b1a0e01"
TPP = "PSDNO-FSA-1234"
BACK = "http://127.0.0.1:9/back?state=a%20b"


def _account(name: str, customer: str, number: int, title: str, currency: str = "NOK") -> dict[str, Any]:
    bban = f"9990{number:07d}"
    return {
        "id": name,
        "customerId": customer,
        "bban": bban,
        "iban": f"NO12{bban}",
        "currency": currency,
        "name": title,
        "product": title,
        "cashAccountType": "CACC",
        "status": "enabled",
        "creditLine": "0.00",
        "opening": "1000.00",
        "booked": "1000.00",
        "reserved": "0.00",
    }


def small_bank() -> Bank:
    """Kari (private, a card, acts for the firm) and Ola (private only), bank time standing still."""
    bank = Bank(memory_store(KINDS), seed=1)
    payments.attach(bank)
    baskets.attach(bank)
    put = bank.documents.put
    for number, name, key in ((KARI, "Kari <Prøve> & Co", "c-kari"), (OLA, "Ola Prøve", "c-ola")):
        put(CUSTOMER, {"id": key, "customerNumber": number, "type": "private", "name": name})
        put(PERSON, {"id": number, "name": name})
    put(CUSTOMER, {"id": "c-firm", "customerNumber": "999900001", "type": "corporate", "name": "Prøve AS"})
    put(ACCOUNT, _account("a-1", "c-kari", 1000014, "Brukskonto"))
    put(ACCOUNT, _account("a-2", "c-kari", 1000022, "Sparekonto"))
    put(ACCOUNT, _account("a-3", "c-ola", 1000030, "Brukskonto"))
    put(ACCOUNT, _account("f-1", "c-firm", 2000019, "Driftskonto"))
    card = {"id": "k-1", "customerId": "c-kari", "accountNumber": "x", "maskedPan": "545454XXXXXX1234"}
    put(CARD, {**card, "currency": "NOK", "name": "Kredittkort", "product": "Kredittkort"})
    put(
        AGREEMENT,
        {
            "id": FIRM,
            "owner": "c-firm",
            "name": "Prøve AS nettbank",
            "organisationNumber": "999900001",
            "signatures": 1,
            "persons": [KARI],
            "accounts": ["f-1"],
            "engagements": [{"id": "e-1", "customer": "c-firm", "accountId": "f-1", "roles": ["VIEW", "REGISTER"]}],
        },
    )
    bank.clock.set(now=NOW, mode="frozen")
    return bank


def open_access(bank: Bank, **more: Any) -> str:
    """An open SCA for account access; its token."""
    known = {"tppName": "Prøve <b>Regnskap</b>", "redirectUri": BACK, **more}
    return authorisations.open_sca(
        bank, TPP, "access", {member: value for member, value in known.items() if value is not None}
    )
