"""The documents of one kind in memory: a TinyDB table of JSON texts, with ids, indexes and orders; and images of all.

Stock TinyDB reads and writes the whole table for every operation. Here each document is a JSON text under its TinyDB
document id, a number that is also its place in the order of insertion, so that reading decodes one copy and writing
replaces one document. TinyDB's own methods (search, update, remove, ...) are based on that.

`place` is the only function that changes a document: it serves changes, their undoing and the replay of a log. A
snapshot is loaded as a whole (`TableContent.of`), in half the time. If `place` fails midway, for which memory must be
very short, the table is not `sound`, and not to be used any more.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import isfinite
from sys import intern
from types import NoneType
from typing import Any, NamedTuple, TypeAlias

import orjson
from sortedcontainers import SortedList
from tinydb.storages import MemoryStorage
from tinydb.table import Table

from emulator.store.kinds import Document, Kind

Value = str | int
"""A value to search for or to sort by; fractional numbers are compared with whole ones."""

Entry = tuple[Any, ...]
"""A document's entry in an order: `([group,] by, id)`."""

Bucket: TypeAlias = int | list[int] | SortedList
"""The numbers of the documents with a value, ascending. One alone is no list, as that takes a third of the memory."""

SORTED_FROM = 4096  # numbers in a SortedList, once one is removed: a removal moves all that follow it in a list

_QUOTE = ord('"')
_dumps, _APPEND_NEWLINE = orjson.dumps, orjson.OPT_APPEND_NEWLINE
_TEXTS = frozenset((str, NoneType))


def encoded(document: Mapping[str, Any]) -> bytes:
    """The document as JSON text; raises ValueError for values that JSON does not have, and without an id."""
    if not isinstance(document.get("id"), str):
        raise ValueError("a document needs a text member 'id'")
    try:
        # The encoder's buffer is several times larger than the text; the slice is a copy of exact size.
        return _dumps(document, None, _APPEND_NEWLINE)[:-1]
    except TypeError as wrong:
        raise ValueError(f"not a JSON document: {wrong}") from wrong


def decoded(text: bytes) -> Any:
    """The value of a JSON text whose checksum is correct; raises MemoryError if memory is not sufficient.

    orjson reports both malformed text and missing memory as ValueError; the standard library distinguishes them.
    """
    try:
        return orjson.loads(text)
    except ValueError as wrong:
        json.loads(text)  # raises ValueError for malformed text, or MemoryError
        raise MemoryError("no memory to decode a JSON text") from wrong


def _column(member: str, texts: Iterable[bytes]) -> list[Any]:
    """The values of a member in documents, of which only those are decoded in which it cannot be seen.

    A quote within a text is escaped, so that `,"member":` is always a key; and if no object ends between it and the end
    of the document, it is a key of the document itself.
    """
    key = b",%b:" % orjson.dumps(member)
    first, size = b"{" + key[1:], len(key)
    column: list[Any] = []
    add = column.append
    for text in texts:
        at = text.rfind(key) + size
        if at >= size:
            if text[at] == _QUOTE and text.find(b"}", at) == len(text) - 1:
                value = text[at + 1 : text.index(b'"', at + 1)]
                if b"\\" not in value:
                    add(value.decode())
                    continue
        elif not text.startswith(first):
            add(None)
            continue
        add(decoded(text).get(member))
    return column


def _interned(values: Iterable[str | None]) -> list[str | None]:
    return [None if value is None else intern(value) for value in values]


class _Top:
    """Greater than every text and number."""

    def __gt__(self, other: object) -> bool:
        return True


_TOP = _Top()


def _add(buckets: dict[Value, Bucket], value: Value, number: int) -> None:
    bucket = buckets.get(value)
    if isinstance(bucket, list):
        insort(bucket, number)
    elif bucket is None:
        buckets[value] = number
    elif isinstance(bucket, int):
        buckets[value] = [bucket, number] if bucket < number else [number, bucket]
    else:
        bucket.add(number)


def _remove(buckets: dict[Value, Bucket], value: Value, number: int) -> None:
    bucket = buckets[value]
    if isinstance(bucket, int):
        del buckets[value]
        return
    if isinstance(bucket, list) and len(bucket) >= SORTED_FROM:
        bucket = buckets[value] = SortedList(bucket)
    del bucket[bisect_left(bucket, number)]
    if len(bucket) == 1:
        buckets[value] = bucket[0]


def _searched(value: Any) -> Iterable[Value]:
    """The values under which a member is indexed: none, one, or each element of a list."""
    if value is None:
        return ()
    return dict.fromkeys(value) if isinstance(value, (list, tuple)) else (value,)


