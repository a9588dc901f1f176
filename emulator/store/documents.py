"""The interface to the documents of a bank."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, Generic, TypeVar

import orjson

from emulator.store.image import ROWS_AT_ONCE, Image, PreparedImage
from emulator.store.index import Bucket, SortedIndex, Value
from emulator.store.kinds import D, Document, Kind
from emulator.store.table import DocumentTable

Event = dict[str, Any]
"""An event for listeners: `{"type": ..., ...}`, JSON."""

Key = TypeVar("Key")
Cached = TypeVar("Cached")


class DependentCache(Generic[Key, Cached]):
    """A cache of values by key, emptied at any change in the tables they were computed from, and when it is full.

    It exists as long as the tables do.
    """

    def __init__(self, tables: Iterable[DocumentTable], *, most: int = 1024) -> None:
        self._most = most
        self._values: dict[Key, Cached] = {}
        for table in tables:
            table.dependants.append(self._forget)

    def _forget(self) -> None:
        # a new dictionary: a value that was being computed during the change is added to the old one
        self._values = {}

    def values(self) -> dict[Key, Cached]:
        """The valid values, for lookup and for adding; values must not be modified."""
        if len(self._values) >= self._most:
            self._forget()
        return self._values


def _json_parts(tables: list[tuple[bytes, list[bytes]]]) -> Iterator[bytes]:
    opening = b"{"
    for name, rows in tables:
        yield b"%b%b:[" % (opening, name)
        for at in range(0, len(rows), ROWS_AT_ONCE):
            yield (b"," if at else b"") + b",".join(rows[at : at + ROWS_AT_ONCE])
        yield b"]"
        opening = b","
    yield b"}"


class Documents(ABC):
    """Reads documents; `Store` implements the changes.

    Returned documents are new copies. All methods raise KeyError for a kind that is not declared.
    """

    sequence: int
    """The number of the last change; it never decreases."""

    def __init__(self) -> None:
        self.tables: dict[str, DocumentTable] = {}

    def get(self, kind: Kind[D], identity: str) -> D | None:
        """A copy of the document; None if it does not exist."""
        table = self.tables[kind.name]
        number = table.numbers.get(identity)
        if number is None:
            return None
        document: D = orjson.loads(table.rows[number])
        return document

    def text(self, kind: Kind[Any], identity: str) -> bytes | None:
        """The document as JSON text; None if it does not exist."""
        table = self.tables[kind.name]
        number = table.numbers.get(identity)
        return None if number is None else table.rows[number]

    def dependent_cache(self, *kinds: Kind[Any]) -> DependentCache[Any, Any]:
        """A cache for values that depend on documents of these kinds only."""
        return DependentCache(self.tables[kind.name] for kind in kinds)

    def follow(self, kind: Kind[Any], follower: Callable[[], None]) -> None:
        """Call `follower` after every change of a document of this kind, including undone changes and their undoing."""
        self.tables[kind.name].dependants.append(follower)

    def content(self) -> object:
        """An object whose identity changes when the whole content is replaced (a reset) or discarded."""
        return next(iter(self.tables.values())).numbers

    def exists(self, kind: Kind[Any], identity: str) -> bool:
        return identity in self.tables[kind.name].numbers

    def all(self, kind: Kind[D]) -> Iterator[D]:
        """Every document in insertion order, at the time of the call."""
        return map(orjson.loads, list(self.tables[kind.name].sorted_rows().values()))

    def find(
        self, kind: Kind[D], /, *, limit: int | None = None, newest_first: bool = False, **equals: Value | None
    ) -> list[D]:
        """The documents whose indexed member equals the value (or has it as an element), in insertion order.

        Takes exactly one declared index; ValueError otherwise. The value None matches nothing.
        """
        table = self.tables[kind.name]
        numbers = self._matching(table, equals)
        if newest_first:
            numbers = numbers[::-1] if limit is None else numbers[-1 : -limit - 1 : -1]
        elif limit is not None:
            numbers = numbers[:limit]
        return [orjson.loads(table.rows[number]) for number in numbers]

    def first(self, kind: Kind[D], /, **equals: Value | None) -> D | None:
        """The first document of `find`, or None."""
        table = self.tables[kind.name]
        bucket = self._bucket(table, equals)
        if bucket is None:
            return None
        document: D = orjson.loads(table.rows[bucket if isinstance(bucket, int) else bucket[0]])
        return document

    def count(self, kind: Kind[Any], /, **equals: Value | None) -> int:
        """The number of documents of `find`; without an index, of the kind."""
        table = self.tables[kind.name]
        return len(self._matching(table, equals)) if equals else len(table.rows)

    def _matching(self, table: DocumentTable, equals: Mapping[str, Value | None]) -> tuple[int, ...] | list[int]:
        bucket = self._bucket(table, equals)
        if bucket is None:
            return ()
        return (bucket,) if isinstance(bucket, int) else bucket

    def _bucket(self, table: DocumentTable, equals: Mapping[str, Value | None]) -> Bucket | None:
        if len(equals) != 1:
            raise ValueError("exactly one index must be named")
        for member, value in equals.items():
            index = table.keys.indexes.get(member)
            if index is not None:
                return None if value is None else index.buckets.get(value)
        raise ValueError(f"{table.name} has no index {', '.join(map(repr, equals))}")

    def range(
        self,
        kind: Kind[D],
        order: str,
        *,
        group: str | None = None,
        low: Value | None = None,
        high: Value | None = None,
        reverse: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> list[D]:
        """The documents with low <= `by` <= high in order, ties by id; `offset` and `limit` count from the front.

        With `reverse` the front is the greatest. Documents whose `by` or group is missing or None are not in the order.
        The order of arrival has no bounds.
        """
        texts = self.range_texts(
            kind, order, group=group, low=low, high=high, reverse=reverse, offset=offset, limit=limit
        )
        return list(map(orjson.loads, texts))

    def range_texts(
        self,
        kind: Kind[Any],
        order: str,
        *,
        group: str | None = None,
        low: Value | None = None,
        high: Value | None = None,
        reverse: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> list[bytes]:
        """Like `range`, with each document as the JSON text that is stored, not a copy."""
        table = self.tables[kind.name]
        offset = max(0, offset)
        if order == table.kind.arrival:
            if (group, low, high) != (None, None, None):
                raise ValueError(f"the order {order!r} has no groups and no bounds")
            rows = table.sorted_rows().values()
            stop = None if limit is None else offset + limit
            return list(islice(reversed(rows) if reverse else rows, offset, stop))
        places = self._order(table, order)
        start, stop = places.between(group, low, high)
        if reverse:
            stop = max(start, stop - offset)
            start = start if limit is None else max(start, stop - limit)
        else:
            start = min(stop, start + offset)
            stop = stop if limit is None else min(stop, start + limit)
        identities = places.ids(start, stop)
        if reverse:
            identities.reverse()
        return list(map(table.rows.__getitem__, map(table.numbers.__getitem__, identities)))

    def ids_at(self, kind: Kind[Any], order: str, by: Value) -> list[str]:
        """The ids of the documents with this `by` in an order without groups, in insertion order."""
        table = self.tables[kind.name]
        places = self._order(table, order)
        return sorted(places.ids(*places.between(None, by, by)), key=table.numbers.__getitem__)

    def range_ids(self, kind: Kind[Any], order: str, *, group: str | None = None) -> list[str]:
        """The ids of the documents of `range` without bounds."""
        places = self._order(self.tables[kind.name], order)
        return places.ids(*places.between(group, None, None))

    def range_count(
        self,
        kind: Kind[Any],
        order: str,
        *,
        group: str | None = None,
        low: Value | None = None,
        high: Value | None = None,
    ) -> int:
        """The number of documents of `range` without offset and limit."""
        start, stop = self._order(self.tables[kind.name], order).between(group, low, high)
        return stop - start

    def first_key(self, kind: Kind[Any], order: str) -> Value | None:
        """The smallest `by` value of an order without groups; None if the order is empty."""
        first = self.tables[kind.name].keys.orders[order].first
        return None if first is None else first[-2]

    def _order(self, table: DocumentTable, name: str) -> SortedIndex:
        order = table.keys.orders.get(name)
        if order is None:
            raise ValueError(f"{table.name} has no order {name!r}")
        return order

    def json(self) -> tuple[int, Iterator[bytes]]:
        """The result of `dump` as JSON text, joined from the stored texts: its size, and its parts.

        The content is that at the time of the call; parts are joined when they are iterated.
        """
        tables = [(table.json_name, list(table.sorted_rows().values())) for table in self.tables.values()]
        size = sum(len(name) + len(b":[],") + sum(map(len, rows)) + max(0, len(rows) - 1) for name, rows in tables)
        return size + len(b"{}") - len(b","), _json_parts(tables)

    def dump(self) -> dict[str, list[Document]]:
        """Everything: name of the kind -> documents in insertion order."""
        return {name: list(map(orjson.loads, table.sorted_rows().values())) for name, table in self.tables.items()}

    # Changing

    @abstractmethod
    def put(self, kind: Kind[D], document: D) -> None:
        """Insert the document or replace the one with its id; ValueError if it cannot be stored."""
        ...

    @abstractmethod
    def delete(self, kind: Kind[Any], identity: str) -> bool:
        """Delete the document; False if it does not exist."""
        ...

    @abstractmethod
    def delete_several(self, kind: Kind[Any], identities: Iterable[str]) -> int:
        """Delete these documents as one change; returns how many existed."""
        ...

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """A `with` block whose changes are stored all or none, and are appended when the outermost block ends.

        An exception undoes the changes of its block and of the blocks inside it, and drops their events. Raises
        StoreUnwritable, with everything undone, if the changes cannot be stored.
        """
        ...

    @abstractmethod
    def at_once(self) -> AbstractContextManager[None]:
        """A `with` block whose transactions do not wait for `flush`, so that each fails by itself."""
        ...

    @abstractmethod
    def image(self) -> Image:
        """The present content, for `restore`. Waiting changes are written first; raises StoreUnwritable."""
        ...

    @abstractmethod
    def prepare(self, image: Image) -> PreparedImage:
        """Prepare an image of any size for a short `restore`; may run in any thread. Raises StoreUnwritable."""
        ...

    @abstractmethod
    def restore(self, image: Image | PreparedImage) -> None:
        """Replace the content by the image's, as one change (of a transaction, if one is open)."""
        ...

    # Following changes

    @abstractmethod
    def publish(self, event: Event) -> None:
        """Deliver an event to the listeners as soon as all changes so far are stored."""
        ...

    @abstractmethod
    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with every event that is published from now on."""
        ...
