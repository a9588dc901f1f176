"""Reading a directory: the snapshot, the journal after it, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from emulator.store.disk import Disk
from emulator.store.errors import StoreDamaged
from emulator.store.image import Image
from emulator.store.journal import Segment, segment_first
from emulator.store.kinds import Kind
from emulator.store.records import Scan, scan
from emulator.store.snapshot import Snapshot, parse

SNAPSHOT = "documents.json"
UNFINISHED = "documents.json.new"


@dataclass(slots=True)
class Found:
    """What a directory holds.

    `changes`: the payloads after the snapshot in order; `segments`: the journal files to go on with, sizes without a
    torn tail; `torn`: (file, offset, bytes) of a record that was not written whole; `stale`: files to remove.
    """

    snapshot: Snapshot
    changes: list[Mapping[str, Any]] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    torn: tuple[Path, int, int] | None = None
    stale: list[Path] = field(default_factory=list)

    @property
    def sequence(self) -> int:
        """The number of the last change."""
        return self.snapshot.sequence + len(self.changes)


def read_directory(directory: Path, kinds: Mapping[str, Kind], disk: Disk) -> Found:
    """Read everything without changing anything; raises StoreDamaged and StoreTooNew."""
    names = disk.names(directory)
    file = directory / SNAPSHOT
    if SNAPSHOT in names:
        found = Found(parse(disk.read(file), file, kinds))
    else:
        found = Found(Snapshot(0, 0, Image({})))
    if UNFINISHED in names:
        found.stale.append(directory / UNFINISHED)
    firsts = sorted((first, name) for name in names if (first := segment_first(name)) is not None)
    scans = [(Segment(directory / name, first, 0), scan(disk.read(directory / name))) for first, name in firsts]
    for place, (segment, scanned) in enumerate(scans):
        segment.size = scanned.end
        if scanned.torn:
            _examine_tear(segment, scanned, scans[place + 1 :])
            found.torn = (segment.path, scanned.end, scanned.size - scanned.end)
        _take(found, segment, scanned)
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


def _take(found: Found, segment: Segment, scanned: Scan) -> None:
    """Add the changes of one journal file that the snapshot does not hold yet."""
    base = found.snapshot.sequence
    if segment.first > found.sequence + 1:
        raise StoreDamaged(
            segment.path, 0, f"changes {found.sequence + 1} to {segment.first - 1} are missing before this file"
        )
    for place, (offset, payload) in enumerate(scanned.records):
        try:
            change = orjson.loads(payload)
            sequence = change["sequence"]
        except (ValueError, KeyError, TypeError):
            raise StoreDamaged(segment.path, offset, "a sealed record that holds no change") from None
        if sequence != segment.first + place:
            raise StoreDamaged(segment.path, offset, f"change {sequence} stands where {segment.first + place} belongs")
        if sequence <= base:
            continue
        if sequence != found.sequence + 1:
            raise StoreDamaged(segment.path, offset, f"change {sequence} follows on change {found.sequence}")
        found.changes.append(change)
    if scanned.records and segment.first + len(scanned.records) - 1 <= base:
        found.stale.append(segment.path)
    else:
        found.segments.append(segment)
