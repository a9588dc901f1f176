"""The content of a bank at one moment, to restore it from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from emulator.store.kinds import Document, Kind
from emulator.store.table import DocumentTable, TableContent, encoded


@dataclass(slots=True, eq=False)
class StoredContent:
    """A whole content that the log has stored as `file`, `size` bytes; "" in memory.

    `sequence`: the change that refers to it, 0 for none; if none will, `remove` is called once nobody has it any more.
    """

    file: str = ""
    size: int = 0
    remove: Callable[[], None] = lambda: None
    sequence: int = 0

    def __del__(self) -> None:
        if not self.sequence:
            self.remove()


def _put(table: DocumentTable, document: Mapping[str, Any]) -> None:
    raw = encoded(document)
    table.place(document["id"], table.numbers.get(document["id"], table.next_number), raw, document)


class Image(NamedTuple):
    """The content of a bank at one moment, which never changes: kind -> content of its table.

    `stored`: what the log has of it, for one short `restore`, which takes the tables over.
    """

    tables: Mapping[str, TableContent]
    stored: StoredContent | None = None

    @classmethod
    def build(cls, kinds: Sequence[Kind[Any]], documents: Mapping[Kind[Any], Iterable[Document]]) -> Image:
        """The image with exactly `documents`, kind -> documents in insertion order.

        Raises ValueError for a document that cannot be stored and KeyError for a kind that is not declared.
        """
        tables = {kind.name: DocumentTable(kind) for kind in kinds}
        for kind, several in documents.items():
            for document in several:
                _put(tables[kind.name], document)
        return cls({name: table.content for name, table in tables.items()})

    def with_document(self, kind: Kind[Any], document: Mapping[str, Any]) -> Image:
        """A copy of this image with a document inserted or replaced."""
        table = DocumentTable(kind)
        if kind.name in self.tables:
            table.content = self.tables[kind.name].copy()
        _put(table, document)
        return Image({**self.tables, kind.name: table.content})

    def copy(self, stored: StoredContent | None) -> Image:
        """A copy for tables that change it."""
        return Image({name: content.copy() for name, content in self.tables.items()}, stored)

    @property
    def size(self) -> int:
        """The size of the documents in bytes, about that of a snapshot."""
        return sum(sum(map(len, table.rows.values())) for table in self.tables.values())
