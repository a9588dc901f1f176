"""Verifies a state directory without opening it, and repairs it: copies the files, then cuts them at the damage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from emulator.store.db import memory_store
from emulator.store.disk import LOCK, Disk, Lock, closing, shared_lock, write_whole
from emulator.store.errors import StoreDamaged, StoreExhausted, StoreLocked
from emulator.store.kinds import Kind
from emulator.store.recovery import SNAPSHOT, recover, segment_first, unfinished_name
from emulator.store.snapshot import INDEX_OPENING, INDEX_TABLE, STORE_TABLE, write_snapshot
from emulator.store.table import DocumentTable, TableContent

NO_KINDS: tuple[Kind[Any], ...] = ()


@dataclass(slots=True)
class CheckReport:
    """The result of checking or repairing a directory.

    `in_use`: the process that has it open, in which case nothing was checked; `sequence`: the last change;
    `documents`: their number by kind; `findings`: damage that prevents a start; `torn`: an incomplete or damaged last
    record, which a start drops; `actions`: the steps of a repair; `copies`: the directory with the original files.
    """

    directory: Path
    in_use: str | None = None
    sequence: int = 0
    documents: dict[str, int] = field(default_factory=dict)
    findings: list[StoreDamaged] = field(default_factory=list)
    torn: StoreDamaged | None = None
    actions: list[str] = field(default_factory=list)
    copies: Path | None = None

    @property
    def sound(self) -> bool:
        """Whether a start succeeds with every acknowledged change."""
        return not self.findings and self.in_use is None


def verify(directory: Path, kinds: Sequence[Kind[Any]] = NO_KINDS) -> CheckReport:
    """Read snapshot and journal and decode every document; writes nothing. Raises StoreExhausted, StoreTooNew, OSError.

    With `kinds` the documents are indexed as well.
    """
    return _report(directory, shared_lock(directory), lambda report: look(report, kinds))


def repair(directory: Path, kinds: Sequence[Kind[Any]] = NO_KINDS) -> CheckReport:
    """Bring the directory into a state that a start accepts, with as little loss as the damage allows.

    Files that change are copied to `damaged-<n>` in the directory first. A damaged journal is cut at the damage, and
    later journals are removed. A damaged snapshot is replaced by one with every document that can still be read, or
    removed if there is none. Raises StoreExhausted, StoreTooNew and OSError.
    """
    return _report(directory, _locked(directory), lambda report: _Repair(report, kinds).work())


def _report(directory: Path, lock: AbstractContextManager[None], work: Callable[[CheckReport], None]) -> CheckReport:
    report = CheckReport(directory)
    if not directory.is_dir():
        report.findings.append(StoreDamaged(directory, 0, "the directory does not exist"))
        return report
    try:
        with lock:
            work(report)
    except MemoryError as error:
        raise StoreExhausted(directory) from error
    except StoreLocked as locked:
        report.in_use = locked.holder
    return report


def look(report: CheckReport, kinds: Sequence[Kind[Any]]) -> None:
    """Fill in the report for a directory that the caller has locked. Raises StoreTooNew."""
    report.findings.clear()
    report.documents.clear()
    report.torn = None
    store = memory_store(kinds)
    try:
        recovered = recover(report.directory, Disk(), store)
    except StoreDamaged as damaged:
        report.findings.append(damaged)
        return
    tables = store.tables
    report.sequence = store.sequence
    report.documents.update({kind: len(table.rows) for kind, table in tables.items()})
    if recovered.torn is not None:
        file, offset, size = recovered.torn
        report.torn = StoreDamaged(file, offset, f"the last record, {size} bytes, is torn or damaged")


def disagreement(table: DocumentTable) -> str | None:
    """How the ids, indexes or orders of a table disagree with its documents; None if they agree."""
    try:
        content = TableContent.of(table.kind, table.sorted_rows())
    except ValueError as wrong:
        return str(wrong)
    if content.numbers != table.numbers:
        return "the ids do not match the documents"
    ours, theirs = content.keys, table.keys
    same = ours.indexes == theirs.indexes and ours.orders == theirs.orders
    return None if same else "the indexes do not match the documents"


_TABLE = re.compile(rb',("[^"\\]+"):\{')
_ROW = re.compile(rb'"(\d+)":(\{.*\}),?')
_SEQUENCE = re.compile(rb'"sequence":(\d+)')


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the lock on the directory, if it has a lock file; raises StoreLocked."""
    if not (directory / LOCK).exists():
        yield
        return
    lock = Lock(directory)
    try:
        yield
    finally:
        lock.release()


