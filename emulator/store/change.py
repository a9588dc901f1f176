"""What a transaction has changed so far: how to undo it, and what of it must be written down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from emulator.store.table import DocumentTable

Before = tuple["DocumentTable", str, int | None, bytes | None]
"""A document as it was: table, id, number and encoded form (None: there was none)."""


class Replaced:
    """A whole table as it was before other content took its place: its own structures, not copies."""

    __slots__ = ("_before", "_in_order", "_keys", "_next_number", "_numbers", "_rows", "_table")

    def __init__(self, table: DocumentTable) -> None:
        self._table = table
        self._rows, self._numbers, self._next_number = table.rows, table.numbers, table.next_number
        self._in_order, self._keys, self._before = table.in_order, table.keys, table.before

    def undo(self) -> None:
        """Give the table its structures back."""
        table = self._table
        table.rows, table.numbers, table.next_number = self._rows, self._numbers, self._next_number
        table.in_order, table.keys, table.before = self._in_order, self._keys, self._before
        table.changes += 1

    def befores(self) -> Iterator[Before]:
        """The documents that differ between then and now."""
        table = self._table
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


def _befores(steps: list[Undo]) -> Iterable[Before]:
    """Each document that was touched, once, as it was before the first step."""
    every: list[Any] = steps
    if Replaced in map(type, steps):
        every = list(chain.from_iterable(step.befores() if isinstance(step, Replaced) else (step,) for step in steps))
    if len(set(map(_document, every))) == len(every):
        return every
    first: dict[Any, Before] = {}
    for before in every:
        first.setdefault(_document(before), before)
    return first.values()


def payload(sequence: int, steps: list[Undo]) -> bytes | None:
    """What differs between before the first step and now, as JSON; None when nothing does.

    `{"sequence", "delete": [[kind, number, id]], "put": [[kind, number, document]]}`, without "delete" where nothing
    is deleted.
    """
    removed: list[tuple[str, int, str]] = []
    puts: list[bytes] = []
    for table, identity, number, raw in _befores(steps):
        number_now = table.numbers.get(identity)
        if number_now is None:
            if number is not None:
                removed.append((table.name, number, identity))
            continue
        raw_now = table.rows[number_now]
        if number_now != number or raw_now != raw:
            puts.append(b"[%b,%d,%b]" % (table.json_name, number_now, raw_now))
    if removed:
        return b'{"sequence":%d,"delete":%b,"put":[%b]}' % (sequence, orjson.dumps(removed), b",".join(puts))
    return b'{"sequence":%d,"put":[%b]}' % (sequence, b",".join(puts)) if puts else None
