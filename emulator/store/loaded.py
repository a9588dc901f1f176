"""Documents in memory, as a log has them: read by id, by an indexed value and along an order; loaded and replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from typing import Any, Generic, TypedDict, TypeVar, Unpack

import orjson

from emulator.store.kinds import SNAPSHOTS, D, Document, Kind, Value, by_name, decoded, encoded
from emulator.store.table import DocumentTable, Image, Rows

AT_ONCE = 256  # rows
_NO_CONTENTS: Mapping[str, Image] = {}

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


class Bounds(TypedDict, total=False):
    """What `Documents.range` takes besides kind and order."""

    group: str | None
    low: Value | None
    high: Value | None
    reverse: bool
    offset: int
    limit: int | None


class LoadedDocuments:
    """The documents of a bank as of change number `sequence`, for reading: what is returned is a new copy.

    KeyError for a kind that is not declared.
    """

    tables: Mapping[str, DocumentTable]

    def __init__(self, kinds: Iterable[Kind[Any]]) -> None:
        self.kinds = by_name((*kinds, SNAPSHOTS))
        if "_store" in self.kinds:
            raise ValueError("the name _store is reserved for snapshots")
        self.sequence = 0
        self.take({name: DocumentTable(kind) for name, kind in self.kinds.items()})

    def table(self, name: str) -> DocumentTable:
        """The table of a kind; an undeclared kind (of an older version) gets a table without indexes."""
        if name not in self.tables:
            self.replace_tables({**self.tables, name: DocumentTable(Kind(name))})
        return self.tables[name]

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
        numbers = table.keys.numbers(equals)
        if newest_first:
            numbers = numbers[::-1] if limit is None else numbers[-1 : -limit - 1 : -1]
        return [orjson.loads(table.rows[number]) for number in numbers[:limit]]

    def first(self, kind: Kind[D], /, **equals: Value | None) -> D | None:
        """The first document of `find`, or None."""
        table = self.tables[kind.name]
        numbers = table.keys.numbers(equals)
        document: D | None = orjson.loads(table.rows[numbers[0]]) if numbers else None
        return document

    def count(self, kind: Kind[Any], /, **equals: Value | None) -> int:
        """The number of documents of `find`; without an index, of the kind."""
        table = self.tables[kind.name]
        return len(table.keys.numbers(equals)) if equals else len(table.rows)

    def range(self, kind: Kind[D], order: str, **bounds: Unpack[Bounds]) -> list[D]:
        """Copies of the documents of `range_texts`."""
        return list(map(orjson.loads, self.range_texts(kind, order, **bounds)))

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
        """The documents with low <= `by` <= high in order, ties by id; `offset` and `limit` count from the front.

        With `reverse` the front is the greatest. Documents whose `by` or group is missing or None are not in the order.
        The order of arrival has no bounds. They are the JSON texts that are stored.
        """
        table = self.tables[kind.name]
        offset = max(0, offset)
        if order == table.kind.arrival:
            if (group, low, high) != (None, None, None):
                raise ValueError(f"the order {order!r} has no groups and no bounds")
            texts = table.sorted_rows().values()
            stop = None if limit is None else offset + limit
            return list(islice(reversed(texts) if reverse else texts, offset, stop))
        entries, start, stop = table.keys.between(order, group, low, high)
        if reverse:
            stop = max(start, stop - offset)
            start = start if limit is None else max(start, stop - limit)
        else:
            start = min(stop, start + offset)
            stop = stop if limit is None else min(stop, start + limit)
        rows, within = table.rows, entries[start:stop]
        at = 2 if group is None else 3  # of the number in an entry; counted from its end, it takes longer
        return [rows[entry[at]] for entry in (reversed(within) if reverse else within)]

    def ids_at(self, kind: Kind[Any], order: str, by: Value) -> list[str]:
        """The ids of the documents with this `by` in an order without groups, in insertion order."""
        entries, start, stop = self.tables[kind.name].keys.between(order, None, by, by)
        return [entry[-2] for entry in sorted(entries[start:stop], key=itemgetter(-1))]

    def range_ids(self, kind: Kind[Any], order: str, *, group: str | None = None) -> list[str]:
        """The ids of the documents of `range` without bounds."""
        entries, start, stop = self.tables[kind.name].keys.between(order, group, None, None)
        return [entry[-2] for entry in entries[start:stop]]

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
        _, start, stop = self.tables[kind.name].keys.between(order, group, low, high)
        return stop - start

    def first_key(self, order: str, *kinds: Kind[Any]) -> Value | None:
        """The smallest `by` value in the orders of this name, without groups; None if all are empty."""
        tables = self.tables
        return min(
            [entries[0][-3] for kind in kinds if (entries := tables[kind.name].keys.orders[order])], default=None
        )

    def json(self) -> tuple[int, Iterator[bytes]]:
        """The result of `dump` as JSON text, joined from the stored texts: its size, and its parts.

        The content is that at the time of the call; parts are joined when they are iterated.
        """
        tables = [(table.json_name, list(table.sorted_rows().values())) for table in self.present().values()]
        size = sum(len(name) + len(b":[],") + sum(map(len, rows)) + max(0, len(rows) - 1) for name, rows in tables)
        return size + len(b"{}") - len(b","), _json_parts(tables)

    def dump(self) -> dict[str, list[Document]]:
        """Everything: name of the kind -> documents in insertion order."""
        return {name: list(map(orjson.loads, table.sorted_rows().values())) for name, table in self.present().items()}

    def present(self) -> dict[str, DocumentTable]:
        """The tables of the content, without the snapshots."""
        return {name: table for name, table in self.tables.items() if name != SNAPSHOTS.name}

    def contents(self) -> list[str]:
        """The names of the contents that the snapshots are, the oldest first."""
        return [snapshot["content"] for snapshot in self.all(SNAPSHOTS)]

    # Loading

    def apply(self, change: bytes, content: Callable[[str], Image] = _NO_CONTENTS.__getitem__) -> None:
        """Apply the next change of a log; `content` loads the whole content that it may name.

        Removed and moved documents come first, since another document may have got their number. Raises ValueError,
        KeyError, TypeError or AttributeError for a change that does not fit these documents.
        """
        differences = decoded(change)
        if (name := differences.get("content")) is not None:
            self.replace_tables(content(name).tables)
            differences = differences["then"]
        if cleared := differences.get("clear"):
            self.replace_tables({name: table for name, table in self.tables.items() if name not in cleared})
        for kind, _, identity in differences.get("delete", ()):
            self.table(kind).place(identity, None, None)
        puts = [(self.table(kind), number, document) for kind, number, document in differences["put"]]
        for table, number, document in puts:
            if table.numbers.get(document["id"]) != number:
                table.place(document["id"], None, None)
        for table, number, document in puts:
            table.place(document["id"], number, encoded(document), document)
        self.sequence += 1

    def replace(self, image: Image, sequence: int) -> None:
        """Replace the content by that of an image, with all changes up to `sequence`, which must not be used again."""
        self.replace_tables(image.tables)
        self.sequence = sequence

    def freeze(self) -> Rows:
        """The present documents: for another thread to read while this one continues."""
        tables = self.present() if not self.count(SNAPSHOTS) else self.tables
        return {name: table.sorted_rows().copy() for name, table in tables.items()}

    def replace_tables(self, tables: Mapping[str, DocumentTable]) -> None:
        """Put these in the place of all tables; of a kind without one, an empty table. The snapshots stay."""
        whole = {**self.tables, **tables}
        for name, before in self.tables.items():
            if name not in tables and name != SNAPSHOTS.name:
                whole[name] = DocumentTable(before.kind)
            whole[name].dependants = before.dependants
        self.take(whole)

    def take(self, tables: dict[str, DocumentTable]) -> None:
        """Use these tables from now on."""
        self._tables = self.tables = tables
        for table in tables.values():
            table.changed()


def _json_parts(tables: list[tuple[bytes, list[bytes]]]) -> Iterator[bytes]:
    opening = b"{"
    for name, rows in tables:
        yield b"%b%b:[" % (opening, name)
        for at in range(0, len(rows), AT_ONCE):
            yield (b"," if at else b"") + b",".join(rows[at : at + AT_ONCE])
        yield b"]"
        opening = b","
    yield b"}"
