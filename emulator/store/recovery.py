"""Reads a state directory: the snapshot and the journal after it, and detects damage."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import orjson

from emulator.store.db import Store
from emulator.store.disk import Disk
from emulator.store.errors import StoreDamaged
from emulator.store.journal import Records, Segment, segment_first
from emulator.store.replay import Replay
from emulator.store.snapshot import load
from emulator.store.table import decoded
from emulator.store.tx import content_of

SNAPSHOT = "documents.json"
REPORTED = 1 << 20  # bytes between two reports of progress

_SYNCED = re.compile(rb'\{"sequence":\d{1,18},"synced":(\d{1,18}),')
_SEQUENCE = re.compile(rb'\{"sequence":(\d{1,18}),')


def unfinished_name(sequence: int, unique: int) -> str:
    """The file of a snapshot that is being written; an unfinished one is removed at the next start."""
    return f"{SNAPSHOT}.{sequence}-{unique:x}.new"


def content_name(unique: str) -> str:
    """The file of a content that a change of the journal refers to (see `tx.payload`), in the form of a snapshot."""
    return f"content-{unique}.json"


def _is_content(name: str) -> bool:
    return name.startswith("content-") and name.endswith(".json")


def _is_unfinished(name: str) -> bool:
    return name.startswith(f"{SNAPSHOT}.") and name.endswith(".new")


class Recovered:
    """The files of a directory, after its documents were read.

    `sources`: the files that were read; `snapshot_size` in bytes; `fits`: the snapshot has the declared indexes;
    `segments`: the journal files to continue with, sizes without a torn tail; `torn`: (file, offset, bytes) of an
    incomplete or damaged last record; `contents`: file, change and size of each content file that a change refers to;
    `stale`: files to remove.
    """

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.sources: list[Path] = []
        self.snapshot_size = 0
        self.fits = True
        self.segments: list[Segment] = []
        self.torn: tuple[Path, int, int] | None = None
        self.contents: list[tuple[Path, int, int]] = []
        self.stale: list[Path] = []


Progress = Callable[[int, int], None]
"""Called from time to time with the number of bytes read so far, and the total."""


class _Reading:
    """The progress of a recovery."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.previous = 0  # bytes of the files before the present one
        self._total = total
        self._progress = progress
        self._next = 0

    def at(self, position: int) -> None:
        """Report that the present file was read up to `position`."""
        if self._progress is not None and self.previous + position >= self._next:
            self._next = self.previous + position + REPORTED
            self._progress(self.previous + position, self._total)


def recover(directory: Path, disk: Disk, store: Store, progress: Progress | None = None) -> Recovered:
    """Read the directory into the empty `store` without changing a file; raises StoreDamaged and StoreTooNew."""
    recovered = Recovered(disk)
    names = disk.names(directory)
    documents = [name for name in names if name == SNAPSHOT or segment_first(name) is not None]
    reading = _Reading(sum(disk.size(directory / name) for name in documents) if progress else 0, progress)
    reading.at(0)
    if SNAPSHOT in names:
        _load_snapshot(directory / SNAPSHOT, disk, store, recovered)
        recovered.sources.append(directory / SNAPSHOT)
        reading.previous = recovered.snapshot_size
    recovered.stale += [directory / name for name in names if _is_unfinished(name)]
    firsts = sorted((first, name) for name in names if (first := segment_first(name)) is not None)
    # a journal is not needed if the next one begins no later than the first change that the snapshot does not have
    while len(firsts) > 1 and firsts[1][0] <= store.sequence + 1:
        recovered.stale.append(directory / firsts.pop(0)[1])
    files = [(first, directory / name) for first, name in firsts]
    replay = Replay(store.table)
    for place, (first, path) in enumerate(files):
        with disk.reading(path) as (read, size):
            records = Records(read, size)
            segment = Segment(path, first, 0)
            needed = _replay(segment, records, store, replay, reading, recovered)
        reading.previous += records.end
        recovered.sources.append(path)
        segment.size = records.end
        later = [path for _, path in files[place + 1 :]]
        if records.torn:
            _examine_tear(segment, records, later, disk)
            recovered.torn = (path, records.end, records.size - records.end)
        if needed or ((records.torn or not later) and segment.first <= store.sequence + 1 <= segment.following):
            recovered.segments.append(segment)
        else:
            recovered.stale.append(path)
        if records.torn:
            recovered.stale += later
            break
    used = {path for path, _, _ in recovered.contents}
    recovered.sources += used
    recovered.stale += [directory / name for name in names if _is_content(name) and directory / name not in used]
    try:
        replay.finish()
    except ValueError as wrong:
        raise StoreDamaged(files[-1][1], 0, f"inconsistent changes: {wrong}", intact=True) from wrong
    return recovered


