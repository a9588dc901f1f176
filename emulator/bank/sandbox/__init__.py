"""Sandbox data, which a TPP creates, changes, generates and deletes for its tests.

Here is what its kinds of documents share.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, cast

from emulator.bank.accounts import ledger, transactions
from emulator.bank.bank import Bank
from emulator.bank.documents import Account, Agreement, Card, Customer, Engagement, SandboxIdentity
from emulator.bank.errors import BankError
from emulator.bank.kinds import AGREEMENT, CUSTOMER, TRANSACTION, EntryKind
from emulator.store import Kind

Body = Mapping[str, Any]
# Types of the booked balance, the preferred one first; names of Berlin Group and of the older interface.
_BOOKED_FIRST = ("closingbooked", "interimbooked", "openingbooked", "booked", "expected")
PIECE = 250  # transactions that are deleted in one change of the store


def customer_named(bank: Bank, name: str, path: str) -> Customer:
    """The customer with this customerNumber or customerId, named in a body at `path`; RESOURCE_UNKNOWN (400)."""
    customer = bank.documents.first(CUSTOMER, customerNumber=name) or bank.documents.get(CUSTOMER, name)
    if customer is None:
        raise BankError("RESOURCE_UNKNOWN", f"There is no customer {name}.", path, in_body=True)
    return customer


def new_identity(bank: Bank) -> SandboxIdentity:
    """The id and creation time of a new sandbox document."""
    return {"id": bank.ids.new(), "created": bank.clock.stamp()}


def identity_of(document: Customer | Account | Card) -> SandboxIdentity:
    """The members of a document that are kept when the others are replaced."""
    return cast(SandboxIdentity, {name: document[name] for name in ("id", "created") if name in document})


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
            number = bank.find(CUSTOMER, guest)["customerNumber"]
            agreement["persons"] = [person for person in agreement["persons"] if person != number]
    agreement["accounts"] = list(dict.fromkeys(e["accountId"] for e in agreement["engagements"]))
    bank.documents.put(AGREEMENT, agreement)


def list_entries(bank: Bank, kind: EntryKind, holder_id: str, window: transactions.Window) -> list[Any]:
    """The transactions of an account or card, pending and then booked, newest first."""
    shelves = transactions.page(bank, holder_id, window, kind=kind).entries
    return [*shelves[transactions.PENDING], *shelves[transactions.BOOKED]]


def decimal(value: Any) -> Decimal:
    """An amount of a sandbox body: a number or decimal text."""
    return Decimal(str(value))


def booked_balance(posted: Sequence[Body] | None) -> Decimal:
    """The booked balance of a body's balances, which are in the account's currency; 0 without balances."""
    return booked_among([(str(b.get("balanceType", "")), decimal(b["balanceAmount"]["amount"])) for b in posted or ()])


def booked_among(balances: Sequence[tuple[str, Decimal]]) -> Decimal:
    """The booked balance among balances (balanceType and amount), else the first; 0 without balances."""
    by_type = {name.lower(): amount for name, amount in reversed(balances)}
    first = balances[0][1] if balances else Decimal(0)
    return next((by_type[name] for name in _BOOKED_FIRST if name in by_type), first)


def number_of(bank: Bank, customer_id: str) -> str:
    """The customerNumber of a customer; empty if the customer is missing."""
    customer = bank.documents.get(CUSTOMER, customer_id)
    return customer["customerNumber"] if customer is not None else ""


def like(posted: Any, amount: str) -> Any:
    """The amount as text or number, whichever was posted."""
    if isinstance(posted, str):
        return amount
    number = Decimal(amount)
    return int(number) if number == number.to_integral_value() else float(number)


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
    left = sum(documents.range_count(entries, "shelf", group=shelf) for entries, _, shelf in shelves)
    for entries, name, shelf in shelves:
        while documents.range_count(entries, "shelf", group=shelf) > PIECE:
            if entries is TRANSACTION:
                ledger.forget_oldest(bank, name, PIECE)
            else:
                oldest = documents.range(entries, "shelf", group=shelf, limit=PIECE)
                documents.delete_several(entries, (entry["id"] for entry in oldest))
            left -= PIECE
            yield left
            if documents.content() is not content:
                return False
    return documents.exists(kind, identity)
