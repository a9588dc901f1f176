"""Sandbox data: common functions of its kinds, and deletion with all dependent documents (CONTRACT 8)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, TypeVar

import orjson

from emulator.bank.accounts import accounts, cards, ledger
from emulator.bank.bank import Bank, progress_event
from emulator.bank.clock import moment, stamp
from emulator.bank.documents import Account, Agreement, Card, Customer, Engagement, SandboxIdentity
from emulator.bank.errors import BankError, Message
from emulator.bank.kinds import (
    ACCOUNT,
    AGREEMENT,
    CARD,
    CARD_TRANSACTION,
    CONSENT,
    CUSTOMER,
    PAYMENT,
    QUOTA,
    SESSION,
    TRANSACTION,
    EntryKind,
)
from emulator.bank.payment import lifecycle
from emulator.store import Kind

Body = Mapping[str, Any]
PIECE = 250  # transactions that are deleted in one change of the store
_MICROSECOND = timedelta(microseconds=1)

Listed = TypeVar("Listed", bound=Mapping[str, Any])


def find_customer(bank: Bank, customer_id: str) -> Customer:
    """The customer with this customerId; BankError RESOURCE_UNKNOWN."""
    customer = bank.documents.get(CUSTOMER, customer_id)
    if customer is None:
        raise BankError("RESOURCE_UNKNOWN", f"There is no customer {customer_id}.", "customerId")
    return customer


def customer_named(bank: Bank, name: str, path: str) -> Customer:
    """The customer with this customerNumber or customerId, named in a body at `path`; RESOURCE_UNKNOWN (400)."""
    customer = bank.documents.first(CUSTOMER, customerNumber=name) or bank.documents.get(CUSTOMER, name)
    if customer is None:
        raise BankError("RESOURCE_UNKNOWN", f"There is no customer {name}.", path, in_body=True)
    return customer


def list_documents(bank: Bank, kind: Kind[Listed]) -> list[Listed]:
    """All customers, accounts, cards, agreements (`kind` as in `kinds`), newest first (CONTRACT 13)."""
    return accounts.newest_first(bank.documents.all(kind))


def new_identity(bank: Bank) -> SandboxIdentity:
    """The id and creation time of a new sandbox document."""
    return {"id": bank.ids.new(), "created": bank.clock.stamp()}


def identity_of(document: Customer | Account | Card) -> SandboxIdentity:
    """The members of a document that are kept when the others are replaced."""
    identity: SandboxIdentity = {"id": document["id"]}
    if "created" in document:
        identity["created"] = document["created"]
    return identity


def moments_after(bank: Bank, kind: EntryKind, holder: Account | Card, dates: Sequence[str]) -> list[str]:
    """A moment for each entry posted to an account or card, so that lists show entries in the order of posting.

    `dates` are those under which they are listed. The moments are a microsecond apart, and later than those of the
    existing entries even if bank time is frozen.
    """
    first = bank.clock.now()
    for date in set(dates):
        latest = bank.documents.range_texts(
            kind, "shelf", group=f"{holder['id']}|booked", low=f"{date}|", high=f"{date}|~", reverse=True, limit=1
        )
        orders: list[str] = [orjson.loads(entry)["order"] for entry in latest]
        first = max([first, *(moment(order.partition("|")[2]) + _MICROSECOND for order in orders)])
    return [stamp(first + number * _MICROSECOND) for number in range(len(dates))]


def check_each(bodies: Sequence[Body], problems: Callable[[Body, str], Iterable[Message]], *, single: bool) -> None:
    """Raise BankError with the `problems` of all bodies, which gets each with the prefix of its paths.

    `single`: the body was one object, so paths have no index.
    """
    prefixes = ["" if single else f"[{index}]." for index in range(len(bodies))]
    messages = [message for pair in zip(bodies, prefixes, strict=True) for message in problems(*pair)]
    if messages:
        raise BankError.several(messages)


def organisation_number(owner: Customer) -> str | None:
    """The `organisationNumber` of a customer's agreements; None if its number has another form."""
    number = owner.get("organisationNumber") or owner["customerNumber"]
    return number if len(number) == 9 else None


