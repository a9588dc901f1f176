"""The documents of one bank in memory: reading, changing in transactions, and undoing.

A transaction notes what each document was (`Step`) before anything changes, so that undoing is to place that again, and
the change of the log is the difference between what was and what is (db.py). An undo that fails half-way leaves the
remaining steps, and the documents cannot be read or changed until it has been finished: every access tries that first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from sys import maxsize
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import ref

import orjson

from emulator.store.errors import StoreUnwritable
from emulator.store.kinds import D, Document, Kind, by_name
from emulator.store.table import Bucket, DocumentTable, TableContent, Value, encoded

ROWS_AT_ONCE = 256
SEVERAL = 1000  # documents; fewer are deleted one by one

Event = dict[str, Any]
"""An event for listeners: `{"type": ..., ...}`, JSON."""

Key = TypeVar("Key")
Cached = TypeVar("Cached")


class Replaced(NamedTuple):
    """The whole content that a table had before it was replaced."""

    table: DocumentTable
    before: TableContent


class StoredContent:
    """A step that replaces the whole content by one that the log has stored as `file` (None: in memory), `size` bytes.

    `sequence`: the change that refers to it. Earlier steps need not be written.
    """

    __slots__ = ("_remove", "file", "sequence", "size")

    def __init__(
        self, file: str | None = None, *, size: int = 0, remove: Callable[[], None] = lambda: None, sequence: int = 0
    ) -> None:
        self.file = file
        self.size = size
        self.sequence = sequence
        self._remove = remove

    def undo(self) -> None:
        """Remove the file, to which no change refers."""
        self._remove()


Step = tuple[DocumentTable, str, int | None, bytes | None] | Replaced | StoredContent
"""What was there before a change: table, id, number and text of a document (None: it did not exist), or more."""


class PreparedImage(NamedTuple):
    """An image prepared for one short `restore`: the content of each table, and what the log has stored of it."""

    tables: Mapping[str, TableContent]
    stored: StoredContent | None

    def discard(self) -> None:
        """Discard it without a restore."""
        if self.stored is not None:
            self.stored.undo()


class Image(NamedTuple):
    """The content of a bank at one moment, which never changes: kind -> content of its table."""

    tables: Mapping[str, TableContent]

    @classmethod
    def build(cls, kinds: Sequence[Kind[Any]], documents: Mapping[Kind[Any], Iterable[Document]]) -> Image:
        """The image with exactly `documents`, kind -> documents in insertion order.

        Raises ValueError for a document that cannot be stored and KeyError for a kind that is not declared.
        """
        tables = {kind.name: DocumentTable(kind) for kind in kinds}
        for kind, several in documents.items():
            table = tables[kind.name]
            for document in several:
                raw = encoded(document)
                table.place(document["id"], table.numbers.get(document["id"], table.next_number), raw, document)
        return cls({name: table.content for name, table in tables.items()})

    def with_document(self, kind: Kind[Any], document: Mapping[str, Any]) -> Image:
        """A copy of this image with a document inserted or replaced, of a kind without indexes and orders."""
        if kind.indexes or kind.ordered:
            raise ValueError(f"documents of {kind.name} are indexed")
        table = DocumentTable(kind)
        if kind.name in self.tables:
            table.content = self.tables[kind.name].copy(kind)
        table.place(document["id"], table.numbers.get(document["id"], table.next_number), encoded(document), document)
        return Image({**self.tables, kind.name: table.content})

    def contents(self, kinds: Mapping[str, Kind[Any]]) -> dict[str, TableContent]:
        """Copies for tables of these kinds; raises ValueError for a document that does not fit its kind."""
        contents: dict[str, TableContent] = {}
        for name, content in self.tables.items():
            try:
                contents[name] = content.copy(kinds.get(name) or content.keys.kind)
            except ValueError as wrong:
                raise ValueError(f"a document of kind {name}: {wrong}") from wrong
        return contents

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


class _Halted(Mapping[str, DocumentTable]):
    """The tables while an undo is not finished: every access tries to finish it, and raises StoreUnwritable."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def _tables(self) -> dict[str, DocumentTable]:
        self._documents.finish_undo()
        return self._documents.every_table

    def __getitem__(self, name: str) -> DocumentTable:
        return self._tables()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables())

    def __len__(self) -> int:
        return len(self._tables())


