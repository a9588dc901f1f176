"""The documents of one bank in memory, with indexes, orders and transactions; a log stores and orders their changes.

A transaction collects how to undo each of its changes (tx.py), and the events that are published meanwhile. At its end
they are written as one change of the log; if that fails they are undone and the events dropped. Within a turn, a
finished transaction waits for `flush`, which writes those of all requests as one change. With a log that `confirms`, a
change that was written can still be undone until `confirm` or `revert`, and its events wait until then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from emulator.store.documents import Documents, Event
from emulator.store.errors import StoreUnwritable
from emulator.store.image import FrozenTable, Image, PreparedImage, TableImage
from emulator.store.kinds import D, Kind, by_name
from emulator.store.snapshot import INDEX_TABLE, STORE_TABLE
from emulator.store.table import DocumentTable, TableContent, decoded
from emulator.store.tx import ReplacedTable, StoredContent, Undo, payload, repeat, undo

logger = logging.getLogger(__name__)

Listener = Callable[[Event], None]


class Change(NamedTuple):
    """One change: its number, and its content as JSON (see `tx.payload`)."""

    sequence: int
    payload: bytes


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
        ...

    @property
    def owned(self) -> bool:
        """Whether nobody else can have changed the bank by now. An answer that was computed before is then true."""
        ...

    @property
    def sync_needed(self) -> bool:
        """Whether appended changes wait for `durable`."""
        ...

    @property
    def written(self) -> float:
        """The real time of the last change that `load` has read, in seconds since 1970; 0 for none."""
        ...

    @property
    def size(self) -> int:
        """Bytes that the next start would read besides the snapshot."""
        ...

    @property
    def compaction_due(self) -> bool:
        """Whether a new snapshot would make the next start much faster, and none is being written."""
        ...

    @property
    def compacting(self) -> bool:
        """Whether a new snapshot is being written."""
        ...

    def load(self, store: Store) -> None:
        """Load all changes into the empty `store`, with its `replace` and `apply`."""
        ...

    def append(self, change: Change) -> None:
        """Append a change; if it raises StoreUnwritable, the change was not stored."""
        ...

    async def durable(self, sequence: int) -> None:
        """Wait until the changes up to this one last; StoreUnwritable if they were undone instead.

        StoreLost: somebody else has the bank. StoreUncertain: they may be stored or not.
        """
        ...

    def sync(self) -> None:
        """Make every change last before it returns, as far as that needs no waiting for others; StoreUnwritable."""
        ...

    def compaction(self, pause: Callable[[], None]) -> Coroutine[Any, Any, None]:
        """Begin a new snapshot of the present content; the coroutine writes it. StoreUnwritable if it cannot begin.

        `pause` is called in a thread, between pieces of the work.
        """
        ...

    def store_content(self, image: Image) -> StoredContent | None:
        """Store a whole content that a change can refer to; may run in any thread. None: changes must contain it.

        Raises StoreUnwritable.
        """
        ...

    def close(self, pause: Callable[[], None] | None = None) -> None:
        """Store remaining changes, compact unless `pause` cancels it, release resources; later changes are refused."""
        ...

    def discard(self) -> None:
        """Release resources without storing anything: the bank is deleted."""
        ...


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


class _StoreTransaction:
    """The context manager of `Store.transaction`: one object for all levels of nesting."""

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> None:
        store = self._store
        store.marks.append((len(store.steps), len(store.outbox)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        store = self._store
        steps, events = store.marks.pop()
        if kind is not None:
            undo(store.steps, down_to=steps)
            del store.outbox[events:]
        if not store.marks:
            if store.steps:
                if kind is None:
                    store.commit()
            elif store.outbox:
                store.deliver()


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
        super().__init__()
        self.kinds = by_name(kinds)
        for name in (STORE_TABLE, INDEX_TABLE):
            if name in self.kinds:
                raise ValueError(f"the name {name} is reserved for snapshots")
        self.sequence = 0
        self.discarded = False  # changes are no longer stored
        self.log = log
        # undo steps and events of the open transaction or of those that wait, and where each nested block began
        self.steps: list[Undo] = []
        self.outbox: list[Event] = []
        self.marks: list[tuple[int, int]] = []
        # where a finished transaction may wait for `flush`
        self.group: WriteGroup | None = None
        self.waiting = False
        self._lost: StoreUnwritable | None = None  # why waiting changes were undone; `flush` raises it
        self._separate = False  # after a failed `flush` changes do not wait until one succeeds
        # appended changes that are not confirmed, oldest first: number, how to undo it, events
        self._unconfirmed: list[tuple[int, list[Undo], list[Event]]] = []
        self._listeners: list[Listener] = []
        self._transaction = _StoreTransaction(self)
        for name in self.kinds:
            self.table(name)
        log.load(self)

    def table(self, name: str) -> DocumentTable:
        """The table of a kind; an undeclared kind (of an older version) gets a table without indexes."""
        table = self.tables.get(name)
        if table is None:
            kind = self.kinds.get(name) or Kind(name)
            table = DocumentTable(kind, record=self.steps.append, changing=self.transaction)
            self.tables[name] = table
        return table

    # Changing

    def put(self, kind: Kind[D], document: D) -> None:
        self.tables[kind.name].put(document)
        if not self.marks and self.steps:
            self.commit()

    def delete(self, kind: Kind[Any], identity: str) -> bool:
        existed = self.tables[kind.name].delete(identity)
        if existed and not self.marks:
            self.commit()
        return existed

    def delete_several(self, kind: Kind[Any], identities: Iterable[str]) -> int:
        with self._transaction:
            return self.tables[kind.name].delete_several(identities)

    def transaction(self) -> AbstractContextManager[None]:
        return self._transaction

    def publish(self, event: Event) -> None:
        self.outbox.append(event)
        if not (self.marks or self.waiting):
            self.deliver()

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def content(self) -> object:
        return None if self.discarded else super().content()

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

    def prepare(self, image: Image) -> PreparedImage:
        return PreparedImage(self._contents(image), self.log.store_content(image))

    def _contents(self, image: Image, *, copy: bool = True) -> dict[str, TableContent]:
        contents: dict[str, TableContent] = {}
        for name, table_image in image.tables.items():
            kind = self.tables[name].kind if name in self.tables else Kind(name)
            try:
                contents[name] = table_image.content(kind, copy=copy)
            except ValueError as wrong:
                raise ValueError(f"a document of kind {name}: {wrong}") from wrong
        return contents

    def restore(self, image: Image | PreparedImage) -> None:
        prepared = image if isinstance(image, PreparedImage) else PreparedImage(self._contents(image), None)
        with self._transaction:
            for table, content in self._with_contents(prepared.tables):
                self.steps.append(ReplacedTable(table))
                table.content = content
            if prepared.stored is not None:
                self.steps.append(prepared.stored)

    def _with_contents(self, contents: Mapping[str, TableContent]) -> Iterator[tuple[DocumentTable, TableContent]]:
        """Every table with its content among `contents`."""
        for name in {**self.tables, **contents}:
            table = self.table(name)
            yield table, contents.get(name) or TableContent.empty(table.kind)

    def image(self) -> Image:
        if not self.marks:
            self.write_waiting()
        return Image({name: TableImage.of(table) for name, table in self.tables.items()})

    # Turns: the changes of several requests are one change of the log

    def join(self, group: WriteGroup) -> None:
        """Let finished transactions wait for `flush` while `group` is open; the log is compacted with the group."""
        self.group = group
        if self.log.compaction_due:
            group.overgrown.add(self)
        if self.log.sync_needed:  # a new bank: the answer to its creation waits for its first changes
            group.waiting.append(self)

    def commit(self) -> None:
        """Append the changes of the outermost `transaction`, or let them wait; raises as `transaction` does."""
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
            self._undo()
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
        steps, sequence = self.steps, self.sequence + 1
        try:
            change = payload(sequence, steps)
            if change is not None:
                self.log.append(Change(sequence, change))
        except BaseException as failed:
            self._undo()
            if waited:  # waiting changes were undone with one that could not wait
                self._lost = StoreUnwritable(str(failed))
            raise
        if change is None:
            steps.clear()
            if self.outbox:
                self.deliver()
            return
        self.sequence = sequence
        self._separate = False
        if self.log.confirms:
            self._unconfirmed.append((sequence, steps.copy(), self.outbox.copy()))
            self.outbox.clear()
        elif self.outbox:
            self.deliver()
        steps.clear()

    def _undo(self) -> None:
        undo(self.steps)
        self.outbox.clear()
        self.waiting = False

    # Called by a log

    def confirm(self, sequence: int) -> None:
        """Confirm the changes up to this one and deliver their events."""
        unconfirmed = self._unconfirmed
        while unconfirmed and unconfirmed[0][0] <= sequence:
            self._tell(unconfirmed.pop(0)[2])

    def revert(self, sequence: int, reason: str) -> None:
        """Undo every change after this one, and waiting changes; the next `flush` raises the reason."""
        if self.steps or (self.group is not None and self in self.group.waiting):
            self._lost = StoreUnwritable(reason)
        self._undo()
        while self._unconfirmed and self._unconfirmed[-1][0] > sequence:
            undo(self._unconfirmed.pop()[1])
        self.sequence = sequence

    def apply(self, change: bytes) -> None:
        """Apply the next change of the log; the store must have no changes of its own waiting.

        A content that the change names must have been loaded before (see `replace`). Raises ValueError, KeyError,
        TypeError or AttributeError for a change that cannot be applied.
        """
        if self.steps or self._unconfirmed:
            raise RuntimeError("a change of the log is applied while another change is in progress")
        differences = decoded(change)
        repeat(differences.get("then", differences), self.table)
        self.sequence += 1

    def replace(self, image: Image, sequence: int) -> None:
        """Replace the content by that of an image with all changes up to `sequence`; the image must not be used again.

        Raises ValueError for a document that does not fit its kind.
        """
        for table, content in self._with_contents(self._contents(image, copy=False)):
            table.content = content
        self.sequence = sequence

    def freeze(self) -> dict[str, FrozenTable]:
        """The present content, for another thread to read while this one continues; until `thaw`."""
        return {name: FrozenTable(table) for name, table in self.tables.items()}

    def thaw(self) -> None:
        """Release the tables of `freeze`, which are no longer read."""
        for table in self.tables.values():
            table.before = None

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
        self._undo()
        self.log.discard()


def memory_store(kinds: Iterable[Kind[Any]]) -> Store:
    """A store whose documents exist in memory only."""
    return Store(MemoryLog(), kinds)
