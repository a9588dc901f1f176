"""Repeating a journal at a start: many changes one behind the other, which nobody reads in between.

Rows and ids follow each change; indexes and orders follow at the end, once for each document. Where much of a table
has changed they are made from all of its documents, sorted at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from emulator.store.index import Keys
from emulator.store.table import DocumentTable, decoded, encoded

MUCH = 0.5  # of the documents of a table
FEW = 1000  # documents, up to which no table counts as much changed

Values = list[Any]


class _Touched:
    """The documents of one table that were changed: what its indexes have of them, and what they are to have."""

    def __init__(self, table: DocumentTable) -> None:
        self.table = table
        self._indexed: dict[int, tuple[str, Values]] = {}
        self._now: dict[int, tuple[str, Values]] = {}
        self._most = max(len(table.rows) * MUCH, FEW)
        self._anew = False  # the indexes are made from all documents

    def leave(self, identity: str) -> None:
        """Take a document away, if there."""
        table = self.table
        number = table.numbers.pop(identity, None)
        if number is not None:
            raw = table.rows.pop(number)
            if table.keys.members:
                self._note(number, identity, raw)
                self._now.pop(number, None)

    def place(self, number: int, document: Mapping[str, Any]) -> None:
        """Insert a document under its number, or replace the one that is there."""
        table, raw, identity = self.table, encoded(document), document["id"]
        old = table.rows.get(number)
        if table.numbers.get(identity) != number:
            if old is not None:
                raise ValueError(f"there is a document number {number} already")
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
        """Note what the indexes have of a document, before its first change."""
        if self._anew or number in self._now or number in self._indexed:
            return
        self._indexed[number] = identity, self.table.keys.of(orjson.loads(raw))
        if len(self._indexed) > self._most:
            self._anew = True
            self._indexed.clear()

    def index(self) -> None:
        """Bring the indexes up to the documents; raises ValueError for values that do not fit."""
        table, now = self.table, self._now
        if self._anew:
            table.keys = Keys.made_of(table.kind, self._all())
        else:
            keys = table.keys
            moved: list[tuple[Values, Values, int, str]] = []
            for number, (identity, values) in self._indexed.items():
                there, becomes = now.get(number, (None, values))
                if there != identity:
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
            known = now.get(number)
            if known is not None:
                yield number, *known
            else:
                document = decoded(raw)
                yield number, document["id"], of(document)


class Replay:
    """Repeats changes in tables by name, which are complete after `finish`."""

    def __init__(self, table_of: Callable[[str], DocumentTable]) -> None:
        self._table_of = table_of
        self._touched: dict[str, _Touched] = {}

    def forget(self) -> None:
        """The tables have other contents now, indexes and all."""
        self._touched.clear()

    def repeat(self, change: Mapping[str, Any]) -> None:
        """Do what a decoded change says; raises ValueError, KeyError, TypeError or AttributeError as `tx.repeat`."""
        for kind in change.get("clear", ()):
            table = self._table_of(kind)
            table.empty()
            self._touched[kind] = _Touched(table)
        for kind, _, identity in change.get("delete", ()):
            self._of(kind).leave(identity)
        puts = [(self._of(kind), number, document) for kind, number, document in change["put"]]
        for touched, number, document in puts:
            if touched.table.numbers.get(document["id"], number) != number:
                touched.leave(document["id"])
        for touched, number, document in puts:
            touched.place(number, document)

    def _of(self, kind: str) -> _Touched:
        touched = self._touched.get(kind)
        if touched is None:
            touched = self._touched[kind] = _Touched(self._table_of(kind))
        return touched

    def finish(self) -> None:
        """Bring all indexes up to the documents; raises ValueError for values that do not fit."""
        for touched in self._touched.values():
            touched.index()
        self._touched.clear()
