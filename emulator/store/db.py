"""A store: documents in memory whose changes a log makes last.

At the end of a transaction the difference between what was and what is becomes one change of the log; if that fails, it
is undone and its events are dropped. Within a turn, a finished transaction waits for `flush`, which writes those of all
requests as one change. With a log that `confirms`, a change that was written can still be undone until `confirm` or
`revert`, and its events wait until then.

A change is `{"sequence", "clear": [kind], "delete": [[kind, number, id]], "put": [[kind, number, document]]}`, with
"clear" and "delete" only if something is deleted; for a cleared kind, "put" has every document. If the whole content
was replaced by a stored one, it is `{"sequence", "content": file, "then": the differences since}`.
"""

from __future__ import annotations

import gc
import logging
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter
from threading import Thread
from typing import Any, NamedTuple, Protocol

import orjson

from emulator.store.documents import Documents, Event, Image, PreparedImage, Replaced, Step, StoredContent
from emulator.store.errors import StoreUnwritable
from emulator.store.kinds import Kind
from emulator.store.table import DocumentTable, TableContent, decoded, encoded

logger = logging.getLogger(__name__)

Listener = Callable[[Event], None]

FREED_AT_ONCE = 50_000  # documents
RESERVED = ("_store", "_index")  # names of tables in a snapshot


class Change(NamedTuple):
    """One change: its number, and its content as JSON."""

    sequence: int
    payload: bytes


_NAMED = re.compile(rb'\{"sequence":\d+,(?:"synced":\d+,)?"content":"([^"]*)"')


def content_named(change: bytes) -> str | None:
    """The content that a change names, or None; without decoding the change."""
    named = _NAMED.match(change)
    return None if named is None else named[1].decode()


def payload(sequence: int, steps: list[Step]) -> bytes | None:
    """The change from what was before the first step to what is now; None if there is no difference."""
    head = b'{"sequence":%d,' % sequence
    if StoredContent not in map(type, steps):
        return _differences(head, steps)
    for place, step in enumerate(steps):
        if isinstance(step, StoredContent):
            step.sequence = sequence
            content, since = step, steps[place + 1 :]
    then = _differences(b"{", since) or b'{"put":[]}'
    return b'%b"content":%b,"then":%b}' % (head, orjson.dumps(content.file), then)


_document: Callable[[Any], Any] = itemgetter(0, 1)


def _single(steps: Iterable[Any], cleared: dict[DocumentTable, None]) -> Iterator[Any]:
    """The steps, each about one document; `cleared` gets the tables that are better written as a whole."""
    for step in steps:
        if not isinstance(step, Replaced):
            yield step
            continue
        table, was = step
        if len(was.numbers) > 2 * len(table.numbers):
            cleared[table] = None
        else:
            yield from ((table, identity, number, was.rows[number]) for identity, number in was.numbers.items())
            yield from ((table, identity, None, None) for identity in table.numbers)


def _differences(head: bytes, steps: list[Any]) -> bytes | None:
    cleared: dict[DocumentTable, None] = {}
    touched: Iterable[Any] = steps
    anew: set[Any] = set()
    if Replaced in map(type, steps) or len(set(map(_document, steps))) < len(steps):
        first: dict[tuple[DocumentTable, str], Any] = {}
        replaced: set[DocumentTable] = set()
        for step in steps:
            if isinstance(step, Replaced):
                replaced.add(step.table)
            elif step[0] in replaced:  # written even if it is what it was: a reset is a change
                anew.add(step[:2])
        for one in _single(steps, cleared):
            first.setdefault(one[:2], one)
        touched = first.values()
    removed: list[tuple[str, int, str]] = []
    puts: list[bytes] = []
    for table, identity, number, raw in touched:
        if table in cleared:
            continue
        now = table.numbers.get(identity)
        if now is None:
            if number is not None:
                removed.append((table.name, number, identity))
        elif now != number or table.rows[now] != raw or (table, identity) in anew:
            puts += (b"[%b,%d," % (table.json_name, now), table.rows[now], b"],")
    if cleared:
        for table in cleared:
            for place, text in table.sorted_rows().items():
                puts += (b"[%b,%d," % (table.json_name, place), text, b"],")
        head += b'"clear":[%b],' % b",".join(table.json_name for table in cleared)
    if cleared or removed:
        head += b'"delete":%b,' % orjson.dumps(removed)
    elif not puts:
        return None
    # the documents are copied once, into the whole text
    if puts:
        puts[-1] = b"]"
    return b"".join((head, b'"put":[', *puts, b"]}"))


def _forget(steps: list[Step]) -> None:
    """Forget steps that will not be undone; very large contents piece by piece, as freeing one holds all threads."""
    large = []
    if Replaced in map(type, steps):
        large = [s.before for s in steps if isinstance(s, Replaced) and len(s.before.rows) > FREED_AT_ONCE]
    steps.clear()
    if large:
        Thread(target=_free, args=(large,), name="free", daemon=True).start()


