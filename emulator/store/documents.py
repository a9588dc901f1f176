"""The documents of one bank: in memory, changed in transactions, with a log that makes the changes last.

A transaction notes what each document was (`Step`) before anything changes, so that undoing is to place that again. At
its end the difference between what was and what is becomes one change of the log; if that fails, it is undone and its
events are dropped. Within a turn, a finished transaction waits for `flush`, which writes those of all requests as one
change. With a log that `confirms`, a change that was written can still be undone until `confirm` or `revert`, and its
events wait until then.

    a change is   where                         until
    open          `steps`, from its mark on     the end of the outermost block; an exception: undone back to the mark
    waiting       `steps`, in `group.waiting`   `flush`; earlier `write_waiting`, or a change that cannot wait
    unconfirmed   `_unconfirmed`                `confirm` or `revert`; only with a log that `confirms`
    lasting       the log                       a later change

    failure                            consequence
    an exception in a block            its changes are undone, its events dropped; the blocks around it may go on
    the log refuses an append          all waiting changes are undone, and `flush` raises, also if they were written
                                       early (`_undone`); changes are then written one by one until one succeeds
    fsync or commit fails (`revert`)   every later change is undone, too, and their numbers are used again

Where even the undoing fails, for which memory must be very short, the documents are `lost`: nothing is read or changed,
and open blocks and the turn fail with all that they have changed. The next access after them loads the documents anew
from the log. So no later change is ever written with the rest of an earlier one. Documents in memory only stay lost.
"""

from __future__ import annotations

import gc
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice
from operator import itemgetter
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar, Unpack

import orjson

from emulator.store.errors import StoreUnwritable
from emulator.store.keys import Value
from emulator.store.kinds import D, Document, Kind, by_name, decoded, encoded
from emulator.store.table import DocumentTable, Image, StoredContent, TableContent

logger = logging.getLogger(__name__)

AT_ONCE = 256  # rows
LOST = "a change could not be undone, and everything since then is undone with it"

Event = dict[str, Any]
"""An event for listeners: `{"type": ..., ...}`, JSON."""

Key = TypeVar("Key")
Cached = TypeVar("Cached")


class Change(NamedTuple):
    """One change: its number, itself as JSON, and the whole content that it names.

    As JSON `{"sequence", "clear": [kind], "delete": [[kind, number, id]], "put": [[kind, number, document]]}`, with
    "clear" and "delete" only if something is deleted; for a cleared kind, "put" has every document. With a content
    it is `{"sequence", "content": file, "then": the differences since}`.
    """

    sequence: int
    payload: bytes
    content: StoredContent | None = None


_NAMED = re.compile(rb'\{"sequence":\d+,(?:"synced":\d+,)?"content":"([^"]*)"')


def content_named(change: bytes) -> str | None:
    """The content that a change names, or None; without decoding the change."""
    named = _NAMED.match(change)
    return None if named is None else named[1].decode()


class Replaced(NamedTuple):
    """The whole content that a table had before it was replaced."""

    table: DocumentTable
    before: TableContent


Step = tuple[DocumentTable, str, int | None, bytes | None] | Replaced | StoredContent
"""What was there before a change: table, id, number and text of a document (None: it did not exist), or more.

After a StoredContent, the steps before it need not be written.
"""


def difference(sequence: int, steps: list[Step]) -> Change | None:
    """The change from what was before the first step to what is now; None if there is no difference."""
    head = b'{"sequence":%d,' % sequence
    if StoredContent not in (types := set(map(type, steps))):
        payload = _differences(head, steps, Replaced in types)
        return None if payload is None else Change(sequence, payload)
    for place, step in enumerate(steps):
        if isinstance(step, StoredContent):
            content, since = step, steps[place + 1 :]
    then = _differences(b"{", since, True) or b'{"put":[]}'
    return Change(sequence, b'%b"content":%b,"then":%b}' % (head, orjson.dumps(content.file), then), content)


