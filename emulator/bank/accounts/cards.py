"""Card accounts as their holders see them (accounts.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal

from emulator.bank.accounts.accounts import BalanceType
from emulator.bank.bank import Bank
from emulator.bank.documents import Card
from emulator.bank.errors import BankError
from emulator.bank.kinds import CARD, CARD_TRANSACTION

CARD_SCHEME: Literal["creditCardAccount"] = "creditCardAccount"  # the only schemeNameProprietary

_SHOWN = (
    "cardTransactionId",
    "terminalId",
    "transactionDate",
    "bookingDate",
    "transactionAmount",
    "originalAmount",
    "markupFee",
    "markupFeePercentage",
    "cardAcceptorId",
    "cardAcceptorAddress",
    "merchantCategoryCode",
    "maskedPan",
    "transactionDetails",
    "invoiced",
    "proprietaryBankTransactionCode",
)


def reference_of(identity: str) -> str:
    """The cardTransactionId of an entry posted without one: at most 35 characters, for both forms of ids."""
    return hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()


def find(bank: Bank, card_id: str) -> Card:
    """The card account; BankError RESOURCE_UNKNOWN when there is none."""
    card = bank.documents.get(CARD, card_id)
    if card is None:
        raise BankError("RESOURCE_UNKNOWN", f"There is no card account {card_id}.", "mockCardAccountId")
    return card


def balances(bank: Bank, card: Card) -> dict[BalanceType, Decimal]:
    """closingBooked, expected and forwardAvailable of a card account; a debt is negative.

    forwardAvailable is the amount that may still be spent: the credit limit minus debt and pending entries (assumed).
    """
    booked = Decimal(card["booked"])
    pending = bank.documents.range(CARD_TRANSACTION, "shelf", group=f"{card['id']}|pending")
    expected = sum((Decimal(entry["transactionAmount"]["amount"]) for entry in pending), booked)
    available = expected + Decimal(card["creditLimit"])
    return {"closingBooked": booked, "expected": expected, "forwardAvailable": available}


def entry_view(entry: Mapping[str, Any], *, swapped: bool) -> dict[str, Any]:
    """A card transaction; `swapped`: transactionAmount and originalAmount change places."""
    shown = {name: entry[name] for name in _SHOWN if entry.get(name) not in (None, "")}
    if "unidentified" in entry:
        del shown["cardTransactionId"]
    if swapped:
        amounts = {"transactionAmount": shown["originalAmount"], "originalAmount": shown["transactionAmount"]}
        shown |= amounts
    return shown
