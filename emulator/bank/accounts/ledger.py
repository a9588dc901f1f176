"""The ledger: the only writer of an account's `opening`, `booked` and `reserved` while money moves.

Accounts and their history are created by the folders `fixtures` and `sandbox`. Two rules hold for every account at
any time: opening + the sum of its booked transactions == booked, and the sum of its reservations == reserved. `report`
checks them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from decimal import Decimal
from typing import Any, cast

from emulator.bank.bank import Bank
from emulator.bank.clock import oslo_day
from emulator.bank.documents import Account, Card, Shelved, Status, Transaction, TransactionMembers
from emulator.bank.kinds import ACCOUNT, PAYMENT, TRANSACTION
from emulator.bank.money import plain

ZERO = Decimal(0)
PIECE = 1000  # documents in a step of `reporting`


def available(account: Account) -> Decimal:
    """The amount that may be spent: booked - reserved + credit line (interimAvailable)."""
    return Decimal(account["booked"]) - Decimal(account["reserved"]) + Decimal(account["creditLine"])


def item_hold(transaction: Transaction) -> Decimal:
    """The reservation of a fixture's pending item: its amount, unless a payment has reserved it."""
    amount = Decimal(transaction["amount"])
    own = transaction["status"] == "pending" and "paymentId" not in transaction and "feeFor" not in transaction
    return -amount if own and amount < 0 else ZERO


def reserve(bank: Bank, account_id: str, amount: Decimal) -> None:
    """Reserve `amount` on the account for a payment; a negative amount releases it."""
    account = bank.find(ACCOUNT, account_id)
    account["reserved"] = plain(Decimal(account["reserved"]) + amount, account["currency"])
    account["lastChange"] = bank.clock.stamp()
    bank.documents.put(ACCOUNT, account)


def release(bank: Bank, account_id: str, amount: Decimal) -> None:
    reserve(bank, account_id, -amount)


def pend(bank: Bank, account_id: str, members: TransactionMembers, *, pending: str | None = None) -> str:
    """Show a transaction as pending and return its id; no money moves. Members and `pending` as for `book`."""
    account, at = bank.find(ACCOUNT, account_id), bank.clock.stamp()
    transaction = _entered(bank, account, members, "pending", at=at, replaced=pending)
    bank.documents.put(TRANSACTION, transaction)
    return transaction["id"]


def withdraw(bank: Bank, transaction_id: str) -> None:
    bank.documents.delete(TRANSACTION, transaction_id)


def book(
    bank: Bank,
    account_id: str,
    members: TransactionMembers,
    *,
    pending: str | None = None,
    released: Decimal = ZERO,
    at: str | None = None,
) -> Transaction:
    """Book a transaction and return its document.

    `bookingDate` and `valueDate` default to the Oslo date of `at`, which is bank time but for history.
    `pending`: the pending transaction that this one replaces, under its id; `released`: its reservation.
    """
    at = at or bank.clock.stamp()
    account = bank.find(ACCOUNT, account_id)
    transaction = _entered(bank, account, members, "booked", at=at, replaced=pending)
    account["booked"] = plain(Decimal(account["booked"]) + Decimal(transaction["amount"]), account["currency"])
    if released:
        account["reserved"] = plain(Decimal(account["reserved"]) - released, account["currency"])
    account["lastChange"] = at
    bank.documents.put(TRANSACTION, transaction)
    bank.documents.put(ACCOUNT, account)
    return transaction


def shelved(holder: Account | Card, status: Status, listed: str, at: str) -> Shelved:
    """Where lists show a transaction: under the date `listed`, those of a date by the moment `at` of their creation."""
    return {"status": status, "shelf": f"{holder['id']}|{status}", "order": f"{listed}|{at}"}


def _entered(
    bank: Bank,
    account: Account,
    members: TransactionMembers,
    status: Status,
    *,
    at: str,
    replaced: str | None,
) -> Transaction:
    """The document of a transaction on `account`; `replaced`: the id of the pending one that it replaces."""
    value_date = members.get("valueDate") or members.get("bookingDate") or oslo_day(at)
    booking_date = members.get("bookingDate") or oslo_day(at)
    transaction: Transaction = {
        "id": replaced or bank.ids.new(),
        "accountId": account["id"],
        **members,
        "amount": plain(Decimal(members["amount"]), account["currency"]),
        "currency": account["currency"],
        "valueDate": value_date,
        **shelved(account, status, booking_date if status == "booked" else value_date, at),
    }
    if status == "booked":
        transaction["bookingDate"] = booking_date
    return transaction


