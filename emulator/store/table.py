"""The documents of one kind in memory: a TinyDB table of JSON texts, with ids, indexes and orders; images of all kinds,
and the difference that some steps have made.

Stock TinyDB reads and writes the whole table for every operation. Here each document is a JSON text under its TinyDB
document id, a number that is also its place in the order of insertion, so that reading decodes one copy and writing
replaces one document. TinyDB's own methods (search, update, remove, ...) are based on that.

`place` is the only function that changes a document: it serves changes, their undoing and the replay of a log. A
snapshot is loaded as a whole (`DocumentTable.of`), in half the time. If `place` fails midway, for which memory must be
very short, the table is not `sound`, and not to be used any more.

The whole content of a bank is replaced by other tables, and undoing that is to take the former ones back.

A step notes what was there before: undoing is to place that again, the last step first. A change is the difference
between what was there before the first step and what is there now, each document at most once, whatever happened to it
in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import orjson
from tinydb.storages import MemoryStorage
from tinydb.table import Table

from emulator.store.kinds import SNAPSHOTS, Keys, Kind, decoded, encoded

Rows = Mapping[str, Mapping[int, bytes]]
"""Kind -> number -> JSON text of a document, in insertion order."""


class DocumentTable(Table):
    """The documents of one kind. `rows`: number -> JSON text; `numbers`: id -> number.

    `dependants` are called at every change, including undone changes and their undoing. TinyDB's methods change
    documents by `change` within the context of `changing`.
    """

    def __init__(self, kind: Kind[Any], keys: Keys | None = None) -> None:
        super().__init__(MemoryStorage(), kind.name, cache_size=0)  # type: ignore[no-untyped-call]
        self.kind = kind
        self.json_name = orjson.dumps(kind.name)
        self.dependants: list[Callable[[], None]] = []
        self.rows: dict[int, bytes] = {}
        self.numbers: dict[str, int] = {}
        self.next_number = 1
        self.keys = keys or Keys(kind)
        self.in_order = self.sound = True
        self.change: Callable[[DocumentTable, str, int | None, bytes | None], None] = DocumentTable.place
        self.changing: Callable[[], AbstractContextManager[None]] = nullcontext

    @classmethod
    def of(cls, kind: Kind[Any], rows: dict[int, bytes], numbers: dict[str, int]) -> DocumentTable:
        """A table with these rows; raises ValueError for one that cannot be indexed."""
        table = cls(kind)
        table.keys.fill(rows.values(), numbers)
        in_order = sorted(rows)
        table.rows = rows if in_order == list(rows) else {number: rows[number] for number in in_order}
        table.numbers, table.next_number = numbers, in_order[-1] + 1 if in_order else 1
        return table

    def copy(self) -> DocumentTable:
        """A copy, for itself."""
        table = DocumentTable(self.kind, self.keys.copy())
        table.rows, table.numbers = self.sorted_rows().copy(), self.numbers.copy()
        table.next_number = self.next_number
        return table

    def place(
        self, identity: str, number: int | None, raw: bytes | None, document: Mapping[str, Any] | None = None
    ) -> None:
        """Make `raw` the document with this id, under this number; without a text there is no such document.

        `document` is the decoded text, if it is known. Raises ValueError for one that cannot be indexed, or under the
        number of another one. After any exception nothing has changed, unless the table is not `sound` any more.
        """
        rows, numbers, keys = self.rows, self.numbers, self.keys
        old = numbers.get(identity)
        was = becomes = keys.nothing
        if raw is None or number is None:
            if old is None:
                return
            number = raw = None
        elif number != old and number < self.next_number and number in rows:
            raise ValueError(f"document number {number} exists already")
        if keys.members:
            if raw is not None:
                becomes = list(map((decoded(raw) if document is None else document).get, keys.members))
                if not keys.unchecked.issuperset(map(type, becomes)):
                    keys.check(becomes)
            if old is not None:
                was = keys.of(decoded(rows[old]))
        try:
            if old is not None and old != number:
                keys.change(was, keys.nothing, old, identity)
                was = keys.nothing
                del rows[old], numbers[identity]
            if number is not None and raw is not None:
                if was != becomes:
                    keys.change(was, becomes, number, identity)
                if number >= self.next_number:
                    self.next_number = number + 1
                elif number not in rows:
                    self.in_order = False
                numbers[identity] = number
                rows[number] = raw
            if self.dependants:
                self.changed()
        except BaseException:
            self.sound = False
            raise

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
        with self.changing():
            for number, raw in list(self.rows.items()):
                if texts.get(number) != raw:
                    self.change(self, orjson.loads(raw)["id"], None, None)
            for number, raw in texts.items():
                if number not in self.rows:
                    identity: str = documents[number]["id"]
                    if identity in self.numbers:
                        raise ValueError(f"the document {identity!r} exists already")
                    self.change(self, identity, number, raw)

    def _get_next_id(self) -> int:
        number = self.next_number
        self.next_number += 1
        return number


@dataclass(slots=True, eq=False)
class StoredContent:
    """A whole content that the log has stored as `file`, `size` bytes.

    Unless it is `kept`, as a change or a snapshot refers to it, `remove` is called once nobody has it any more.
    """

    file: str
    size: int = 0
    remove: Callable[[], None] = lambda: None
    kept: bool = False

    def keep(self) -> None:
        self.kept = True

    def __del__(self) -> None:
        if not self.kept:
            self.remove()


class Image(NamedTuple):
    """The content of a bank at one moment, which never changes: kind -> table.

    `stored`: what the log has of it, for one short `restore`, which takes the tables over.
    """

    tables: Mapping[str, DocumentTable]
    stored: StoredContent | None = None

    def with_document(self, kind: Kind[Any], document: Mapping[str, Any]) -> Image:
        """A copy of this image with a document inserted or replaced."""
        table = self.tables[kind.name].copy() if kind.name in self.tables else DocumentTable(kind)
        table.place(document["id"], table.numbers.get(document["id"], table.next_number), encoded(document), document)
        return Image({**self.tables, kind.name: table})

    def copy(self, stored: StoredContent | None) -> Image:
        """A copy for tables that change it."""
        return Image({name: table.copy() for name, table in self.tables.items()}, stored)

    @property
    def rows(self) -> Rows:
        """The documents, without indexes, as a snapshot has them."""
        return {name: table.sorted_rows() for name, table in self.tables.items()}

    @property
    def size(self) -> int:
        """The size of the documents in bytes, about that of a snapshot."""
        return sum(sum(map(len, table.rows.values())) for table in self.tables.values())


# Changes


class Change(NamedTuple):
    """One change: its number, itself as JSON, and the whole content that it names.

    As JSON `{"sequence", "clear": [kind], "delete": [[kind, number, id]], "put": [[kind, number, document]]}`, with
    "clear" and "delete" only if something is deleted; for a cleared kind, "put" has every document. With a content
    it is `{"sequence", "content": file, "then": the differences since}`.
    """

    sequence: int
    payload: bytes
    content: StoredContent | None = None


class Replaced(NamedTuple):
    """The tables that there were before all of them were replaced, and what the log has of the new content."""

    before: dict[str, DocumentTable]
    stored: StoredContent | None


Step = tuple[DocumentTable, str, int | None, bytes | None] | Replaced | Callable[[], None]
"""What was there before a change: table, id, number and text of a document (None: it did not exist), or everything; or
what is called to undo a change of something else in memory."""


_document: Callable[[Any], Any] = itemgetter(0, 1)


def difference(sequence: int, steps: list[Any], tables: Mapping[str, DocumentTable]) -> Change | None:
    """The change from what was before the first step to what is now; None if there is no difference."""
    parts, content = [b'{"sequence":%d,' % sequence], None
    cleared: dict[DocumentTable, None] = {}  # tables that are better written as a whole
    anew: set[Any] = set()
    if not {tuple}.issuperset(map(type, steps)):
        for place, step in enumerate(steps):
            if isinstance(step, Replaced) and step.stored is not None:  # what was before it does not matter
                content, since = step.stored, place + 1
        if content is not None:
            parts.append(b'"content":%b,"then":{' % orjson.dumps(content.file))
            # but for the snapshots, which are no part of it
            former = [step for step in steps[:since] if type(step) is tuple and step[0].kind is SNAPSHOTS]
            steps = [*former, *steps[since:]]
        steps = list(_single_steps(steps, tables, cleared, anew))
    touched: dict[Any, Any] = {}  # the first step of each document
    for step in steps:
        touched.setdefault(_document(step), step)
    removed: list[tuple[str, int, str]] = []
    puts: list[bytes] = []
    for table, identity, number, raw in touched.values():
        now = table.numbers.get(identity)
        if cleared and table in cleared:
            continue
        if now is None:
            if number is not None:
                removed.append((table.name, number, identity))
        elif now != number or table.rows[now] != raw or (anew and (table, identity) in anew):
            puts += (b"[%b,%d," % (table.json_name, now), table.rows[now], b"],")
    for table in cleared:
        for now, text in table.sorted_rows().items():
            puts += (b"[%b,%d," % (table.json_name, now), text, b"],")
    if cleared:
        parts.append(b'"clear":[%b],' % b",".join(table.json_name for table in cleared))
    if cleared or removed:
        parts.append(b'"delete":%b,' % orjson.dumps(removed))
    elif not puts and content is None:
        return None
    # the documents are copied once, into the whole text
    if puts:
        puts[-1] = b"]"
    return Change(sequence, b"".join((*parts, b'"put":[', *puts, b"]}" if content is None else b"]}}")), content)


def _single_steps(
    steps: list[Step], tables: Mapping[str, DocumentTable], cleared: dict[DocumentTable, None], anew: set[Any]
) -> Iterator[Any]:
    """The steps with the documents of a replaced table one by one, unless that is to be `cleared`; with the tables of
    now.

    Documents that were put after that are written `anew` even if they are what they were: a reset is a change.
    """
    replaced = False
    for step in steps:
        if isinstance(step, Replaced):
            replaced = True
            for name, table in tables.items():
                before = step.before[name] if name in step.before else DocumentTable(table.kind)
                if len(before.numbers) > 2 * len(table.numbers):
                    cleared[table] = None
                else:
                    for identity, number in before.numbers.items():
                        yield table, identity, number, before.rows[number]
                    for identity in table.numbers:
                        yield table, identity, None, None
        elif isinstance(step, tuple):
            former, *place = step
            table = tables[former.name]
            if replaced:
                anew.add((table, place[0]))
            yield (table, *place)
