"""What was worked out from documents and stays true until one of them changes."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Generic, TypeVar

from emulator.store.table import DocumentTable

Key = TypeVar("Key")
Value = TypeVar("Value")

_changes = attrgetter("changes")


class Remembered(Generic[Key, Value]):
    """Values by key, all forgotten at any change in the tables they were worked out from, and when there are many."""

    def __init__(self, tables: Iterable[DocumentTable], *, most: int = 1024) -> None:
        self._tables = tuple(tables)
        self._most = most
        self._at = -1
        self._values: dict[Key, Value] = {}

    def values(self) -> dict[Key, Value]:
        """What is still true, to look up and to add to; whoever takes a value must not change it."""
        now = sum(map(_changes, self._tables))
        if now != self._at or len(self._values) >= self._most:
            self._at = now
            self._values = {}
        return self._values
