"""The snapshot: the whole content as one plain JSON file that stock TinyDB opens.

    {"_store":{"1":{"id":"snapshot","format":1,"sequence":17,"crc":"0a1b2c3d","index":"0000000000000123"}}
    ,"payment":{
    "1":
    {"id":...}
    ,"2":
    {"id":...}
    }
    ,"_index":{"1":{"id":"payment",...}
    }}

The checksum covers every byte but itself. `_index` repeats what indexes and orders need, so that a start reads it
instead of decoding every document. A file in another layout (a person changed it with TinyDB) is read the slow way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import orjson

from emulator.store.errors import StoreDamaged, StoreTooNew
from emulator.store.image import FrozenTable, Image, TableImage
from emulator.store.kinds import Kind
from emulator.store.pieces import Out, index_document, table_image

FORMAT = 1
STORE_TABLE, INDEX_TABLE = "_store", "_index"
_HEAD = b'{"_store":{"1":{"id":"snapshot","format":%d,"sequence":%d,"crc":"%08x","index":"%016x"}}\n'
_HEAD_FORM = re.compile(
    rb'\{"_store":\{"1":\{"id":"snapshot","format":(\d+),"sequence":(\d+),"crc":"([0-9a-f]{8})","index":"([0-9a-f]{16})"\}\}\n'
)
_OURS = b'{"_store":{"1":'

Tables = Mapping[str, TableImage | FrozenTable]


def write_body(tables: Tables, start: int, out: Out) -> tuple[int, int]:
    """Hand the text after the first line to `out`, piece by piece; the offset of the index and the CRC-32."""
    position, line, check = start, 1, 0

    def put(piece: bytes) -> None:
        nonlocal position, check
        check = crc32(piece, check)
        position += len(piece)
        out(piece)

    places: dict[str, tuple[int, list[int]]] = {}
    for kind, table in tables.items():
        put(b",%b:{\n" % orjson.dumps(kind))
        numbers: list[int] = []
        for some in table.batches():
            put((b"," if numbers else b"") + b"\n,".join([b'"%d":\n%b' % row for row in some]) + b"\n")
            numbers += [number for number, _ in some]
        put(b"}\n")
        # the first row stands after the line that opens the table and the line with its number
        places[kind] = (line + 2, numbers)
        line += 2 + 2 * len(numbers)
    index_at = position
    put(b',"_index":{')
    for place, (kind, table) in enumerate(tables.items(), 1):
        put(b'%b"%d":' % (b"" if place == 1 else b",", place))
        index_document(kind, table, *places[kind], put)
        put(b"\n")
    put(b"}}\n")
    return index_at, check


def head(sequence: int, index_at: int, body_check: int) -> bytes:
    """The first line, its own checksum included."""
    blank = _HEAD % (FORMAT, sequence, 0, index_at)
    return _HEAD % (FORMAT, sequence, crc32(blank, body_check), index_at)


def as_bytes(image: Image, sequence: int = 0) -> bytes:
    """The whole file."""
    pieces: list[bytes] = []
    index_at, check = write_body(image.tables, len(head(sequence, 0, 0)), pieces.append)
    return b"".join([head(sequence, index_at, check), *pieces])


class Snapshot(NamedTuple):
    """What a snapshot file holds: the number of the last change in it, its size in bytes and the documents.

    `fits`: its indexes are there and are those that are declared.
    """

    sequence: int
    size: int
    image: Image
    fits: bool


def parse(data: bytes, file: Path, kinds: Mapping[str, Kind]) -> Snapshot:
    """Read a snapshot file; raises StoreDamaged, and StoreTooNew for a later format."""
    found = _HEAD_FORM.match(data)
    if found is None:
        return _parse_foreign(data, file)
    blank = found[0][: found.start(3)] + b"00000000" + found[0][found.end(3) :]
    view = memoryview(data)[found.end() :]
    if crc32(blank, crc32(view)) != int(found[3], 16):
        raise StoreDamaged(file, 0, "the checksum of the file is wrong")
    if int(found[1]) > FORMAT:
        raise StoreTooNew(file, int(found[1]), FORMAT)
    lines = data.split(b"\n")
    index: dict[str, dict[str, Any]] = orjson.loads(data[int(found[4], 16) + len(b',"_index":') : -2])
    tables = {told["id"]: table_image(told, lines, kinds.get(told["id"])) for told in index.values()}
    fits = not any(table.is_bare or table.kind != kinds.get(kind, Kind()) for kind, table in tables.items())
    return Snapshot(int(found[2]), len(data), Image(tables), fits)


def _parse_foreign(data: bytes, file: Path) -> Snapshot:
    """Read a file that another program wrote, as stock TinyDB does after a change by hand."""
    try:
        whole = orjson.loads(data)
        told = whole.pop(STORE_TABLE)["1"]
        form, sequence = told["format"], told["sequence"]
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise StoreDamaged(file, 0, f"this is no snapshot: {wrong}") from None
    if isinstance(form, int) and form > FORMAT:
        raise StoreTooNew(file, form, FORMAT)
    if form != FORMAT or not isinstance(sequence, int) or data.startswith(_OURS):
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