def _entry(values: list[Any], by: int, group: int | None, identity: str) -> Entry | None:
    """A document's entry in an order; None if it has no value or group."""
    if values[by] is None:
        return None
    if group is None:
        return values[by], identity
    return None if values[group] is None else (intern(values[group]), values[by], identity)


def _is_value(value: object) -> bool:
    return isinstance(value, (str, int)) or (isinstance(value, float) and isfinite(value))


class Unsortable(ValueError):
    """A document that cannot be compared with others; a part of its change has been made."""


class Keys:
    """The indexes and orders of one kind. The methods take `of(document)`, the values of `members`.

    `indexes`: member -> value -> numbers; `orders`: name -> entries. Text and numbers are compared as in Python.
    """

    __slots__ = ("_indexed", "_nothing", "_sorted", "indexes", "kind", "members", "orders")

    def __init__(self, kind: Kind[Any]) -> None:
        self.kind = kind
        self.indexes: dict[str, dict[Value, Bucket]] = {member: {} for member in kind.indexes}
        self.orders: dict[str, SortedList] = {name: SortedList() for name in kind.ordered}
        used = dict.fromkeys(kind.indexes)
        for rule in kind.ordered.values():
            used.update(dict.fromkeys((rule.by,) if rule.group is None else (rule.by, rule.group)))
        self.members = tuple(used)
        place = {member: number for number, member in enumerate(self.members)}
        self._indexed = [(place[member], buckets) for member, buckets in self.indexes.items()]
        self._sorted = [
            (place[rule.by], None if rule.group is None else place[rule.group], self.orders[name])
            for name, rule in kind.ordered.items()
        ]
        self._nothing = [None] * len(self.members)

    def copy(self) -> Keys:
        """A copy that can be changed for itself."""
        other = Keys(self.kind)
        for member, buckets in self.indexes.items():
            copied = other.indexes[member]
            copied.update(buckets)
            for value, bucket in buckets.items():
                if not isinstance(bucket, int):
                    copied[value] = bucket.copy()
        for name, order in self.orders.items():
            other.orders[name].update(order)
        return other

    def of(self, document: Mapping[str, Any]) -> list[Any]:
        """The values of the members that are indexed or sorted by."""
        return list(map(document.get, self.members))

    def check(self, values: list[Any]) -> None:
        """Raise ValueError for values that cannot be indexed or sorted by."""
        for place, _ in self._indexed:
            value = values[place]
            if value is not None and not all(map(_is_value, value if isinstance(value, (list, tuple)) else (value,))):
                raise ValueError(f"the indexed member {self.members[place]!r} is not text, a number or a list of them")
        for by, group, _ in self._sorted:
            if not (values[by] is None or _is_value(values[by])):
                raise ValueError(f"the member {self.members[by]!r} cannot be sorted")
            if group is not None and not isinstance(values[group], (str, NoneType)):
                raise ValueError(f"the grouping member {self.members[group]!r} is not text")

    def change(self, was: list[Any] | None, becomes: list[Any] | None, number: int, identity: str) -> None:
        """Change the values of a document, which were checked; None: it does not exist.

        Raises Unsortable for one that cannot be compared with the others of its order.
        """
        was, becomes = was or self._nothing, becomes or self._nothing
        for place, buckets in self._indexed:
            before, after = was[place], becomes[place]
            if before != after:
                if before is not None:
                    for value in _searched(before):
                        _remove(buckets, value, number)
                if type(after) is str and after not in buckets:
                    buckets[after] = number
                else:
                    for value in _searched(after):
                        _add(buckets, value, number)
        for by, group, order in self._sorted:
            if was[by] != becomes[by] or (group is not None and was[group] != becomes[group]):
                if (old := _entry(was, by, group, identity)) is not None:
                    order.remove(old)
                try:
                    if (new := _entry(becomes, by, group, identity)) is not None:
                        order.add(new)
                except TypeError:
                    raise self._unsortable(by) from None

    def fill(self, texts: Collection[bytes], numbers: Mapping[str, int]) -> None:
        """Add many documents, a member at a time; as `change`, but each order is sorted once. Raises ValueError."""
        columns = [_column(member, texts) for member in self.members]
        if not all(_TEXTS.issuperset(map(type, column)) for column in columns):
            for values in zip(*columns, strict=True):
                self.check(list(values))
        for place, buckets in self._indexed:
            column, several = columns[place], defaultdict[Value, list[int]](list)
            if {str}.issuperset(map(type, column)):
                buckets.update(zip(column, numbers.values(), strict=True))
                if len(buckets) == len(column):  # each has a value of its own
                    continue
            for value, number in zip(column, numbers.values(), strict=True):
                for one in _searched(value) if type(value) is not str else (value,):
                    several[one].append(number)
            buckets.update((value, bucket if len(bucket) > 1 else bucket[0]) for value, bucket in several.items())
        for by, group, order in self._sorted:
            parts = (columns[by],) if group is None else (_interned(columns[group]), columns[by])
            try:
                order.update(entry for entry in zip(*parts, numbers, strict=True) if None not in entry)
            except TypeError:
                raise self._unsortable(by) from None

    def _unsortable(self, by: int) -> Unsortable:
        return Unsortable(f"the member {self.members[by]!r} cannot be sorted among the others of its order")

    def numbers(self, equals: Mapping[str, Value | None]) -> Sequence[int]:
        """The numbers of the documents whose indexed member has the value; ValueError unless one index is named."""
        if len(equals) != 1:
            raise ValueError("exactly one index must be named")
        ((member, value),) = equals.items()
        if (buckets := self.indexes.get(member)) is None:
            raise ValueError(f"{self.kind.name} has no index {member!r}")
        bucket = None if value is None else buckets.get(value)
        return () if bucket is None else (bucket,) if isinstance(bucket, int) else bucket

    def between(
        self, name: str, group: str | None, low: Value | None, high: Value | None
    ) -> tuple[SortedList, int, int]:
        """An order, the position of its first entry with low <= by <= high, and the one after its last."""
        order = self.orders.get(name)
        if order is None:
            raise ValueError(f"{self.kind.name} has no order {name!r}")
        if (group is None) != (self.kind.ordered[name].group is None):
            raise ValueError("a group must be named if, and only if, the order is declared with one")
        head: Entry = () if group is None else (group,)
        start = order.bisect_left(head if low is None else (*head, low)) if head or low is not None else 0
        if high is None and not head:
            return order, start, len(order)
        stop = order.bisect_left((*head, _TOP) if high is None else (*head, high, _TOP))
        return order, start, max(start, stop)