def settle_pending(bank: Bank, transaction: Transaction) -> None:
    """Book a fixture's pending transaction that is due."""
    shelved = ("status", "shelf", "order", "due", "accountId")
    members = cast(TransactionMembers, {name: value for name, value in transaction.items() if name not in shelved})
    if bank.documents.exists(ACCOUNT, transaction["accountId"]):
        held = item_hold(transaction)
        book(bank, transaction["accountId"], members, pending=transaction["id"], released=held)
    else:
        bank.documents.delete(TRANSACTION, transaction["id"])


def restate(bank: Bank, account_id: str, booked: Decimal) -> None:
    """Set the booked balance (sandbox data, scenarios); the opening balance changes by the same difference."""
    account = bank.find(ACCOUNT, account_id)
    difference = booked - Decimal(account["booked"])
    account["opening"] = plain(Decimal(account["opening"]) + difference, account["currency"])
    account["booked"] = plain(booked, account["currency"])
    account["lastChange"] = bank.clock.stamp()
    bank.documents.put(ACCOUNT, account)


def forget_oldest(bank: Bank, account_id: str, most: int) -> None:
    """Delete up to `most` of the oldest booked transactions of an account; their sum moves to the opening balance."""
    account = bank.find(ACCOUNT, account_id)
    oldest = bank.documents.range(TRANSACTION, "shelf", group=f"{account_id}|booked", limit=most)
    moved = sum((Decimal(transaction["amount"]) for transaction in oldest), ZERO)
    account["opening"] = plain(Decimal(account["opening"]) + moved, account["currency"])
    account["lastChange"] = bank.clock.stamp()
    with bank.documents.transaction():
        bank.documents.delete_several(TRANSACTION, (transaction["id"] for transaction in oldest))
        bank.documents.put(ACCOUNT, account)


def reporting(bank: Bank) -> Generator[None, None, dict[str, Any]]:
    """The whole ledger, recomputed: `{balanced, accounts: [...], totals: {NOK: ...}}`.

    In steps, between which the bank may be used: what is reported is the bank at the first one.

    `balanced`: for every account opening + bookings == balance, and reserved == the reservations of its payments and
    pending items.
    """
    bookings: dict[str, Decimal] = defaultdict(Decimal)
    held: dict[str, Decimal] = defaultdict(Decimal)
    transactions, payments = bank.documents.all(TRANSACTION), bank.documents.all(PAYMENT)
    all_accounts = bank.documents.all(ACCOUNT)
    for number, transaction in enumerate(transactions, 1):
        if not number % PIECE:
            yield
        if transaction["status"] == "booked":
            bookings[transaction["accountId"]] += Decimal(transaction["amount"])
        else:
            held[transaction["accountId"]] += item_hold(transaction)
    for number, payment in enumerate(payments, 1):
        if not number % PIECE:
            yield
        held[payment["debtorAccountId"]] += Decimal(payment.get("held", "0"))
    balanced = True
    accounts = []
    totals: dict[str, Decimal] = defaultdict(Decimal)
    for number, account in enumerate(all_accounts, 1):
        if not number % PIECE:
            yield
        currency, sum_of_bookings = account["currency"], bookings[account["id"]]
        balance = Decimal(account["booked"])
        agrees = Decimal(account["opening"]) + sum_of_bookings == balance
        balanced = balanced and agrees and held[account["id"]] == Decimal(account["reserved"])
        totals[currency] += balance
        accounts.append(
            {
                "accountId": account["id"],
                "iban": account["iban"],
                "currency": currency,
                "opening": account["opening"],
                "bookings": plain(sum_of_bookings, currency),
                "reserved": account["reserved"],
                "balance": account["booked"],
            }
        )
    shown = {currency: plain(total, currency) for currency, total in totals.items()}
    return {"balanced": balanced, "accounts": accounts, "totals": shown}