def shortening(
    bank: Bank, kind: Kind[Any], identity: str, holders: Iterable[tuple[Kind[Any], str]]
) -> Generator[int, None, bool]:
    """Delete the booked entries of accounts and cards in pieces, until few of each are left.

    A piece is one change of the store, after which balances and bookings agree: the oldest transactions of an account
    move to its opening balance. Yields the number of entries that are left. Returns whether the document, of which
    they are, is still to be deleted: not if the bank was reset, or another request has deleted it.
    """
    documents = bank.documents
    content = documents.content()
    shelves = [(entries, name, f"{name}|booked") for entries, name in holders]
    total = left = sum(documents.range_count(entries, "shelf", group=shelf) for entries, _, shelf in shelves)
    published = 0
    for entries, name, shelf in shelves:
        while documents.range_count(entries, "shelf", group=shelf) > PIECE:
            if entries is TRANSACTION:
                ledger.forget_oldest(bank, name, PIECE)
            else:
                oldest = documents.range(entries, "shelf", group=shelf, limit=PIECE)
                documents.delete_several(entries, (entry["id"] for entry in oldest))
            left -= PIECE
            if (hundredths := 100 - 100 * left // total) > published:
                published = hundredths
                bank.publish(progress_event(bank, "transactions", "deleting", done=total - left, of=total))
            yield left
            if documents.content() is not content:
                return False
    return documents.exists(kind, identity)


def deleting_account(bank: Bank, account_id: str) -> Iterator[int]:
    """`delete_account` in steps, between which the bank may be used; the account is there until the last one."""
    accounts.find(bank, account_id)
    if (yield from shortening(bank, ACCOUNT, account_id, [(TRANSACTION, account_id)])):
        delete_account(bank, account_id)


def deleting_card(bank: Bank, card_id: str) -> Iterator[int]:
    """`delete_card` in steps, as `deleting_account`."""
    cards.find(bank, card_id)
    if (yield from shortening(bank, CARD, card_id, [(CARD_TRANSACTION, card_id)])):
        delete_card(bank, card_id)


def delete_account(bank: Bank, account_id: str) -> None:
    """`delete_accounts` of one; RESOURCE_UNKNOWN."""
    accounts.find(bank, account_id)
    delete_accounts(bank, [account_id])


def delete_accounts(bank: Bank, account_ids: Collection[str]) -> None:
    """Remove accounts with their transactions, and from agreements and consents; their payments stay as history."""
    for account_id in account_ids:
        _delete_account(bank, account_id)
    _unshare(bank, "accounts", account_ids)


def _delete_account(bank: Bank, account_id: str) -> None:
    pending = bank.documents.range(TRANSACTION, "shelf", group=f"{account_id}|pending")
    for payment_id in {transaction["paymentId"] for transaction in pending if "paymentId" in transaction}:
        _detach(bank, payment_id)
    for status in ("booked", "pending"):  # by their ids: there may be very many
        entries = bank.documents.range_ids(TRANSACTION, "shelf", group=f"{account_id}|{status}")
        bank.documents.delete_several(TRANSACTION, entries)
    for agreement in bank.documents.find(AGREEMENT, accounts=account_id):
        keep_engagements(bank, agreement, lambda engagement: engagement["accountId"] != account_id)
    bank.documents.delete(ACCOUNT, account_id)


def _detach(bank: Bank, payment_id: str) -> None:
    payment = bank.documents.get(PAYMENT, payment_id)
    if payment is not None:
        lifecycle.without_account(bank, payment, bank.clock.stamp())
        bank.documents.put(PAYMENT, payment)


def delete_card(bank: Bank, card_id: str) -> None:
    """`delete_cards` of one; RESOURCE_UNKNOWN."""
    cards.find(bank, card_id)
    delete_cards(bank, [card_id])


def delete_cards(bank: Bank, card_ids: Collection[str]) -> None:
    """Remove card accounts with their transactions, and from consents."""
    for card_id in card_ids:
        entries = bank.documents.find(CARD_TRANSACTION, cardId=card_id)
        bank.documents.delete_several(CARD_TRANSACTION, (entry["id"] for entry in entries))
        bank.documents.delete(CARD, card_id)
    _unshare(bank, "cards", card_ids)


def delete_agreement(bank: Bank, agreement_id: str) -> None:
    """Remove an agreement, and the consents and sessions under it."""
    if not bank.documents.delete(AGREEMENT, agreement_id):
        raise BankError("RESOURCE_UNKNOWN", f"There is no agreement {agreement_id}.", "agreementId")
    for consent in bank.documents.all(CONSENT):
        if consent["agreement"] == agreement_id:
            bank.documents.delete(CONSENT, consent["id"])
    for session in bank.documents.all(SESSION):
        if session["agreement"] == agreement_id:
            bank.documents.delete(SESSION, session["id"])


def keep_engagements(bank: Bank, agreement: Agreement, keep: Callable[[Engagement], bool]) -> None:
    """Remove all engagements of an agreement except those that `keep` accepts, and store it.

    A person who may act only because of an engagement is removed with the last such engagement.
    """
    admitting = [engagement["customer"] for engagement in agreement["engagements"] if engagement.get("admits")]
    agreement["engagements"] = [engagement for engagement in agreement["engagements"] if keep(engagement)]
    for guest in admitting:
        another = next((one for one in agreement["engagements"] if one["customer"] == guest), None)
        if another is not None:
            another["admits"] = True
        else:
            number = find_customer(bank, guest)["customerNumber"]
            agreement["persons"] = [person for person in agreement["persons"] if person != number]
    agreement["accounts"] = list(dict.fromkeys(e["accountId"] for e in agreement["engagements"]))
    bank.documents.put(AGREEMENT, agreement)


def _unshare(bank: Bank, member: Literal["accounts", "cards"], resource_ids: Collection[str]) -> None:
    """Remove accounts or cards from consents, with one look at each of these."""
    gone = frozenset(resource_ids)
    if not gone:
        return
    for consent in bank.documents.all(CONSENT):
        if not gone.isdisjoint(consent[member]):
            consent[member] = [resource for resource in consent[member] if resource not in gone]
            bank.documents.put(CONSENT, consent)
    for quota in bank.documents.all(QUOTA):
        if not gone.isdisjoint(quota["id"].split("|")):
            bank.documents.delete(QUOTA, quota["id"])
