"""Reading a directory: the snapshot, the journal after it, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from emulator.store.disk import Disk
from emulator.store.errors import StoreDamaged
from emulator.store.image import Image
from emulator.store.journal import Segment, segment_first
from emulator.store.kinds import Kind
from emulator.store.loading import Snapshot, load
from emulator.store.records import Scan, scan
from emulator.store.table import DocumentTable

SNAPSHOT = "documents.json"

Change = tuple[Path, int, bytes]
"""A change and where it stands: file, offset, payload."""

_SEQUENCE = re.compile(rb'\{"sequence":(\d{1,18}),')


def unfinished_name(sequence: int, unique: int) -> str:
    """A snapshot that is being written; what stays of one goes at the next start."""
    return f"{SNAPSHOT}.{sequence}-{unique:x}.new"


def _is_unfinished(name: str) -> bool:
    return name.startswith(f"{SNAPSHOT}.") and name.endswith(".new")


class Found:
    """What a directory holds.

    `changes`: those after the snapshot, in order; `segments`: the journal files to go on with, sizes without a torn
    tail; `torn`: (file, offset, bytes) of a last record that is torn or damaged; `stale`: files to remove.
    """

    def __init__(self, directory: Path, snapshot: Snapshot) -> None:
        self.directory = directory
        self.snapshot = snapshot
        self.changes: list[Change] = []
        self.segments: list[Segment] = []
        self.torn: tuple[Path, int, int] | None = None
        self.stale: list[Path] = []

    @property
    def sequence(self) -> int:
        """The number of the last change."""
        return self.snapshot.sequence + len(self.changes)

    def fill(self, table_of: Callable[[str], DocumentTable]) -> None:
        """Put the content into empty tables; the pictures are given away. Raises StoreDamaged."""
        file = self.directory / SNAPSHOT
        for kind, picture in self.snapshot.image.tables.items():
            try:
                picture.onto(table_of(kind), give_away=True)
            except ValueError as wrong:
                raise StoreDamaged(file, 0, f"a document of kind {kind}: {wrong}") from wrong
        for file, offset, change in self.changes:
            try:
                _repeat(orjson.loads(change), table_of)
            except (ValueError, KeyError, TypeError, AttributeError) as wrong:
                raise StoreDamaged(file, offset, f"a change that cannot be repeated: {wrong}") from wrong


def _repeat(change: Mapping[str, Any], table_of: Callable[[str], DocumentTable]) -> None:
    """First all that goes or moves, then all that comes: a number may be another document's now."""
    for kind in change.get("clear", ()):
        table_of(kind).empty()
    for kind, _, identity in change.get("delete", ()):
        table_of(kind).unsettle(identity)
    for kind, _, document in change["put"]:
        table_of(kind).unsettle(document["id"])
    for kind, number, document in change["put"]:
        table_of(kind).settle(document["id"], number, orjson.dumps(document), document)


def read_directory(directory: Path, kinds: Mapping[str, Kind[Any]], disk: Disk) -> Found:
    """Read everything without changing anything; raises StoreDamaged and StoreTooNew."""
    names = disk.names(directory)
    file = directory / SNAPSHOT
    if SNAPSHOT in names:
        with disk.reading(file) as (read, size):
            found = Found(directory, load(read, size, file, kinds))
    else:
        found = Found(directory, Snapshot(0, 0, Image({}), fits=True))
    found.stale += [directory / name for name in names if _is_unfinished(name)]
    firsts = sorted((first, name) for name in names if (first := segment_first(name)) is not None)
    # where the next one begins no later than what the snapshot lacks, nothing in a journal is needed, nor is it read
    while len(firsts) > 1 and firsts[1][0] <= found.sequence + 1:
        found.stale.append(directory / firsts.pop(0)[1])
    scans = [(Segment(directory / name, first, 0), scan(disk.read(directory / name))) for first, name in firsts]
    for place, (segment, scanned) in enumerate(scans):
        segment.size = scanned.end
        if scanned.torn:
            _examine_tear(segment, scanned, scans[place + 1 :])
            found.torn = (segment.path, scanned.end, scanned.size - scanned.end)
        _take(found, segment, scanned, last=scanned.torn or place == len(scans) - 1)
        if scanned.torn:
            found.stale += [later.path for later, _ in scans[place + 1 :]]
            break
    return found


def _examine_tear(segment: Segment, scanned: Scan, later: list[tuple[Segment, Scan]]) -> None:
    """A bad end is a torn tail only when nothing sound follows it."""
    if scanned.sound_after is not None:
        raise StoreDamaged(segment.path, scanned.end, f"a sound record follows at byte {scanned.sound_after}")
    for other, other_scan in later:
        if other_scan.records or other_scan.sound_after is not None:
            raise StoreDamaged(segment.path, scanned.end, f"sound records follow in {other.path.name}")


def _take(found: Found, segment: Segment, scanned: Scan, *, last: bool) -> None:
    """Add the changes of one journal file that the snapshot does not hold yet."""
    known = found.sequence
    if segment.first > known + 1:
        raise StoreDamaged(segment.path, 0, f"changes {known + 1} to {segment.first - 1} are missing before this file")
    for place, (offset, payload) in enumerate(scanned.records):
        told = _SEQUENCE.match(payload)
        if told is None:
            raise StoreDamaged(segment.path, offset, "a sealed record that holds no change")
        sequence = int(told[1])
        if sequence != segment.first + place:
            raise StoreDamaged(segment.path, offset, f"change {sequence} stands where {segment.first + place} belongs")
        if sequence <= found.sequence:
            continue
        found.changes.append((segment.path, offset, payload))
    if found.sequence > known or (last and segment.first + len(scanned.records) == known + 1):
        found.segments.append(segment)
    else:
        found.stale.append(segment.path)
