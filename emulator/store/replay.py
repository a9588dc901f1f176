"""Applies a journal at a start: many changes, between which nothing is read.

Rows and ids are updated with each change, indexes and orders once for each document at the end. If much of a table has
changed they are built again from all of its documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from emulator.store.index import Keys
from emulator.store.table import DocumentTable, decoded, encoded

MUCH = 0.5  # of the documents of a table
FEW = 1000  # documents; fewer changed ones never count as much

Values = list[Any]


class _Touched:
    """The changed documents of one table: their values in its indexes before, and their present values."""

    def __init__(self, table: DocumentTable) -> None:
        self.table = table
        self._indexed: dict[int, tuple[str, Values]] = {}
        self._now: dict[int, tuple[str, Values]] = {}
        self._most = max(len(table.rows) * MUCH, FEW)
        self._rebuild = False  # build the indexes from all documents

    def remove(self, identity: str) -> None:
        """Remove a document if it exists."""
        table = self.table
        number = table.numbers.pop(identity, None)
        if number is not None:
            raw = table.rows.pop(number)
            if table.keys.members:
                self._note(number, identity, raw)
                self._now.pop(number, None)

    def place(self, number: int, document: Mapping[str, Any]) -> None:
        """Insert a document under its number, or replace the one with this number."""
        table, raw, identity = self.table, encoded(document), document["id"]
        old = table.rows.get(number)
        if table.numbers.get(identity) != number:
            if old is not None:
                raise ValueError(f"document number {number} exists already")
            table.numbers[identity] = number
            if number >= table.next_number:
                table.next_number = number + 1
            else:
                table.in_order = False
        if table.keys.members:
            if old is not None:
                self._note(number, identity, old)
            values = table.keys.of(document)
            table.keys.check_searchable(values)
            self._now[number] = identity, values
        table.rows[number] = raw

    def _note(self, number: int, identity: str, raw: bytes) -> None:
        """Store the indexed values of a document before its first change."""
        if self._rebuild or number in self._now or number in self._indexed:
            return
        self._indexed[number] = identity, self.table.keys.of(orjson.loads(raw))
        if len(self._indexed) > self._most:
            self._rebuild = True
            self._indexed.clear()

    def index(self) -> None:
        """Update the indexes; raises ValueError for values that do not fit."""
        table, now = self.table, self._now
        if self._rebuild:
            table.keys = Keys.build(table.kind, self._all())
        else:
            keys = table.keys
            moved: list[tuple[Values, Values, int, str]] = []
            for number, (identity, values) in self._indexed.items():
                identity_now, becomes = now.get(number, (None, values))
                if identity_now != identity:
                    keys.remove(values, number, identity)
                    continue
                del now[number]
                if values != becomes:
                    moved.append((values, becomes, number, identity))
            for values, becomes, number, identity in moved:
                keys.check(becomes)
                keys.move(values, becomes, number, identity)
            for number, (identity, values) in sorted(now.items()):
                keys.check(values)
                keys.add(values, number, identity)
        table.changed()

    def _all(self) -> Iterator[tuple[int, str, Values]]:
        of, now = self.table.keys.of, self._now
        for number, raw in self.table.sorted_rows().items():
            changed = now.get(number)
            if changed is not None:
                yield number, *changed
            else:
                document = decoded(raw)
                yield number, document["id"], of(document)


class Replay:
    """Applies changes to tables by name; their indexes are complete after `finish`."""

    def __init__(self, table_of: Callable[[str], DocumentTable]) -> None:
        self._table_of = table_of
        self._touched: dict[str, _Touched] = {}

    def forget(self) -> None:
        """Drop what was collected, after the content of all tables was replaced with its indexes."""
        self._touched.clear()

    def repeat(self, change: Mapping[str, Any]) -> None:
        """Apply a decoded change; raises ValueError, KeyError, TypeError or AttributeError as `tx.repeat` does."""
        for kind in change.get("clear", ()):
            table = self._table_of(kind)
            table.empty()
            self._touched[kind] = _Touched(table)
        for kind, _, identity in change.get("delete", ()):
            self._of(kind).remove(identity)
        puts = [(self._of(kind), number, document) for kind, number, document in change["put"]]
        for touched, number, document in puts:
            if touched.table.numbers.get(document["id"], number) != number:
                touched.remove(document["id"])
        for touched, number, document in puts:
            touched.place(number, document)

    def _of(self, kind: str) -> _Touched:
        touched = self._touched.get(kind)
        if touched is None:
            touched = self._touched[kind] = _Touched(self._table_of(kind))
        return touched

    def finish(self) -> None:
        """Update all indexes; raises ValueError for values that do not fit."""
        for touched in self._touched.values():
            touched.index()
        self._touched.clear()
