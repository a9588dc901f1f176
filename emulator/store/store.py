"""The documents of one bank: by id, by index, by order, changed all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from emulator.store.change import Replaced, Undo, payload, undo
from emulator.store.compaction import Compaction
from emulator.store.database import Documents
from emulator.store.errors import StoreUnwritable
from emulator.store.image import FrozenTable, Image, TableImage
from emulator.store.kinds import D, Kind, by_name
from emulator.store.reading import Readable
from emulator.store.snapshot import INDEX_TABLE, STORE_TABLE
from emulator.store.storage import JournalStorage, VolatileStorage, logger
from emulator.store.syncing import SyncTicket
from emulator.store.table import DocumentTable


class _Transaction:
    """The context of `Store.transaction`: one object serves every nesting."""

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> None:
        store = self._store
        store.marks.append(len(store.steps))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        store = self._store
        mark = store.marks.pop()
        if kind is not None:
            undo(store.steps, down_to=mark)
        elif not store.marks and store.steps:
            store.commit()


class WriteGroup:
    """Stores that are written together: while it is `open` their finished transactions wait.

    `waiting`: those with a change to `flush`; `overgrown`: those whose journal has outgrown the snapshot.
    """

    def __init__(self) -> None:
        self.open = False
        self.waiting: list[Store] = []
        self.overgrown: set[Store] = set()


class Store(Readable):
    """Documents in memory, every change written down before its call returns. For one thread.

    `sequence` is the number of the last change; it grows for ever. `discarded`: nothing needs to be kept any more.
    """

    def __init__(self, storage: JournalStorage | VolatileStorage, kinds: Iterable[Kind[Any]]) -> None:
        super().__init__()
        self.kinds = by_name(kinds)
        for name in (STORE_TABLE, INDEX_TABLE):
            if name in self.kinds:
                raise ValueError(f"the name {name} is the snapshot's own")
        self.sequence = 0
        self.discarded = False
        self._kept = storage if isinstance(storage, JournalStorage) else None
        # of the open transaction: what it changed, and where each of its blocks began
        self.steps: list[Undo] = []
        self.marks: list[int] = []
        # where a finished transaction may wait for `flush`
        self.group: WriteGroup | None = None
        self.waiting = False
        self._lost: StoreUnwritable | None = None
        self._separate = False  # after a failed `flush` no change waits until one succeeds
        # changes that a failing fsync would take back, each with its number
        self._unsynced: list[tuple[int, list[Undo]]] = []
        self._transaction = _Transaction(self)
        self.database = Documents(storage, self.steps, self.transaction)
        for name in self.kinds:
            self._table(name)
        if self._kept is not None:
            found = self._kept.hand_over()
            found.fill(self._table)
            self.sequence = found.sequence

    def _table(self, name: str) -> DocumentTable:
        """The table of a kind; one that is not declared (an older version's) is kept as it is."""
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = self.database.declare(name, self.kinds.get(name) or Kind(name))
        return table

    # Changing

    def put(self, kind: Kind[D], document: D) -> None:
        """Insert the document or replace the one with its id; ValueError when it cannot be kept."""
        self._tables[kind.name].keep(document)
        if not self.marks and self.steps:
            self.commit()

    def delete(self, kind: Kind[Any], identity: str) -> bool:
        """Delete the document; False when there is none."""
        found = self._tables[kind.name].drop(identity)
        if found and not self.marks:
            self.commit()
        return found

    def transaction(self) -> AbstractContextManager[None]:
        """A `with` block whose changes are kept all or none, and are written down when the outermost block ends.

        An exception undoes what was changed in its block and in the blocks inside it. Raises StoreUnwritable, with
        everything undone, when the changes cannot be written down.
        """
        return self._transaction

    def commit(self) -> None:
        """Write down what the outermost block of `transaction` has changed; raises as it does."""
        group = self.group
        if group is None or not group.open or self._separate:
            self._write_down()
        elif not self.waiting:
            self.waiting = True
            group.waiting.append(self)

    def join(self, group: WriteGroup) -> None:
        """Let finished transactions wait for `flush` while `group` is open."""
        self.group = group

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A `with` block whose transactions wait for no `flush`, so that a failing one fails by itself."""
        group, self.group = self.group, None
        try:
            yield
        finally:
            self.group = group

    @property
    def power(self) -> bool:
        """Whether what is answered outlives a power cut."""
        return self._kept is not None and self._kept.power

    def flush(self) -> None:
        """Write down as one change what was left waiting; StoreUnwritable, with all of it undone."""
        self.waiting, lost, self._lost = False, self._lost, None
        if self.discarded:
            self.steps.clear()
            return
        if lost is not None:
            undo(self.steps)
            self._separate = True
            raise lost
        if self.steps:
            try:
                self._write_down()
            except BaseException:
                self._separate = True
                raise

    def _write_down(self) -> None:
        steps, kept, sequence = self.steps, self._kept, self.sequence + 1
        waited, self.waiting = self.waiting, False
        try:
            change = payload(sequence, steps)
            if change is None:
                steps.clear()
                return
            if kept is not None:
                kept.append(change)
        except BaseException as failed:
            undo(steps)
            if waited:  # what waited went with a change that could not wait; `flush` says so
                self._lost = StoreUnwritable(str(failed))
            raise
        self.sequence = sequence
        self._separate = False
        if kept is not None:
            if kept.power:
                self._unsynced.append((sequence, steps.copy()))
            if self.group is not None and kept.compaction_due:
                self.group.overgrown.add(self)
        steps.clear()

    # The whole content

    def image(self) -> Image:
        """The whole content as it stands, for `restore`."""
        return Image({name: TableImage.of(table) for name, table in self._tables.items()})

    def restore(self, image: Image) -> None:
        """Make the content exactly the picture's, as one change (of a transaction, if one is open)."""
        with self._transaction:
            for name in [*self._tables, *(name for name in image.tables if name not in self._tables)]:
                table = self._table(name)
                self.steps.append(Replaced(table))
                (image.tables.get(name) or TableImage.bare({})).onto(table)

    # Durability `power`: an answer may leave once `synced` has reached the sequence that it saw

    @property
    def synced(self) -> int:
        """The last change that is as durable as asked for."""
        return self._kept.synced if self._kept is not None and self._kept.power else self.sequence

    @property
    def sync_needed(self) -> bool:
        """Changes wait for an fsync."""
        return self._kept is not None and self._kept.sync_needed

    def begin_sync(self) -> SyncTicket:
        """An fsync for all changes so far: `run` it in any thread, then `finish_sync`."""
        return self._directory().begin_sync()

    def finish_sync(self, ticket: SyncTicket) -> None:
        """Take note of an fsync that has run.

        When it failed: StoreUnwritable, after every change that is not synced was undone; from then on every change
        raises StoreUnwritable until a restart.
        """
        kept = self._directory()
        if self.marks or not ticket.done:
            raise RuntimeError("an fsync is finished after it ran and outside of transactions")
        if ticket.failed is None and (ticket.sequence <= kept.synced or kept.refusal is None):
            kept.synced_by(ticket)
            self._unsynced = [waiting for waiting in self._unsynced if waiting[0] > kept.synced]
            return
        if kept.refusal is None:
            kept.give_up(f"an fsync failed, changes are refused until a restart: {ticket.failed}")
            while self._unsynced:
                undo(self._unsynced.pop()[1])
            self.sequence = kept.synced
            if self.group is not None and self in self.group.waiting:  # its `flush` is still to come
                self._lost = StoreUnwritable(kept.refusal)
        raise StoreUnwritable(kept.refusal)

    def sync(self) -> None:
        """Make every change so far durable; raises StoreUnwritable as `finish_sync` does."""
        if self.waiting:
            self._write_down()
        if self.sync_needed:
            ticket = self.begin_sync()
            ticket.run()
            self.finish_sync(ticket)

    # Compaction

    @property
    def compaction_due(self) -> bool:
        """The journal has outgrown the snapshot."""
        return self._kept is not None and self._kept.compaction_due

    def begin_compaction(self) -> Compaction:
        """A new snapshot of the present content: `run` it in any thread, then `finish_compaction`.

        With `power` it syncs first, so best call it when nothing waits. Raises StoreUnwritable.
        """
        return self._begin_compaction(FrozenTable)

    def _begin_compaction(self, picture: type[FrozenTable] | Callable[[DocumentTable], TableImage]) -> Compaction:
        if self.marks:
            raise RuntimeError("a compaction begins outside of transactions")
        # or a power cut could leave the new journal file without the end of the old one
        self.sync()
        return self._directory().begin_compaction(lambda: {n: picture(table) for n, table in self._tables.items()})

    def finish_compaction(self, compaction: Compaction) -> None:
        """Take note of a compaction that has run; a failed one is logged and leaves everything valid."""
        self._end_compaction(compaction)
        if compaction.failed is not None:
            logger.warning("%s: the snapshot could not be renewed: %s", self._directory().directory, compaction.failed)

    def _end_compaction(self, compaction: Compaction) -> None:
        kept = self._directory()
        if kept.compaction is compaction:
            kept.end_compaction(compaction)
            for table in self._tables.values():
                table.before = None

    def compact(self, pause: Callable[[], None] | None = None) -> None:
        """Renew the snapshot; raises StoreUnwritable when that fails, with everything as valid as before.

        `pause` may end it, as that of `Compaction.run`.
        """
        # nothing changes meanwhile, so the tables themselves are written, indexes and all
        compaction = self._begin_compaction(TableImage.alias)
        compaction.run(pause)
        self._end_compaction(compaction)
        if not compaction.placed:
            raise StoreUnwritable(f"the snapshot could not be renewed: {compaction.failed or 'there was no time'}")

    def _directory(self) -> JournalStorage:
        if self._kept is None:
            raise RuntimeError("documents in memory are not written down")
        return self._kept

    def close(self, pause: Callable[[], None] | None = None) -> None:
        """Renew the snapshot, unless `pause` ends that, and let go of the directory.

        Reads go on, changes raise StoreUnwritable.
        """
        kept = self._kept
        if kept is None:
            return
        kept.abandon_compaction()
        try:
            if self.waiting:
                self._attempt(self._write_down)
            if kept.compaction_useful:
                self._attempt(lambda: self.compact(pause))
            self._attempt(self.sync)
        finally:
            kept.close()

    def discard(self) -> None:
        """Let go of the directory as it is, for nobody opens it any more."""
        self.discarded = True
        if self._kept is not None:
            self._kept.abandon_compaction()
            self._kept.close()

    def moved(self, directory: Path) -> None:
        """The directory has this name now; not while a compaction is under way."""
        self._directory().moved(directory)

    def _attempt(self, last_step: Callable[[], None]) -> None:
        try:
            last_step()
        except StoreUnwritable as failed:
            # the journal has every change that was acknowledged
            logger.warning("%s: %s", self._directory().directory, failed)
