"""The documents of one bank: by id, by index, by order, changed all or nothing, each change handed to a log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, cast

from tinydb import TinyDB
from tinydb.storages import MemoryStorage

from emulator.store.documents import Documents
from emulator.store.errors import StoreUnwritable
from emulator.store.image import FrozenTable, Image, Prepared, TableImage
from emulator.store.kinds import D, Kind, by_name
from emulator.store.log import Change, Event, Log, MemoryLog
from emulator.store.snapshot import INDEX_TABLE, STORE_TABLE
from emulator.store.table import DocumentTable, decoded
from emulator.store.tx import Replaced, Undo, payload, repeat, unchanged, undo

logger = logging.getLogger(__name__)

Listener = Callable[[Event], None]


class Database(TinyDB):
    """TinyDB over tables that are read and written by document; changes go through `changing`, a transaction."""

    table_class = DocumentTable

    def __init__(self, steps: list[Undo], changing: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__(storage=MemoryStorage)  # the tables hold what there is, the log keeps it
        self._steps = steps
        self._changing = changing
        self._declared: dict[str, DocumentTable] = {}

    def declare(self, name: str, kind: Kind[Any]) -> DocumentTable:
        """The table of a kind."""
        table = cast(DocumentTable, self.table(name, kind=kind, steps=self._steps, changing=self._changing))
        self._declared[name] = table
        return table

    def tables(self) -> set[str]:
        """The names of all kinds."""
        return set(self._declared)

    def drop_table(self, name: str) -> None:
        """Delete every document of a kind; the kind stays declared."""
        if name in self._declared:
            self._declared[name].truncate()

    def drop_tables(self) -> None:
        """Delete every document."""
        with self._changing():
            for table in self._declared.values():
                table.truncate()


class _Transaction:
    """The context of `Store.transaction`: one object serves every nesting."""

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
    """Stores that are written together: while it is `open` their finished transactions wait.

    `waiting`: the stores with a change to `flush`; `overgrown`: those whose log is to be compacted.
    """

    def __init__(self) -> None:
        self.open = False
        self.waiting: list[Store] = []
        self.overgrown: set[Store] = set()


class Store(Documents):
    """Documents in memory; every change is handed to `log` before its call returns, or at the `flush` of a turn.

    `sequence` is the number of the last change; it grows for ever. For one thread.

    What is published within a transaction is delivered to the listeners when the log has the change, and dropped with
    it. A log that `confirms` may lose a change after its append: until `confirm` it can be reverted, and its events
    wait.
    """

    def __init__(self, log: Log, kinds: Iterable[Kind[Any]]) -> None:
        super().__init__()
        self.kinds = by_name(kinds)
        for name in (STORE_TABLE, INDEX_TABLE):
            if name in self.kinds:
                raise ValueError(f"the name {name} is the snapshot's own")
        self.sequence = 0
        self.discarded = False  # nothing needs to be kept any more
        self.log = log
        # of the open transaction, or of those that wait: what was changed and published, and where each block began
        self.steps: list[Undo] = []
        self.outbox: list[Event] = []
        self.marks: list[tuple[int, int]] = []
        # where a finished transaction may wait for `flush`
        self.group: WriteGroup | None = None
        self.waiting = False
        self._lost: StoreUnwritable | None = None  # why what waited was undone, for `flush` to raise
        self._separate = False  # after a failed `flush` no change waits until one succeeds
        # appended changes that are not confirmed, oldest first: number, how to undo it, events
        self._unconfirmed: list[tuple[int, list[Undo], list[Event]]] = []
        self._listeners: list[Listener] = []
        self._transaction = _Transaction(self)
        self.database = Database(self.steps, self.transaction)
        for name in self.kinds:
            self.table(name)
        log.load(self)

    def table(self, name: str) -> DocumentTable:
        """The table of a kind; one that is not declared (an older version's) is kept as it is."""
        table = self.tables.get(name)
        if table is None:
            table = self.tables[name] = self.database.declare(name, self.kinds.get(name) or Kind(name))
        return table

    # Changing

    def put(self, kind: Kind[D], document: D) -> None:
        """Insert the document or replace the one with its id; ValueError when it cannot be kept."""
        self.tables[kind.name].keep(document)
        if not self.marks and self.steps:
            self.commit()

    def delete(self, kind: Kind[Any], identity: str) -> bool:
        """Delete the document; False when there is none."""
        existed = self.tables[kind.name].drop(identity)
        if existed and not self.marks:
            self.commit()
        return existed

    def delete_several(self, kind: Kind[Any], identities: Iterable[str]) -> int:
        """Delete these documents, as one change; how many there were."""
        with self._transaction:
            return self.tables[kind.name].drop_several(identities)

    def transaction(self) -> AbstractContextManager[None]:
        """A `with` block whose changes are kept all or none, and are appended when the outermost block ends.

        An exception undoes what was changed in its block and in the blocks inside it, and drops what was published
        there. Raises StoreUnwritable, with everything undone, when the changes cannot be kept.
        """
        return self._transaction

    def publish(self, event: Event) -> None:
        """Tell the listeners, as soon as all that was changed so far is kept."""
        self.outbox.append(event)
        if not (self.marks or self.waiting):
            self.deliver()

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every event that is published from now on."""
        self._listeners.append(listener)

    def content(self) -> object:
        return None if self.discarded else super().content()

    def deliver(self) -> None:
        """Hand over what was published since the last change; where others hear it too, it is a change of its own."""
        if self.log.shared:
            self.commit()
            return
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
                except Exception:  # the change is kept, whoever cannot hear of it
                    logger.exception("an event could not be delivered")

    def prepare(self, image: Image) -> Prepared:
        """What `restore` takes a moment for, however large the image is; in any thread. Raises StoreUnwritable."""
        tables = memory_store(self.kinds.values())
        for name, picture in image.tables.items():
            picture.onto(tables.table(name))
        return Prepared(tables.tables, self.log.store_content(image))

    def restore(self, image: Image | Prepared) -> None:
        """Make the content exactly the image's, as one change (of a transaction, if one is open)."""
        if isinstance(image, Prepared):
            self._take_over(image)
            return
        with self._transaction:
            for name in [*self.tables, *(name for name in image.tables if name not in self.tables)]:
                table = self.table(name)
                self.steps.append(Replaced(table))
                (image.tables.get(name) or TableImage.bare({})).onto(table)

    def _take_over(self, prepared: Prepared) -> None:
        with self._transaction:
            for name in [*self.tables, *(name for name in prepared.tables if name not in self.tables)]:
                table = self.table(name)
                self.steps.append(Replaced(table))
                if name in prepared.tables:
                    table.take_over(prepared.tables[name])
                else:
                    table.empty()
            if prepared.stored is not None:
                self.steps.append(prepared.stored)

    def image(self) -> Image:
        """The whole content as it stands, for `restore`. What waits is written first; raises StoreUnwritable."""
        if not self.marks:
            self.write_waiting()
        return Image({name: TableImage.of(table) for name, table in self.tables.items()})

    # Turns: what several requests change is one change of the log

    def join(self, group: WriteGroup) -> None:
        """Let finished transactions wait for `flush` while `group` is open; be compacted with the group."""
        self.group = group
        if self.log.compaction_due:
            group.overgrown.add(self)

    def commit(self) -> None:
        """Append what the outermost block of `transaction` has changed, or let it wait; raises as it does."""
        group = self.group
        if group is None or not group.open or self._separate:
            self._write()
        elif not self.waiting:
            self.waiting = True
            group.waiting.append(self)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A `with` block whose transactions wait for no `flush`, so that a failing one fails by itself."""
        group, self.group = self.group, None
        try:
            yield
        finally:
            self.group = group

    def flush(self) -> None:
        """Append as one change what waits; StoreUnwritable, with all of it undone."""
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
        """Append what waits before its `flush`, which then raises too if this does: StoreUnwritable, all undone."""
        if self.waiting:
            self._write()

    def _write(self) -> None:
        waited, self.waiting = self.waiting, False
        steps, sequence = self.steps, self.sequence + 1
        try:
            change = payload(sequence, steps)
            if change is None and self.outbox and self.log.shared:
                change = unchanged(sequence)
            if change is not None:
                self.log.append(Change(sequence, change, tuple(self.outbox)))
        except BaseException as failed:
            self._undo()
            if waited:  # what waited went with a change that could not wait
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

    # What a log calls

    def confirm(self, sequence: int) -> None:
        """The changes up to this one count; their events are delivered."""
        unconfirmed = self._unconfirmed
        while unconfirmed and unconfirmed[0][0] <= sequence:
            self._tell(unconfirmed.pop(0)[2])

    def revert(self, sequence: int, reason: str) -> None:
        """Undo every change after this one, and what waits; a `flush` that is still to come raises the reason."""
        if self.steps or (self.group is not None and self in self.group.waiting):
            self._lost = StoreUnwritable(reason)
        self._undo()
        while self._unconfirmed and self._unconfirmed[-1][0] > sequence:
            undo(self._unconfirmed.pop()[1])
        self.sequence = sequence

    def apply(self, change: bytes, events: Iterable[Event] = ()) -> None:
        """Repeat the next change of the log, and deliver its events; nothing of this store's own may wait.

        Raises ValueError, KeyError, TypeError or AttributeError for what cannot be repeated.
        """
        if self.steps or self._unconfirmed:
            raise RuntimeError("a change of the log comes in only where no other is under way")
        repeat(decoded(change), self.table)
        self.sequence += 1
        self._tell(events)

    def replace(self, image: Image, sequence: int) -> None:
        """Make the content that of an image which has all changes up to `sequence`, and which is given away.

        Raises ValueError for a document that does not fit its kind.
        """
        for name in [*self.tables, *(name for name in image.tables if name not in self.tables)]:
            picture = image.tables.get(name) or TableImage.bare({})
            try:
                picture.onto(self.table(name), give_away=True)
            except ValueError as wrong:
                raise ValueError(f"a document of kind {name}: {wrong}") from wrong
        self.sequence = sequence

    def freeze(self) -> dict[str, FrozenTable]:
        """The content as it stands, for another thread to read while this one goes on; until `thaw`."""
        return {name: FrozenTable(table) for name, table in self.tables.items()}

    def alias(self) -> dict[str, TableImage]:
        """The content as it stands, indexes and all, good until the next change."""
        return {name: TableImage.alias(table) for name, table in self.tables.items()}

    def thaw(self) -> None:
        """Nobody reads what `freeze` gave any more."""
        for table in self.tables.values():
            table.before = None

    # The end

    def close(self, pause: Callable[[], None] | None = None) -> None:
        """Keep what waits and close the log, which goes as far as `pause` lets it.

        Reads go on, changes raise StoreUnwritable.
        """
        try:
            self.write_waiting()
        except StoreUnwritable as failed:
            logger.warning("the last changes could not be kept: %s", failed)
        self.log.close(pause)

    def discard(self) -> None:
        """Close the log as it is, for nobody opens it any more."""
        self.discarded = True
        self._undo()
        self.log.discard()


def memory_store(kinds: Iterable[Kind[Any]]) -> Store:
    """A store that keeps nothing beyond the process."""
    return Store(MemoryLog(), kinds)
