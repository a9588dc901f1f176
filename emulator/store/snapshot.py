"""The snapshot: the whole content as one plain JSON file that stock TinyDB opens.

    {"_store":{"1":{"id":"snapshot","format":2,"sequence":17,"crc":"<8 hex>"}}
    ,"payment":{
    "1":{"id":...},
    "2":{"id":...}
    }
    }

`crc` is the CRC-32 of what follows the first line, then of the first line with zeros in its place: every byte is
covered. A file that another program has written, such as stock TinyDB after a manual change, has no first line of this
form, and its `crc` is not used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson

from emulator.store.disk import PIECE, Disk, closing, write_whole
from emulator.store.errors import StoreDamaged, StoreTooNew
from emulator.store.kinds import Kind, decoded
from emulator.store.table import DocumentTable, Image, Rows

FORMAT = 2
_OPENING = b'{"_store":{"1":'
_HEAD_FORM = re.compile(
    rb'\{"_store":\{"1":\{"id":"snapshot","format":(\d{1,9}),"sequence":(\d{1,18}),"crc":"([0-9a-f]{8})"\}\}\n'
)
_HEAD = b'{"_store":{"1":{"id":"snapshot","format":%d,"sequence":%d,"crc":"%08x"}}\n'

AT_ONCE = 256  # rows

# A line after the first: number, text and (if it begins with it) id of a document, or any other.
_LINE = re.compile(rb'"(\d{1,18})":(\{(?:"id":"([^"\\]*)")?.*\}),?\n|(.*)\n')

Line = tuple[int, str | None, bytes | str, bytes, bytes]
"""A document in a file: offset, kind, number, text and, if it was seen, id; without a kind it is none."""


def _parts(rows: Rows) -> Iterator[bytes]:
    """All but the first line."""
    for name, documents in rows.items():
        lead = b",%b:{\n" % orjson.dumps(name)
        numbers, texts = list(documents), list(documents.values())
        for at in range(0, len(numbers), AT_ONCE):
            some = zip(numbers[at : at + AT_ONCE], texts[at : at + AT_ONCE], strict=True)
            yield lead + b",\n".join([b'"%d":%b' % row for row in some])
            lead = b",\n"
        yield lead + b"}\n" if not numbers else b"\n}\n"
    yield b"}\n"


def _head(sequence: int, body: int) -> bytes:
    """The first line, for the checksum of the rest."""
    return _HEAD % (FORMAT, sequence, crc32(_HEAD % (FORMAT, sequence, 0), body))


def _write(write: Callable[[bytes], object], rows: Rows, sequence: int, pause: Callable[[], None]) -> bytes:
    """Write a file in parts, its first line without the checksum; returns that line with it."""
    write(_head(sequence, 0))
    check = 0
    for part in _parts(rows):
        write(part)
        check = crc32(part, check)
        pause()
    return _head(sequence, check)


def snapshot_bytes(rows: Rows, sequence: int = 0, pause: Callable[[], None] = lambda: None) -> bytes:
    """The whole file; `pause` is called between parts of the work."""
    parts: list[bytes] = []
    parts[0] = _write(parts.append, rows, sequence, pause)
    return b"".join(parts)


def write_snapshot(disk: Disk, path: Path, rows: Rows, sequence: int, pause: Callable[[], None] = lambda: None) -> int:
    """Write and sync a snapshot file; returns its size in bytes. Raises OSError."""
    with closing(disk, disk.create(path)) as file:
        disk.write_at(file, _write(partial(write_whole, disk, file), rows, sequence, pause), 0)
        disk.sync(file)
    return path.stat().st_size


def _pieces(data: bytes) -> Iterator[bytes]:
    """A whole file for `load`."""
    return (data[at : at + PIECE] for at in range(0, len(data), PIECE))


def load(
    parts: Iterable[bytes], file: Path, kinds: Mapping[str, Kind[Any]], lost: list[bytes] | None = None
) -> tuple[int, Image]:
    """Read a snapshot, whose first line is in the first of its parts; returns the number of its last change, and it.

    Raises StoreDamaged and StoreTooNew. With `lost` nothing is damage: what cannot be read is added to it.
    """
    parts = iter(parts)
    first = next(parts, b"")
    head = _HEAD_FORM.match(first)
    sequence = check = 0
    if head is not None:
        sequence, body = int(head[2]), head.end()
        if int(head[1]) > FORMAT:
            raise StoreTooNew(file, int(head[1]), FORMAT)

        def checked() -> Iterator[bytes]:
            nonlocal check
            for part in chain([first[body:]], parts):
                check = crc32(part, check)
                yield part

        rows = _rows(checked(), body)
    else:
        data = b"".join((first, *parts))
        try:
            sequence, rows = _foreign(data, file)
        except StoreDamaged:
            if lost is None:
                raise
            rows = _rows(_pieces(data), 0)
    tables = _loaded(rows, file, kinds, lost)
    if head is not None and lost is None and _head(sequence, check) != head[0]:
        raise StoreDamaged(file, body, "the checksum of the documents is wrong")
    return sequence, Image(tables)


def _rows(parts: Iterable[bytes], offset: int) -> Iterator[Line]:
    """The documents in the lines after the first."""
    name: str | None = None
    rest = b""
    for part in chain(parts, (b"\n",)):
        part = rest + part
        end = part.rfind(b"\n") + 1
        for number, text, identity, line in _LINE.findall(part, 0, end):
            if number:
                yield offset, name, number, text, identity
            elif line[:1] == b",":
                try:
                    name = decoded(line[1:-2])
                except ValueError:
                    name = None
            elif line not in (b"", b"}"):
                yield offset + part.find(line), None, b"", line, b""
        offset += end
        rest = part[end:]


def _foreign(data: bytes, file: Path) -> tuple[int, Iterator[Line]]:
    """The sequence and the documents of a file that another program wrote, or of format 1, as layout 1 has it."""
    try:
        whole = decoded(data)
        stored = whole.pop("_store")["1"]
        form, sequence = stored["format"], stored["sequence"]
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise StoreDamaged(file, 0, f"the file is not a snapshot: {wrong}") from None
    if isinstance(form, int) and form > FORMAT:
        raise StoreTooNew(file, form, FORMAT)
    whole.pop("_index", None)  # of format 1; it is not used
    own = form == FORMAT and data.startswith(_OPENING)  # with a first line that is not as this program writes it
    if form not in (1, FORMAT) or not isinstance(sequence, int) or own:
        raise StoreDamaged(file, 0, "the first line does not belong to a snapshot")

    def rows() -> Iterator[Line]:
        for name, documents in whole.items():
            if not isinstance(documents, dict) or not all(map(str.isdecimal, documents)):
                raise StoreDamaged(file, 0, f"the table {name} contains a value that is not a document")
            for number in sorted(documents, key=int):
                yield 0, name, number, orjson.dumps(documents[number]), b""

    return sequence, rows()


def _loaded(
    rows: Iterable[Line], file: Path, kinds: Mapping[str, Kind[Any]], lost: list[bytes] | None
) -> dict[str, DocumentTable]:
    tables: dict[str, tuple[dict[int, bytes], dict[str, int]]] = {}
    texts: dict[int, bytes] = {}
    numbers: dict[str, int] = {}
    last: str | None = None
    for offset, name, number, text, seen in rows:
        try:
            if name is None or name != last:
                if name is None:
                    raise ValueError("a line that is not a document")
                texts, numbers = tables.setdefault(name, ({}, {}))
                last = name
            if seen and lost is None:
                identity = seen.decode()
            elif not isinstance(identity := decoded(text)["id"], str):
                raise ValueError("its 'id' is not text")
            if identity in numbers or (at := int(number)) in texts:
                raise ValueError("its 'id' or number is that of another one")
            numbers[identity] = at
            texts[at] = text
        except (ValueError, KeyError, TypeError) as wrong:
            if lost is None:
                raise StoreDamaged(file, offset, f"a document of kind {name}: {wrong}") from wrong
            lost.append(text)
    indexed: dict[str, DocumentTable] = {}
    for name, table in tables.items():
        try:
            indexed[name] = DocumentTable.of(kinds.get(name) or Kind(name), *table)
        except ValueError as wrong:
            raise StoreDamaged(file, 0, f"a document of kind {name}: {wrong}") from wrong
    return indexed
