"""Reads a state directory: the snapshot, then the changes of the journal after it; tells a torn end from damage.

The journal is files of records, `journal-<number of the first change>.jsonl`. A line is one change:
`{"crc":"<8 hex>","size":"<8 hex>","change":<change>}`, with the size and the CRC-32 of the change (see db.py). Every
byte of a line is either fixed by this form or covered by the checksum.

The directory of a killed process may contain, besides what `journal_log.py` writes in order: a snapshot that was not
finished; journal files whose changes the snapshot has; a content that no change names; an incomplete last record; and,
after a power failure, missing pages anywhere in the records that were not synced. All of this is dropped, as none of it
was acknowledged. A content that a later one has replaced may be missing, with which the changes between are skipped.
Anything else that cannot be read is damage, and nothing is dropped for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

from emulator.store.db import Store, content_named
from emulator.store.disk import Disk
from emulator.store.documents import StoredContent
from emulator.store.errors import StoreDamaged
from emulator.store.snapshot import PIECE, load

SNAPSHOT = "documents.json"
REPORTED = 1 << 20  # bytes between two reports of progress

_SYNCED = re.compile(rb'\{"sequence":\d{1,18},"synced":(\d{1,18}),')
_SEQUENCE = re.compile(rb'\{"sequence":(\d{1,18}),')
_NAME = re.compile(r"journal-(\d{12,})\.jsonl")
_HEAD = re.compile(rb'\{"crc":"([0-9a-f]{8})","size":"([0-9a-f]{8})","change":')
_HEAD_SIZE = len(b'{"crc":"00000000","size":"00000000","change":')
_END = b"}\n"
_WINDOW = 1 << 20


def sealed(payload: bytes) -> bytes:
    """The line for the payload of a change."""
    return b'{"crc":"%08x","size":"%08x","change":%b}\n' % (crc32(payload), len(payload), payload)


def _unsealed(data: bytes, offset: int) -> tuple[bytes, int] | None:
    """The payload of the record at `offset` and the offset after it; None without a complete and valid record."""
    head = _HEAD.match(data, offset)
    if head is None:
        return None
    start = offset + _HEAD_SIZE
    end = start + int(head[2], 16)
    payload = data[start:end]
    if data[end : end + 2] != _END or crc32(payload) != int(head[1], 16):
        return None
    return payload, end + 2


class Records:
    """Iterates the valid records of a journal file as (offset, payload); `end`: the offset after the last one so far.

    After the iteration `torn` is true if more bytes follow, and `sound_after` has the valid records among those.
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read = read
        self.size = size
        self.end = 0
        self.sound_after: list[tuple[int, bytes]] = []

    @classmethod
    def of(cls, data: bytes) -> Records:
        """The records in a file's content."""
        return cls(lambda offset, size: data[offset : offset + size], len(data))

    @property
    def torn(self) -> bool:
        """Whether bytes follow that are no valid record."""
        return self.end < self.size

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        window, base = b"", 0
        while self.end < self.size:
            record = _unsealed(window, self.end - base)
            if record is None and base + len(window) < self.size:  # the window may end within the record
                base, window = self.end, self._read(self.end, max(_WINDOW, _size_at(self._read, self.end)))
                record = _unsealed(window, 0)
            if record is None:
                self.sound_after = _sound_records_after(self._read(0, self.size), self.end)
                return
            offset, self.end = self.end, base + record[1]
            yield offset, record[0]


def _size_at(read: Callable[[int, int], bytes], offset: int) -> int:
    """The size that the record at `offset` states; 0 if no record begins there."""
    head = _HEAD.match(read(offset, _HEAD_SIZE))
    return 0 if head is None else _HEAD_SIZE + int(head[2], 16) + len(_END)


