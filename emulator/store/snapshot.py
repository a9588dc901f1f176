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
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import orjson

from emulator.store.disk import PIECE, Disk, closing, write_whole
from emulator.store.errors import StoreDamaged, StoreTooNew
from emulator.store.image import Image
from emulator.store.kinds import Kind, by_name
from emulator.store.table import TableContent, decoded, encoded

FORMAT = 2
STORE_TABLE, INDEX_TABLE = "_store", "_index"
_HEAD_OPENING = b'{"_store":{"1":'
_HEAD_FORM = re.compile(
    rb'\{"_store":\{"1":\{"id":"snapshot","format":(\d+),"sequence":(\d+),'
    rb'(?:"rows":"([0-9a-f]{8})","index":"([0-9a-f]{16})",)?"crc":"([0-9a-f]{8})"\}\}\n'
)
_HEAD = b'{"_store":{"1":{"id":"snapshot","format":%d,"sequence":%d,"crc":"%08x"}}\n'

# A line, except the first: number, text and id of a document whose text begins with its id, or any other line.
_LINE = re.compile(rb'"(\d{1,18})":(\{"id":"([^"\\]*)".*\}),?\n|(.*)\n')
_ROW = re.compile(rb'"(\d{1,18})":(\{.*\}),?')

AT_ONCE = 256  # rows
_BUFFER = 1 << 18

Tables = Mapping[str, TableContent]

Rows = tuple[dict[int, bytes], dict[str, int]]
"""The documents of a kind: number -> text, id -> number."""


def _no_pause() -> None:
    """Do nothing: no other thread waits."""


def _parts(tables: Tables) -> Iterator[bytes]:
    """All but the first line."""
    for name, table in tables.items():
        lead = b",%b:{\n" % orjson.dumps(name)
        numbers, texts = list(table.rows), list(table.rows.values())
        for at in range(0, len(numbers), AT_ONCE):
            some = zip(numbers[at : at + AT_ONCE], texts[at : at + AT_ONCE], strict=True)
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
    return load(_pieces(data), file, by_name(kinds)).image


def _pieces(data: bytes) -> Iterator[bytes]:
    """A whole file for `load`."""
    return (data[at : at + PIECE] for at in range(0, len(data), PIECE))


def load(parts: Iterable[bytes], file: Path, kinds: Mapping[str, Kind[Any]]) -> Snapshot:
    """Read a snapshot, whose first line is in the first of its parts; raises StoreDamaged and StoreTooNew.

    Only members that are indexed or sorted by are decoded: with the right checksum each line is as it was written.
    """
    parts = iter(parts)
    first = next(parts, b"")
    head = _HEAD_FORM.match(first)
    if head is None:
        return _foreign(b"".join((first, *parts)), file, kinds)
    form, sequence = int(head[1]), int(head[2])
    if form > FORMAT:
        raise StoreTooNew(file, form, FORMAT)
    if (head[3] is not None) != (form == 1):
        raise StoreDamaged(file, 0, "the first line does not belong to a snapshot")
    blank = head[0][: head.start(5)] + b"00000000" + head[0][head.end(5) :]
    body: Iterable[bytes] = chain([first[head.end() :]], parts)
    index = b""
    if form == 1:
        whole, end = b"".join(body), int(head[4], 16) - head.end()
        body, index = _pieces(whole[:end]), whole[end:]
    tables, check = _Tables(), 0
    try:
        for part in body:
            check = crc32(part, check)
            tables.read(part)
    except (ValueError, KeyError, TypeError) as wrong:
        raise StoreDamaged(file, head.end(), f"the documents cannot be read: {wrong}") from None
    rows_check, whole_check = (check, crc32(index)) if form == 1 else (None, check)
    if crc32(blank, whole_check) != int(head[5], 16) or (form == 1 and rows_check != int(head[3], 16)):
        raise StoreDamaged(file, head.end(), "the checksum of the documents is wrong")
    return Snapshot(sequence, _image(tables.rows, file, kinds))


def _image(tables: Mapping[str, Rows], file: Path, kinds: Mapping[str, Kind[Any]]) -> Image:
    contents: dict[str, TableContent] = {}
    for name, (rows, numbers) in tables.items():
        try:
            contents[name] = TableContent.of(kinds.get(name) or Kind(name), rows, numbers)
        except ValueError as wrong:
            raise StoreDamaged(file, 0, f"a document of kind {name}: {wrong}") from wrong
    return Image(contents)


class _Tables:
    """Reads the lines after the first: the documents' texts and ids by kind and number."""

    def __init__(self) -> None:
        self.rows: dict[str, Rows] = {}
        self._present: Rows = ({}, {})
        self._rest = b""  # the beginning of a line

    def read(self, part: bytes) -> None:
        """Read the next part; ValueError, KeyError or TypeError if it is damaged."""
        part = self._rest + part
        end = part.rfind(b"\n") + 1
        self._rest = part[end:]
        rows, numbers = self._present
        for number, text, identity, line in _LINE.findall(part, 0, end):
            if number:
                numbers[identity.decode()] = at = int(number)
                rows[at] = text
            elif line[:1] == b",":
                rows, numbers = self._present = self.rows.setdefault(decoded(line[1:-2]), ({}, {}))
            elif (row := _ROW.fullmatch(line)) is not None:
                numbers[decoded(row[2])["id"]] = at = int(row[1])
                rows[at] = row[2]


def _foreign(data: bytes, file: Path, kinds: Mapping[str, Kind[Any]]) -> Snapshot:
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
    tables: dict[str, Rows] = {}
    for kind, documents in whole.items():
        try:
            ordered = sorted(((int(number), document) for number, document in documents.items()), key=itemgetter(0))
            rows = {number: encoded(document) for number, document in ordered}
            tables[kind] = rows, {document["id"]: number for number, document in ordered}
        except (ValueError, AttributeError) as wrong:
            raise StoreDamaged(file, 0, f"the table {kind} contains a value that is not a document: {wrong}") from None
    return Snapshot(sequence, _image(tables, file, kinds))
