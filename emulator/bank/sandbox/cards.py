"""Sandbox data: create, read and delete card accounts and their transactions (sandbox-data.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, cast

from emulator.bank.accounts import accounts, transactions
from emulator.bank.bank import Bank
from emulator.bank.documents import Amount, Card, CardTransaction, CardTransactionDetails, SandboxIdentity
from emulator.bank.errors import BankError, Message
from emulator.bank.kinds import CARD, CARD_TRANSACTION
from emulator.bank.money import plain
from emulator.bank.sandbox import (
    Body,
    booked_balance,
    check_each,
    customer_named,
    decimal,
    identity_of,
    moments_after,
    new_identity,
    shortening,
    unshare,
)

_CARD_TEXTS: tuple[Literal["cardId", "cardIdVNo", "expiry"], ...] = ("cardId", "cardIdVNo", "expiry")
_POSTED_DETAILS = (
    "terminalId",
    "merchantCategoryCode",
    "markupFeePercentage",
    "cardAcceptorId",
    "cardAcceptorAddress",
    "transactionDetails",
    "invoiced",
    "proprietaryBankTransactionCode",
)


def create_card(bank: Bank, body: Body) -> Card:
    """A new card account; RESOURCE_UNKNOWN (400) for the customer."""
    return _put_card(bank, new_identity(bank), body)


def replace_card(bank: Bank, card_id: str, body: Body) -> Card:
    """Replace all members of a card account; its transactions stay. CONFLICT if they are in another currency."""
    before = accounts.find_card(bank, card_id)
    if body["currency"] != before["currency"] and bank.documents.count(CARD_TRANSACTION, cardId=card_id):
        raise BankError("CONFLICT", "The card account has transactions in another currency.", "currency")
    return _put_card(bank, identity_of(before), body)


def _put_card(bank: Bank, identity: SandboxIdentity, body: Body) -> Card:
    owner = customer_named(bank, body["customerNumber"], "customerNumber")
    currency = body["currency"]
    number = body.get("accountNumber") or ""
    document: Card = {
        "id": identity["id"],
        "customerId": owner["id"],
        "maskedPan": body["maskedPan"],
        "currency": currency,
        "name": body.get("name") or body.get("product") or "Kort",
        "product": body.get("product") or "Kredittkort",
        "status": body.get("status") or "enabled",
        "usage": accounts.usage(owner),
        "creditLimit": plain(_limit(body.get("creditLimit")), currency),
        "booked": plain(booked_balance(body.get("balances")), currency),
        "lastChange": bank.clock.stamp(),
        "posted": {name: body[name] for name in ("creditLimit", "balances") if name in body},
    }
    for name in _CARD_TEXTS:
        if body.get(name):
            document[name] = body[name]
    if "created" in identity:
        document["created"] = identity["created"]
    if number:
        document["accountNumber"] = number
    bank.documents.put(CARD, document)
    return document


def _limit(value: Any) -> Decimal:
    """A credit limit: a number, decimal text, or an Amount in the card's currency."""
    return decimal((value["amount"] if isinstance(value, Mapping) else value) or 0)


def deleting_card(bank: Bank, card_id: str) -> Iterator[int]:
    """Delete a card account in steps, between which the bank may be used; it is there until the last one."""
    accounts.find_card(bank, card_id)
    if (yield from shortening(bank, CARD, card_id, [(CARD_TRANSACTION, card_id)])):
        delete_cards(bank, [card_id])


def delete_cards(bank: Bank, card_ids: Collection[str]) -> None:
    """Remove card accounts with their transactions, and from consents."""
    for card_id in card_ids:
        entries = bank.documents.find(CARD_TRANSACTION, cardId=card_id)
        bank.documents.delete_several(CARD_TRANSACTION, (entry["id"] for entry in entries))
        bank.documents.delete(CARD, card_id)
    unshare(bank, "cards", card_ids)


