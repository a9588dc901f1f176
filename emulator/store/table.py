"""A TinyDB table of encoded documents, with an index of ids, further indexes and orders.

Stock TinyDB reads and writes the whole table for every operation. Here each document is a JSON text in bytes under its
TinyDB document id (a number). Reading decodes one copy and writing replaces one document, so that neither depends on
the number of documents. TinyDB's own methods (search, update, remove, ...) are based on that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import orjson
from tinydb.storages import MemoryStorage
from tinydb.table import Table

from emulator.store.index import Keys
from emulator.store.kinds import Kind

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


class TableContent(NamedTuple):
    """The structures of a table, see DocumentTable: one that replaces another takes no time."""

    rows: dict[int, bytes]
    numbers: dict[str, int]
    next_number: int
    keys: Keys
    in_order: bool = True
    before: dict[int, bytes | None] | None = None

    @classmethod
    def empty(cls, kind: Kind[Any]) -> TableContent:
        """That of a table without documents."""
        return cls({}, {}, 1, Keys(kind))


def indexed(kind: Kind[Any], rows: Mapping[int, bytes]) -> tuple[dict[str, int], Keys]:
    """The ids, and the indexes and orders, of rows in insertion order.

    Raises ValueError for a row that is no document of this kind.
    """
    numbers: dict[str, int] = {}
    keys = Keys(kind)
    for number, raw in rows.items():
        document = decoded(raw)
        identity = document.get("id") if isinstance(document, dict) else None
        if not isinstance(identity, str) or identity in numbers:
            raise ValueError(f"number {number} has no text member 'id' of its own")
        numbers[identity] = number
        keys.enter(document, number, identity)
    return numbers, keys


class DocumentTable(Table):
    """The documents of one kind.

    `rows`: number -> encoded document; `numbers`: id -> number. Every change is passed to `record`; those of TinyDB's
    methods are within the context of `changing`.
    `before`: while a snapshot is written, the previous content of the rows that have changed since it began, stored
    before the change; and `next_number` grows before a new document is indexed (see FrozenTable). `dependants` are
    called at every change, including undone changes and their undoing.
    """

    def __init__(
        self,
        kind: Kind[Any],
        *,
        record: Callable[[Step], object] = lambda _: None,
        changing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        super().__init__(MemoryStorage(), kind.name, cache_size=0)  # type: ignore[no-untyped-call]
        self.kind = kind
        self.json_name = orjson.dumps(kind.name)
        self.dependants: list[Callable[[], None]] = []
        self.rows, self.numbers, self.next_number, self.keys, self.in_order, self.before = TableContent.empty(kind)
        self._record = record
        self._changing = changing

    # By id

    def put(self, document: Mapping[str, Any]) -> None:
        """Insert the document or replace the one with its id; raises ValueError, without a change, if it cannot."""
        raw = encoded(document)
        identity: str = document["id"]
        number = self.numbers.get(identity)
        if number is None:
            number = self.next_number  # the same as `_insert`, without a call: most requests create documents
            self.next_number = number + 1
            if self.keys.members:
                self.keys.enter(document, number, identity)
            self.rows[number] = raw
            self.numbers[identity] = number
            self._record((self, identity, None, None, number, raw))
        else:
            old = self.rows[number]
            if old == raw:
                return
            self._replace(identity, number, document, raw)
            self._record((self, identity, number, old, number, raw))
        if self.dependants:
            self.changed()

    def delete(self, identity: str) -> bool:
        """Delete the document; False if it does not exist."""
        number = self.numbers.get(identity)
        if number is None:
            return False
        self._record((self, identity, number, self.rows[number], None, None))
        self.unset(identity)
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
        self.keys = indexed(self.kind, self.sorted_rows())[1]
        self.changed()
        return len(existing)

    # Without undo steps: to undo changes, and to apply those of a log

    def set(self, identity: str, number: int, document: Mapping[str, Any], raw: bytes) -> None:
        """Store the document, `raw` as text, under this number; ValueError if another document has it."""
        number_now = self.numbers.get(identity)
        if number_now == number:
            self._replace(identity, number, document, raw)
        else:
            if number_now is not None:
                self.unset(identity)
            self._insert(identity, number, document, raw)
        if self.dependants:
            self.changed()

    def unset(self, identity: str) -> None:
        """Remove the document if it exists."""
        number = self.numbers.get(identity)
        if number is None:
            return
        raw = self.rows[number]
        if self.before is not None:
            self.before.setdefault(number, raw)
        if self.keys.members:
            self.keys.remove(self.keys.of(orjson.loads(raw)), number, identity)
        del self.numbers[identity], self.rows[number]
        self.changed()

    def _insert(self, identity: str, number: int, document: Mapping[str, Any], raw: bytes) -> None:
        if number >= self.next_number:  # as nearly always
            self.next_number = number + 1
            if self.keys.members:
                self.keys.enter(document, number, identity)
        else:
            if number in self.rows:
                raise ValueError(f"document number {number} exists already")
            if self.before is not None:
                self.before.setdefault(number, None)
            values = self.keys.of(document)
            self.keys.check(values)
            self.keys.add(values, number, identity)
            self.in_order = False
        self.rows[number] = raw
        self.numbers[identity] = number

    def _replace(self, identity: str, number: int, document: Mapping[str, Any], raw: bytes) -> None:
        old, keys = self.rows[number], self.keys
        if self.before is not None:
            self.before.setdefault(number, old)
        if keys.members:
            was, becomes = keys.of(orjson.loads(old)), keys.of(document)
            if was != becomes:
                keys.check(becomes)
                keys.move(was, becomes, number, identity)
        self.rows[number] = raw

    # As a whole

    @property
    def content(self) -> TableContent:
        """The structures of the table, not copies."""
        return TableContent(self.rows, self.numbers, self.next_number, self.keys, self.in_order, self.before)

    @content.setter
    def content(self, content: TableContent) -> None:
        self.rows, self.numbers, self.next_number, self.keys, self.in_order, self.before = content
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

    # Called by TinyDB's own methods

    def _read_table(self) -> dict[str, Mapping[Any, Any]]:
        return {str(number): orjson.loads(raw) for number, raw in self.sorted_rows().items()}

    def _update_table(self, updater: Callable[[dict[int, Mapping[str, Any]]], None]) -> None:
        documents: dict[int, Mapping[str, Any]] = {n: orjson.loads(raw) for n, raw in self.sorted_rows().items()}
        updater(documents)
        texts = {number: encoded(document) for number, document in documents.items()}
        with self._changing():
            for number, raw in list(self.rows.items()):
                if texts.get(number) != raw:
                    self.delete(orjson.loads(raw)["id"])
            for number, raw in texts.items():
                if number not in self.rows:
                    identity: str = documents[number]["id"]
                    if identity in self.numbers:
                        raise ValueError(f"the document {identity!r} exists already")
                    self.set(identity, number, documents[number], raw)
                    self._record((self, identity, None, None, number, raw))

    def _get_next_id(self) -> int:
        number = self.next_number
        self.next_number += 1
        return number
