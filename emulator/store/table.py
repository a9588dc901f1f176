"""A TinyDB table of encoded documents, with an index of ids, further indexes and orders.

Stock TinyDB reads and writes the whole table for every operation. Here each document is a JSON text in bytes under its
TinyDB document id (a number). Reading decodes one copy and writing replaces one document, so that neither depends on
the number of documents. TinyDB's own methods (search, update, remove, ...) are based on that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import orjson
from tinydb.storages import Storage
from tinydb.table import Table

from emulator.store.index import Keys
from emulator.store.kinds import Document, Kind

SEVERAL = 1000  # documents; fewer are deleted one by one

Step = tuple["DocumentTable", str, int | None, bytes | None, int | None, bytes | None]
"""The change of one document: table, id, number and text before, number and text after (None: it did not exist)."""

_dumps, _APPEND_NEWLINE = orjson.dumps, orjson.OPT_APPEND_NEWLINE


def encoded(document: Mapping[str, Any]) -> bytes:
    """The document as JSON text; raises ValueError for values that JSON does not have, and without an id."""
    if not isinstance(document.get("id"), str):
        raise ValueError("a document needs a text member 'id'")
    try:
        # The encoder's buffer is several times larger than the text; the slice is a copy of exact size.
        return _dumps(document, None, _APPEND_NEWLINE)[:-1]
    except TypeError as wrong:
        raise ValueError(f"not a JSON document: {wrong}") from wrong


def decoded(text: bytes) -> Any:
    """The value of a JSON text whose checksum is correct; raises MemoryError if memory is not sufficient.

    orjson reports both malformed text and missing memory as ValueError; the standard library distinguishes them.
    """
    try:
        return orjson.loads(text)
    except ValueError as wrong:
        json.loads(text)  # raises ValueError for malformed text, or MemoryError
        raise MemoryError("no memory to decode a JSON text") from wrong


class DocumentTable(Table):
    """The documents of one kind.

    `rows`: number -> encoded document; `numbers`: id -> number. Every change is passed to `record`.
    `before`: while a snapshot is written, the previous content of the rows that have changed since it began, stored
    before the change; and `next_number` grows before a new document is indexed (see FrozenTable). `dependants` are
    called at every change, including undone changes and their undoing.
    """

    default_query_cache_capacity = 0

    def __init__(
        self,
        storage: Storage,
        name: str,
        cache_size: int = 0,
        persist_empty: bool = False,
        *,
        kind: Kind[Any] | None = None,
        record: Callable[[Step], object] = lambda _: None,
        changing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.kind = kind or Kind(name)
        self.rows: dict[int, bytes] = {}
        self.numbers: dict[str, int] = {}
        self.next_number = 1
        self.in_order = True
        self.keys = Keys(self.kind)
        self.before: dict[int, bytes | None] | None = None
        self.dependants: list[Callable[[], None]] = []
        self._record = record
        self._changing = changing
        super().__init__(storage, name, cache_size=cache_size, persist_empty=persist_empty)
        self.json_name = orjson.dumps(name)

    # By id

    def numbered(self, numbers: Iterable[int]) -> Iterator[Any]:
        """Copies of the documents with these numbers."""
        rows = self.rows
        return (orjson.loads(rows[number]) for number in numbers)

    def put(self, document: Mapping[str, Any]) -> None:
        """Insert the document or replace the one with its id; raises ValueError, without a change, if it cannot."""
        raw = encoded(document)
        identity: str = document["id"]
        number = self.numbers.get(identity)
        if number is None:
            number = self.next_number
            self.next_number = number + 1
            if self.keys.members:
                self.keys.enter(document, number, identity)
            self.rows[number] = raw
            self.numbers[identity] = number
            self._record((self, identity, None, None, number, raw))
            if self.dependants:
                self.changed()
            return
        old = self.rows[number]
        if old == raw:
            return
        if self.before is not None:
            self.before.setdefault(number, old)
        keys = self.keys
        if keys.members:
            was, becomes = keys.of(orjson.loads(old)), keys.of(document)
            if was != becomes:
                keys.check(becomes)
                keys.move(was, becomes, number, identity)
        self._record((self, identity, number, old, number, raw))
        self.rows[number] = raw
        self.changed()

    def delete(self, identity: str) -> bool:
        """Delete the document; False if it does not exist."""
        number = self.numbers.get(identity)
        if number is None:
            return False
        self._record((self, identity, number, self.rows[number], None, None))
        self._displace(identity)
        return True

    def delete_several(self, identities: Iterable[str]) -> int:
        """Delete these documents; returns how many existed. If most are deleted, the indexes are built again."""
        existing = {identity: number for identity in identities if (number := self.numbers.get(identity)) is not None}
        if len(existing) < SEVERAL or 2 * len(existing) < len(self.rows):
            return sum(map(self.delete, existing))
        rows, numbers, before = self.rows, self.numbers, self.before
        for identity, number in existing.items():
            raw = rows[number]
            if before is not None:
                before.setdefault(number, raw)
            del rows[number], numbers[identity]
            self._record((self, identity, number, raw, None, None))
        of = self.keys.of
        staying = ((number, decoded(raw)) for number, raw in self.sorted_rows().items())
        self.keys = Keys.build(self.kind, ((number, document["id"], of(document)) for number, document in staying))
        self.changed()
        return len(existing)

    # Without undo steps: to undo changes, and to apply those of the journal

    def revert(self, identity: str, number: int | None, raw: bytes | None) -> None:
        """Restore the document: `raw` under `number`, or absent."""
        number_now = self.numbers.get(identity)
        if number is None or raw is None:
            if number_now is not None:
                self._displace(identity)
        elif number_now == number:
            self._replace(identity, number, raw)
        else:
            self.remove_if_present(identity)
            self._place(identity, number, raw, orjson.loads(raw))

    def _replace(self, identity: str, number: int, raw: bytes) -> None:
        old = self.rows[number]
        if self.before is not None:
            self.before.setdefault(number, old)
        self.rows[number] = raw
        if self.keys.members:
            self.keys.remove(self.keys.of(orjson.loads(old)), number, identity)
            self.keys.add(self.keys.of(orjson.loads(raw)), number, identity)
        self.changed()

    def replace(self, identity: str, number: int, document: Document) -> None:
        """Replace the existing document with this number."""
        raw, old, keys = encoded(document), self.rows[number], self.keys
        if self.before is not None:
            self.before.setdefault(number, old)
        if keys.members:
            was, becomes = keys.of(orjson.loads(old)), keys.of(document)
            if was != becomes:
                keys.check(becomes)
                keys.move(was, becomes, number, identity)
        self.rows[number] = raw
        self.changed()

    def place(self, identity: str, number: int, document: Document) -> None:
        """Insert a document that does not exist yet under a given number; ValueError if the number is in use."""
        raw = encoded(document)
        if number < self.next_number:
            if number in self.rows:
                raise ValueError(f"document number {number} exists already")
            self._place(identity, number, raw, document)
            return
        self.next_number = number + 1
        if self.keys.members:  # all of `_place` for what comes last, as nearly all in a journal does
            self.keys.enter(document, number, identity)
        self.rows[number] = raw
        self.numbers[identity] = number
        if self.dependants:
            self.changed()

    def remove_if_present(self, identity: str) -> None:
        """Remove a document if it exists."""
        if identity in self.numbers:
            self._displace(identity)

    def empty(self) -> None:
        """Remove every document."""
        self.rows, self.numbers, self.next_number = {}, {}, 1
        self.in_order, self.keys, self.before = True, Keys(self.kind), None
        self.changed()

    def mark_replaced(self) -> None:
        """Make `Documents.content` another object, as after the content was replaced."""
        self.numbers = self.numbers.copy()

    def _place(self, identity: str, number: int, raw: bytes, document: Mapping[str, Any]) -> None:
        if number >= self.next_number:
            self.next_number = number + 1
            self.keys.enter(document, number, identity)
        else:
            if self.before is not None:
                self.before.setdefault(number, None)
            values = self.keys.of(document)
            self.keys.check(values)
            self.keys.add(values, number, identity)
            self.in_order = False
        self.rows[number] = raw
        self.numbers[identity] = number
        self.changed()

    def _displace(self, identity: str) -> None:
        number = self.numbers[identity]
        raw = self.rows[number]
        if self.before is not None:
            self.before.setdefault(number, raw)
        if self.keys.members:
            self.keys.remove(self.keys.of(orjson.loads(raw)), number, identity)
        del self.numbers[identity], self.rows[number]
        self.changed()

    def take_over(self, other: DocumentTable) -> None:
        """Replace the content by that of a table of the same kind, which must not be used again."""
        self.rows, self.numbers, self.keys = other.rows, other.numbers, other.keys
        self.next_number, self.in_order, self.before = other.next_number, other.in_order, None
        self.changed()

    def changed(self) -> None:
        """Call the dependants."""
        for dependant in self.dependants:
            dependant()

    def sorted_rows(self) -> dict[int, bytes]:
        """The rows in insertion order (undoing a deletion appends the row to the dictionary)."""
        if not self.in_order:
            self.rows = dict(sorted(self.rows.items()))
            self.in_order = True
        return self.rows

    def rebuild_keys(self) -> None:
        """Build ids, indexes and orders from the rows; raises ValueError for a row that is no document of this kind."""
        self.numbers = numbers = {}
        rows = self.sorted_rows()
        documents: list[tuple[int, str, list[Any]]] = []
        for number, raw in rows.items():
            document = decoded(raw)
            identity = document.get("id") if isinstance(document, dict) else None
            if not isinstance(identity, str) or identity in numbers:
                raise ValueError(f"number {number} has no text member 'id' of its own")
            numbers[identity] = number
            documents.append((number, identity, self.keys.of(document)))
        self.keys = Keys.build(self.kind, documents)

    # Called by TinyDB's own methods

    def _read_table(self) -> dict[str, Mapping[Any, Any]]:
        # TinyDB only reads from the result, as from any mapping
        return cast(dict[str, Mapping[Any, Any]], TableView(self.sorted_rows()))

    def _update_table(self, updater: Callable[[dict[int, Mapping[str, Any]]], None]) -> None:
        draft = TableDraft(self.sorted_rows())
        updater(cast(dict[int, Mapping[str, Any]], draft))
        with self._changing():
            for number, document in draft.accessed().items():
                self._write_back(number, document)

    def _write_back(self, number: int, document: Mapping[str, Any] | None) -> None:
        """Store the document that TinyDB assigned to `number`; None deletes it."""
        old = self.rows.get(number)
        old_identity = None if old is None else orjson.loads(old)["id"]
        if document is None or document.get("id") != old_identity:
            if old_identity is not None:
                self.delete(old_identity)
            if document is None:
                return
        raw = encoded(document)
        identity = document["id"]
        if self.numbers.get(identity, number) != number:
            raise ValueError(f"the document {identity!r} exists already")
        if identity in self.numbers:
            self.put(document)
        else:
            self._place(identity, number, raw, document)
            self._record((self, identity, None, None, number, raw))

    def _get_next_id(self) -> int:
        number = self.next_number
        self.next_number += 1
        return number


class TableView(Mapping[str, Mapping[str, Any]]):
    """A read-only mapping of a table; keys are numbers as text, as in TinyDB's file."""

    def __init__(self, rows: Mapping[int, bytes]) -> None:
        self._rows = rows

    def __getitem__(self, number: str) -> Mapping[str, Any]:
        document: dict[str, Any] = orjson.loads(self._rows[int(number)])
        return document

    def __iter__(self) -> Iterator[str]:
        return map(str, self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class TableDraft(MutableMapping[int, Mapping[str, Any]]):
    """A mutable mapping of a table that collects the documents read, set or deleted, to write them back together."""

    def __init__(self, rows: Mapping[int, bytes]) -> None:
        self._rows = rows
        self._accessed: dict[int, Mapping[str, Any] | None] = {}

    def __getitem__(self, number: int) -> Mapping[str, Any]:
        if number not in self._accessed:
            self._accessed[number] = orjson.loads(self._rows[number])
        document = self._accessed[number]
        if document is None:
            raise KeyError(number)
        return document

    def __setitem__(self, number: int, document: Mapping[str, Any]) -> None:
        self._accessed[number] = document

    def __delitem__(self, number: int) -> None:
        if number not in self:
            raise KeyError(number)
        self._accessed[number] = None

    def __contains__(self, number: object) -> bool:
        if number in self._accessed:
            return self._accessed[number] is not None
        return number in self._rows

    def __iter__(self) -> Iterator[int]:
        existing = [number for number in self._rows if number in self]
        return iter(existing + [number for number in self._accessed if number not in self._rows and number in self])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def clear(self) -> None:
        self._accessed = dict.fromkeys(self._rows)

    def accessed(self) -> dict[int, Mapping[str, Any] | None]:
        """The documents to write back: number -> document, None for a deleted one."""
        return self._accessed