def _sound_records_after(data: bytes, offset: int) -> list[tuple[int, bytes]]:
    """The valid records after the damaged one at `offset`, as (offset, payload).

    They are searched at the beginnings of lines, and at the end that the damaged record states (its line end may be the
    damage). Inside a line, a document may contain text that looks like a record.
    """
    sound: list[tuple[int, bytes]] = []
    head = _HEAD.match(data, offset)
    place = 0 if head is None else offset + _HEAD_SIZE + int(head[2], 16) + len(_END)
    if place == 0 or _unsealed(data, place) is None:
        place = data.find(b"\n", offset) + 1
    while place > 0:
        record = _unsealed(data, place)
        if record is None:
            place = data.find(b"\n", place) + 1
        else:
            sound.append((place, record[0]))
            place = record[1]
    return sound


def segment_name(first: int) -> str:
    """The name of the file whose first record is change number `first`."""
    return f"journal-{first:012d}.jsonl"


def segment_first(name: str) -> int | None:
    """The number of the first change in the file with this name; None if it is not a journal."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


class Segment:
    """One journal file: the number of its first change, and its size in bytes up to the end of the valid records.

    `following`: the number after the last change that was read from it.
    """

    __slots__ = ("first", "following", "path", "size")

    def __init__(self, path: Path, first: int, size: int) -> None:
        self.path = path
        self.first = first
        self.following = first
        self.size = size


def unfinished_name(sequence: int, unique: int) -> str:
    """The file of a snapshot that is being written; an unfinished one is removed at the next start."""
    return f"{SNAPSHOT}.{sequence}-{unique:x}.new"


def content_name(unique: str) -> str:
    """The file of a content that a change of the journal refers to, in the form of a snapshot."""
    return f"content-{unique}.json"


def _is_content(name: str) -> bool:
    return name.startswith("content-") and name.endswith(".json")


def _is_unfinished(name: str) -> bool:
    return name.startswith(f"{SNAPSHOT}.") and name.endswith(".new")


Progress = Callable[[int, int], None]
"""Called from time to time with the number of bytes read so far, and the total."""


def _parts(read: Callable[[int, int], bytes], size: int) -> Iterator[bytes]:
    return (read(at, PIECE) for at in range(0, size, PIECE))


class Recovery:
    """The files of a directory, after `recover` has read them.

    `sources`: the files that were read; `snapshot_size` in bytes; `segments`: the journal files to continue with, sizes
    without a torn tail; `torn`: (file, offset, bytes) of an incomplete or damaged last record; `contents`: by file,
    those that a change refers to; `stale`: files to remove.
    """

    def __init__(self, directory: Path, disk: Disk, store: Store, progress: Progress | None) -> None:
        self.sources: list[Path] = []
        self.snapshot_size = 0
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
        self._unreadable: StoreDamaged | None = None  # the last content that a change names

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
        if self._unreadable is not None:
            raise self._unreadable
        self.sources += [directory / name for name in self.contents if name in names]
        self.stale += [directory / name for name in names if _is_content(name) and name not in self.contents]

    def _report(self, position: int) -> None:
        """Report that the present file was read up to `position`."""
        if self._progress is not None and self._read + position >= self._next_report:
            self._next_report = self._read + position + REPORTED
            self._progress(self._read + position, self._total)

    def _load_snapshot(self, file: Path) -> None:
        with self._disk.reading(file) as (read, size):
            snapshot = load(_parts(read, size), file, self._store.kinds)
        self.snapshot_size = size
        self._store.replace(snapshot.image, snapshot.sequence)
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
            if self._unreadable is None:
                store.apply(payload)
            else:
                store.sequence = sequence
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise StoreDamaged(path, offset, f"a change that cannot be applied: {wrong}", intact=True) from wrong

    def _load_content(self, file: Path, journal: Path, offset: int) -> int:
        """Load the content file that the change at `offset` names; returns its size."""
        self._unreadable, size = None, 0
        try:
            with self._disk.reading(file) as (read, size):
                image = load(_parts(read, size), file, self._store.kinds).image
                self._store.replace(image, self._store.sequence)
        except FileNotFoundError:
            self._unreadable = StoreDamaged(journal, offset, f"{file.name}, which it names, is missing")
        except StoreDamaged as wrong:
            self._unreadable = StoreDamaged(journal, offset, f"{file.name}, which it names, is damaged: {wrong.reason}")
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
