"""What was worked out from documents and stays true until one of them changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from emulator.store.table import DocumentTable

Key = TypeVar("Key")
Value = TypeVar("Value")


class DependentCache(Generic[Key, Value]):
    """Values by key, all forgotten at any change in the tables they were worked out from, and when there are many.

    It lives as long as the tables do.
    """

    def __init__(self, tables: Iterable[DocumentTable], *, most: int = 1024) -> None:
        self._most = most
        self._values: dict[Key, Value] = {}
        for table in tables:
            table.dependants.append(self._forget)

    def _forget(self) -> None:
        # not cleared: what is being worked out while something changes goes with the old ones
        self._values = {}

    def values(self) -> dict[Key, Value]:
        """What is still true, to look up and to add to; whoever takes a value must not change it."""
        if len(self._values) >= self._most:
            self._forget()
        return self._values
