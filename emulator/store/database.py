"""The TinyDB database whose tables are the kinds of a store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, cast

from tinydb import TinyDB
from tinydb.storages import Storage

from emulator.store.change import Undo
from emulator.store.kinds import Kind
from emulator.store.table import DocumentTable


class Documents(TinyDB):
    """TinyDB over tables that are read and written by document; changes go through `changing`, a transaction."""

    table_class = DocumentTable

    def __init__(
        self, storage: Storage, steps: list[Undo], changing: Callable[[], AbstractContextManager[None]]
    ) -> None:
        super().__init__(storage=lambda: storage)
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
