"""`/health` and `/ready`: whether the bank answers, and what it holds (CONTRACT 2)."""

from __future__ import annotations

from typing import Any

from emulator import __version__
from emulator.bank.bank import Bank
from emulator.bank.kinds import ACCOUNT, CARD, CARD_TRANSACTION, CUSTOMER, META, PAYMENT, TRANSACTION

COUNTED = {"customers": CUSTOMER, "accounts": ACCOUNT, "cardAccounts": CARD, "payments": PAYMENT}


def health() -> dict[str, Any]:
    """The process answers."""
    return {"status": "UP"}


def ready(bank: Bank) -> dict[str, Any]:
    """The bank answers, with version, fixtures and counts of documents."""
    kept = bank.documents.get(META, "bank") or {}
    counts = {name: bank.documents.count(kind) for name, kind in COUNTED.items()}
    counts["transactions"] = bank.documents.count(TRANSACTION) + bank.documents.count(CARD_TRANSACTION)
    return {"status": "READY", "version": __version__, "fixtures": kept.get("fixtures"), "counts": counts}
