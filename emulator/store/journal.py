"""A bank's own directory: the names of its files, journals of changes, and reading all of it back.

    documents.json                 the snapshot (snapshot.py)
    journal-<first change>.jsonl   the changes after it, one record each; more than one after a compaction
    content-<id>.json              a whole content: a snapshot, or what a change refers to, so that it stays small
    documents.json.<id>.new        a snapshot that is being written
    lock                           names the process that has the directory open (disk.py)

A record is a line, `{"crc":"<8 hex>","change":<change>}`, with the CRC-32 of the change (`table.Change`). Every byte
of it is either fixed by this form or covered by the checksum. With `power` the change states in `synced` which one was
synced before it, by which a start tells a torn end from damage.

The directory of a killed process may contain, besides what is written in this order: a snapshot that was not finished;
journal files whose changes the snapshot has; a content that nothing names; an incomplete last record; and, after a
power failure, missing pages anywhere in the records that were not synced. All of this is dropped, as none of it was
acknowledged (`Recovered`). Anything else that cannot be read is damage, and nothing is dropped for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from emulator.store.disk import Disk, pieces, write_whole
from emulator.store.errors import StoreDamaged
from emulator.store.kinds import Kind
from emulator.store.loaded import LoadedDocuments
from emulator.store.snapshot import load
from emulator.store.table import Image

SNAPSHOT = "documents.json"
_NUMBERS = re.compile(rb'\{"sequence":(\d{1,18}),(?:"synced":(\d{1,18}),)?')
_JOURNAL = re.compile(r"journal-(\d{12,})\.jsonl")
_UNFINISHED = re.compile(rf"{re.escape(SNAPSHOT)}\..*\.new")
_CONTENT = re.compile(r"content-.*\.json")
_MAGIC = b'{"crc":"'
_HEAD = re.compile(rb'\{"crc":"([0-9a-f]{8})","change":')
# where a record begins, be it valid or not, and what it states in `synced`; not found in a head with lost pages
_BEGINS = re.compile(rb'(?<=\n)\{"crc":"[0-9a-f]{8}","change":\{"sequence":\d+,(?:"synced":(\d{1,18}),|"[cdp])')

Progress = Callable[[int, int], None]
"""Called after each file and record with the number of bytes read so far, and the total."""


def journal_name(first: int) -> str:
    """The name of the file whose first record is change number `first`."""
    return f"journal-{first:012d}.jsonl"


def journal_first(name: str) -> int | None:
    """The number of the first change in the file with this name; None if it is not a journal."""
    match = _JOURNAL.fullmatch(name)
    return int(match[1]) if match else None


def sealed(payload: bytes) -> bytes:
    """The line for a change."""
    return b'{"crc":"%08x","change":%b}\n' % (crc32(payload), payload)


def unsealed(data: bytes, offset: int) -> tuple[bytes, int] | None:
    """The change of the record at `offset`, and the offset after it; None if it is not valid."""
    head, end = _HEAD.match(data, offset), data.find(b"}\n", offset)
    if head is None or end < 0 or crc32(change := data[head.end() : end]) != int(head[1], 16):
        return None
    return change, end + 2


def _records_after(data: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    """The valid records, with their offsets, after the damaged one at `offset`, wherever they begin: its line end may
    be the damage.

    Inside a line a document may contain what looks like one, but it does not end with the line.
    """
    for head in _HEAD.finditer(data, offset + 1):
        if (record := unsealed(data, head.start())) is not None:
            yield head.start(), record[0]


class Journal:
    """The journal file that changes are appended to: it begins with change `first`, and ends after `end` bytes.

    It is closed when nobody needs it any more, an fsync under way included.
    """

    def __init__(self, disk: Disk, path: Path, end: int = 0) -> None:
        self._disk = disk
        self.first = journal_first(path.name)
        self.end = end
        self.file = disk.open_to_append(path)
        self._spoilt = False  # a failed write may have left part of a record

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):  # it could not be opened
            self._disk.close(self.file)

    def append(self, line: bytes) -> None:
        """Write one line completely, or leave the journal unchanged and raise OSError."""
        if self._spoilt:
            self.mend()
        end = self.end + len(line)
        self._spoilt = True
        try:
            written = self._disk.write(self.file, line)
            if written < len(line):  # as seldom as the disk is nearly full
                write_whole(self._disk, self.file, line[written:])
        except BaseException:
            with suppress(OSError):  # if this fails too, the next append tries again before it writes
                self.mend()
            raise
        self.end, self._spoilt = end, False

    def mend(self) -> None:
        """Cut off what a failed write may have left; OSError."""
        if self._spoilt:
            self._disk.cut(self.file, self.end)
            self._spoilt = False

    def cut_back(self, end: int) -> None:
        """Shorten it to `end` bytes, ignoring errors; nothing may be appended afterwards."""
        with suppress(OSError):
            self._disk.cut(self.file, end)


class Recovered:
    """A directory, read into the empty `documents` without changing a file; raises StoreDamaged and StoreTooNew.

    The journal goes on after byte `end` of the last one of `journals`; `contents`: the files that changes refer to;
    `size` of all these and `snapshot_size` in bytes; `torn`: (file, offset, bytes) of an incomplete or damaged last
    record; `stale`: files to remove.
    """

    def __init__(self, directory: Path, documents: LoadedDocuments, progress: Progress | None = None) -> None:
        self.snapshot_size = self.size = self.end = self._done = 0
        self.journals: list[Path] = []
        self.contents: set[str] = set()
        self.stale: list[Path] = []
        self.torn: tuple[Path, int, int] | None = None
        self._directory, self._documents = directory, documents
        self._progress = progress or (lambda _done, _total: None)
        names = sorted(os.listdir(directory))
        firsts = {directory / name: first for name in names if (first := journal_first(name)) is not None}
        journals = sorted(firsts, key=firsts.__getitem__)
        snapshot = [directory / SNAPSHOT] if SNAPSHOT in names else []
        self._total = sum(path.stat().st_size for path in (*snapshot, *journals))
        self._advance(0)
        for file in snapshot:
            sequence, image = load(pieces(file), file, documents.kinds)
            documents.replace(image, sequence)
            self.snapshot_size = file.stat().st_size
            self._advance(self.snapshot_size)
        # a journal is not needed if the next one begins no later than the first change that the snapshot does not have
        while len(journals) > 1 and firsts[journals[1]] <= documents.sequence + 1:
            self.stale.append(journals.pop(0))
        while journals and self.torn is None:
            path = journals.pop(0)
            self._read(path, firsts[path], journals)
        self.stale += journals
        named = {*self.contents, *documents.contents()}
        for name in names:
            if _UNFINISHED.fullmatch(name) or (_CONTENT.fullmatch(name) and name not in named):
                self.stale.append(directory / name)

    def _advance(self, size: int) -> None:
        self._done += size
        self._progress(self._done, self._total)

    def _read(self, path: Path, following: int, later: list[Path]) -> None:
        """Apply the changes of a journal file, from number `following` on, that the documents do not have yet."""
        known, end = self._documents.sequence, 0
        if following > known + 1:
            raise StoreDamaged(path, 0, f"changes {known + 1} to {following - 1} are missing before this file")
        data = path.read_bytes()
        while (record := unsealed(data, end)) is not None:
            self._apply(path, end, record[0], following)
            following, end = following + 1, record[1]
        if end < len(data):
            _examine_tear(path, data, end, following, later)
            self.torn = (path, end, len(data) - end)
        if following == self._documents.sequence + 1:
            self.journals.append(path)
            self.size, self.end = self.size + end, end
        else:  # the snapshot goes beyond its end
            self.stale.append(path)

    def _apply(self, path: Path, offset: int, change: bytes, expected: int) -> None:
        """Apply the change of the record at `offset`, unless the snapshot has it."""
        documents = self._documents
        numbered = _NUMBERS.match(change)
        if numbered is None:
            raise StoreDamaged(path, offset, "a valid record without a change")
        sequence = int(numbered[1])
        if sequence != expected:
            raise StoreDamaged(path, offset, f"change {sequence} where change {expected} is expected")
        self._advance(len(change))
        if sequence <= documents.sequence:
            return
        try:
            documents.apply(change, self._content)
        except StoreDamaged as wrong:
            raise StoreDamaged(path, offset, f"{wrong.file.name}, which it names, is {wrong.reason}") from wrong
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise StoreDamaged(path, offset, f"a change that cannot be applied: {wrong}", intact=True) from wrong

    def _content(self, name: str) -> Image:
        file = self._directory / name
        try:
            image = content_in(self._directory, name, self._documents.kinds)
        except FileNotFoundError:
            raise StoreDamaged(file, 0, "missing") from None
        except StoreDamaged as wrong:
            raise StoreDamaged(file, wrong.offset, f"damaged: {wrong.reason}") from wrong
        self.contents.add(name)
        self.size += file.stat().st_size
        return image


def content_in(directory: Path, name: str, kinds: Mapping[str, Kind[Any]]) -> Image:
    """Read a content file; StoreDamaged, StoreTooNew, OSError."""
    file = directory / name
    return load(pieces(file), file, kinds)[1]


def _examine_tear(path: Path, data: bytes, end: int, following: int, later: list[Path]) -> None:
    """Raise StoreDamaged unless the end of a journal is torn: no acknowledged change is lost by dropping it.

    With `power` the last batch, which was never synced, may lose any of its pages. The records after such a page are
    valid, and state that the lost ones were not synced when they were written. None of them was acknowledged. A
    record that states that the lost ones were synced proves damage, even if it is not valid itself.
    """
    if end == 0 and not data.startswith((_MAGIC[: len(data)], b"\0")):
        raise StoreDamaged(path, 0, "the file does not begin with a record")
    for offset, change in _records_after(data, end):
        numbers = _NUMBERS.match(change)
        if numbers is None or numbers[2] is None or int(numbers[2]) >= following:
            raise StoreDamaged(path, end, f"a valid record follows at byte {offset}")
    for begins in _BEGINS.finditer(data, end + 1):  # the one before it was written whole
        if begins[1] is None or int(begins[1]) >= following:
            raise StoreDamaged(path, end, f"another record begins at byte {begins.start()}")
    for other in later:  # a new file is created after all earlier records were synced
        if any(_records_after(other.read_bytes(), -1)):
            raise StoreDamaged(path, end, f"valid records follow in {other.name}")
