"""Looking at the kept documents without taking them over: is everything whole, and if not, where is it bad."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulator.store.disk import Disk
from emulator.store.errors import StoreDamaged, StoreLocked
from emulator.store.index import Keys
from emulator.store.kinds import Kind, by_name
from emulator.store.lock import unwritten
from emulator.store.recovery import SNAPSHOT, read_directory
from emulator.store.storage import VolatileStorage
from emulator.store.table import DocumentTable

NO_KINDS: tuple[Kind[Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """Something bad at byte `offset` of `file`."""

    file: Path
    offset: int
    reason: str


@dataclass(slots=True)
class Report:
    """What was found in a directory.

    `in_use`: who has it open, then nothing else was looked at; `sequence`: the last change; `documents`: how many of
    each kind; `findings`: damage, at which a start is refused; `torn`: a last record that is torn or damaged,
    which a start drops; `actions`: what a repair did; `copies`: where it kept what it changed.
    """

    directory: Path
    in_use: str | None = None
    sequence: int = 0
    documents: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    torn: Finding | None = None
    actions: list[str] = field(default_factory=list)
    copies: Path | None = None

    @property
    def sound(self) -> bool:
        """A start would find everything that was acknowledged."""
        return not self.findings and self.in_use is None


def verify(directory: Path, kinds: Sequence[Kind[Any]] = NO_KINDS) -> Report:
    """Read snapshot and journal and decode every document; writes nothing. Raises StoreTooNew, OSError.

    With `kinds` the stored indexes are compared with the documents as well.
    """
    report = Report(directory)
    if not directory.is_dir():
        report.findings.append(Finding(directory, 0, "there is no such directory"))
        return report
    try:
        with unwritten(directory):
            look(report, kinds)
    except StoreLocked as locked:
        report.in_use = locked.holder
    return report


def look(report: Report, kinds: Sequence[Kind[Any]]) -> None:
    """Fill in what the directory holds now; the caller holds it. Raises StoreTooNew."""
    report.findings.clear()
    report.documents.clear()
    report.torn = None
    declared = by_name(kinds)
    tables: dict[str, DocumentTable] = {}

    def table_of(kind: str) -> DocumentTable:
        if kind not in tables:
            tables[kind] = DocumentTable(VolatileStorage(), kind, kind=declared.get(kind))
        return tables[kind]

    try:
        found = read_directory(report.directory, declared, Disk())
        found.fill(table_of)
    except StoreDamaged as damaged:
        report.findings.append(Finding(damaged.file, damaged.offset, damaged.reason))
        return
    report.sequence = found.sequence
    report.documents.update({kind: len(table.rows) for kind, table in tables.items()})
    if found.torn is not None:
        file, offset, size = found.torn
        report.torn = Finding(file, offset, f"the last record, {size} bytes, is torn or damaged")
    for kind, table in tables.items():
        wrong = disagreement(table)
        if wrong is not None:
            report.findings.append(Finding(report.directory / SNAPSHOT, 0, f"kind {kind}: {wrong}"))


def disagreement(table: DocumentTable) -> str | None:
    """What in a table's ids, indexes and orders does not fit its documents; None when all does."""
    numbers, keys = table.numbers, table.keys
    try:
        table.index_anew()
        if numbers != table.numbers:
            return "the ids are not those of the documents"
        if _content(keys) != _content(table.keys):
            return "the indexes are not those of the documents"
    except ValueError as wrong:
        return str(wrong)
    finally:
        table.numbers, table.keys = numbers, keys
    return None


def _content(keys: Keys) -> object:
    indexes = {member: (index.buckets, index.many) for member, index in keys.indexes.items()}
    return indexes, {name: list(order.entries) for name, order in keys.orders.items()}
