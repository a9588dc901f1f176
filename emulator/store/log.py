"""Logs, which store and order the changes of a bank.

A store has all documents in memory; its log has every change to them. There are three logs:

- `MemoryLog` stores nothing: the documents exist as long as the process.
- `JournalLog` (journal_log.py) appends each change to a file in the bank's own directory, within the call.
- A shared log (postgres/) only records the change in `append`; at the end of the turn it is written, and
  `Store.confirm` is called, or `Store.revert` if it could not be written. Changes of other processes are passed to
  `Store.apply`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from emulator.store.tx import StoredContent

if TYPE_CHECKING:
    from emulator.store.db import Store
    from emulator.store.image import Image

Event = dict[str, Any]
"""An event for listeners: `{"type": ..., ...}`, JSON."""


class Change(NamedTuple):
    """One change: its number, its content as JSON (see `tx.payload`), and the events published with it."""

    sequence: int
    payload: bytes
    events: Sequence[Event]


class Log(Protocol):
    """Stores the changes of one bank. Used by one thread, that of its store."""

    @property
    def confirms(self) -> bool:
        """Whether an appended change can be reverted until `Store.confirm` is called for it."""
        ...

    @property
    def shared(self) -> bool:
        """Whether other processes read the changes and deliver their events."""
        ...

    @property
    def compaction_due(self) -> bool:
        """Whether a compaction or checkpoint would make the next start much faster."""
        ...

    def load(self, store: Store) -> None:
        """Load all changes into the empty `store`, with its `replace` and `apply`."""
        ...

    def append(self, change: Change) -> None:
        """Append a change; if it raises StoreUnwritable, the change was not stored."""
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

    confirms = False
    shared = False
    compaction_due = False

    def load(self, store: Store) -> None:
        """Do nothing."""

    def append(self, change: Change) -> None:
        """Do nothing."""

    def store_content(self, _image: Image) -> StoredContent:
        """A content that needs no file: the store has it in memory."""
        return StoredContent()

    def close(self, pause: Callable[[], None] | None = None) -> None:
        """Do nothing."""

    def discard(self) -> None:
        """Do nothing."""