def _load_snapshot(file: Path, disk: Disk, store: Store, recovered: Recovered) -> None:
    with disk.reading(file) as (read, size):
        snapshot = load(read, size, file, store.kinds)
    recovered.snapshot_size, recovered.fits = size, snapshot.fits
    try:
        store.replace(snapshot.image, snapshot.sequence)
    except ValueError as wrong:
        raise StoreDamaged(file, 0, str(wrong)) from wrong


def _load_content(file: Path, store: Store, disk: Disk, journal: Path, offset: int) -> int:
    """Load the content file that a change refers to; returns its size. Raises StoreDamaged at the change."""
    try:
        with disk.reading(file) as (read, size):
            store.replace(load(read, size, file, store.kinds).image, 0)
    except FileNotFoundError:
        raise StoreDamaged(journal, offset, f"{file.name}, which it names, is missing") from None
    except (StoreDamaged, ValueError) as wrong:
        reason = wrong.reason if isinstance(wrong, StoreDamaged) else str(wrong)
        raise StoreDamaged(journal, offset, f"{file.name}, which it names, is damaged: {reason}") from wrong
    return size


def _replay(
    segment: Segment, records: Records, store: Store, replay: Replay, reading: _Reading, recovered: Recovered
) -> bool:
    """Apply the changes of one journal file that the store does not have yet; whether there were any."""
    known = store.sequence
    if segment.first > known + 1:
        raise StoreDamaged(segment.path, 0, f"changes {known + 1} to {segment.first - 1} are missing before this file")
    for offset, payload in records:
        reading.at(offset)
        numbered = _SEQUENCE.match(payload)
        if numbered is None:
            raise StoreDamaged(segment.path, offset, "a valid record without a change")
        sequence = int(numbered[1])
        if sequence != segment.following:
            raise StoreDamaged(segment.path, offset, f"change {sequence} where change {segment.following} is expected")
        segment.following += 1
        if sequence > store.sequence:
            try:
                content, change = content_of(decoded(payload))
                if content is not None:
                    replay.forget()
                    path = segment.path.parent / content
                    size = _load_content(path, store, recovered.disk, segment.path, offset)
                    recovered.contents.append((path, sequence, size))
                replay.repeat(change)
                store.sequence = sequence
            except orjson.JSONDecodeError as wrong:  # of a document, whose text is valid JSON (see `decoded`)
                raise MemoryError("no memory to apply a change") from wrong
            except (ValueError, KeyError, TypeError, AttributeError) as wrong:
                raise StoreDamaged(
                    segment.path, offset, f"a change that cannot be applied: {wrong}", intact=True
                ) from wrong
    return store.sequence > known


def _examine_tear(segment: Segment, records: Records, later: list[Path], disk: Disk) -> None:
    """Raise StoreDamaged unless the end of a journal is torn, so that no acknowledged change is lost by dropping it.

    With `power` the last batch, which was never synced, may lose any of its pages. The records after such a page are
    valid, and state that the lost ones were not synced when they were written. None of them was acknowledged. A valid
    record that states that the lost ones were synced proves damage.
    """
    for offset, payload in records.sound_after:
        synced = _SYNCED.match(payload)
        if synced is None or int(synced[1]) >= segment.following:
            raise StoreDamaged(segment.path, records.end, f"a valid record follows at byte {offset}")
    for path in later:  # a new file is created after all earlier records were synced
        with disk.reading(path) as (read, size):
            others = Records(read, size)
            if next(iter(others), None) is not None or others.sound_after:
                raise StoreDamaged(segment.path, records.end, f"valid records follow in {path.name}")
