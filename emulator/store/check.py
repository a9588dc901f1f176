"""Verifying stored data without opening it, and repairing it: copies first, then everything from the damage on goes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from emulator.store.db import memory_store
from emulator.store.disk import LOCK, Disk, Lock, unwritten, write_whole
from emulator.store.errors import StoreDamaged, StoreExhausted, StoreLocked
from emulator.store.image import TableImage
from emulator.store.index import Index, Keys, Value
from emulator.store.journal import segment_first
from emulator.store.kinds import Kind
from emulator.store.recovery import SNAPSHOT, recover, unfinished_name
from emulator.store.snapshot import INDEX_OPENING, INDEX_TABLE, STORE_TABLE, write_snapshot
from emulator.store.table import DocumentTable

NO_KINDS: tuple[Kind[Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """Something bad at byte `offset` of `file`."""

    file: Path
    offset: int
    reason: str
    intact: bool = False  # no disk has changed what stands there, see StoreDamaged


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
    """Read snapshot and journal and decode every document; writes nothing. Raises StoreExhausted, StoreTooNew, OSError.

    With `kinds` the stored indexes are compared with the documents as well.
    """
    report = Report(directory)
    if not directory.is_dir():
        report.findings.append(Finding(directory, 0, "there is no such directory"))
        return report
    try:
        with unwritten(directory):
            look(report, kinds)
    except MemoryError as error:
        raise StoreExhausted(directory) from error
    except StoreLocked as locked:
        report.in_use = locked.holder
    return report


def look(report: Report, kinds: Sequence[Kind[Any]]) -> None:
    """Fill in what the directory holds now; the caller holds it. Raises StoreTooNew."""
    report.findings.clear()
    report.documents.clear()
    report.torn = None
    store = memory_store(kinds)
    try:
        recovered = recover(report.directory, Disk(), store)
    except StoreDamaged as damaged:
        report.findings.append(Finding(damaged.file, damaged.offset, damaged.reason, damaged.intact))
        return
    tables = store.tables
    report.sequence = store.sequence
    report.documents.update({kind: len(table.rows) for kind, table in tables.items()})
    if recovered.torn is not None:
        file, offset, size = recovered.torn
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


def _plain(index: Index) -> dict[Value, list[int]]:
    return {value: [bucket] if isinstance(bucket, int) else list(bucket) for value, bucket in index.buckets.items()}


def _content(keys: Keys) -> object:
    indexes = {member: (_plain(index), index.many) for member, index in keys.indexes.items()}
    return indexes, {name: list(order.entries) for name, order in keys.orders.items()}


_TABLE = re.compile(rb',("[^"\\]+"):\{')
_ROW = re.compile(rb'"(\d+)":(\{.*\}),?')
_SEQUENCE = re.compile(rb'"sequence":(\d+)')


def repair(directory: Path, kinds: Sequence[Kind[Any]] = NO_KINDS) -> Report:
    """Bring the directory into a state that a start accepts, with as little loss as the damage allows.

    Files that change are copied to `damaged-<n>` in the directory first. A journal is cut at the damage, later
    journals go; of a damaged snapshot every document that can still be read is kept, and where there is none it goes.
    Raises StoreExhausted, StoreTooNew and OSError.
    """
    report = Report(directory)
    if not directory.is_dir():
        report.findings.append(Finding(directory, 0, "there is no such directory"))
        return report
    try:
        with _held(directory):
            _Repair(report, kinds).work()
    except MemoryError as error:
        raise StoreExhausted(directory) from error
    except StoreLocked as locked:
        report.in_use = locked.holder
    return report


@contextmanager
def _held(directory: Path) -> Iterator[None]:
    """Keep others out meanwhile, where a lock was ever used; raises StoreLocked."""
    if not (directory / LOCK).exists():
        yield
        return
    lock = Lock(directory)
    try:
        yield
    finally:
        lock.release()


class _Repair:
    """One repair of a directory that is held."""

    def __init__(self, report: Report, kinds: Sequence[Kind[Any]]) -> None:
        self._report = report
        self._directory = report.directory
        self._kinds = kinds
        self._disk = Disk()
        self._salvaged = False

    def work(self) -> None:
        """Mend one damage after the other until there is none, or none that can be mended."""
        while True:
            look(self._report, self._kinds)
            if self._report.torn is not None:
                self._cut(self._report.torn)
            elif not self._report.findings:
                break
            elif self._report.findings[0].intact:
                return
            elif self._report.findings[0].file.name != SNAPSHOT:
                self._cut(self._report.findings[0])
            elif self._salvaged:
                return
            else:
                self._salvage()
        if self._report.actions and not any(self._report.documents.values()):
            self._did("nothing is left: a start makes the bank anew from its fixture")

    def _copied(self, file: Path) -> None:
        """Keep the file as it is now, once."""
        if self._report.copies is None:
            number = 1
            while (self._directory / f"damaged-{number}").exists():
                number += 1
            self._report.copies = self._directory / f"damaged-{number}"
            self._disk.make_directory(self._report.copies)
        copy = self._report.copies / file.name
        if copy.exists():
            return
        out = self._disk.open_anew(copy)
        try:
            write_whole(self._disk, out, self._disk.read(file))
            self._disk.sync(out)
        finally:
            self._disk.close(out)

    def _cut(self, finding: Finding) -> None:
        """Cut a journal at the finding; what comes later does not follow on anything any more."""
        first = segment_first(finding.file.name) or 0
        later = [
            self._directory / name for name in self._disk.names(self._directory) if (segment_first(name) or 0) > first
        ]
        for file in (finding.file, *later):
            self._copied(file)
        if finding.offset:
            lost = _lost(self._disk.read(finding.file)[finding.offset :])
            out = self._disk.open_to_append(finding.file)
            try:
                self._disk.cut(out, finding.offset)
                self._disk.sync(out)
            finally:
                self._disk.close(out)
            self._did(f"cut {finding.file.name} at byte {finding.offset}: {finding.reason}; {lost}")
        else:
            self._remove(finding.file, finding.reason)
        for file in later:
            self._remove(file, "it came after the damage")

    def _remove(self, journal: Path, reason: str) -> None:
        lost = _lost(self._disk.read(journal))
        self._disk.remove(journal)
        self._did(f"removed {journal.name}: {reason}; {lost}")

    def _did(self, action: str) -> None:
        self._report.actions.append(action)

    def _salvage(self) -> None:
        """Write a new snapshot with the documents that can be read, or have none where none can."""
        self._salvaged = True
        file = self._directory / SNAPSHOT
        data = self._disk.read(file)
        tables, lost, whole = _readable(data)
        self._copied(file)
        if not any(tables.values()):
            self._disk.remove(file)
            self._did(f"gave up {SNAPSHOT}, in which no document can be read: all that it held is lost")
            return
        images = {kind: TableImage.bare(dict(sorted(rows.items()))) for kind, rows in tables.items()}
        unfinished = self._directory / unfinished_name(0, id(self))
        write_snapshot(self._disk, unfinished, images, self._sequence(data))
        self._disk.rename(unfinished, file)
        self._disk.sync_directory(self._directory)
        readable = sum(map(len, tables.values()))
        action = (
            f"kept the {readable} documents of {SNAPSHOT} that can be read, gave up {lost}; none can be vouched for"
        )
        self._did(action if whole else f"{action}; the file ends early, and what stood in the rest of it is lost")

    def _sequence(self, data: bytes) -> int:
        """The snapshot's last change: as it says, if a journal follows on that, else before the oldest journal."""
        firsts = [f for name in self._disk.names(self._directory) if (f := segment_first(name)) is not None]
        stated = _SEQUENCE.search(data.split(b"\n", 1)[0])
        if stated is not None and (not firsts or int(stated[1]) + 1 in firsts):
            return int(stated[1])
        return min(firsts, default=1) - 1


