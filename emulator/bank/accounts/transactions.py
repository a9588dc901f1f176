"""An account's transactions: pages of the list, the details of one, and the shown members."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import orjson

from emulator.bank.bank import Bank
from emulator.bank.documents import DriftedTransaction, Texts, Transaction
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, CARD, TRANSACTION, EntryKind

if TYPE_CHECKING:
    from emulator.bank.feed import Entry, Shown

BOOKED = "booked"
PENDING = "pending"
SHELVES: Mapping[str, tuple[str, ...]] = {
    "booked": (BOOKED,),
    "pending": (PENDING,),
    "both": (PENDING, BOOKED),
    "all": (PENDING, BOOKED),  # assumed: there is no third kind of entry to add
}

_NUMBER = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)  # of an item in its batch, as in its id

# The members of an entry of a batch, beside its amount.
_BATCH_MEMBERS = (
    "creditorName", "creditorAccount", "debtorName", "debtorAccount", "remittanceInformationUnstructured",
    "remittanceInformationUnstructuredArray", "remittanceInformationStructuredArray",
)  # fmt: skip
# The members of an entry in the order of answers; creditorId and the ultimate parties are not offered.
_SHOWN = (
    "endToEndId", "bookingDate", "valueDate", "transactionAmount", "currencyExchange", "creditorName",
    "creditorAccount", "creditorAgent", "debtorName", "debtorAccount", "debtorAgent",
    "remittanceInformationUnstructured", "remittanceInformationUnstructuredArray",
    "remittanceInformationStructuredArray", "purposeCode", "proprietaryBankTransactionCode",
)  # fmt: skip


class Window(NamedTuple):
    """The requested part of the list.

    `first` and `last`: booking dates (YYYY-MM-DD), of pending entries value dates (of a card's, purchase dates);
    None: no bound. `offset` and `limit` count the pending and then the booked entries, newest first. `grouped`: a
    batch is one entry, else each of its payments is one. `all_pending`: every page has all pending entries, which are
    not counted (the production rule, accounts.md#pending-transactions).
    """

    status: str = "both"
    first: str | None = None
    last: str | None = None
    offset: int = 0
    limit: int = 100
    grouped: bool = True
    all_pending: bool = False


class TransactionPage(NamedTuple):
    """A page of entries by shelf (the requested ones, newest first), and whether there are more.

    `texts`: each entry as JSON text. An entry that has not changed gives the same bytes object at every read, so that
    its rendering can be cached by it.
    """

    texts: dict[str, list[bytes]]
    more: bool

    @property
    def entries(self) -> dict[str, list[Any]]:
        return {shelf: list(map(orjson.loads, texts)) for shelf, texts in self.texts.items()}


def page(bank: Bank, holder_id: str, window: Window, *, kind: EntryKind = TRANSACTION) -> TransactionPage:
    """The page of entries of an account (or, with `kind` cardTransaction, of a card) that `window` selects."""
    texts: dict[str, list[bytes]] = {}
    offset, room = window.offset, window.limit
    more = False
    for shelf in SHELVES[window.status]:
        if shelf == PENDING and window.all_pending:
            texts[shelf] = _listed(bank, kind, holder_id, shelf, window._replace(first=None, last=None))
            continue
        listed = _listed(bank, kind, holder_id, shelf, window, offset=offset, limit=room + 1)
        if listed:
            offset = 0
        elif offset and shelf == PENDING:
            offset -= len(_listed(bank, kind, holder_id, shelf, window))
        more = more or len(listed) > room
        del listed[room:]
        texts[shelf] = listed
        room -= len(listed)
    return TransactionPage(texts, more)


def _listed(
    bank: Bank,
    kind: EntryKind,
    holder_id: str,
    shelf: str,
    window: Window,
    *,
    offset: int = 0,
    limit: int | None = None,
) -> list[bytes]:
    """The booked or the pending entries within the dates of `window`, newest first."""
    # A date is a prefix of the order's `date|moment`; `~` sorts behind every moment.
    low, high = window.first or "", "~" if window.last is None else f"{window.last}|~"
    stop = None if limit is None else offset + limit
    # Every document gives at least one entry, so of ungrouped ones the first of as many documents are enough.
    first = offset if window.grouped else 0
    feed = drifting_feed(bank, kind, holder_id)
    if feed is not None:
        within = (entry for entry in feed.listed(shelf) if low <= entry["order"] <= high)
        texts = [orjson.dumps(entry) for entry in islice(within, first, stop)]
    else:
        most = None if stop is None else stop - first
        texts = bank.documents.range_texts(
            kind, "shelf", group=f"{holder_id}|{shelf}", low=low, high=high, reverse=True, offset=first, limit=most
        )
    return texts if window.grouped else list(islice(_one_by_one(texts), offset, stop))


class DriftingFeed:
    """The entries of one account or card as TPPs see them when the setting `feed` makes them drift."""

    def __init__(self, bank: Bank, kind: EntryKind, holder_id: str) -> None:
        from emulator.bank.feed import effects, shown  # imports pydantic

        self._bank = bank
        self._kind = kind
        self._holder_id = holder_id
        names = (holder_id, *_numbers(bank, kind, holder_id))
        self._forms = partial(shown, effects=effects(bank.settings.drift), accounts=names, ids=bank.ids)

    def trace(self, shelf: str) -> Iterator[tuple[Entry, list[Shown]]]:
        """Each entry on a shelf (`booked` or `pending`), newest first, with all forms in which it is ever shown."""
        group = f"{self._holder_id}|{shelf}"
        for text in self._bank.documents.range_texts(self._kind, "shelf", group=group, reverse=True):
            entry = orjson.loads(text)
            yield entry, self._forms(entry)

    def listed(self, shelf: str) -> list[Entry]:
        """The entries of a shelf as a list shows them now, newest first."""
        now = self._bank.clock.stamp()
        entries = [one.entry for _, shown in self.trace(shelf) for one in shown if one.at(now)]
        return sorted(entries, key=lambda entry: str(entry["order"]), reverse=True)

    def find(self, shown_id: str) -> Entry | None:
        """The entry that is shown under this id now; a card's entry also by its cardTransactionId."""
        for shelf in (PENDING, BOOKED):
            for entry in self.listed(shelf):
                if shown_id in (entry["id"], entry.get("cardTransactionId")):
                    return entry
        return None


def _numbers(bank: Bank, kind: EntryKind, holder_id: str) -> tuple[str, ...]:
    if kind is TRANSACTION:
        account = bank.documents.get(ACCOUNT, holder_id)
        return () if account is None else (account["iban"], account["bban"])
    card = bank.documents.get(CARD, holder_id)
    return () if card is None else (card["maskedPan"],)


def drifting_feed(bank: Bank, kind: EntryKind, holder_id: str) -> DriftingFeed | None:
    """The drifting feed of an account or card; None if entries are shown as they are stored."""
    return DriftingFeed(bank, kind, holder_id) if bank.settings.drift else None


def _one_by_one(texts: Iterable[bytes]) -> Iterator[bytes]:
    """The entries, each batch replaced by its payments (before the fix groupBatchTransactions)."""
    for text in texts:
        transaction = orjson.loads(text)
        if "batch" not in transaction:
            yield text
            continue
        for number in range(1, len(transaction["batch"]["entries"]) + 1):
            yield orjson.dumps(_item(transaction, number))


def _item(transaction: Transaction, number: int) -> Transaction:
    """One payment of a batch as a transaction of its own, with the id `<batch>.<number>`."""
    entry = transaction["batch"]["entries"][number - 1]
    item: Transaction = {
        **transaction,
        **batch_texts(entry),
        "id": f"{transaction['id']}.{number}",
        "amount": entry["amount"],
    }
    del item["batch"]
    item.pop("endToEndId", None)
    return item


def batch_texts(texts: Texts) -> Texts:
    """The texts that a payment inside a batch shows, of all its texts."""
    return cast(Texts, {name: value for name in _BATCH_MEMBERS if (value := texts.get(name)) is not None})


def find(bank: Bank, account_id: str, transaction_id: str) -> Transaction:
    """The transaction that a TPP sees under this id, or one payment of a batch; BankError RESOURCE_UNKNOWN."""
    transaction = _shown(bank, account_id, transaction_id)
    if "unidentified" in transaction:
        raise _unknown(transaction_id)
    return transaction


def _shown(bank: Bank, account_id: str, transaction_id: str) -> Transaction:
    feed = drifting_feed(bank, TRANSACTION, account_id)
    get: Callable[[str], Any] = partial(bank.documents.get, TRANSACTION) if feed is None else feed.find
    return _transaction_of(account_id, transaction_id, get)


def stored(bank: Bank, account_id: str, transaction_id: str) -> Transaction:
    """The transaction that the account shows under this id, else the one that is stored under it."""
    try:
        return _shown(bank, account_id, transaction_id)
    except BankError:
        return _transaction_of(account_id, transaction_id, partial(bank.documents.get, TRANSACTION))


def _transaction_of(account_id: str, transaction_id: str, get: Callable[[str], Any]) -> Transaction:
    transaction: Transaction | None = get(transaction_id)
    if transaction is None:
        batch_id, _, number = transaction_id.rpartition(".")
        batch: Transaction | None = get(batch_id) if _NUMBER.fullmatch(number) else None
        entries = batch["batch"]["entries"] if batch is not None and "batch" in batch else ()
        if batch is not None and int(number) <= len(entries):
            transaction = _item(batch, int(number))
    if transaction is None or transaction["accountId"] != account_id:
        raise _unknown(transaction_id)
    return transaction


def _unknown(transaction_id: str) -> BankError:
    return BankError("RESOURCE_UNKNOWN", f"The account has no transaction {transaction_id}.", "transactionId")


def view(transaction: Transaction | DriftedTransaction, *, corporate: bool) -> dict[str, Any]:
    """A transaction's members, without the entries of a batch and without links."""
    shown: dict[str, Any] = {}
    if corporate and "batch" in transaction:
        shown["batchIndicator"] = True
        shown["batchNumberOfTransactions"] = len(transaction["batch"]["entries"])
    if "bankTransactionCode" in transaction:
        shown["bankTransactionCode"] = transaction["bankTransactionCode"]
    if "unidentified" not in transaction:
        shown["transactionId"] = transaction["id"]
    amount = {"transactionAmount": amount_of(transaction)}
    members = {**transaction, **amount}
    shown |= {name: members[name] for name in _SHOWN if members.get(name) not in (None, "")}
    return shown


def amount_of(entry: Mapping[str, Any]) -> dict[str, str]:
    """The Amount of a transaction or of an entry in a batch."""
    return {"amount": entry["amount"], "currency": entry["currency"]}


def batch_entries(transaction: Transaction) -> list[dict[str, Any]]:
    """`entryDetails` of a batch, without links; empty for anything else."""
    entries = transaction["batch"]["entries"] if "batch" in transaction else ()
    return [{"transactionAmount": amount_of(entry), **batch_texts(entry)} for entry in entries]