class _StoreTransaction:
    """One `with` block of `Documents.transaction`."""

    __slots__ = ("__weakref__", "_documents")

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def __enter__(self) -> None:
        documents = self._documents
        if documents.marks:
            documents.undo_abandoned()
        documents.marks.append((ref(self, documents.undo_abandoned), len(documents.steps), len(documents.outbox)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        documents = self._documents
        documents.undo_abandoned()
        _, steps, events = documents.marks[-1]
        if kind is not None:
            documents.halt(steps)
            del documents.outbox[events:], documents.marks[-1]
            documents.finish_undo()
        else:
            del documents.marks[-1]
        if not documents.marks:
            if documents.steps:
                if kind is None:
                    documents.commit()
            elif documents.outbox:
                documents.deliver()


class Documents(ABC):
    """The documents of a bank; `db.Store` gives their changes to a log.

    Returned documents are new copies. All methods raise KeyError for a kind that is not declared.
    """

    sequence: int
    """The number of the last change; it never decreases."""

    def __init__(self, kinds: Iterable[Kind[Any]]) -> None:
        self.kinds = by_name(kinds)
        self.every_table: dict[str, DocumentTable] = {}
        self.tables: Mapping[str, DocumentTable] = self.every_table
        # steps and events of the open transaction or of those that wait, and where each nested block began
        self.steps: list[Step] = []
        self.outbox: list[Event] = []
        self.marks: list[tuple[ref[_StoreTransaction], int, int]] = []
        self._undo_to = maxsize  # steps after so many are still to be undone
        self._halted = _Halted(self)
        for name in self.kinds:
            self.table(name)

    def table(self, name: str) -> DocumentTable:
        """The table of a kind; an undeclared kind (of an older version) gets a table without indexes."""
        table = self.every_table.get(name)
        if table is None:
            kind = self.kinds.get(name) or Kind(name)
            table = DocumentTable(kind, change=self._change, changing=self.transaction)
            self.every_table[name] = table
        return table

    # Reading

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

    def _matching(self, table: DocumentTable, equals: Mapping[str, Value | None]) -> Sequence[int]:
        bucket = self._bucket(table, equals)
        if bucket is None:
            return ()
        return (bucket,) if isinstance(bucket, int) else bucket

    def _bucket(self, table: DocumentTable, equals: Mapping[str, Value | None]) -> Bucket | None:
        if len(equals) != 1:
            raise ValueError("exactly one index must be named")
        for member, value in equals.items():
            buckets = table.keys.indexes.get(member)
            if buckets is not None:
                return None if value is None else buckets.get(value)
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
        rows, numbers = table.rows, table.numbers
        return [rows[numbers[entry[-1]]] for entry in entries.islice(start, stop, reverse=reverse)]

    def ids_at(self, kind: Kind[Any], order: str, by: Value) -> list[str]:
        """The ids of the documents with this `by` in an order without groups, in insertion order."""
        table = self.tables[kind.name]
        entries, start, stop = table.keys.between(order, None, by, by)
        return sorted((entry[-1] for entry in entries.islice(start, stop)), key=table.numbers.__getitem__)

    def range_ids(self, kind: Kind[Any], order: str, *, group: str | None = None) -> list[str]:
        """The ids of the documents of `range` without bounds."""
        entries, start, stop = self.tables[kind.name].keys.between(order, group, None, None)
        return [entry[-1] for entry in entries.islice(start, stop)]

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

    def first_key(self, kind: Kind[Any], order: str) -> Value | None:
        """The smallest `by` value of an order without groups; None if the order is empty."""
        entries = self.tables[kind.name].keys.orders[order]
        return entries[0][-2] if entries else None

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

    def put(self, kind: Kind[D], document: D) -> None:
        """Insert the document or replace the one with its id; ValueError if it cannot be stored."""
        if self.marks:
            self.undo_abandoned()
        table, raw, was = self.tables[kind.name], encoded(document), None
        identity: str = document["id"]
        number = table.numbers.get(identity)
        if number is not None and (was := table.rows[number]) == raw:
            return
        steps = self.steps
        before = len(steps)
        try:
            steps.append((table, identity, number, was))
            table.place(identity, table.next_number if number is None else number, raw, document)
        except BaseException:
            if before < self._undo_to:  # as `halt`, for which there may be no memory
                self._undo_to = before
            self.tables = self._halted
            self.finish_undo()
            raise
        if not self.marks:
            self.commit()

    def delete(self, kind: Kind[Any], identity: str) -> bool:
        """Delete the document; False if it does not exist."""
        if self.marks:
            self.undo_abandoned()
        table = self.tables[kind.name]
        if identity not in table.numbers:
            return False
        with self.transaction():
            self._change(table, identity, None, None)
        return True

    def delete_several(self, kind: Kind[Any], identities: Iterable[str]) -> int:
        """Delete these documents as one change; returns how many existed."""
        with self.transaction():
            table = self.tables[kind.name]
            going = {one: number for one in identities if (number := table.numbers.get(one)) is not None}
            if len(going) < SEVERAL or 2 * len(going) < len(table.rows):
                for identity in going:
                    self._change(table, identity, None, None)
            else:  # the indexes of what is left are built in less time
                numbers = set(going.values())
                left = {number: raw for number, raw in table.sorted_rows().items() if number not in numbers}
                self._replace(table, TableContent.of(table.kind, left)._replace(next_number=table.next_number))
        return len(going)

    def transaction(self) -> AbstractContextManager[None]:
        """A `with` block whose changes are stored all or none, and are appended when the outermost block ends.

        An exception undoes the changes of its block and of the blocks inside it, and drops their events. Raises
        StoreUnwritable, with everything undone, if the changes cannot be stored.
        """
        return _StoreTransaction(self)

    def restore(self, image: Image | PreparedImage) -> None:
        """Replace the content by the image's, as one change (of a transaction, if one is open)."""
        prepared = image if isinstance(image, PreparedImage) else PreparedImage(image.contents(self.kinds), None)
        with self.transaction():
            for table, content in self._with_contents(prepared.tables):
                self._replace(table, content)
            if prepared.stored is not None:
                self.steps.append(prepared.stored)

    def _with_contents(self, contents: Mapping[str, TableContent]) -> Iterator[tuple[DocumentTable, TableContent]]:
        """Every table with its content among `contents`."""
        for name in {**self.tables, **contents}:
            table = self.table(name)
            yield table, contents.get(name) or TableContent.empty(table.kind)

    def _change(self, table: DocumentTable, identity: str, number: int | None, raw: bytes | None) -> None:
        """Change one document of an open transaction, after noting what it was."""
        was = table.numbers.get(identity)
        self.steps.append((table, identity, was, None if was is None else table.rows[was]))
        table.place(identity, number, raw)

    def _replace(self, table: DocumentTable, content: TableContent) -> None:
        self.steps.append(Replaced(table, table.content))
        table.content = content

    def halt(self, down_to: int) -> None:
        """Nothing is read or changed until the steps after the first `down_to` are undone."""
        if down_to < self._undo_to:
            self._undo_to = down_to
        self.tables = self._halted

    def undo_abandoned(self, _block: object = None) -> None:
        """Undo blocks that ended without their `__exit__`, for which there was no memory.

        It is called when such a block is gone, and before a change, as the memory may not have been sufficient for it.
        """
        while self.marks and self.marks[-1][0]() is None:
            _, steps, events = self.marks[-1]
            self.halt(steps)
            del self.marks[-1], self.outbox[events:]
            self.finish_undo()

    def finish_undo(self) -> None:
        """Undo what is still to be undone. A step is forgotten once it is undone, so that nothing is left half-done."""
        steps = self.steps
        try:
            self.tables = self.every_table  # followers read them
            while len(steps) > self._undo_to:
                step = steps[-1]
                if isinstance(step, Replaced):
                    step.table.content = step.before
                elif isinstance(step, StoredContent):
                    step.undo()
                else:
                    table, identity, number, raw = step
                    try:
                        table.place(identity, number, raw)
                    except Exception:
                        table.sound = False  # without its indexes
                        table.place(identity, number, raw)
                del steps[-1]
            for table in self.every_table.values():
                if not table.sound:
                    table.reindex()
            self._undo_to = maxsize
        except BaseException as error:
            self.tables = self._halted
            if not isinstance(error, Exception):
                raise
            raise StoreUnwritable(f"a change could not be undone: {error!r}") from error

    @abstractmethod
    def commit(self) -> None:
        """Append the changes of the outermost `transaction`, or let them wait; raises as `transaction` does."""

    @abstractmethod
    def at_once(self) -> AbstractContextManager[None]:
        """A `with` block whose transactions do not wait for `flush`, so that each fails by itself."""

    @abstractmethod
    def image(self) -> Image:
        """The present content, for `restore`. Waiting changes are written first; raises StoreUnwritable."""

    @abstractmethod
    def prepare(self, image: Image) -> PreparedImage:
        """Prepare an image of any size for a short `restore`; may run in any thread. Raises StoreUnwritable."""

    # Following changes

    @abstractmethod
    def publish(self, event: Event) -> None:
        """Deliver an event to the listeners as soon as all changes so far are stored."""

    @abstractmethod
    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with every event that is published from now on."""

    @abstractmethod
    def deliver(self) -> None:
        """Deliver the events published since the last change."""