def _free(contents: list[TableContent]) -> None:
    for content in contents:
        parts: list[dict[Any, Any]] = [content.rows, content.numbers, *content.keys.indexes.values()]
        for part in parts:
            while part:
                part.popitem()
        for order in content.keys.orders.values():
            while order:
                order.pop()


class Log(Protocol):
    """Makes the changes of one bank last. Used by one thread, that of its store.

    - `MemoryLog` stores nothing: the documents exist as long as the process.
    - `JournalLog` (journal_log.py) appends each change to a file in the bank's own directory.
    - `PostgresLog` (postgres/log.py) commits it to a database, while this process is the bank's home.

    With a log that `confirms`, `append` is not the end: an answer that shows the change waits for `durable`, and until
    then the log may take it back. That is an fsync (`--durability power`) or the commit of a transaction.
    """

    @property
    def confirms(self) -> bool:
        """Whether an appended change can be reverted until `Store.confirm` is called for it."""

    @property
    def owned(self) -> bool:
        """Whether nobody else can have changed the bank by now. An answer that was computed before is then true."""

    @property
    def sync_needed(self) -> bool:
        """Whether appended changes wait for `durable`."""

    @property
    def written(self) -> float:
        """The real time of the last change that `load` has read, in seconds since 1970; 0 for none."""

    @property
    def size(self) -> int:
        """Bytes that the next start would read besides the snapshot."""

    @property
    def compaction_due(self) -> bool:
        """Whether a new snapshot would make the next start much faster, and none is being written."""

    @property
    def compacting(self) -> bool:
        """Whether a new snapshot is being written."""

    def load(self, store: Store) -> None:
        """Load all changes into the empty `store`, with its `replace` and `apply`."""

    def append(self, change: Change) -> None:
        """Append a change; if it raises StoreUnwritable, the change was not stored."""

    async def durable(self, sequence: int) -> None:
        """Wait until the changes up to this one last; StoreUnwritable if they were undone instead.

        StoreLost: somebody else has the bank. StoreUncertain: they may be stored or not.
        """

    def sync(self) -> None:
        """Make every change last before it returns, as far as that needs no waiting for others; StoreUnwritable."""

    def compaction(self, pause: Callable[[], None]) -> Coroutine[Any, Any, None]:
        """Begin a new snapshot of the present content; the coroutine writes it. StoreUnwritable if it cannot begin.

        `pause` is called in a thread, between pieces of the work.
        """

    def store_content(self, image: Image) -> StoredContent | None:
        """Store a whole content that a change can refer to; may run in any thread. None: changes must contain it.

        Raises StoreUnwritable.
        """

    def close(self, pause: Callable[[], None] | None = None) -> None:
        """Store remaining changes, compact unless `pause` cancels it, release resources; later changes are refused."""

    def discard(self) -> None:
        """Release resources without storing anything: the bank is deleted."""


class MemoryLog:
    """A log that stores nothing."""

    confirms = sync_needed = compaction_due = compacting = False
    owned = True
    written = 0.0
    size = 0

    def load(self, store: Store) -> None:
        """Do nothing."""

    def append(self, change: Change) -> None:
        """Do nothing."""

    async def durable(self, sequence: int) -> None:
        """Nothing to wait for."""

    def sync(self) -> None:
        """Do nothing."""

    async def compaction(self, pause: Callable[[], None]) -> None:
        """Do nothing: it is never due."""

    def store_content(self, _image: Image) -> StoredContent:
        """A content that needs no file: the store has it in memory."""
        return StoredContent()

    def close(self, pause: Callable[[], None] | None = None) -> None:
        """Do nothing."""

    def discard(self) -> None:
        """Do nothing."""


class WriteGroup:
    """Stores that are flushed together: while the group is `open` their finished transactions wait.

    `waiting`: the stores with a change to `flush`; `overgrown`: the stores whose log is due for compaction.
    """

    def __init__(self) -> None:
        self.open = False
        self.waiting: list[Store] = []
        self.overgrown: set[Store] = set()


