"""The documents of one bank: by id, by index, by order, changed all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, cast

import orjson
from tinydb import TinyDB

from emulator.store.change import Replaced, Undo, outcome, payload, undo
from emulator.store.disk import Disk
from emulator.store.errors import StoreUnwritable
from emulator.store.image import Image, TableImage
from emulator.store.index import Order, Value
from emulator.store.kinds import Document, Kind
from emulator.store.storage import JournalStorage, VolatileStorage
from emulator.store.table import DocumentTable

Durability = Literal["process", "power"]


class Documents(TinyDB):
    """TinyDB over tables that are read and written by document."""

    table_class = DocumentTable

    def declare(
        self, name: str, kind: Kind, steps: list[Undo], changing: Callable[[], AbstractContextManager[None]]
    ) -> DocumentTable:
        """The table of a kind."""
        return cast(DocumentTable, self.table(name, kind=kind, steps=steps, changing=changing))


class _Transaction:
    """The context of `Store.transaction`: one object serves every nesting."""

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> None:
        self._store.enter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store.leave(failed=kind is not None)


class Store:
    """Documents in memory, every change written down before its call returns. For one thread at a time."""

    def __init__(self, storage: JournalStorage | VolatileStorage, kinds: Mapping[str, Kind]) -> None:
        self.kinds = dict(kinds)
        self.sequence = 0
        self._storage = storage
        self._kept = storage if isinstance(storage, JournalStorage) else None
        self._steps: list[Undo] = []
        self._marks: list[int] = []
        self._transaction = _Transaction(self)
        self._database = Documents(storage=lambda: storage)
        self._tables: dict[str, DocumentTable] = {}
        for name, kind in self.kinds.items():
            self._declare(name, kind)
        if self._kept is not None:
            self._begin(self._kept)

    def _declare(self, name: str, kind: Kind) -> DocumentTable:
        self._tables[name] = self._database.declare(name, kind, self._steps, self.transaction)
        return self._tables[name]

    def _begin(self, kept: JournalStorage) -> None:
        found = kept.hand_over()
        for name, picture in found.snapshot.image.tables.items():
            picture.onto(self._tables.get(name) or self._declare(name, Kind()), give_away=True)
        for change in found.changes:
            self._apply(change)
        self.sequence = found.sequence

    def _apply(self, change: Mapping[str, Any]) -> None:
        """Repeat a change from the journal: first all that goes or moves, then all that comes; numbers may recur."""
        for name, _, identity in change.get("delete", ()):
            self._table(name).unsettle(identity)
        for name, _, document in change["put"]:
            self._table(name).unsettle(document["id"])
        for name, number, document in change["put"]:
            self._table(name).settle(document["id"], number, orjson.dumps(document), document)

    def _table(self, name: str) -> DocumentTable:
        return self._tables.get(name) or self._declare(name, Kind())

    # Reading

    def get(self, kind: str, identity: str) -> Document | None:
        """A fresh copy of the document, None when there is none."""
        return self._tables[kind].fetch(identity)

    def exists(self, kind: str, identity: str) -> bool:
        return identity in self._tables[kind].numbers

    def all(self, kind: str) -> Iterator[Document]:
        """Every document in insertion order, as they stand at this call."""
        return map(orjson.loads, list(self._tables[kind].sorted_rows().values()))

    def find(
        self, kind: str, /, *, limit: int | None = None, newest_first: bool = False, **equals: Value | None
    ) -> list[Document]:
        """The documents whose indexed member equals the value (or has it as an element), in insertion order.

        Exactly one declared index is named; ValueError otherwise. None finds nothing.
        """
        table = self._tables[kind]
        numbers = self._matching(table, equals)
        if newest_first:
            numbers = numbers[::-1] if limit is None else numbers[-1 : -limit - 1 : -1]
        elif limit is not None:
            numbers = numbers[:limit]
        return list(table.numbered(numbers))

    def first(self, kind: str, /, **equals: Value | None) -> Document | None:
        """The earliest of what `find` finds."""
        table = self._tables[kind]
        return next(table.numbered(self._matching(table, equals)), None)

    def count(self, kind: str, /, **equals: Value | None) -> int:
        """How many `find` finds; without an index, how many there are of the kind."""
        table = self._tables[kind]
        return len(self._matching(table, equals)) if equals else len(table.rows)

    def _matching(self, table: DocumentTable, equals: Mapping[str, Value | None]) -> Sequence[int]:
        if len(equals) != 1:
            raise ValueError("exactly one index is searched")
        ((member, value),) = equals.items()
        index = table.indexes.get(member)
        if index is None:
            raise ValueError(f"{table.name} has no index {member!r}")
        return () if value is None else index.numbers(value)

    def range(
        self,
        kind: str,
        order: str,
        *,
        group: str | None = None,
        low: Value | None = None,
        high: Value | None = None,
        reverse: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> list[Document]:
        """The documents with low <= `by` <= high in order, ties by id; `offset` and `limit` count from the front.

        With `reverse` the front is the greatest. Documents whose `by` or group is missing or None have no place.
        """
        table = self._tables[kind]
        places = self._order(table, order)
        start, stop = places.between(group, low, high)
        offset = max(0, offset)
        if reverse:
            stop = max(start, stop - offset)
            start = start if limit is None else max(start, stop - limit)
        else:
            start = min(stop, start + offset)
            stop = stop if limit is None else min(stop, start + limit)
        numbers = table.numbers
        return list(table.numbered(numbers[identity] for identity in places.ids(start, stop, reverse=reverse)))

    def range_count(
        self,
        kind: str,
        order: str,
        *,
        group: str | None = None,
        low: Value | None = None,
        high: Value | None = None,
    ) -> int:
        """How many documents `range` has without offset and limit."""
        start, stop = self._order(self._tables[kind], order).between(group, low, high)
        return stop - start

    def first_key(self, kind: str, order: str, *, group: str | None = None) -> Value | None:
        """The smallest `by` value, None when the order (or the group) is empty."""
        places = self._order(self._tables[kind], order)
        start, stop = places.between(group, None, None)
        return places.by_at(start) if start < stop else None

    def _order(self, table: DocumentTable, name: str) -> Order:
        order = table.orders.get(name)
        if order is None:
            raise ValueError(f"{table.name} has no order {name!r}")
        return order

    def dump(self) -> dict[str, list[Document]]:
        """Everything: kind -> documents in insertion order."""
        return {kind: list(self.all(kind)) for kind in self._tables}

    # Changing

    def put(self, kind: str, document: Mapping[str, Any]) -> None:
        """Insert the document or replace the one with its id; ValueError when it cannot be kept."""
        with self._transaction:
            self._tables[kind].keep(document)

    def delete(self, kind: str, identity: str) -> bool:
        """Delete the document; False when there is none."""
        with self._transaction:
            return self._tables[kind].drop(identity)

    def transaction(self) -> _Transaction:
        """A `with` block whose changes are kept all or none; see `leave`."""
        return self._transaction

    def enter(self) -> None:
        self._marks.append(len(self._steps))

    def leave(self, *, failed: bool) -> None:
        """End the innermost block. A failed one undoes what was changed in it; the outermost writes the rest down."""
        mark = self._marks.pop()
        if failed:
            undo(self._steps, down_to=mark)
        elif not self._marks and self._steps:
            self._commit()

    def _commit(self) -> None:
        steps = self._steps
        try:
            removed, placed = outcome(steps)
            if removed or placed:
                if self._kept is not None:
                    self._kept.append(payload(self.sequence + 1, removed, placed))
                self.sequence += 1
        except OSError as failed:
            undo(steps)
            raise StoreUnwritable(f"the change cannot be written: {failed}") from failed
        except BaseException:
            undo(steps)
            raise
        steps.clear()

    # The whole content

    def image(self) -> Image:
        """The whole content as it stands, for `restore`."""
        return Image({name: TableImage.of(table) for name, table in self._tables.items()})

    def restore(self, image: Image) -> None:
        """Make the content exactly the picture's, as one change; the sequence goes on growing."""
        with self._transaction:
            for name, table in self._tables.items():
                self._steps.append(Replaced.of(table))
                (image.tables.get(name) or TableImage.bare({}, {})).onto(table)

    def close(self) -> None:
        """Let go of the directory."""
        if self._kept is not None:
            self._kept.close()


def memory_store(kinds: Mapping[str, Kind]) -> Store:
    """A store that keeps nothing beyond the process."""
    return Store(VolatileStorage(), kinds)


def open_store(
    directory: Path, kinds: Mapping[str, Kind], durability: Durability = "process", *, disk: Disk | None = None
) -> Store:
    """The store of a directory, which is made (0700) when missing.

    `durability`: `process` survives the death of the process, `power` also that of the machine (see `sync`).
    Raises StoreDamaged, StoreTooNew, StoreLocked, OSError.
    """
    return Store(JournalStorage(directory, kinds, disk), kinds)