class TableContent(NamedTuple):
    """The structures of a table, to replace those of another one at once."""

    rows: dict[int, bytes]
    numbers: dict[str, int]
    next_number: int
    keys: Keys

    @classmethod
    def empty(cls, kind: Kind[Any]) -> TableContent:
        """That of a table without documents."""
        return cls({}, {}, 1, Keys(kind))

    @classmethod
    def of(cls, kind: Kind[Any], rows: dict[int, bytes], numbers: dict[str, int]) -> TableContent:
        """That with these rows; raises ValueError for one that cannot be indexed."""
        keys = Keys(kind)
        keys.fill(rows.values(), numbers)
        in_order = sorted(rows)
        if in_order != list(rows):
            rows = {number: rows[number] for number in in_order}
        return cls(rows, numbers, in_order[-1] + 1 if in_order else 1, keys)

    def copy(self) -> TableContent:
        """A copy that can be changed for itself."""
        return TableContent(self.rows.copy(), self.numbers.copy(), self.next_number, self.keys.copy())


class DocumentTable(Table):
    """The documents of one kind. `rows`: number -> JSON text; `numbers`: id -> number.

    `dependants` are called at every change, including undone changes and their undoing. TinyDB's methods change
    documents by `change` within the context of `changing`.
    """

    def __init__(
        self,
        kind: Kind[Any],
        *,
        change: Callable[[DocumentTable, str, int | None, bytes | None], None] | None = None,
        changing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        super().__init__(MemoryStorage(), kind.name, cache_size=0)  # type: ignore[no-untyped-call]
        self.kind = kind
        self.json_name = orjson.dumps(kind.name)
        self.dependants: list[Callable[[], None]] = []
        self.rows, self.numbers, self.next_number, self.keys = TableContent.empty(kind)
        self.in_order = self.sound = True
        self._change = change or DocumentTable.place
        self._changing = changing

    def place(
        self, identity: str, number: int | None, raw: bytes | None, document: Mapping[str, Any] | None = None
    ) -> None:
        """Make `raw` the document with this id, under this number; without a text there is no such document.

        `document` is the decoded text, if it is known. Raises ValueError for one that cannot be indexed, or under the
        number of another one. After any exception nothing has changed, unless the table is not `sound` any more.
        """
        rows, numbers, keys = self.rows, self.numbers, self.keys
        old = numbers.get(identity)
        was = becomes = None
        if raw is None or number is None:
            if old is None:
                return
            number = raw = None
        elif number != old and number < self.next_number and number in rows:
            raise ValueError(f"document number {number} exists already")
        if keys.members:
            if raw is not None:
                becomes = list(map((decoded(raw) if document is None else document).get, keys.members))
                if not _TEXTS.issuperset(map(type, becomes)):
                    keys.check(becomes)
            if old is not None:
                was = keys.of(decoded(rows[old]))
        try:
            if was is not None and old is not None and old != number:
                keys.change(was, None, old, identity)
                was = None
            if number is not None and was != becomes:
                keys.change(was, becomes, number, identity)
            if old is not None and old != number:
                del rows[old], numbers[identity]
            if number is not None and raw is not None:
                if number >= self.next_number:
                    self.next_number = number + 1
                elif number not in rows:
                    self.in_order = False
                numbers[identity] = number
                rows[number] = raw
            if self.dependants:
                self.changed()
        except Unsortable:
            self.sound = False
            self.keys = Keys(self.kind)  # anew, as a part of them may have changed
            self.keys.fill([rows[at] for at in numbers.values()], numbers)
            self.sound = True
            raise
        except BaseException:
            self.sound = False
            raise

    # As a whole

    @property
    def content(self) -> TableContent:
        """The structures of the table, not copies."""
        return TableContent(self.sorted_rows(), self.numbers, self.next_number, self.keys)

    @content.setter
    def content(self, content: TableContent) -> None:
        self.rows, self.numbers, self.next_number, self.keys = content
        self.in_order = self.sound = True
        self.changed()

    def changed(self) -> None:
        """Call the dependants."""
        for dependant in self.dependants:
            dependant()

    def sorted_rows(self) -> dict[int, bytes]:
        """The rows in insertion order (undoing a deletion appends the row to the dictionary)."""
        if not self.in_order:
            self.rows = dict(sorted(self.rows.items()))
            self.in_order = True
        return self.rows

    # Called by TinyDB's own methods

    def _read_table(self) -> dict[str, Mapping[Any, Any]]:
        return {str(number): orjson.loads(raw) for number, raw in self.sorted_rows().items()}

    def _update_table(self, updater: Callable[[dict[int, Mapping[str, Any]]], None]) -> None:
        documents: dict[int, Mapping[str, Any]] = {n: orjson.loads(raw) for n, raw in self.sorted_rows().items()}
        updater(documents)
        texts = {number: encoded(document) for number, document in documents.items()}
        with self._changing():
            for number, raw in list(self.rows.items()):
                if texts.get(number) != raw:
                    self._change(self, orjson.loads(raw)["id"], None, None)
            for number, raw in texts.items():
                if number not in self.rows:
                    identity: str = documents[number]["id"]
                    if identity in self.numbers:
                        raise ValueError(f"the document {identity!r} exists already")
                    self._change(self, identity, number, raw)

    def _get_next_id(self) -> int:
        number = self.next_number
        self.next_number += 1
        return number


@dataclass(slots=True, eq=False)
class StoredContent:
    """A whole content that the log has stored as `file`, `size` bytes; "" in memory.

    `sequence`: the change that refers to it, 0 for none; if none will, `remove` is called once nobody has it any more.
    """

    file: str = ""
    size: int = 0
    remove: Callable[[], None] = lambda: None
    sequence: int = 0

    def __del__(self) -> None:
        if not self.sequence:
            self.remove()


def _put(table: DocumentTable, document: Mapping[str, Any]) -> None:
    raw = encoded(document)
    table.place(document["id"], table.numbers.get(document["id"], table.next_number), raw, document)


class Image(NamedTuple):
    """The content of a bank at one moment, which never changes: kind -> content of its table.

    `stored`: what the log has of it, for one short `restore`, which takes the tables over.
    """

    tables: Mapping[str, TableContent]
    stored: StoredContent | None = None

    @classmethod
    def build(cls, kinds: Sequence[Kind[Any]], documents: Mapping[Kind[Any], Iterable[Document]]) -> Image:
        """The image with exactly `documents`, kind -> documents in insertion order.

        Raises ValueError for a document that cannot be stored and KeyError for a kind that is not declared.
        """
        tables = {kind.name: DocumentTable(kind) for kind in kinds}
        for kind, several in documents.items():
            for document in several:
                _put(tables[kind.name], document)
        return cls({name: table.content for name, table in tables.items()})

    def with_document(self, kind: Kind[Any], document: Mapping[str, Any]) -> Image:
        """A copy of this image with a document inserted or replaced."""
        table = DocumentTable(kind)
        if kind.name in self.tables:
            table.content = self.tables[kind.name].copy()
        _put(table, document)
        return Image({**self.tables, kind.name: table.content})

    def copy(self, stored: StoredContent | None) -> Image:
        """A copy for tables that change it."""
        return Image({name: content.copy() for name, content in self.tables.items()}, stored)

    @property
    def size(self) -> int:
        """The size of the documents in bytes, about that of a snapshot."""
        return sum(sum(map(len, table.rows.values())) for table in self.tables.values())
