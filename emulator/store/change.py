"""What a transaction has changed so far: how to undo it, and what of it must be written down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from emulator.store.index import Keys
    from emulator.store.table import DocumentTable

Before = tuple["DocumentTable", str, int | None, bytes | None]
"""A document as it was: table, id, number and encoded form (None: there was none)."""


@dataclass(frozen=True, slots=True, eq=False)
class Replaced:
    """A whole table as it was before other content took its place: its own structures, not copies."""

    table: DocumentTable
    rows: dict[int, bytes]
    numbers: dict[str, int]
    next_number: int
    in_order: bool
    keys: Keys
    before: dict[int, bytes | None] | None

    @classmethod
    def of(cls, table: DocumentTable) -> Replaced:
        return cls(table, table.rows, table.numbers, table.next_number, table.in_order, table.keys, table.before)

    def undo(self) -> None:
        table = self.table
        table.rows, table.numbers, table.next_number = self.rows, self.numbers, self.next_number
        table.in_order, table.keys, table.before = self.in_order, self.keys, self.before

    def befores(self) -> Iterator[Before]:
        """The documents that differ between then and now."""
        table = self.table
        for identity, number in self.numbers.items():
            raw = self.rows[number]
            number_now = table.numbers.get(identity)
            if number_now != number or table.rows[number] != raw:
                yield table, identity, number, raw
        for identity in table.numbers.keys() - self.numbers.keys():
            yield table, identity, None, None


Undo = Before | Replaced

Removed = tuple[str, int, str]
"""Kind, number and id of a document that is no more."""

Placed = tuple[bytes, int, bytes]
"""Kind as JSON, number and encoded form of a document that is new or different."""


def undo(steps: list[Undo], *, down_to: int = 0) -> None:
    """Take back the steps after the first `down_to`, the last one first, and forget them."""
    while len(steps) > down_to:
        step = steps.pop()
        if isinstance(step, Replaced):
            step.undo()
        else:
            table, identity, number, raw = step
            table.revert(identity, number, raw)


def _befores(steps: Iterable[Undo]) -> Iterator[Before]:
    for step in steps:
        if isinstance(step, Replaced):
            yield from step.befores()
        else:
            yield step


def outcome(steps: Iterable[Undo]) -> tuple[list[Removed], list[Placed]]:
    """What differs between before the first step and now."""
    removed: list[Removed] = []
    placed: list[Placed] = []
    seen: set[tuple[int, str]] = set()
    for table, identity, number, raw in _befores(steps):
        key = (id(table), identity)
        if key in seen:
            continue
        seen.add(key)
        number_now = table.numbers.get(identity)
        if number_now is None:
            if number is not None:
                removed.append((table.name, number, identity))
            continue
        raw_now = table.rows[number_now]
        if number_now != number or raw_now != raw:
            placed.append((table.json_name, number_now, raw_now))
    return removed, placed


def payload(sequence: int, removed: list[Removed], placed: list[Placed]) -> bytes:
    """One change as JSON: `{"sequence", "delete": [[kind, number, id]], "put": [[kind, number, document]]}`."""
    puts = b",".join([b"[%b,%d,%b]" % put for put in placed])
    if not removed:
        return b'{"sequence":%d,"put":[%b]}' % (sequence, puts)
    return b'{"sequence":%d,"delete":%b,"put":[%b]}' % (sequence, orjson.dumps(removed), puts)
