"""The content of a bank at one moment, to restore it from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from emulator.store.kinds import Document, Kind
from emulator.store.table import DocumentTable, TableContent, encoded


@dataclass(slots=True, eq=False)
class StoredContent:
    """A whole content that the log has stored as `file` (None: in memory), `size` bytes.

    `sequence`: the change that refers to it, 0 for none yet; `remove` is called if none will.
    """

    file: str | None = None
    size: int = 0
    remove: Callable[[], None] = lambda: None
    sequence: int = 0


class PreparedImage(NamedTuple):
    """An image prepared for one short `restore`: the content of each table, and what the log has stored of it."""

    tables: Mapping[str, TableContent]
    stored: StoredContent | None

    def discard(self) -> None:
        """Discard it without a restore."""
        if self.stored is not None:
            self.stored.remove()


def _put(table: DocumentTable, document: Mapping[str, Any]) -> None:
    raw = encoded(document)
    table.place(document["id"], table.numbers.get(document["id"], table.next_number), raw, document)


class Image(NamedTuple):
    """The content of a bank at one moment, which never changes: kind -> content of its table."""

    tables: Mapping[str, TableContent]

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

    def contents(self) -> dict[str, TableContent]:
        """Copies of the contents, for tables that change them."""
        return {name: content.copy() for name, content in self.tables.items()}

    @property
    def size(self) -> int:
        """The size of the documents in bytes, about that of a snapshot."""
        return sum(sum(map(len, table.rows.values())) for table in self.tables.values())


@contextmanager
def discarded_on_failure(content: Image | PreparedImage | None) -> Iterator[None]:
    """A `with` block that restores `content`; discards prepared content if the block fails."""
    try:
        yield
    except BaseException:
        if isinstance(content, PreparedImage):
            content.discard()
        raise
