"""What a transaction has changed so far: how to undo it, and what of it must be written down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from emulator.store.table import DocumentTable

Before = tuple["DocumentTable", str, int | None, bytes | None]
"""A document as it was: table, id, number and encoded form (None: there was none)."""


class Replaced:
    """A whole table as it was before other content took its place: its own structures, not copies."""

    __slots__ = ("_before", "_in_order", "_keys", "_next_number", "_numbers", "_rows", "table")

    def __init__(self, table: DocumentTable) -> None:
        self.table = table
        self._rows, self._numbers, self._next_number = table.rows, table.numbers, table.next_number
        self._in_order, self._keys, self._before = table.in_order, table.keys, table.before

    def undo(self) -> None:
        """Give the table its structures back."""
        table = self.table
        table.rows, table.numbers, table.next_number = self._rows, self._numbers, self._next_number
        table.in_order, table.keys, table.before = self._in_order, self._keys, self._before
        table.changed()

    @property
    def shrank(self) -> bool:
        """More documents are gone than are there, so that telling all that are there is the shorter way."""
        return len(self._numbers) > 2 * len(self.table.numbers)

    def befores(self) -> Iterator[Before]:
        """The documents that differ between then and now."""
        table = self.table
        for identity, number in self._numbers.items():
            raw = self._rows[number]
            number_now = table.numbers.get(identity)
            if number_now != number or table.rows[number] != raw:
                yield table, identity, number, raw
        for identity in table.numbers:
            if identity not in self._numbers:
                yield table, identity, None, None


Undo = Before | Replaced


def undo(steps: list[Undo], *, down_to: int = 0) -> None:
    """Take back the steps after the first `down_to`, the last one first, and forget them."""
    while len(steps) > down_to:
        step = steps.pop()
        if isinstance(step, Replaced):
            step.undo()
        else:
            table, identity, number, raw = step
            table.revert(identity, number, raw)


_document = itemgetter(0, 1)


def _once(every: list[Any]) -> Iterable[Before]:
    """Each document that was touched, once, as it was before the first step."""
    if len(set(map(_document, every))) == len(every):
        return every
    first: dict[Any, Before] = {}
    for before in every:
        first.setdefault(_document(before), before)
    return first.values()


def _beside(cleared: Iterable[DocumentTable], steps: list[Undo]) -> Iterator[Before]:
    """What the steps touched in other tables."""
    for step in steps:
        if isinstance(step, Replaced):
            if step.table not in cleared:
                yield from step.befores()
        elif step[0] not in cleared:
            yield step


def payload(sequence: int, steps: list[Undo]) -> bytes | None:
    """What differs between before the first step and now, as JSON; None when nothing does.

    `{"sequence", "clear": [kind], "delete": [[kind, number, id]], "put": [[kind, number, document]]}`, "clear" and
    "delete" only where something is deleted. Of a kind that is cleared every document that it has now is put.
    """
    removed: list[tuple[str, int, str]] = []
    puts: list[bytes] = []
    cleared: dict[DocumentTable, None] | None = None
    if Replaced in map(type, steps):
        cleared = dict.fromkeys(step.table for step in steps if isinstance(step, Replaced) and step.shrank)
        touched = _once(list(_beside(cleared, steps)))
    else:
        touched = _once(steps)
    for table, identity, number, raw in touched:
        number_now = table.numbers.get(identity)
        if number_now is None:
            if number is not None:
                removed.append((table.name, number, identity))
            continue
        raw_now = table.rows[number_now]
        if number_now != number or raw_now != raw:
            puts.append(b"[%b,%d,%b]" % (table.json_name, number_now, raw_now))
    if cleared:
        for table in cleared:
            puts += [b"[%b,%d,%b]" % (table.json_name, number, raw) for number, raw in table.rows.items()]
        told = (sequence, b",".join(table.json_name for table in cleared), orjson.dumps(removed), b",".join(puts))
        return b'{"sequence":%d,"clear":[%b],"delete":%b,"put":[%b]}' % told
    if removed:
        return b'{"sequence":%d,"delete":%b,"put":[%b]}' % (sequence, orjson.dumps(removed), b",".join(puts))
    return b'{"sequence":%d,"put":[%b]}' % (sequence, b",".join(puts)) if puts else None
