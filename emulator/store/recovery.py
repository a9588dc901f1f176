"""Reads a state directory: the snapshot, then the changes of the journal after it; tells a torn end from damage.

The directory of a killed process may contain, besides what `journal_log.py` writes in order: a snapshot that was not
finished; journal files whose changes the snapshot has; a content that no change names; an incomplete last record; and,
after a power failure, missing pages anywhere in the records that were not synced. All of this is dropped, as none of it
was acknowledged. Anything else that cannot be read is damage, and nothing is dropped for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import orjson

from emulator.store.db import Store
from emulator.store.disk import Disk
from emulator.store.errors import StoreDamaged
from emulator.store.journal import Records, Segment, segment_first
from emulator.store.snapshot import load
from emulator.store.tx import StoredContent, content_named

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


Progress = Callable[[int, int], None]
"""Called from time to time with the number of bytes read so far, and the total."""


class Recovery:
    """The files of a directory, after `recover` has read them.

    `sources`: the files that were read; `snapshot_size` in bytes; `fits`: the snapshot has the declared indexes;
    `segments`: the journal files to continue with, sizes without a torn tail; `torn`: (file, offset, bytes) of an
    incomplete or damaged last record; `contents`: by file, those that a change refers to; `stale`: files to remove.
    """

    def __init__(self, directory: Path, disk: Disk, store: Store, progress: Progress | None) -> None:
        self.sources: list[Path] = []
        self.snapshot_size = 0
        self.fits = True
        self.segments: list[Segment] = []
        self.torn: tuple[Path, int, int] | None = None
        self.contents: dict[str, StoredContent] = {}
        self.stale: list[Path] = []
        self._directory = directory
        self._disk = disk
        self._store = store
        self._progress = progress
        self._read = 0  # bytes of the files before the present one
        self._total = 0
        self._next_report = 0

    def run(self) -> None:
        """Read the directory."""
        directory, disk, store = self._directory, self._disk, self._store
        names = disk.names(directory)
        files = {directory / name: first for name in names if (first := segment_first(name)) is not None}
        journals = sorted(files, key=files.__getitem__)
        snapshot = [directory / SNAPSHOT] if SNAPSHOT in names else []
        if self._progress is not None:
            self._total = sum(map(disk.size, [*snapshot, *journals]))
        self._report(0)
        for file in snapshot:
            self._load_snapshot(file)
        self.stale += [directory / name for name in names if _is_unfinished(name)]
        # a journal is not needed if the next one begins no later than the first change that the snapshot does not have
        while len(journals) > 1 and files[journals[1]] <= store.sequence + 1:
            self.stale.append(journals.pop(0))
        while journals:
            path = journals.pop(0)
            if self._load_journal(path, files[path], journals):
                self.stale += journals
                break
        self.sources += [directory / name for name in self.contents]
        self.stale += [directory / name for name in names if _is_content(name) and name not in self.contents]

    def _report(self, position: int) -> None:
        """Report that the present file was read up to `position`."""
        if self._progress is not None and self._read + position >= self._next_report:
            self._next_report = self._read + position + REPORTED
            self._progress(self._read + position, self._total)

    def _load_snapshot(self, file: Path) -> None:
        with self._disk.reading(file) as (read, size):
            snapshot = load(read, size, file, self._store.kinds)
        self.snapshot_size, self.fits = size, snapshot.fits
        try:
            self._store.replace(snapshot.image, snapshot.sequence)
        except ValueError as wrong:
            raise StoreDamaged(file, 0, str(wrong)) from wrong
        self.sources.append(file)
        self._read = size

    def _load_journal(self, path: Path, first: int, later: list[Path]) -> bool:
        """Apply the changes of a journal file that the store does not have yet; whether its end is torn."""
        store, known = self._store, self._store.sequence
        segment = Segment(path, first, 0)
        if first > known + 1:
            raise StoreDamaged(path, 0, f"changes {known + 1} to {first - 1} are missing before this file")
        with self._disk.reading(path) as (read, size):
            records = Records(read, size)
            for offset, payload in records:
                self._report(offset)
                self._apply(segment, offset, payload)
        self._read += records.end
        self.sources.append(path)
        segment.size = records.end
        if records.torn:
            self._examine_tear(segment, records, later)
            self.torn = (path, records.end, records.size - records.end)
        is_last = records.torn or not later
        if store.sequence > known or (is_last and first <= known + 1 <= segment.following):
            self.segments.append(segment)
        else:
            self.stale.append(path)
        return records.torn

    def _apply(self, segment: Segment, offset: int, payload: bytes) -> None:
        """Apply the record at `offset`, unless the snapshot has it."""
        store, path = self._store, segment.path
        numbered = _SEQUENCE.match(payload)
        if numbered is None:
            raise StoreDamaged(path, offset, "a valid record without a change")
        sequence = int(numbered[1])
        if sequence != segment.following:
            raise StoreDamaged(path, offset, f"change {sequence} where change {segment.following} is expected")
        segment.following += 1
        if sequence <= store.sequence:
            return
        try:
            if (content := content_named(payload)) is not None:
                size = self._load_content(self._directory / content, path, offset)
                self.contents[content] = StoredContent(content, size=size, sequence=sequence)
            store.apply(payload)
        except orjson.JSONDecodeError as wrong:  # of a document, whose text is valid JSON (see `decoded`)
            raise MemoryError("no memory to apply a change") from wrong
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise StoreDamaged(path, offset, f"a change that cannot be applied: {wrong}", intact=True) from wrong

    def _load_content(self, file: Path, journal: Path, offset: int) -> int:
        """Load the content file that the change at `offset` names; returns its size."""
        try:
            with self._disk.reading(file) as (read, size):
                self._store.replace(load(read, size, file, self._store.kinds).image, self._store.sequence)
        except FileNotFoundError:
            raise StoreDamaged(journal, offset, f"{file.name}, which it names, is missing") from None
        except (StoreDamaged, ValueError) as wrong:
            reason = wrong.reason if isinstance(wrong, StoreDamaged) else str(wrong)
            raise StoreDamaged(journal, offset, f"{file.name}, which it names, is damaged: {reason}") from wrong
        return size

    def _examine_tear(self, segment: Segment, records: Records, later: list[Path]) -> None:
        """Raise StoreDamaged unless the end of a journal is torn: no acknowledged change is lost by dropping it.

        With `power` the last batch, which was never synced, may lose any of its pages. The records after such a page
        are valid, and state that the lost ones were not synced when they were written. None of them was acknowledged. A
        valid record that states that the lost ones were synced proves damage.
        """
        for offset, payload in records.sound_after:
            synced = _SYNCED.match(payload)
            if synced is None or int(synced[1]) >= segment.following:
                raise StoreDamaged(segment.path, records.end, f"a valid record follows at byte {offset}")
        for path in later:  # a new file is created after all earlier records were synced
            with self._disk.reading(path) as (read, size):
                others = Records(read, size)
                if next(iter(others), None) is not None or others.sound_after:
                    raise StoreDamaged(segment.path, records.end, f"valid records follow in {path.name}")


def recover(directory: Path, disk: Disk, store: Store, progress: Progress | None = None) -> Recovery:
    """Read the directory into the empty `store` without changing a file; raises StoreDamaged and StoreTooNew."""
    recovery = Recovery(directory, disk, store, progress)
    recovery.run()
    return recovery
