"""Images of the whole content of a store, cheap to create and to restore.

An `Image` is a copy that never changes, as a snapshot of a bank; `Store.restore` copies it again. A `PreparedImage` is
a copy of an image, made in a thread, that one `restore` takes over at once. A `FrozenTable` is a table at one moment,
which a thread writes to a file while the table continues to change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar, cast

from emulator.store.index import Entry, Index, Keys, SortedIndex
from emulator.store.kinds import Document, Kind
from emulator.store.table import DocumentTable, TableContent, decoded, encoded, indexed
from emulator.store.tx import StoredContent

Batch = tuple[list[int], list[bytes]]
"""Numbers and the encoded documents with these numbers."""

ROWS_AT_ONCE = 256
VALUES_AT_ONCE = 2000

T = TypeVar("T")

BARE: Kind[Any] = Kind("")
"""The kind of an image without indexes."""


class TableImage(NamedTuple):
    """The documents of one kind at one moment. Documents are shared immutable bytes; the other members never change.

    `numbers`, `indexes` and `orders` are empty in a bare image; they are built when it is restored.
    """

    kind: Kind[Any]
    next_number: int
    rows: dict[int, bytes]
    numbers: dict[str, int]
    indexes: dict[str, Index]
    orders: Mapping[str, Sequence[Entry]]

    @classmethod
    def of(cls, table: DocumentTable) -> TableImage:
        """A copy of the table's present content."""
        return cls(
            table.kind,
            table.next_number,
            table.sorted_rows().copy(),
            table.numbers.copy(),
            {member: index.copy() for member, index in table.keys.indexes.items()},
            {name: list(order.entries) for name, order in table.keys.orders.items()},
        )

    @classmethod
    def bare(cls, rows: dict[int, bytes], next_number: int = 1) -> TableImage:
        """An image of rows without ids and indexes; numbers ascending."""
        return cls(BARE, max(next_number, max(rows, default=0) + 1), rows, {}, {}, {})

    @property
    def is_bare(self) -> bool:
        """Whether ids, indexes and orders are missing."""
        return len(self.numbers) != len(self.rows)

    def content(self, kind: Kind[Any], *, copy: bool = True) -> TableContent:
        """The content of a table of this kind; without `copy` the image must not be used again.

        Raises ValueError if the documents of a bare image, or of one with another declaration, do not fit the kind.
        """
        rows = self.rows.copy() if copy else self.rows
        if self.is_bare or self.kind is not kind:
            numbers, keys = indexed(kind, rows)
        else:
            numbers = self.numbers.copy() if copy else self.numbers
            indexes = {name: index.copy() for name, index in self.indexes.items()} if copy else self.indexes
            orders = {name: SortedIndex(rule, self.orders[name]) for name, rule in kind.ordered.items()}
            keys = Keys(kind, indexes, orders)
        return TableContent(rows, numbers, self.next_number, keys)

    def batches(self) -> Iterator[Batch]:
        """The rows in order, some at a time."""
        numbers, texts = list(self.rows), list(self.rows.values())
        for at in range(0, len(numbers), ROWS_AT_ONCE):
            yield numbers[at : at + ROWS_AT_ONCE], texts[at : at + ROWS_AT_ONCE]