class Store(Documents):
    """Documents in memory; every change is appended to `log` before its call returns, or at the `flush` of a turn.

    `sequence` is the number of the last change and never decreases. For one thread.
    """

    def __init__(self, log: Log, kinds: Iterable[Kind[Any]]) -> None:
        super().__init__(kinds)
        for name in RESERVED:
            if name in self.kinds:
                raise ValueError(f"the name {name} is reserved for snapshots")
        self.sequence = 0
        self.discarded = False  # changes are no longer stored
        self.log = log
        # where a finished transaction may wait for `flush`
        self.group: WriteGroup | None = None
        self.waiting = False
        self._lost: StoreUnwritable | None = None  # why waiting changes were undone; `flush` raises it
        self._separate = False  # after a failed `flush` changes do not wait until one succeeds
        # appended changes that are not confirmed, oldest first: number, how to undo it, events
        self._unconfirmed: list[tuple[int, list[Step], list[Event]]] = []
        self._revert_to: int | None = None  # unconfirmed changes after this one are still to be undone
        self._listeners: list[Listener] = []
        # the many new objects of a large bank would cause useless collections
        collects = gc.isenabled()
        gc.disable()
        try:
            log.load(self)
        finally:
            if collects:
                gc.enable()

    def publish(self, event: Event) -> None:
        self.outbox.append(event)
        if not (self.marks or self.waiting):
            self.deliver()

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def content(self) -> object:
        return None if self.discarded else super().content()

    def deliver(self) -> None:
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

    def prepare(self, image: Image) -> PreparedImage:
        return PreparedImage(image.contents(self.kinds), self.log.store_content(image))

    def image(self) -> Image:
        if not self.marks:
            self.write_waiting()
        return Image({name: table.content.copy(table.kind) for name, table in self.tables.items()})

    # Turns: the changes of several requests are one change of the log

    def join(self, group: WriteGroup) -> None:
        """Let finished transactions wait for `flush` while `group` is open; the log is compacted with the group."""
        self.group = group
        if self.log.compaction_due:
            group.overgrown.add(self)
        if self.log.sync_needed:  # a new bank: the answer to its creation waits for its first changes
            group.waiting.append(self)

    def commit(self) -> None:
        group = self.group
        if group is None or not group.open or self._separate:
            self._write()
        elif not self.waiting:
            self.waiting = True
            group.waiting.append(self)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        group, self.group = self.group, None
        try:
            yield
        finally:
            self.group = group

    def flush(self) -> None:
        """Append the waiting changes as one; raises StoreUnwritable, with all of them undone."""
        lost, self._lost = self._lost, None
        if self.discarded:
            self._undo_waiting()
            return
        try:
            if lost is not None:
                raise lost
            if self.waiting:
                self.waiting = False
                self._write()
        except BaseException:
            self._separate = True
            raise

    def write_waiting(self) -> None:
        """Append the waiting changes before `flush`; a StoreUnwritable, with all undone, is raised by `flush` again."""
        if self.waiting:
            self._write()

    def _write(self) -> None:
        waited, self.waiting = self.waiting, False
        sequence = self.sequence + 1
        unconfirmed = self._unconfirmed
        try:
            if self.tables is not self.every_table:  # a block in it was not undone yet
                self.finish_undo()
            change = payload(sequence, self.steps)
            if change is not None:
                if self.log.confirms:  # before it is stored, as nothing may fail after that
                    unconfirmed.append((sequence, self.steps[:], self.outbox[:]))
                self.log.append(Change(sequence, change))
        except BaseException as failed:
            self._undo_to, self.tables = 0, self._halted  # as `halt`, for which there may be no memory
            if unconfirmed and unconfirmed[-1][0] == sequence:
                del unconfirmed[-1]
            if waited:  # waiting changes were undone with one that could not wait
                self._lost = StoreUnwritable(str(failed))
            self._undo_waiting()
            raise
        if change is not None and self.log.confirms:
            self.steps.clear()  # they are in `_unconfirmed`
        else:
            _forget(self.steps)
        if change is not None:
            self.sequence = sequence
            self._separate = False
            if self.log.confirms:
                self.outbox.clear()
        if self.outbox:
            self.deliver()

    def _undo_waiting(self) -> None:
        self.halt(0)
        self.outbox.clear()
        self.waiting = False
        self.finish_undo()

    def finish_undo(self) -> None:
        if self._revert_to is not None:
            while self._unconfirmed and self._unconfirmed[-1][0] > self._revert_to:
                self.steps[:0] = self._unconfirmed[-1][1]
                del self._unconfirmed[-1]
            self.sequence, self._revert_to = self._revert_to, None
        super().finish_undo()

    # Called by a log

    def confirm(self, sequence: int) -> None:
        """Confirm the changes up to this one and deliver their events."""
        unconfirmed = self._unconfirmed
        while unconfirmed and unconfirmed[0][0] <= sequence:
            _, steps, events = unconfirmed.pop(0)
            _forget(steps)
            self._tell(events)

    def revert(self, sequence: int, reason: str) -> None:
        """Undo every change after this one, and waiting changes; the next `flush` raises the reason."""
        if self.steps or (self.group is not None and self in self.group.waiting):
            self._lost = StoreUnwritable(reason)
        self._revert_to = sequence
        self._undo_waiting()

    def apply(self, change: bytes) -> None:
        """Apply the next change of the log, without steps; the store must have no changes of its own waiting.

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
        """Replace the content by that of an image with all changes up to `sequence`; the image must not be used again.

        Raises ValueError for a document that does not fit its kind.
        """
        fitting = all(c.keys.kind is self.kinds.get(name, c.keys.kind) for name, c in image.tables.items())
        for table, content in self._with_contents(image.tables if fitting else image.contents(self.kinds)):
            table.content = content
        self.sequence = sequence

    def freeze(self) -> dict[str, TableContent]:
        """The present documents, without indexes: for another thread to read while this one continues."""
        return {
            name: TableContent.empty(table.kind)._replace(rows=table.sorted_rows().copy())
            for name, table in self.tables.items()
        }

    # The end

    def close(self, pause: Callable[[], None] | None = None) -> None:
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


def memory_store(kinds: Iterable[Kind[Any]]) -> Store:
    """A store whose documents exist in memory only."""
    return Store(MemoryLog(), kinds)
