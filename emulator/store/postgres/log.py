"""The log of one bank whose changes a turn appends to the database (see `Log`)."""

from __future__ import annotations

from collections.abc import Callable

from emulator.store.db import Change, Store
from emulator.store.errors import StoreUnwritable
from emulator.store.image import Image
from emulator.store.snapshot import snapshot_bytes
from emulator.store.tx import StoredContent


class PostgresLog:
    """Collects changes; the end of the turn appends them to the database, and confirms or reverts them.

    `stage` stores the bytes of a whole content in the database, outside of any turn and for any thread; it returns the
    name by which a change refers to it, and may raise StoreUnwritable.
    """

    confirms = True
    shared = True
    compaction_due = False

    def __init__(self, stage: Callable[[bytes], str]) -> None:
        self.changes: list[Change] = []
        self._stage = stage
        self._closed = False

    def load(self, store: Store) -> None:
        """Does nothing: the stored content is loaded by `Store.replace` and `Store.apply`, within a turn."""

    def append(self, change: Change) -> None:
        """Collect a change; StoreUnwritable after `close`."""
        if self._closed:
            raise StoreUnwritable("the store is closed")
        self.changes.append(change)

    def store_content(self, image: Image) -> StoredContent:
        """Stage a content; StoreUnwritable. One that no change refers to is dropped by a later `stage`."""
        content = snapshot_bytes(image.tables)
        return StoredContent(self._stage(content), size=len(content))

    def take(self) -> list[Change]:
        """The changes since the last call."""
        changes, self.changes = self.changes, []
        return changes

    def close(self, _pause: Callable[[], None] | None = None) -> None:
        """Refuse later changes."""
        self._closed = True

    def discard(self) -> None:
        """Refuse later changes."""
        self._closed = True