def create_transactions(bank: Bank, card_id: str, bodies: Sequence[Body], *, single: bool) -> list[CardTransaction]:
    """Add booked card transactions to the history, without changing the balance (assumed).

    `single`: the body was one object, so paths in messages have no index.
    """
    card = accounts.find_card(bank, card_id)
    check_each(bodies, lambda body, prefix: _problems(card, body, prefix), single=single)
    moments = moments_after(bank, CARD_TRANSACTION, card, [_booking(bank, body) for body in bodies])
    entries = [_transaction(bank, card, body, at) for body, at in zip(bodies, moments, strict=True)]
    for document in entries:
        bank.documents.put(CARD_TRANSACTION, document)
    card["lastChange"] = bank.clock.stamp()
    bank.documents.put(CARD, card)
    return entries


def _problems(card: Card, body: Body, prefix: str) -> list[Message]:
    wrong = []
    if body["transactionAmount"]["currency"] != card["currency"]:
        text = f"The currency of the card account was expected, {card['currency']}."
        wrong.append(Message("FORMAT_ERROR", text, f"{prefix}transactionAmount.currency"))
    return wrong


def _booking(bank: Bank, body: Body) -> str:
    return body.get("bookingDate") or body.get("transactionDate") or bank.clock.today().isoformat()


def _transaction(bank: Bank, card: Card, body: Body, at: str) -> CardTransaction:
    identity = bank.ids.new()
    booking = _booking(bank, body)
    posted = {name: body[name] for name in _POSTED_DETAILS if body.get(name) not in (None, "", {})}
    amount = _amount(body["transactionAmount"])
    document: CardTransaction = {
        "id": identity,
        "cardTransactionId": body.get("cardTransactionId") or accounts.reference_of(identity),
        "cardId": card["id"],
        "status": "booked",
        "shelf": f"{card['id']}|booked",
        "order": f"{booking}|{at}",
        "transactionDate": body.get("transactionDate") or booking,
        "transactionAmount": amount,
        "originalAmount": _amount(body["originalAmount"]) if body.get("originalAmount") else amount,
        "maskedPan": body.get("maskedPan") or card["maskedPan"],
        **cast(CardTransactionDetails, posted),
        "bookingDate": booking,
    }
    if body.get("markupFee"):
        document["markupFee"] = _amount(body["markupFee"])
    if "markupFeePercentage" in document:
        document["markupFeePercentage"] = str(document["markupFeePercentage"])
    return document


def _amount(posted: Body) -> Amount:
    return {"amount": plain(decimal(posted["amount"]), posted["currency"]), "currency": posted["currency"]}


def find_transaction(bank: Bank, card_id: str, transaction_id: str) -> CardTransaction:
    """A transaction of the card account, by its id or its cardTransactionId; BankError RESOURCE_UNKNOWN.

    A transaction that a drifting feed shows under the id is preferred.
    """
    accounts.find_card(bank, card_id)
    shown = transactions.shown(bank, card_id, transaction_id, kind=CARD_TRANSACTION)
    if shown is not None:
        return cast(CardTransaction, shown)
    transaction = bank.documents.get(CARD_TRANSACTION, transaction_id)
    if transaction is None or transaction["cardId"] != card_id:
        own = bank.documents.find(CARD_TRANSACTION, cardId=card_id)
        transaction = next((entry for entry in own if entry["cardTransactionId"] == transaction_id), None)
    if transaction is None:
        raise BankError("RESOURCE_UNKNOWN", f"The card account has no transaction {transaction_id}.", "transactionId")
    return transaction


def deleting_transactions(bank: Bank, card_id: str) -> Iterator[int]:
    """Delete a card account's transactions in steps, the oldest first; its balance stays."""
    accounts.find_card(bank, card_id)
    if (yield from shortening(bank, CARD, card_id, [(CARD_TRANSACTION, card_id)])):
        entries = bank.documents.find(CARD_TRANSACTION, cardId=card_id)
        bank.documents.delete_several(CARD_TRANSACTION, (entry["id"] for entry in entries))