_document: Callable[[Any], Any] = itemgetter(0, 1)


def _differences(head: bytes, steps: list[Any], replaced: bool) -> bytes | None:
    cleared: dict[DocumentTable, None] = {}  # tables that are better written as a whole
    anew: set[Any] = set()
    if replaced:
        steps = list(_single_steps(steps, cleared, anew))
    touched: dict[Any, Any] = dict.fromkeys(map(_document, steps))
    last_first = steps[::-1]
    touched.update(zip(map(_document, last_first), last_first, strict=True))  # the first step of each
    if cleared:
        touched = {place: step for place, step in touched.items() if step[0] not in cleared}
    removed: list[tuple[str, int, str]] = []
    puts: list[bytes] = []
    for table, identity, number, raw in touched.values():
        now = table.numbers.get(identity)
        if now is None:
            if number is not None:
                removed.append((table.name, number, identity))
        elif now != number or table.rows[now] != raw or (anew and (table, identity) in anew):
            puts += (b"[%b,%d," % (table.json_name, now), table.rows[now], b"],")
    for table in cleared:
        for now, text in table.sorted_rows().items():
            puts += (b"[%b,%d," % (table.json_name, now), text, b"],")
    if cleared:
        head += b'"clear":[%b],' % b",".join(table.json_name for table in cleared)
    if cleared or removed:
        head += b'"delete":%b,' % orjson.dumps(removed)
    elif not puts:
        return None
    # the documents are copied once, into the whole text
    if puts:
        puts[-1] = b"]"
    return b"".join((head, b'"put":[', *puts, b"]}"))


def _single_steps(steps: list[Step], cleared: dict[DocumentTable, None], anew: set[Any]) -> Iterator[Any]:
    """The steps with the documents of a replaced table one by one, unless that is to be `cleared`.

    Documents that were put after that are written `anew` even if they are what they were: a reset is a change.
    """
    replaced: set[DocumentTable] = set()
    for step in steps:
        if isinstance(step, Replaced):
            replaced.add(step.table)
        if isinstance(step, StoredContent):
            continue
        if not isinstance(step, Replaced):
            if step[0] in replaced:
                anew.add(step[:2])
            yield step
        elif len(step.before.numbers) > 2 * len(step.table.numbers):
            cleared[step.table] = None
        else:
            for identity, number in step.before.numbers.items():
                yield step.table, identity, number, step.before.rows[number]
            for identity in step.table.numbers:
                yield step.table, identity, None, None


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
        for at in range(0, len(rows), AT_ONCE):
            yield (b"," if at else b"") + b",".join(rows[at : at + AT_ONCE])
        yield b"]"
        opening = b","
    yield b"}"


