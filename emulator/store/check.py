"""Verifies a state directory without opening it, and repairs it: copies the files, then cuts them at the damage."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from emulator.store.disk import Disk, closing, pieces, shared_lock, write_whole
from emulator.store.errors import StoreDamaged, StoreExhausted, StoreLocked
from emulator.store.journal import SNAPSHOT, Recovered, content_in, journal_first
from emulator.store.kinds import SNAPSHOTS, Kind, decoded
from emulator.store.loaded import LoadedDocuments
from emulator.store.snapshot import load, write_snapshot


@dataclass(slots=True)
class CheckReport:
    """The result of checking or repairing a directory.

    `in_use`: the process that has it open, in which case nothing was checked; `sequence`: the last change;
    `documents`: their number by kind; `findings`: damage that prevents a start; `torn`: an incomplete or damaged last
    record, which a start drops; `snapshots`: damage of these; `actions`: the steps of a repair; `copies`: the directory
    with the original files.
    """

    directory: Path
    in_use: str | None = None
    sequence: int = 0
    documents: dict[str, int] = field(default_factory=dict)
    findings: list[StoreDamaged] = field(default_factory=list)
    torn: StoreDamaged | None = None
    snapshots: list[StoreDamaged] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    copies: Path | None = None

    @property
    def sound(self) -> bool:
        """Whether a start succeeds with every acknowledged change."""
        return not self.findings and self.in_use is None


def verify(directory: Path, kinds: Sequence[Kind[Any]] = (), *, mend: bool = False) -> CheckReport:
    """Read snapshot and journal and decode every document; writes nothing. Raises StoreExhausted, StoreTooNew, OSError.

    With `kinds` the documents are indexed as well. With `mend` the damage is repaired.
    """
    report = CheckReport(directory)
    if not directory.is_dir():
        report.findings.append(StoreDamaged(directory, 0, "the directory does not exist"))
        return report
    try:
        with shared_lock(directory, alone=mend):
            _look(report, kinds)
            while mend and (damage := report.torn or next(iter(report.findings), None)) and _mend(report, damage):
                _look(report, kinds)
    except MemoryError as error:
        raise StoreExhausted(directory) from error
    except StoreLocked as locked:
        report.in_use = locked.holder
    if report.actions and report.sound and not any(report.documents.values()):
        report.actions.append("nothing is left: a start creates the bank again from its fixture")
    return report


def repair(directory: Path, kinds: Sequence[Kind[Any]] = ()) -> CheckReport:
    """Bring the directory into a state that a start accepts, with as little loss as the damage allows.

    Files that change are copied to `damaged-<n>` in the directory first. A damaged journal is cut at the damage, and
    later journals are removed. A damaged snapshot is replaced by one with every document that can still be read, or
    removed if there is none. Raises StoreExhausted, StoreTooNew and OSError.
    """
    return verify(directory, kinds, mend=True)


def _look(report: CheckReport, kinds: Sequence[Kind[Any]]) -> None:
    report.findings.clear()
    report.snapshots.clear()
    report.documents = {}
    report.torn = None
    documents = LoadedDocuments(kinds)
    try:
        recovered = Recovered(report.directory, documents)
    except StoreDamaged as damaged:
        report.findings.append(damaged)
        return
    report.documents = {kind: len(table.rows) for kind, table in documents.present().items()}
    for kind, wrong in undecodable(documents).items():
        reason = f"a document of kind {kind}: {wrong}"
        report.findings.append(StoreDamaged(report.directory / SNAPSHOT, 0, reason, intact=True))
    report.sequence = documents.sequence
    for snapshot in documents.all(SNAPSHOTS):
        file = report.directory / snapshot["content"]
        try:
            content_in(report.directory, file.name, documents.kinds)
        except (FileNotFoundError, StoreDamaged) as error:
            at, wrong = (error.offset, error.reason) if isinstance(error, StoreDamaged) else (0, "the file is missing")
            report.snapshots.append(StoreDamaged(file, at, f"the snapshot {snapshot['id']}: {wrong}"))
    if recovered.torn is not None:
        file, offset, size = recovered.torn
        report.torn = StoreDamaged(file, offset, f"the last record, {size} bytes, is torn or damaged")


def undecodable(documents: LoadedDocuments) -> dict[str, str]:
    """Why a document cannot be decoded, for each kind that has such: loading decodes few of them."""
    wrongs = {}
    for kind, table in documents.tables.items():
        try:
            for text in table.rows.values():
                decoded(text)
        except ValueError as wrong:
            wrongs[kind] = str(wrong)
    return wrongs


def _mend(report: CheckReport, damage: StoreDamaged) -> bool:
    """Repair one damage; whether that was possible."""
    if damage.intact or (damage.file.name == SNAPSHOT and any(SNAPSHOT in action for action in report.actions)):
        return False
    if damage is not report.torn:
        for path in report.directory.glob("content-*.json"):  # a start deletes those that nothing names any more
            _copy(report, path)
    if damage.file.name == SNAPSHOT:
        report.actions.append(_salvage(report, damage.file))
    else:
        _cut(report, damage)
    return True


def _copy(report: CheckReport, file: Path) -> None:
    """Copy the file before its first change."""
    disk = Disk()
    if report.copies is None:
        folders = (report.directory / f"damaged-{number}" for number in count(1))
        report.copies = next(folder for folder in folders if not folder.exists())
        disk.make_directory(report.copies)
    copy = report.copies / file.name
    if not copy.exists():
        with closing(disk, disk.create(copy)) as out:
            write_whole(disk, out, file.read_bytes())
            disk.sync(out)


def _cut(report: CheckReport, damage: StoreDamaged) -> None:
    """Cut a journal at the damage, and remove later journals, which depend on what was cut off."""
    disk, file = Disk(), damage.file
    first = journal_first(file.name) or 0
    later = sorted(path for path in report.directory.iterdir() if (journal_first(path.name) or 0) > first)
    for path in (file, *later):
        _copy(report, path)
        at, reason = (damage.offset, damage.reason) if path == file else (0, "it follows the damage")
        count = len([line for line in path.read_bytes()[at:].split(b"\n") if line])
        if at:
            with closing(disk, disk.open_to_append(path)) as out:
                disk.cut(out, at)
                disk.sync(out)
        else:
            disk.remove(path)
        done = f"cut {path.name} at byte {at}" if at else f"removed {path.name}"
        lost = f"the changes in {count} record{'' if count == 1 else 's'} are lost"
        report.actions.append(f"{done}: {reason}; {lost}")


def _salvage(report: CheckReport, file: Path) -> str:
    """Write a new snapshot with the documents that can be read, or remove it if none can; says which of them."""
    disk = Disk()
    lost: list[bytes] = []
    sequence, image = load(pieces(file), file, {}, lost)
    count = sum(len(table.rows) for table in image.tables.values())
    _copy(report, file)
    if not count:
        disk.remove(file)
        return f"removed {SNAPSHOT}, in which no document can be read: its content is lost"
    # the stated sequence is wrong if no journal follows it
    firsts = [first for name in os.listdir(report.directory) if (first := journal_first(name)) is not None]
    if firsts and sequence + 1 not in firsts:
        sequence = min(firsts) - 1
    is_whole = not file.read_bytes().startswith(b'{"_store":{"1":') or file.read_bytes().endswith(b"\n}\n}\n")
    unfinished = report.directory / f"{SNAPSHOT}.repair.new"
    write_snapshot(disk, unfinished, image.rows, sequence)
    disk.rename(unfinished, file)
    disk.sync_directory(report.directory)
    action = f"kept the {count} documents of {SNAPSHOT} that can be read, dropped {len(lost)}; none of them is verified"
    return action if is_whole else f"{action}; the file is incomplete, and the documents of its end are lost"
