"""A picture of the whole content: cheap to take, cheap to go back to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from emulator.store.index import Entry, Index, Order
from emulator.store.kinds import Document, Kind
from emulator.store.table import DocumentTable


@dataclass(frozen=True, slots=True)
class TableImage:
    """One kind as it stood: documents are shared immutable bytes, the rest is a copy that nobody changes."""

    kind: Kind
    rows: dict[int, bytes]
    numbers: dict[str, int]
    next_number: int
    indexes: dict[str, Index]
    orders: dict[str, list[Entry]]

    @classmethod
    def of(cls, table: DocumentTable) -> TableImage:
        return cls(
            table.kind,
            table.sorted_rows().copy(),
            table.numbers.copy(),
            table.next_number,
            {member: index.copy() for member, index in table.indexes.items()},
            {name: list(order.entries) for name, order in table.orders.items()},
        )

    @classmethod
    def bare(cls, rows: dict[int, bytes], numbers: dict[str, int]) -> TableImage:
        """A picture without indexes; they are made when it is gone back to."""
        return cls(Kind(), rows, numbers, max(rows, default=0) + 1, {}, {})

    def onto(self, table: DocumentTable, *, give_away: bool = False) -> None:
        """Make the content of `table` this picture's, without an undo step.

        `give_away`: the picture is of no use afterwards, which spares the copying.
        """
        table.rows = self.rows if give_away else self.rows.copy()
        table.numbers = self.numbers if give_away else self.numbers.copy()
        table.next_number = self.next_number
        table.in_order = True
        if self.kind != table.kind:
            table.index_anew()
            return
        table.indexes = self.indexes if give_away else {name: index.copy() for name, index in self.indexes.items()}
        table.orders = {name: Order(rule, self.orders[name]) for name, rule in table.kind.ordered.items()}


@dataclass(frozen=True, slots=True)
class Image:
    """The content of a store at one moment: kind -> picture of its table."""

    tables: Mapping[str, TableImage]

    @classmethod
    def build(cls, kinds: Mapping[str, Kind], documents: Mapping[str, Iterable[Document]]) -> Image:
        """The picture of a store that holds exactly `documents`, kind -> documents in insertion order.

        Raises ValueError for a document that cannot be kept and KeyError for a kind that is not declared.
        """
        from emulator.store.store import memory_store

        store = memory_store(kinds)
        with store.transaction():
            for kind, several in documents.items():
                for document in several:
                    store.put(kind, document)
        return store.image()

    def to_bytes(self) -> bytes:
        """The picture as a file that stock TinyDB opens; the same text as a snapshot's."""
        from emulator.store.snapshot import as_bytes

        return as_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes, kinds: Mapping[str, Kind], *, file: Path = Path("image")) -> Image:
        """The picture that `to_bytes` wrote; `file` is named in StoreDamaged and StoreTooNew."""
        from emulator.store.snapshot import parse

        return parse(data, file, kinds).image
