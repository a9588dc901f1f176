"""Where the changes of a bank are kept and ordered.

A store holds all documents in memory; its log has every change to them. Three logs are known:

- `MemoryLog` keeps nothing: the documents live as long as the process.
- `JournalLog` (journal_log.py) appends each change to a file of the bank's own directory, within the call.
- A log that processes share appends elsewhere: `append` only takes note of the change, whoever ends the turn writes it
  down and calls `Store.confirm`, or `Store.revert` where it could not be written. What others have appended comes in
  through `Store.apply`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from emulator.store.tx import StoredContent

if TYPE_CHECKING:
    from emulator.store.db import Store
    from emulator.store.image import Image

Event = dict[str, Any]
"""What listeners hear of a change: `{"type": ..., ...}`, JSON."""


class Change(NamedTuple):
    """One change: its number, what it did as JSON (see `tx.payload`), and what was published with it."""

    sequence: int
    payload: bytes
    events: Sequence[Event]


class Log(Protocol):
    """Where the changes of one bank are kept. Used by one thread, that of its store."""

    @property
    def confirms(self) -> bool:
        """Whether an appended change counts only when `Store.confirm` is called for it: it can still be reverted."""
        ...

    @property
    def shared(self) -> bool:
        """Whether other processes read the changes, and hear of their events."""
        ...

    @property
    def compaction_due(self) -> bool:
        """Whether the next start would be much quicker for a compaction or checkpoint."""
        ...

    def load(self, store: Store) -> None:
        """Bring `store`, which is empty, to the last change, through its `replace` and `apply`."""
        ...

    def append(self, change: Change) -> None:
        """Keep a change; raises StoreUnwritable, and then has not kept it."""
        ...

    def store_content(self, image: Image) -> StoredContent | None:
        """Keep a whole content beside, for a change to name; in any thread. None: every change tells all of it.

        Raises StoreUnwritable.
        """
        ...

    def close(self, pause: Callable[[], None] | None = None) -> None:
        """Keep what is left to keep, as far as `pause` lets it, and release what is held; later changes are refused."""
        ...

    def discard(self) -> None:
        """Release what is held without keeping anything: the bank is deleted."""
        ...


class MemoryLog:
    """Keeps nothing."""

    confirms = False
    shared = False
    compaction_due = False

    def load(self, store: Store) -> None:
        """There is nothing to load."""

    def append(self, change: Change) -> None:
        """The store itself has all there is."""

    def store_content(self, _image: Image) -> StoredContent:
        """The store itself has it."""
        return StoredContent()

    def close(self, pause: Callable[[], None] | None = None) -> None:
        """There is nothing to release."""

    def discard(self) -> None:
        """There is nothing to release."""
