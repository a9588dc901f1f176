"""The snapshot: the whole content as one plain JSON file that stock TinyDB opens.

    {"_store":{"1":{"id":"snapshot","format":2,"sequence":17,"crc":"<8 hex>"}}
    ,"payment":{
    "1":{"id":...},
    "2":{"id":...}
    }
    }

`crc` is the CRC-32 of what follows the first line, then of the first line with zeros in its place: every byte is
covered. Format 1 had an index of the documents at the end (`_index`), with a checksum of its own; it is not used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import orjson

from emulator.store.disk import Disk, closing, write_whole
from emulator.store.documents import ROWS_AT_ONCE, Image
from emulator.store.errors import StoreDamaged, StoreTooNew
from emulator.store.kinds import Kind, by_name
from emulator.store.table import TableContent, decoded, encoded

FORMAT = 2
STORE_TABLE, INDEX_TABLE = "_store", "_index"
INDEX_OPENING = b',"_index":'
_HEAD_OPENING = b'{"_store":{"1":'
_HEAD_FORM = re.compile(
    rb'\{"_store":\{"1":\{"id":"snapshot","format":(\d+),"sequence":(\d+),'
    rb'(?:"rows":"([0-9a-f]{8})","index":"([0-9a-f]{16})",)?"crc":"([0-9a-f]{8})"\}\}\n'
)
_HEAD = b'{"_store":{"1":{"id":"snapshot","format":%d,"sequence":%d,"crc":"%08x"}}\n'

_BUFFER = 1 << 18
_AT_ONCE = 1 << 20  # bytes; splitting more into lines holds all other threads

Read = Callable[[int, int], bytes]
"""`read(offset, size)`: that part of the file, shorter only at its end."""

Tables = Mapping[str, TableContent]


def _no_pause() -> None:
    """Do nothing: no other thread waits."""


def _parts(tables: Tables) -> Iterator[bytes]:
    """All but the first line."""
    for name, table in tables.items():
        lead = b",%b:{\n" % orjson.dumps(name)
        numbers, texts = list(table.rows), list(table.rows.values())
        for at in range(0, len(numbers), ROWS_AT_ONCE):
            some = zip(numbers[at : at + ROWS_AT_ONCE], texts[at : at + ROWS_AT_ONCE], strict=True)
            yield lead + b",\n".join([b'"%d":%b' % row for row in some])
            lead = b",\n"
        yield lead + b"}\n" if not numbers else b"\n}\n"
    yield b"}\n"


def _head(sequence: int, body: int) -> bytes:
    """The first line, for the checksum of the rest."""
    return _HEAD % (FORMAT, sequence, crc32(_HEAD % (FORMAT, sequence, 0), body))


def snapshot_bytes(tables: Tables, sequence: int = 0, pause: Callable[[], None] = _no_pause) -> bytes:
    """The whole file; `pause` is called between parts of the work."""
    parts, check = [b""], 0
    for part in _parts(tables):
        parts.append(part)
        check = crc32(part, check)
        pause()
    parts[0] = _head(sequence, check)
    return b"".join(parts)


def write_snapshot(
    disk: Disk, path: Path, tables: Tables, sequence: int, pause: Callable[[], None] | None = None
) -> int:
    """Write and sync a snapshot file; returns its size in bytes. Raises OSError.

    `pause` is called between parts of the work.
    """
    with closing(disk, disk.create(path)) as file:
        waiting = [_head(sequence, 0)]  # reserves the space of the first line, known at the end
        size, check, length = len(waiting[0]), 0, 0
        for part in _parts(tables):
            waiting.append(part)
            size, length, check = size + len(part), length + len(part), crc32(part, check)
            if length >= _BUFFER:
                write_whole(disk, file, b"".join(waiting))
                waiting, length = [], 0
            (pause or _no_pause)()
        if waiting:
            write_whole(disk, file, b"".join(waiting))
        disk.write_at(file, _head(sequence, check), 0)
        disk.sync(file)
    return size


class Snapshot(NamedTuple):
    """The content of a snapshot file, and the number of its last change."""

    sequence: int
    image: Image


def image_from_bytes(data: bytes, kinds: Iterable[Kind[Any]], *, file: Path = Path("image")) -> Image:
    """The image that `snapshot_bytes` wrote; raises StoreDamaged and StoreTooNew, naming `file`."""
    return load(lambda offset, size: data[offset : offset + size], len(data), file, by_name(kinds)).image


def load(read: Read, size: int, file: Path, kinds: Mapping[str, Kind[Any]]) -> Snapshot:
    """Read a snapshot of `size` bytes; raises StoreDamaged, and StoreTooNew for a later format."""
    head = _HEAD_FORM.match(read(0, 256))
    if head is None:
        sequence, rows = _foreign(read(0, size), file)
    else:
        form, sequence = int(head[1]), int(head[2])
        if form > FORMAT:
            raise StoreTooNew(file, form, FORMAT)
        end = size if head[4] is None else min(size, int(head[4], 16))
        rest = _check(read, end, size) if head[4] is not None else _check(read, head.end(), size)
        blank = head[0][: head.start(5)] + b"00000000" + head[0][head.end(5) :]
        if crc32(blank, rest) != int(head[5], 16) or (head[4] is None) != (form == FORMAT):
            raise StoreDamaged(file, head.end(), "the checksum of the documents is wrong")
        if head[3] is not None and _check(read, head.end(), end) != int(head[3], 16):
            raise StoreDamaged(file, head.end(), "the checksum of the documents is wrong")
        rows = _rows(read, head.end(), end)
    tables: dict[str, TableContent] = {}
    for name, some in rows.items():
        try:
            tables[name] = TableContent.of(kinds.get(name) or Kind(name), some)
        except ValueError as wrong:
            raise StoreDamaged(file, 0, f"a document of kind {name}: {wrong}") from wrong
    return Snapshot(sequence, Image(tables))


def _pieces(read: Read, begin: int, end: int) -> Iterator[bytes]:
    for at in range(begin, end, _AT_ONCE):
        yield read(at, min(_AT_ONCE, end - at))


def _check(read: Read, begin: int, end: int) -> int:
    check = 0
    for piece in _pieces(read, begin, end):
        check = crc32(piece, check)
    return check


def _rows(read: Read, begin: int, end: int) -> dict[str, dict[int, bytes]]:
    """The documents' texts by kind and number, from lines whose checksum is correct."""
    tables: dict[str, dict[int, bytes]] = {}
    rows: dict[int, bytes] = {}
    rest = b""
    for piece in _pieces(read, begin, end):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line[:1] == b'"':
                number, _, raw = line.partition(b":")
                rows[int(number[1:-1])] = raw[:-1] if raw[-1:] == b"," else raw
            elif line[:1] == b",":
                rows = tables.setdefault(decoded(line[1:-2]), {})
    return tables


def _foreign(data: bytes, file: Path) -> tuple[int, dict[str, dict[int, bytes]]]:
    """Read a file that another program wrote, such as stock TinyDB after a manual change."""
    try:
        whole = decoded(data)
        stored = whole.pop(STORE_TABLE)["1"]
        form, sequence = stored["format"], stored["sequence"]
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise StoreDamaged(file, 0, f"the file is not a snapshot: {wrong}") from None
    if isinstance(form, int) and form > FORMAT:
        raise StoreTooNew(file, form, FORMAT)
    if form not in range(1, FORMAT + 1) or not isinstance(sequence, int) or data.startswith(_HEAD_OPENING):
        raise StoreDamaged(file, 0, "the first line does not belong to a snapshot")
    whole.pop(INDEX_TABLE, None)
    tables: dict[str, dict[int, bytes]] = {}
    for kind, documents in whole.items():
        try:
            rows = {int(number): encoded(document) for number, document in documents.items()}
        except (ValueError, AttributeError) as wrong:
            raise StoreDamaged(file, 0, f"the table {kind} contains a value that is not a document: {wrong}") from None
        tables[kind] = dict(sorted(rows.items()))
    return sequence, tables
