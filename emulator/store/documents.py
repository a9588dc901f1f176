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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from types import TracebackType
from typing import Any

from emulator.store.errors import StoreLost, StoreUnwritable
from emulator.store.kinds import D, Kind, encoded
from emulator.store.loaded import LoadedDocuments
from emulator.store.log import Log
from emulator.store.table import DocumentTable, Image, Replaced, Step, difference

logger = logging.getLogger(__name__)

LOST = "a change could not be undone, and everything since then is undone with it"

Event = dict[str, Any]
"""An event for listeners: `{"type": ..., ...}`, JSON."""


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


class WriteGroup:
    """Documents that are flushed together: while it is `open` finished transactions wait in those of `waiting`."""

    def __init__(self) -> None:
        self.open = False
        self.waiting: list[Documents] = []


class Documents(LoadedDocuments):
    """The documents of a bank, for one thread; every change is given to `log` before its call returns, or at `flush`.

    Returned documents are new copies. All methods raise KeyError for a kind that is not declared. `sequence` is the
    number of the last change; a `revert` sets it back, and numbers are used again.
    """

    def __init__(self, log: Log, kinds: Iterable[Kind[Any]]) -> None:
        super().__init__(kinds)
        self.discarded = False  # changes are no longer stored
        self.log = log
        # They stand in for the tables from before something is undone until `undo` puts these back: without memory even
        # the call of `undo` may fail, and nothing may be read then. Once `lost` they stay until the next load.
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
        self.failures = 0  # how often finished transactions were undone
        # appended changes that are not confirmed, oldest first: number, how to undo it, events
        self._unconfirmed: list[tuple[int, list[Step], list[Event]]] = []
        self._listeners: list[Callable[[Event], None]] = []
        # the many new objects of a large bank would cause useless collections
        collects = gc.isenabled()
        gc.disable()
        try:
            log.load(self)
        finally:
            if collects:
                gc.enable()

    def take(self, tables: dict[str, DocumentTable]) -> None:
        """Use these tables from now on, whose documents TinyDB's own methods change as `put` does."""
        for table in tables.values():
            table.change, table.changing = self._change, self.transaction
        super().take(tables)

    def content(self) -> object:
        """An object whose identity changes when the whole content is replaced (a reset) or discarded."""
        return None if self.discarded else self._tables

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
        return Image(self.present()).copy(None)

    def prepare(self, image: Image) -> Image:
        """Prepare an image of any size for one short `restore`; may run in any thread. Raises StoreUnwritable."""
        return image.copy(self.log.store_content(image))

    def restore(self, image: Image) -> None:
        """Replace the content by the image's, as one change (of a transaction, if one is open)."""
        tables = (image if image.stored is not None else image.copy(None)).tables
        with self.transaction():
            self.steps.append(Replaced(self._tables, image.stored))
            self.replace_tables(tables)

    def _change(
        self,
        table: DocumentTable,
        identity: str,
        number: int | None,
        raw: bytes | None,
        document: Mapping[str, Any] | None = None,
    ) -> None:
        """Change one document, after noting what it was; raises as `DocumentTable.place`."""
        was = table.numbers.get(identity)
        self.steps.append((table, identity, was, None if was is None else table.rows[was]))
        try:
            table.place(identity, number, raw, document)
        except BaseException:
            if table.sound:
                self.steps.pop()
            else:
                self.lose()
            raise

    # Undoing

    def undoing(self, restore: Callable[[], None]) -> None:
        """Call `restore` if the open transaction is undone, whenever that is; for what is in memory beside documents.

        It must not read documents, nor fail.
        """
        self.steps.append(restore)

    def undo(self, down_to: int) -> None:
        """Undo the steps (`table.Step`) after the first `down_to`, the last first; StoreUnwritable if they are lost."""
        if self.lost:
            raise StoreUnwritable(LOST)
        steps = self.steps
        self.tables = self._tables  # followers read them
        try:
            while len(steps) > down_to:
                step = steps[-1]
                if isinstance(step, Replaced):
                    self.take(step.before)
                elif callable(step):
                    step()
                else:
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
            loaded = LoadedDocuments(self.kinds.values())
            self.log.load(loaded)
            self.tables = self._tables
            self.replace_tables(loaded.tables)
        except Exception as error:
            self.lose()
            if isinstance(error, StoreUnwritable):
                raise
            raise StoreUnwritable(f"the documents cannot be loaded anew: {error!r}") from error
        self.lost, self.sequence = False, loaded.sequence
        for step in reversed(self.steps):
            if callable(step):
                step()
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
        if self.log.sync_needed:  # a new bank: `flush` has nothing to write, but the turn waits for its first changes
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
            try:
                self._write()
            except MemoryError as failed:
                raise _undone_with(failed) from failed

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
            change = difference(sequence, self.steps, self.tables)
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
                self._undone = _undone_with(failed)
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
        self.failures += 1
        self.outbox.clear()
        self.waiting = False
        self.undo(0)

    # Called by a log

    def confirm(self, sequence: int) -> None:
        """Confirm the changes up to this one and deliver their events."""
        while self._unconfirmed and self._unconfirmed[0][0] <= sequence:
            self._tell(self._unconfirmed.pop(0)[2])

    def revert(self, sequence: int, error: StoreUnwritable) -> None:
        """Undo every change after this one, and waiting changes; the next `flush` raises an error for these."""
        if self.steps or (self.group is not None and self in self.group.waiting):
            self._undone = _undone_with(error)
        while self._unconfirmed and self._unconfirmed[-1][0] > sequence:
            self.steps[:0] = self._unconfirmed.pop()[1]
        self.sequence, self.tables = sequence, self.lost_tables
        with suppress(StoreUnwritable):  # they are lost, and the log has no more than the changes up to this one
            self._undo_waiting()

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


def _undone_with(failed: BaseException) -> StoreUnwritable:
    """The error for waiting changes that were undone because others failed: it is known that they are not stored."""
    if isinstance(failed, StoreLost):
        return failed
    return StoreUnwritable("not enough memory" if isinstance(failed, MemoryError) else str(failed))


def memory_store(kinds: Iterable[Kind[Any]]) -> Documents:
    """Documents that exist in memory only."""
    return Documents(Log(), kinds)
