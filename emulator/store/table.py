"""A TinyDB table that keeps its documents encoded, by id, with indexes and orders beside them.

Stock TinyDB reads and writes the whole table for every operation. Here each document is a JSON text in bytes of its
exact size under its TinyDB document id (a number), so that reading decodes one fresh copy, writing replaces one, and
neither depends on how many there are. TinyDB's own methods (search, update, remove, ...) work on top of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import orjson
from tinydb.storages import Storage
from tinydb.table import Table

from emulator.store.change import Undo
from emulator.store.draft import Draft, Picture
from emulator.store.index import Entry, Index, Order, Value, indexed_values
from emulator.store.kinds import Document, Kind

Keys = tuple[tuple[tuple[Value, ...], ...], tuple[Entry | None, ...]]


def encoded(document: Mapping[str, Any]) -> bytes:
    """The document as JSON text; raises ValueError for what JSON cannot hold or a document without an id."""
    if not isinstance(document.get("id"), str):
        raise ValueError("a document needs a text member 'id'")
    try:
        # The encoder's own buffer is several times larger than its text; the slice is a copy of exact size.
        return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)[:-1]
    except TypeError as wrong:
        raise ValueError(f"not a JSON document: {wrong}") from wrong


class DocumentTable(Table):
    """The documents of one kind.

    `rows`: number -> encoded document; `numbers`: id -> number. Every change leaves its undo step in `steps`.
    """

    default_query_cache_capacity = 0

    def __init__(
        self,
        storage: Storage,
        name: str,
        cache_size: int = 0,
        persist_empty: bool = False,
        *,
        kind: Kind | None = None,
        steps: list[Undo] | None = None,
        changing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.kind = kind or Kind()
        self.rows: dict[int, bytes] = {}
        self.numbers: dict[str, int] = {}
        self.next_number = 1
        self.in_order = True
        self.indexes: dict[str, Index] = {}
        self.orders: dict[str, Order] = {}
        self._has_keys = bool(self.kind.indexes or self.kind.ordered)
        self.index_anew()
        self._steps: list[Undo] = [] if steps is None else steps
        self._changing = changing
        super().__init__(storage, name, cache_size=cache_size, persist_empty=persist_empty)

    # By id

    def fetch(self, identity: str) -> Document | None:
        """A fresh copy of the document, None when there is none."""
        number = self.numbers.get(identity)
        if number is None:
            return None
        document: Document = orjson.loads(self.rows[number])
        return document

    def numbered(self, numbers: Iterable[int]) -> Iterator[Document]:
        """Fresh copies of the documents with these numbers."""
        rows = self.rows
        return (orjson.loads(rows[number]) for number in numbers)

    def keep(self, document: Mapping[str, Any]) -> None:
        """Insert the document or replace the one with its id; raises ValueError and changes nothing if it cannot."""
        raw = encoded(document)
        identity: str = document["id"]
        number = self.numbers.get(identity)
        if number is None:
            keys = self._keys(document) if self._has_keys else None
            self._steps.append((self, identity, None, None))
            self._place(identity, self.next_number, raw)
            if keys is not None:
                self._add_keys(keys, self.numbers[identity])
            return
        old = self.rows[number]
        if old == raw:
            return
        if self._has_keys:
            keys = self._keys(document)
            old_keys = self._keys(orjson.loads(old))
            self._steps.append((self, identity, number, old))
            self.rows[number] = raw
            if keys != old_keys:
                self._remove_keys(old_keys, number)
                self._add_keys(keys, number)
        else:
            self._steps.append((self, identity, number, old))
            self.rows[number] = raw

    def drop(self, identity: str) -> bool:
        """Delete the document; False when there is none."""
        number = self.numbers.get(identity)
        if number is None:
            return False
        self._steps.append((self, identity, number, self.rows[number]))
        self._displace(identity)
        return True

    # Below the undo log

    def revert(self, identity: str, number: int | None, raw: bytes | None) -> None:
        """Make the document what it was: `raw` under `number`, or absent."""
        number_now = self.numbers.get(identity)
        if number is None or raw is None:
            if number_now is not None:
                self._displace(identity)
                if number_now == self.next_number - 1:
                    self.next_number = number_now
        elif number_now == number:
            self._replace(number, raw)
        else:
            self.unsettle(identity)
            self.settle(identity, number, raw, orjson.loads(raw))

    def _replace(self, number: int, raw: bytes) -> None:
        """Other content for the document under `number`."""
        old = self.rows[number]
        self.rows[number] = raw
        if self._has_keys:
            self._remove_keys(self._keys(orjson.loads(old)), number)
            self._add_keys(self._keys(orjson.loads(raw)), number)

    def settle(self, identity: str, number: int, raw: bytes, document: Document) -> None:
        """Place a document that is not there yet under a known number, without an undo step."""
        self._place(identity, number, raw)
        if self._has_keys:
            self._add_keys(self._keys(document), number)

    def unsettle(self, identity: str) -> None:
        """Take a document away, if there, without an undo step."""
        if identity in self.numbers:
            self._displace(identity)

    def _place(self, identity: str, number: int, raw: bytes) -> None:
        if number >= self.next_number:
            self.next_number = number + 1
        else:
            self.in_order = False
        self.rows[number] = raw
        self.numbers[identity] = number

    def _displace(self, identity: str) -> None:
        number = self.numbers.pop(identity)
        raw = self.rows.pop(number)
        if self._has_keys:
            self._remove_keys(self._keys(orjson.loads(raw)), number)

    def _keys(self, document: Mapping[str, Any]) -> Keys:
        """Where the document is found: values per index, place per order."""
        whole = document if isinstance(document, dict) else dict(document)
        return (
            tuple([tuple(indexed_values(whole, member)) for member in self.indexes]),
            tuple([order.entry(whole) for order in self.orders.values()]),
        )

    def _add_keys(self, keys: Keys, number: int) -> None:
        for index, values in zip(self.indexes.values(), keys[0], strict=True):
            for value in values:
                index.add(value, number)
        for order, entry in zip(self.orders.values(), keys[1], strict=True):
            if entry is not None:
                order.add(entry)

    def _remove_keys(self, keys: Keys, number: int) -> None:
        for index, values in zip(self.indexes.values(), keys[0], strict=True):
            for value in values:
                index.remove(value, number)
        for order, entry in zip(self.orders.values(), keys[1], strict=True):
            if entry is not None:
                order.remove(entry)

    def index_anew(self) -> None:
        """Make indexes and orders from the documents."""
        self.indexes = {member: Index() for member in self.kind.indexes}
        self.orders = {order: Order(rule) for order, rule in self.kind.ordered.items()}
        if self._has_keys:
            for number, raw in self.sorted_rows().items():
                self._add_keys(self._keys(orjson.loads(raw)), number)

    def sorted_rows(self) -> dict[int, bytes]:
        """The rows in insertion order (an undone deletion puts one at the end of the dictionary)."""
        if not self.in_order:
            self.rows = dict(sorted(self.rows.items()))
            self.in_order = True
        return self.rows

    # What TinyDB's own methods stand on

    def _read_table(self) -> dict[str, Mapping[Any, Any]]:
        # TinyDB only reads what this gives, as from any mapping
        return cast(dict[str, Mapping[Any, Any]], Picture(self))

    def _update_table(self, updater: Callable[[dict[int, Mapping[str, Any]]], None]) -> None:
        draft = Draft(self)
        updater(cast(dict[int, Mapping[str, Any]], draft))
        with self._changing():
            for number, document in draft.held().items():
                self._write_back(number, document)

    def _write_back(self, number: int, document: Mapping[str, Any] | None) -> None:
        old = self.rows.get(number)
        old_identity = None if old is None else orjson.loads(old)["id"]
        if old_identity is not None and (document is None or document.get("id") != old_identity):
            self.drop(old_identity)
        if document is None:
            return
        raw = encoded(document)
        identity = document["id"]
        if self.numbers.get(identity, number) != number:
            raise ValueError(f"there is a document {identity!r} already")
        if identity in self.numbers:
            self.keep(document)
            return
        keys = self._keys(document)
        self._steps.append((self, identity, None, None))
        self._place(identity, number, raw)
        self._add_keys(keys, number)

    def _get_next_id(self) -> int:
        number = self.next_number
        self.next_number += 1
        return number