class _LostTables(Mapping[str, DocumentTable]):
    """The tables of lost documents: every access has to find them first, or raises StoreUnwritable."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def __getitem__(self, name: str) -> DocumentTable:
        return self._documents.regained()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._documents.regained())

    def __len__(self) -> int:
        return len(self._documents.regained())


class _OpenTransaction:
    """One `with` block of `Documents.transaction`."""

    _depth = 0  # 0: not entered, or ended

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def __enter__(self) -> None:
        documents = self._documents
        self._steps, self._events = len(documents.steps), len(documents.outbox)
        self._depth = documents.depth = documents.depth + 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        documents, depth, self._depth = self._documents, self._depth, 0
        if depth != documents.depth:  # a block in it did not end
            documents.lose()
        documents.depth = depth - 1
        if kind is not None or documents.tables is documents.lost_tables:
            documents.tables = documents.lost_tables
            del documents.outbox[self._events :]
            documents.undo(self._steps)
            if kind is None:
                raise StoreUnwritable(LOST)
        elif depth == 1:
            if documents.steps:
                documents.commit()
            elif documents.outbox:
                documents.deliver()

    def __del__(self) -> None:
        if self._depth and self._depth <= self._documents.depth:  # there was no memory for `__exit__`
            self._documents.lose()
            self._documents.depth = self._depth - 1


class Log:
    """Makes the changes of one bank last. Used by one thread, that of its documents. This one stores nothing.

    - `JournalLog` (journal_log.py) appends each change to a file in the bank's own directory.
    - `PostgresLog` (postgres/log.py) commits it to a database, while this process is the bank's home.

    With a log that `confirms`, `append` is not the end: an answer that shows the change waits for `durable`, and until
    then the log may take it back with `Documents.revert`. That is an fsync (`--durability power`) or a commit.

    `written`: the real time of the last change that was loaded, in seconds since 1970, 0 for none; `size`: bytes that
    the next start would read besides the snapshot; `compacting`: a new snapshot is being written.
    """

    confirms = False
    compacting = False
    written = 0.0
    size = 0

    @property
    def owned(self) -> bool:
        """Whether nobody else can have changed the bank by now. An answer that was computed before is then true."""
        return True

    @property
    def sync_needed(self) -> bool:
        """Whether appended changes wait for `durable`."""
        return False

    @property
    def compaction_due(self) -> bool:
        """Whether a new snapshot would make the next start much faster, and none is being written."""
        return False

    def load(self, documents: Documents) -> None:
        """Load all changes into the empty `documents`, with its `replace` and `apply`.

        It is called once more, with other documents, if those of the bank were lost; StoreUnwritable if that is not
        possible.
        """
        if documents.log is not self:
            raise StoreUnwritable("the documents were in memory only, and are lost")

    def append(self, change: Change) -> None:
        """Append a change; if it raises, the change was not stored. From then on its content belongs to the log."""

    def durable(self, sequence: int) -> Awaitable[None]:
        """Wait, from this call on, until the changes up to this one last; StoreUnwritable if they are undone instead.

        StoreLost: somebody else has the bank. StoreUncertain: they may be stored or not.
        """
        raise NotImplementedError

    def sync(self) -> None:
        """Make every change last before it returns, as far as that needs no waiting for others; StoreUnwritable."""

    def compaction(self, pause: Callable[[], None]) -> Coroutine[Any, Any, None]:
        """Begin a new snapshot of the present content; the coroutine writes it. StoreUnwritable if it cannot begin.

        `pause` is called in a thread, between pieces of the work.
        """
        raise NotImplementedError

    def store_content(self, image: Image) -> StoredContent:  # noqa: ARG002
        """Store a whole content that a change can refer to; may run in any thread. Raises StoreUnwritable."""
        return StoredContent()

    def close(self, pause: Callable[[], None] = lambda: None) -> None:
        """Store remaining changes, compact unless `pause` cancels it, release resources; later changes are refused."""

    def discard(self) -> None:
        """Release resources without storing anything: the bank is deleted."""


class Bounds(TypedDict, total=False):
    """What `Documents.range` takes besides kind and order."""

    group: str | None
    low: Value | None
    high: Value | None
    reverse: bool
    offset: int
    limit: int | None


class WriteGroup:
    """Documents that are flushed together: while it is `open` finished transactions wait in those of `waiting`."""

    def __init__(self) -> None:
        self.open = False
        self.waiting: list[Documents] = []


class Documents:
    """The documents of a bank, for one thread; every change is given to `log` before its call returns, or at `flush`.

    Returned documents are new copies. All methods raise KeyError for a kind that is not declared. `sequence` is the
    number of the last change; a `revert` sets it back, and numbers are used again.
    """

    def __init__(self, log: Log, kinds: Iterable[Kind[Any]]) -> None:
        self.kinds = by_name(kinds)
        if "_store" in self.kinds:
            raise ValueError("the name _store is reserved for snapshots")
        self.sequence = 0
        self.discarded = False  # changes are no longer stored
        self.log = log
        self._tables: dict[str, DocumentTable] = {}
        self.tables: Mapping[str, DocumentTable] = self._tables
        # the tables until something is undone, as the call for it may fail; once it is `lost`, it cannot be undone
        self.lost_tables = _LostTables(self)
        self.lost = False
        # steps and events of the open transaction or of those that wait, and how many blocks are open
        self.steps: list[Step] = []
        self.outbox: list[Event] = []
        self.depth = 0
        # where a finished transaction may wait for `flush`
        self.group: WriteGroup | None = None
        self.waiting = False
        self._separate = False  # after a failure changes do not wait until one succeeds, so that reads go on
        self._undone: StoreUnwritable | None = None  # why waiting changes were undone; `flush` raises it
        # appended changes that are not confirmed, oldest first: number, how to undo it, events
        self._unconfirmed: list[tuple[int, list[Step], list[Event]]] = []
        self._listeners: list[Callable[[Event], None]] = []
        for name in self.kinds:
            self.table(name)
        # the many new objects of a large bank would cause useless collections
        collects = gc.isenabled()
        gc.disable()
        try:
            log.load(self)
        finally:
            if collects:
                gc.enable()

    def table(self, name: str) -> DocumentTable:
        """The table of a kind; an undeclared kind (of an older version) gets a table without indexes."""
        table = self.tables.get(name)
        if table is None:
            kind = self.kinds.get(name) or Kind(name)
            table = self._tables[name] = DocumentTable(kind, change=self._change, changing=self.transaction)
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
        return None if self.discarded else next(iter(self.tables.values())).numbers

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
        elif limit is not None:
            numbers = numbers[:limit]
        return [orjson.loads(table.rows[number]) for number in numbers]

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
        table, raw = self.tables[kind.name], encoded(document)
        identity: str = document["id"]
        number = table.numbers.get(identity)
        if number is None:
            number = table.next_number
        elif table.rows[number] == raw:
            return
        self._change(table, identity, number, raw, document)
        if not self.depth:
            self.commit()

    def delete(self, kind: Kind[Any], identity: str) -> bool:
        """Delete the document; False if it does not exist."""
        return self.delete_several(kind, (identity,)) == 1

    def delete_several(self, kind: Kind[Any], identities: Iterable[str]) -> int:
        """Delete these documents as one change; returns how many existed."""
        table = self.tables[kind.name]
        present = [identity for identity in dict.fromkeys(identities) if identity in table.numbers]
        if present:
            with self.transaction():
                for identity in present:
                    self._change(table, identity, None, None)
        return len(present)

    def transaction(self) -> AbstractContextManager[None]:
        """A `with` block whose changes are stored all or none, and are appended when the outermost block ends.

        An exception undoes the changes of its block and of the blocks inside it, and drops their events. Raises
        StoreUnwritable, with everything undone, if the changes cannot be stored.
        """
        if self.lost and not (self.depth or self.waiting):
            self.regained()
        return _OpenTransaction(self)

    def image(self) -> Image:
        """The present content, for `restore`. Waiting changes are written first; raises StoreUnwritable."""
        if not self.depth:
            self.write_waiting()
        return Image({name: table.content.copy() for name, table in self.tables.items()})

    def prepare(self, image: Image) -> Image:
        """Prepare an image of any size for one short `restore`; may run in any thread. Raises StoreUnwritable."""
        return image.copy(self.log.store_content(image))

    def restore(self, image: Image) -> None:
        """Replace the content by the image's, as one change (of a transaction, if one is open)."""
        with self.transaction():
            self._replace((image if image.stored is not None else image.copy(None)).tables, noted=True)
            if image.stored is not None:
                self.steps.append(image.stored)

    def _replace(self, contents: Mapping[str, TableContent], *, noted: bool) -> None:
        """Replace the content of every table, `noted` as steps of the open transaction."""
        for name in {**self.tables, **contents}:
            table = self.table(name)
            if noted:
                self.steps.append(Replaced(table, table.content))
            table.content = contents.get(name) or TableContent.empty(table.kind)

    def _change(
        self,
        table: DocumentTable,
        identity: str,
        number: int | None,
        raw: bytes | None,
        document: Mapping[str, Any] | None = None,
    ) -> None:
        """Change one document, after noting what it was; raises as `DocumentTable.place`."""
        was, steps = table.numbers.get(identity), self.steps
        steps.append((table, identity, was, None if was is None else table.rows[was]))
        try:
            table.place(identity, number, raw, document)
        except BaseException:
            if table.sound:
                steps.pop()
            else:
                self.lose()
            raise

    # Undoing

    def undo(self, down_to: int) -> None:
        """Undo the steps after the first `down_to`; raises StoreUnwritable if the documents are lost."""
        if self.lost:
            raise StoreUnwritable(LOST)
        steps = self.steps
        self.tables = self._tables  # followers read them
        try:
            while len(steps) > down_to:
                step = steps[-1]
                if isinstance(step, Replaced):
                    step.table.content = step.before
                elif not isinstance(step, StoredContent):
                    table, identity, number, raw = step
                    table.place(identity, number, raw)
                del steps[-1]
        except BaseException as error:
            self.lose()
            if not isinstance(error, Exception):
                raise
            raise StoreUnwritable(f"a change could not be undone: {error!r}") from error

    def lose(self) -> None:
        """Refuse to read or change anything until the documents are loaded anew."""
        self.lost, self.tables = True, self.lost_tables

    def regained(self) -> Mapping[str, DocumentTable]:
        """The tables of lost documents, loaded anew from the log; StoreUnwritable."""
        if self.depth or self.waiting:  # who counts on changes that are lost is to fail first
            raise StoreUnwritable(LOST)
        try:
            loaded = memory_store(self.kinds.values())
            self.log.load(loaded)
            self.tables = self._tables
            self._replace({name: table.content for name, table in loaded.tables.items()}, noted=False)
        except Exception as error:
            self.lose()
            if isinstance(error, StoreUnwritable):
                raise
            raise StoreUnwritable(f"the documents cannot be loaded anew: {error!r}") from error
        self.lost, self.sequence = False, loaded.sequence
        self.steps.clear()
        self.outbox.clear()
        self.confirm(self.sequence)
        return self._tables

    # Events

    def publish(self, event: Event) -> None:
        """Deliver an event to the listeners as soon as all changes so far are stored."""
        self.outbox.append(event)
        if not (self.depth or self.waiting):
            self.deliver()

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with every event that is published from now on."""
        self._listeners.append(listener)

    def deliver(self) -> None:
        """Deliver the events published since the last change."""
        events = self.outbox[:]
        self.outbox.clear()
        if self._unconfirmed:
            self._unconfirmed[-1][2].extend(events)
        else:
            self._tell(events)

    def _tell(self, events: Iterable[Event]) -> None:
        for event in events:
            for listener in self._listeners:
                try:
                    listener(event)
                except Exception:  # a failing listener must not undo the change
                    logger.exception("an event could not be delivered")

    # Writing: the changes of several requests are one change of the log

    def join(self, group: WriteGroup) -> None:
        """Let finished transactions wait for `flush` while `group` is open."""
        self.group = group
        if self.log.sync_needed:  # a new bank: the answer to its creation waits for its first changes
            group.waiting.append(self)

    def commit(self) -> None:
        """Append the changes of a transaction, or let them wait; raises as `transaction` does."""
        group = self.group
        if group is None or not group.open or self._separate:
            self._write()
        elif not self.waiting:
            self.waiting = True
            group.waiting.append(self)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A `with` block whose transactions do not wait for `flush`, so that each fails by itself."""
        group, self.group = self.group, None
        try:
            yield
        finally:
            self.group = group

    def flush(self) -> None:
        """Append the waiting changes as one; raises StoreUnwritable, with all of them undone."""
        if (undone := self._undone) is not None:
            self._undone = None
            raise undone
        if self.discarded:
            self._undo_waiting()
        elif self.waiting:
            self.waiting = False
            self._write()

    def write_waiting(self) -> None:
        """Append the waiting changes before `flush`; a StoreUnwritable, with all undone, is raised by `flush` again."""
        if self.waiting:
            self._write()

    def _write(self) -> None:
        waited, self.waiting = self.waiting, False
        sequence, unconfirmed = self.sequence + 1, self._unconfirmed
        try:
            if self.tables is self.lost_tables:
                raise StoreUnwritable(LOST)
            change = difference(sequence, self.steps)
            if change is not None:
                if self.log.confirms:  # before it is stored, as nothing may fail after that
                    unconfirmed.append((sequence, self.steps[:], self.outbox[:]))
                self.log.append(change)
        except BaseException as failed:
            self.tables = self.lost_tables
            if unconfirmed and unconfirmed[-1][0] == sequence:
                del unconfirmed[-1]
            self._separate = True
            if waited:  # waiting changes were undone with one that could not wait
                self._undone = StoreUnwritable(str(failed))
            self._undo_waiting()
            raise
        self.steps.clear()
        self._separate = False
        if change is not None:
            self.sequence = sequence
            if self.log.confirms:
                self.outbox.clear()
        if self.outbox:
            self.deliver()

    def _undo_waiting(self) -> None:
        self.outbox.clear()
        self.waiting = False
        self.undo(0)

    # Called by a log

    def confirm(self, sequence: int) -> None:
        """Confirm the changes up to this one and deliver their events."""
        while self._unconfirmed and self._unconfirmed[0][0] <= sequence:
            self._tell(self._unconfirmed.pop(0)[2])

    def revert(self, sequence: int, reason: str) -> None:
        """Undo every change after this one, and waiting changes; the next `flush` raises the reason."""
        if self.steps or (self.group is not None and self in self.group.waiting):
            self._undone = StoreUnwritable(reason)
        while self._unconfirmed and self._unconfirmed[-1][0] > sequence:
            self.steps[:0] = self._unconfirmed.pop()[1]
        self.sequence, self.tables = sequence, self.lost_tables
        with suppress(StoreUnwritable):  # they are lost, and the log has no more than the changes up to this one
            self._undo_waiting()

    def apply(self, change: bytes) -> None:
        """Apply the next change of the log, without steps; the documents must have no changes of their own waiting.

        A content that the change names must have been loaded before (see `replace`). Removed and moved documents come
        first, since another document may have got their number. Raises ValueError, KeyError, TypeError or
        AttributeError for a change that does not fit these documents.
        """
        if self.steps or self._unconfirmed:
            raise RuntimeError("a change of the log is applied while another change is in progress")
        whole = decoded(change)
        differences = whole.get("then", whole)
        for kind in differences.get("clear", ()):
            table = self.table(kind)
            table.content = TableContent.empty(table.kind)
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
        self._replace(image.tables, noted=False)
        self.sequence = sequence

    def freeze(self) -> dict[str, TableContent]:
        """The present documents, without indexes: for another thread to read while this one continues."""
        return {
            name: TableContent.empty(table.kind)._replace(rows=table.sorted_rows().copy())
            for name, table in self.tables.items()
        }

    # The end

    def close(self, pause: Callable[[], None] = lambda: None) -> None:
        """Write waiting changes and close the log; `pause` may end the work of the log early.

        Reads still work, changes raise StoreUnwritable.
        """
        try:
            self.write_waiting()
        except StoreUnwritable as failed:
            logger.warning("the last changes could not be stored: %s", failed)
        self.log.close(pause)

    def discard(self) -> None:
        """Close the log without storing anything: the bank is deleted."""
        self.discarded = True
        self.log.discard()
        with suppress(StoreUnwritable):
            self._undo_waiting()


def memory_store(kinds: Iterable[Kind[Any]]) -> Documents:
    """Documents that exist in memory only."""
    return Documents(Log(), kinds)