class FrozenTable:
    """A table at one moment, readable in another thread while the table continues to change.

    Only the numbers are copied at first. Before the table changes a document or its index entries, it stores the
    previous document in `before` (None: there was none). So parts of the table that are copied later differ from the
    frozen content only in documents listed in `before` by then, and in new documents.
    """

    def __init__(self, table: DocumentTable) -> None:
        self._table = table
        self._rows, self._ids, self._keys = table.sorted_rows(), table.numbers, table.keys
        self._numbers = list(self._rows)
        self._before: dict[int, bytes | None] = {}
        self.kind = table.kind
        self.next_number = table.next_number
        table.before = self._before

    def batches(self) -> Iterator[Batch]:
        """The rows in order, some at a time."""
        before = self._before
        for at in range(0, len(self._numbers), ROWS_AT_ONCE):
            numbers = self._numbers[at : at + ROWS_AT_ONCE]
            present = list(map(self._rows.get, numbers))
            noted = before.keys() & numbers
            texts = (
                [before[n] if n in noted else raw for n, raw in zip(numbers, present, strict=True)]
                if noted
                else present
            )
            if None in texts:
                raise RuntimeError("a row was removed without its previous content in `before`")
            yield numbers, cast(list[bytes], texts)

    def indexed(self, pause: Callable[[], None]) -> TableImage:
        """An image with ids, indexes and orders, but empty documents. `pause` is called between parts of the work."""
        ids = self._ids.copy()
        pause()
        copies = {member: index.copy() for member, index in self._keys.indexes.items()}
        pause()
        sequences = {name: list(order.entries) for name, order in self._keys.orders.items()}
        before = self._before.copy()  # last, so that it has every document in which the copies differ
        table = self._table
        if not before and table.keys is self._keys and table.next_number == self.next_number:  # nothing has changed
            return self._image(ids, copies, sequences)
        names = {  # by number: those that have not changed
            number: identity
            for some in _pieces(ids.items(), pause)
            for identity, number in some
            if number < self.next_number and number not in before
        }
        indexes = {member: Index() for member in copies}
        for member, index in indexes.items():
            for buckets in _pieces(copies[member].buckets.items(), pause):
                index.take_over(buckets, names)
        orders = {}
        for name, rule in self.kind.ordered.items():
            some_entries = _pieces(sequences[name], pause)
            orders[name] = SortedIndex(
                rule, [one for some in some_entries for one in some if ids.get(one[-1]) in names]
            )
        keys = Keys(self.kind, indexes, orders)
        for number, raw in before.items():
            if raw is not None and number < self.next_number:
                document = decoded(raw)
                names[number] = document["id"]
                keys.add(keys.of(document), number, document["id"])
        ids = {names[number]: number for number in self._numbers}
        return self._image(ids, keys.indexes, {name: list(order.entries) for name, order in keys.orders.items()})

    def _image(
        self, ids: dict[str, int], indexes: dict[str, Index], orders: Mapping[str, Sequence[Entry]]
    ) -> TableImage:
        return TableImage(self.kind, self.next_number, dict.fromkeys(self._numbers, b""), ids, indexes, orders)


def _pieces(values: Iterable[T], pause: Callable[[], None]) -> Iterator[list[T]]:
    every = list(values)  # at once, since another thread may change the source
    for at in range(0, len(every), VALUES_AT_ONCE):
        pause()
        yield every[at : at + VALUES_AT_ONCE]


class PreparedImage(NamedTuple):
    """An image prepared for one short `restore`: the content of each table, and what the log has stored of it."""

    tables: Mapping[str, TableContent]
    stored: StoredContent | None

    def discard(self) -> None:
        """Discard it without a restore."""
        if self.stored is not None:
            self.stored.undo()


class Image(NamedTuple):
    """The content of a store at one moment: kind -> image of its table."""

    tables: Mapping[str, TableImage]

    @classmethod
    def build(cls, kinds: Sequence[Kind[Any]], documents: Mapping[Kind[Any], Iterable[Document]]) -> Image:
        """The image of a store with exactly `documents`, kind -> documents in insertion order.

        Raises ValueError for a document that cannot be stored and KeyError for a kind that is not declared.
        """
        tables = {kind.name: DocumentTable(kind) for kind in kinds}
        for kind, several in documents.items():
            for document in several:
                tables[kind.name].put(document)
        return cls({name: TableImage.of(table) for name, table in tables.items()})

    def with_document(self, kind: Kind[Any], document: Mapping[str, Any]) -> Image:
        """A copy of this image with a document inserted or replaced, of a kind without indexes and orders."""
        if kind.indexes or kind.ordered:
            raise ValueError(f"documents of {kind.name} are indexed")
        table = self.tables.get(kind.name) or TableImage(kind, 1, {}, {}, {}, {})
        identity: str = document["id"]
        number = table.numbers.get(identity, table.next_number)
        changed = table._replace(
            rows={**table.rows, number: encoded(document)},
            numbers={**table.numbers, identity: number},
            next_number=max(table.next_number, number + 1),
        )
        return Image({**self.tables, kind.name: changed})

    @property
    def size(self) -> int:
        """The size of the documents in bytes, about that of a snapshot."""
        return sum(sum(map(len, table.rows.values())) for table in self.tables.values())


@contextmanager
def discarded_on_failure(content: Image | PreparedImage | None) -> Iterator[None]:
    """A `with` block that restores `content`; discards prepared content if the block fails."""
    try:
        yield
    except BaseException:
        if isinstance(content, PreparedImage):
            content.discard()
        raise
