"""Reads a state directory: the snapshot, then the changes of the journal after it; tells a torn end from damage.

The journal is files of records, `journal-<number of the first change>.jsonl`. A line is one change:
`{"crc":"<8 hex>","size":"<8 hex>","change":<change>}`, with the size and the CRC-32 of the change (changes.py). Every
byte of a line is either fixed by this form or covered by the checksum.

The directory of a killed process may contain, besides what `journal_log.py` writes in order: a snapshot that was not
finished; journal files whose changes the snapshot has; a content that no change names; an incomplete last record; and,
after a power failure, missing pages anywhere in the records that were not synced. All of this is dropped, as none of it
was acknowledged. Anything else that cannot be read is damage, and nothing is dropped for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

from emulator.store.changes import content_named
from emulator.store.disk import pieces
from emulator.store.documents import Documents
from emulator.store.errors import StoreDamaged
from emulator.store.image import StoredContent
from emulator.store.snapshot import load

SNAPSHOT = "documents.json"

_SYNCED = re.compile(rb'\{"sequence":\d{1,18},"synced":(\d{1,18}),')
_SEQUENCE = re.compile(rb'\{"sequence":(\d{1,18}),')
_JOURNAL = re.compile(r"journal-(\d{12,})\.jsonl")
_UNFINISHED = re.compile(rf"{re.escape(SNAPSHOT)}\..*\.new")
_CONTENT = re.compile(r"content-.*\.json")
_HEAD = re.compile(rb'\{"crc":"([0-9a-f]{8})","size":"([0-9a-f]{8})","change":')

Progress = Callable[[int, int], None]
"""Called from time to time with the number of bytes read so far, and the total."""

Record = tuple[int, bytes]
"""The offset of a record in its file, and the change."""


def sealed(payload: bytes) -> bytes:
    """The line for a change."""
    return b'{"crc":"%08x","size":"%08x","change":%b}\n' % (crc32(payload), len(payload), payload)


def _unsealed(data: bytes, offset: int) -> tuple[bytes | None, int]:
    """The change of the record at `offset`, None if it is not valid, and the offset after it, 0 if that is unknown."""
    head = _HEAD.match(data, offset)
    if head is None:
        return None, 0
    end = head.end() + int(head[2], 16)
    change = data[head.end() : end]
    return change if data[end : end + 2] == b"}\n" and crc32(change) == int(head[1], 16) else None, end + 2


def records(data: bytes) -> tuple[list[Record], int]:
    """The valid records in a journal file, and the offset after the last of them."""
    read: list[Record] = []
    offset = 0
    while True:
        change, end = _unsealed(data, offset)
        if change is None:
            return read, offset
        read.append((offset, change))
        offset = end


def records_after(data: bytes, offset: int) -> Iterator[Record]:
    """The valid records after the damaged one at `offset`.

    They are searched at the beginnings of lines, and at the end that the damaged record states (its line end may be the
    damage). Inside a line, a document may contain text that looks like a record.
    """
    place = _unsealed(data, offset)[1]
    if place == 0 or _unsealed(data, place)[0] is None:
        place = data.find(b"\n", offset) + 1
    while place > 0:
        change, end = _unsealed(data, place)
        if change is not None:
            yield place, change
        place = data.find(b"\n", place) + 1 if change is None else end


def journal_name(first: int) -> str:
    """The name of the file whose first record is change number `first`."""
    return f"journal-{first:012d}.jsonl"


def journal_first(name: str) -> int | None:
    """The number of the first change in the file with this name; None if it is not a journal."""
    match = _JOURNAL.fullmatch(name)
    return int(match[1]) if match else None


def unfinished_name(sequence: int, unique: int) -> str:
    """The file of a snapshot that is being written; an unfinished one is removed at the next start."""
    return f"{SNAPSHOT}.{sequence}-{unique:x}.new"


def content_name(unique: str) -> str:
    """The file of a content that a change of the journal refers to, in the form of a snapshot."""
    return f"content-{unique}.json"


class Recovered:
    """A directory, read into the empty `documents` without changing a file; raises StoreDamaged and StoreTooNew.

    `snapshot_size` in bytes; `sources` were read. The journal goes on after byte `end` of the last one of `journals`,
    of `size` bytes in all; `torn`: (file, offset, bytes) of an incomplete or damaged last record; `contents`: by file,
    those that a change refers to; `stale`: files to remove.
    """

    def __init__(self, directory: Path, documents: Documents, progress: Progress = lambda _done, _total: None) -> None:
        self.snapshot_size = self.size = self.end = 0
        self.sources: list[Path] = []
        self.journals: list[Path] = []
        self.stale: list[Path] = []
        self.torn: tuple[Path, int, int] | None = None
        self.contents: dict[str, StoredContent] = {}
        self._directory = directory
        self._documents = documents
        self._progress = progress
        self._done = 0
        names = sorted(os.listdir(directory))
        firsts = {directory / name: first for name in names if (first := journal_first(name)) is not None}
        journals = sorted(firsts, key=firsts.__getitem__)
        snapshot = [directory / SNAPSHOT] if SNAPSHOT in names else []
        self._total = sum(path.stat().st_size for path in (*snapshot, *journals))
        self._advance(0)
        for file in snapshot:
            content = load(pieces(file), file, documents.kinds)
            documents.replace(content.image, content.sequence)
            self.sources.append(file)
            self.snapshot_size = file.stat().st_size
            self._advance(self.snapshot_size)
        # a journal is not needed if the next one begins no later than the first change that the snapshot does not have
        while len(journals) > 1 and firsts[journals[1]] <= documents.sequence + 1:
            self.stale.append(journals.pop(0))
        while journals and self.torn is None:
            path = journals.pop(0)
            self._read(path, firsts[path], journals)
        self.sources += [directory / name for name in self.contents]
        self.stale += journals
        for name in names:
            if _UNFINISHED.fullmatch(name) or (_CONTENT.fullmatch(name) and name not in self.contents):
                self.stale.append(directory / name)

    def _advance(self, size: int) -> None:
        self._done += size
        self._progress(self._done, self._total)

    def _read(self, path: Path, first: int, later: list[Path]) -> None:
        """Apply the changes of a journal file that the documents do not have yet."""
        documents, known = self._documents, self._documents.sequence
        if first > known + 1:
            raise StoreDamaged(path, 0, f"changes {known + 1} to {first - 1} are missing before this file")
        data = path.read_bytes()
        valid, end = records(data)
        following = first
        for offset, change in valid:
            self._apply(path, offset, change, following)
            following += 1
        self.sources.append(path)
        if end < len(data):
            self._examine_tear(path, data, end, following, later)
            self.torn = (path, end, len(data) - end)
        is_last = self.torn is not None or not later
        if documents.sequence > known or (is_last and first <= known + 1 <= following):
            self.journals.append(path)
            self.size, self.end = self.size + end, end
        else:
            self.stale.append(path)

    def _apply(self, path: Path, offset: int, change: bytes, expected: int) -> None:
        """Apply the change of the record at `offset`, unless the snapshot has it."""
        documents = self._documents
        numbered = _SEQUENCE.match(change)
        if numbered is None:
            raise StoreDamaged(path, offset, "a valid record without a change")
        sequence = int(numbered[1])
        if sequence != expected:
            raise StoreDamaged(path, offset, f"change {sequence} where change {expected} is expected")
        self._advance(len(change))
        if sequence <= documents.sequence:
            return
        try:
            if (content := content_named(change)) is not None:
                file = self._directory / content
                documents.replace(load(pieces(file), file, documents.kinds).image, documents.sequence)
                self.contents[content] = StoredContent(content, file.stat().st_size, sequence=sequence)
            documents.apply(change)
        except FileNotFoundError:
            raise StoreDamaged(path, offset, f"{content}, which it names, is missing") from None
        except StoreDamaged as wrong:
            raise StoreDamaged(path, offset, f"{content}, which it names, is damaged: {wrong.reason}") from wrong
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise StoreDamaged(path, offset, f"a change that cannot be applied: {wrong}", intact=True) from wrong

    def _examine_tear(self, path: Path, data: bytes, end: int, following: int, later: list[Path]) -> None:
        """Raise StoreDamaged unless the end of a journal is torn: no acknowledged change is lost by dropping it.

        With `power` the last batch, which was never synced, may lose any of its pages. The records after such a page
        are valid, and state that the lost ones were not synced when they were written. None of them was acknowledged. A
        valid record that states that the lost ones were synced proves damage.
        """
        for offset, change in records_after(data, end):
            synced = _SYNCED.match(change)
            if synced is None or int(synced[1]) >= following:
                raise StoreDamaged(path, end, f"a valid record follows at byte {offset}")
        for other in later:  # a new file is created after all earlier records were synced
            more = other.read_bytes()
            if _unsealed(more, 0)[0] is not None or next(records_after(more, 0), None) is not None:
                raise StoreDamaged(path, end, f"valid records follow in {other.name}")
