"""Reading a snapshot file, whichever program wrote it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import orjson

from emulator.store.errors import StoreDamaged, StoreTooNew
from emulator.store.image import Image, TableImage
from emulator.store.index_codec import table_image
from emulator.store.kinds import Kind
from emulator.store.snapshot import FORMAT, HEAD_FORM, HEAD_OPENING, INDEX_OPENING, INDEX_TABLE, STORE_TABLE

Read = Callable[[int, int], bytes]
"""`read(offset, size)`: that part of the file, shorter only at its end."""

# Small enough to stay in the processor's cache between the check and the cutting up.
_AT_ONCE = 1 << 22


class Snapshot(NamedTuple):
    """What a snapshot file holds: the number of the last change in it, its size in bytes and the documents.

    `fits`: its indexes are there and are those that are declared.
    """

    sequence: int
    size: int
    image: Image
    fits: bool


def load(read: Read, size: int, file: Path, kinds: Mapping[str, Kind[Any]]) -> Snapshot:
    """Read a snapshot of `size` bytes; raises StoreDamaged, and StoreTooNew for a later format."""
    found = HEAD_FORM.match(read(0, 256))
    if found is None:
        return _load_foreign(read(0, size), file)
    form, sequence = int(found[1]), int(found[2])
    if form > FORMAT:
        raise StoreTooNew(file, form, FORMAT)
    index_at = int(found[4], 16)
    index = read(index_at, max(0, size - index_at))
    blank = found[0][: found.start(5)] + b"00000000" + found[0][found.end(5) :]
    if crc32(blank, crc32(index)) != int(found[5], 16):
        raise StoreDamaged(file, 0, "the checksum of first line and index is wrong")
    rows = _Rows(read, found.end())
    tables = {
        told["id"]: table_image(told, rows.take(told["starts"], told["sizes"]), kinds.get(told["id"]))
        for told in orjson.loads(index[len(INDEX_OPENING) : -2]).values()
    }
    if rows.check_up_to(index_at) != int(found[3], 16):
        raise StoreDamaged(file, found.end(), "the checksum of the documents is wrong")
    fits = not any(table.is_bare or (name in kinds and table.kind is not kinds[name]) for name, table in tables.items())
    return Snapshot(sequence, size, Image(tables), fits)


class _Rows:
    """The documents of a file from front to back, checked on the way."""

    def __init__(self, read: Read, begin: int) -> None:
        self._read = read
        self._position = begin
        self._check = 0

    def _next(self, end: int) -> bytes:
        piece = self._read(self._position, end - self._position)
        self._check = crc32(piece, self._check)
        self._position = end
        return piece

    def take(self, starts: list[int], sizes: list[int]) -> list[bytes]:
        """The documents that stand at these places."""
        found: list[bytes] = []
        done = 0
        while done < len(starts):
            base = self._position
            upto = bisect_right(starts, base + _AT_ONCE, done + 1)
            piece = self._next(starts[upto - 1] + sizes[upto - 1])
            places = zip(starts[done:upto], sizes[done:upto], strict=True)
            found += [piece[start - base : start - base + size] for start, size in places]
            done = upto
        return found

    def check_up_to(self, end: int) -> int:
        """The CRC-32 of everything from the first document's kind to before `end`."""
        self._next(end)
        return self._check


def _load_foreign(data: bytes, file: Path) -> Snapshot:
    """Read a file that another program wrote, as stock TinyDB does after a change by hand."""
    try:
        whole = orjson.loads(data)
        told = whole.pop(STORE_TABLE)["1"]
        form, sequence = told["format"], told["sequence"]
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise StoreDamaged(file, 0, f"this is no snapshot: {wrong}") from None
    if isinstance(form, int) and form > FORMAT:
        raise StoreTooNew(file, form, FORMAT)
    if form != FORMAT or not isinstance(sequence, int) or data.startswith(HEAD_OPENING):
        raise StoreDamaged(file, 0, "the first line is not that of a snapshot")
    whole.pop(INDEX_TABLE, None)
    tables = {kind: _foreign_table(kind, documents, file) for kind, documents in whole.items()}
    return Snapshot(sequence, len(data), Image(tables), fits=False)


def _foreign_table(kind: str, documents: Any, file: Path) -> TableImage:
    try:
        rows = {int(number): orjson.dumps(document) for number, document in documents.items()}
    except (ValueError, AttributeError) as wrong:
        raise StoreDamaged(file, 0, f"the table {kind} holds something that is no document: {wrong}") from None
    return TableImage.bare(dict(sorted(rows.items())))