def _lost(records: bytes) -> str:
    """What goes with the end of a journal, sound records among it or not."""
    count = len([line for line in records.split(b"\n") if line])
    return f"the changes in {count} record{'' if count == 1 else 's'} are lost"


def _readable(data: bytes) -> tuple[dict[str, dict[int, bytes]], int, bool]:
    """The documents of a damaged snapshot, kind -> number -> text; how many lines hold none; whether it has its end."""
    whole = data.endswith(b"}}\n")
    tables: dict[str, dict[int, bytes]] = {}
    ids: set[tuple[str, str]] = set()
    kind, lost = "", 0
    for line in _lines(data):
        if line.startswith(INDEX_OPENING):
            whole = True
            break
        if (opening := _TABLE.fullmatch(line)) is not None:
            kind = orjson.loads(opening[1])
            tables.setdefault(kind, {})
        elif line not in (b"}", b""):
            try:
                number, raw = _row(line)
                identity = (kind, orjson.loads(raw)["id"])
                if not isinstance(identity[1], str) or identity in ids or number in tables[kind]:
                    raise ValueError(line)
            except (ValueError, KeyError, TypeError):
                lost += 1
                continue
            ids.add(identity)
            tables[kind][number] = raw
    tables.pop(STORE_TABLE, None)
    return tables, lost, whole


def _lines(data: bytes) -> list[bytes]:
    """A snapshot in lines, one that another program wrote and that is JSON still as we write them."""
    try:
        tables = {kind: documents.items() for kind, documents in orjson.loads(data).items() if kind != INDEX_TABLE}
    except (ValueError, AttributeError):
        return data.split(b"\n")[1:]
    lines = []
    for kind, documents in tables.items():
        lines.append(b",%b:{" % orjson.dumps(kind))
        lines += [b"%b:%b" % (orjson.dumps(number), orjson.dumps(document)) for number, document in documents]
    return [*lines, INDEX_OPENING]


def _row(line: bytes) -> tuple[int, bytes]:
    match = _ROW.fullmatch(line)
    if match is None:
        raise ValueError(line)
    return int(match[1]), match[2]
