"""Card accounts as their holders see them (CONTRACT 5)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from emulator.bank.accounts.accounts import balance_list, reference
from emulator.bank.bank import Bank
from emulator.bank.documents import Card
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, CARD, CARD_TRANSACTION

OLD_NAME_LENGTH = 35  # before the fix longer-names (SPEC 9)
CARD_SCHEME = "creditCardAccount"  # the only schemeNameProprietary (SPEC 2.4)

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


def card_reference(card: Card) -> dict[str, str]:
    """The reference of a card account: its masked number and currency."""
    return {"maskedPan": card["maskedPan"], "currency": card["currency"]}


def view(bank: Bank, card: Card, *, longer_names: bool) -> dict[str, Any]:
    """`{resourceId, maskedPan, currency, name, ...}`: the card account without balances and links.

    `relatedAccount` is the account that payments from the card are debited to; its `other` is the form in which a
    payment's debtorAccount names it (SPEC 2.4).
    """
    name = str(card["name"])
    shown: dict[str, Any] = {
        "resourceId": card["id"],
        "maskedPan": card["maskedPan"],
        "currency": card["currency"],
        "name": name if longer_names else name[:OLD_NAME_LENGTH],
        "product": card["product"],
        "status": str(card["status"]).lower(),
        "usage": card["usage"],
        "creditLimit": {"amount": card["creditLimit"], "currency": card["currency"]},
    }
    number = card.get("accountNumber")
    if number:
        account = bank.documents.first(ACCOUNT, bban=number)
        related = reference(account) if account is not None else {"bban": number}
        shown["relatedAccount"] = {**related, "other": {"identification": number, "schemeNameProprietary": CARD_SCHEME}}
    return shown


def balances(bank: Bank, card: Card) -> list[dict[str, Any]]:
    """closingBooked, expected and forwardAvailable of a card account; a debt is negative (CONTRACT 5).

    forwardAvailable is the amount that may still be spent: the credit limit minus debt and pending entries (assumed).
    """
    booked = Decimal(card["booked"])
    pending = bank.documents.range(CARD_TRANSACTION, "shelf", group=f"{card['id']}|pending")
    expected = sum((Decimal(entry["transactionAmount"]["amount"]) for entry in pending), booked)
    available = expected + Decimal(card["creditLimit"])
    amounts = {"closingBooked": booked, "expected": expected, "forwardAvailable": available}
    return balance_list(bank, card, amounts)


def entry_view(entry: Mapping[str, Any], *, swapped: bool) -> dict[str, Any]:
    """A card transaction; `swapped`: transactionAmount and originalAmount change places (SPEC 9)."""
    shown = {name: entry[name] for name in _SHOWN if entry.get(name) not in (None, "")}
    if swapped:
        amounts = {"transactionAmount": shown["originalAmount"], "originalAmount": shown["transactionAmount"]}
        shown |= amounts
    return shown