class _Repair:
    """One repair of a directory that is locked."""

    def __init__(self, report: CheckReport, kinds: Sequence[Kind[Any]]) -> None:
        self._report = report
        self._directory = report.directory
        self._kinds = kinds
        self._disk = Disk()
        self._salvaged = False

    def work(self) -> None:
        """Repair one damage after the other until none is left, or none that can be repaired."""
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
            self._record("nothing is left: a start creates the bank again from its fixture")

    def _copy(self, file: Path) -> None:
        """Copy the file before its first change."""
        if self._report.copies is None:
            number = 1
            while (self._directory / f"damaged-{number}").exists():
                number += 1
            self._report.copies = self._directory / f"damaged-{number}"
            self._disk.make_directory(self._report.copies)
        copy = self._report.copies / file.name
        if copy.exists():
            return
        with closing(self._disk, self._disk.create(copy)) as out:
            write_whole(self._disk, out, self._disk.read(file))
            self._disk.sync(out)

    def _cut(self, finding: StoreDamaged) -> None:
        """Cut a journal at the finding, and remove later journals, which depend on what was cut off."""
        first = segment_first(finding.file.name) or 0
        later = [
            self._directory / name for name in self._disk.names(self._directory) if (segment_first(name) or 0) > first
        ]
        for file in (finding.file, *later):
            self._copy(file)
        if finding.offset:
            lost = _lost(self._disk.read(finding.file)[finding.offset :])
            with closing(self._disk, self._disk.open_to_append(finding.file)) as out:
                self._disk.cut(out, finding.offset)
                self._disk.sync(out)
            self._record(f"cut {finding.file.name} at byte {finding.offset}: {finding.reason}; {lost}")
        else:
            self._remove(finding.file, finding.reason)
        for file in later:
            self._remove(file, "it follows the damage")

    def _remove(self, journal: Path, reason: str) -> None:
        lost = _lost(self._disk.read(journal))
        self._disk.remove(journal)
        self._record(f"removed {journal.name}: {reason}; {lost}")

    def _record(self, action: str) -> None:
        self._report.actions.append(action)

    def _salvage(self) -> None:
        """Write a new snapshot with the documents that can be read; remove the snapshot if none can."""
        self._salvaged = True
        file = self._directory / SNAPSHOT
        data = self._disk.read(file)
        tables, lost, whole = _readable(data)
        self._copy(file)
        if not any(tables.values()):
            self._disk.remove(file)
            self._record(f"removed {SNAPSHOT}, in which no document can be read: its content is lost")
            return
        images = {kind: TableContent.of(Kind(kind), dict(sorted(rows.items()))) for kind, rows in tables.items()}
        unfinished = self._directory / unfinished_name(0, id(self))
        write_snapshot(self._disk, unfinished, images, self._sequence(data))
        self._disk.rename(unfinished, file)
        self._disk.sync_directory(self._directory)
        readable = sum(map(len, tables.values()))
        action = (
            f"kept the {readable} documents of {SNAPSHOT} that can be read, dropped {lost}; none of them is verified"
        )
        self._record(action if whole else f"{action}; the file is incomplete, and the documents of its end are lost")

    def _sequence(self, data: bytes) -> int:
        """The snapshot's last change: as stated in it if a journal follows that, else from the oldest journal."""
        firsts = [f for name in self._disk.names(self._directory) if (f := segment_first(name)) is not None]
        stated = _SEQUENCE.search(data.split(b"\n", 1)[0])
        if stated is not None and (not firsts or int(stated[1]) + 1 in firsts):
            return int(stated[1])
        return min(firsts, default=1) - 1


def _lost(records: bytes) -> str:
    """How many records are lost with the end of a journal."""
    count = len([line for line in records.split(b"\n") if line])
    return f"the changes in {count} record{'' if count == 1 else 's'} are lost"


def _readable(data: bytes) -> tuple[dict[str, dict[int, bytes]], int, bool]:
    """Read a damaged snapshot: the documents (kind -> number -> text), the unreadable lines, whether it has an end."""
    whole = data.endswith((b"}}\n", b"\n}\n}\n"))
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
    """The lines of a snapshot; one that another program wrote as valid JSON is brought into the same form."""
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
