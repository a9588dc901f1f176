"""The log of one bank whose changes a turn appends to the database (see `Log`)."""

from __future__ import annotations

from collections.abc import Callable

from emulator.store.db import Change, Store
from emulator.store.errors import StoreUnwritable
from emulator.store.image import Image


class PostgresLog:
    """Collects changes; the end of the turn appends them to the database, and confirms or reverts them."""

    confirms = True
    shared = True
    compaction_due = False

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._closed = False

    def load(self, store: Store) -> None:
        """Does nothing: the stored content is loaded by `Store.replace` and `Store.apply`, within a turn."""

    def append(self, change: Change) -> None:
        """Collect a change; StoreUnwritable after `close`."""
        if self._closed:
            raise StoreUnwritable("the store is closed")
        self.changes.append(change)

    def store_content(self, _image: Image) -> None:
        """Stores nothing: other processes read the content in the change."""

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
