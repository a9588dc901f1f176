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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson

from emulator.store.errors import StoreDamaged, StoreTooNew
from emulator.store.image import Image, TableImage
from emulator.store.kinds import Kind
from emulator.store.pieces import index_document, table_image

FORMAT = 1
STORE_TABLE, INDEX_TABLE = "_store", "_index"
_HEAD = b'{"_store":{"1":{"id":"snapshot","format":%d,"sequence":%d,"crc":"%08x","index":"%016x"}}\n'
_HEAD_FORM = re.compile(
    rb'\{"_store":\{"1":\{"id":"snapshot","format":(\d+),"sequence":(\d+),"crc":"([0-9a-f]{8})","index":"([0-9a-f]{16})"\}\}\n'
)
_OURS = b'{"_store":{"1":'
# One write holds the interpreter for a fraction of a millisecond only, beside the requests.
_ROWS_AT_ONCE = 256


def write_body(image: Image, start: int, out: Callable[[bytes], None]) -> tuple[int, int]:
    """Hand the text after the first line to `out`, piece by piece; the offset of the index and the CRC-32."""
    position, check = start, 0

    def put(piece: bytes) -> None:
        nonlocal position, check
        check = crc32(piece, check)
        position += len(piece)
        out(piece)

    spans: dict[str, tuple[int, int]] = {}
    for kind, table in image.tables.items():
        put(b",%b:{\n" % orjson.dumps(kind))
        begin = position
        rows = list(table.rows.items())
        for at in range(0, len(rows), _ROWS_AT_ONCE):
            some = b"\n,".join([b'"%d":\n%b' % row for row in rows[at : at + _ROWS_AT_ONCE]])
            put(some if at == 0 else b"\n," + some)
        spans[kind] = (begin, position)
        put(b"\n}\n")
    index_at = position
    put(b',"_index":{')
    for number, (kind, table) in enumerate(image.tables.items(), 1):
        put(b'%b"%d":' % (b"" if number == 1 else b",", number))
        index_document(kind, table, spans[kind], put)
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
    index_at, check = write_body(image, len(head(sequence, 0, 0)), pieces.append)
    return b"".join([head(sequence, index_at, check), *pieces])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a snapshot file holds: the number of the last change in it, its size in bytes and the documents."""

    sequence: int
    size: int
    image: Image


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
    tables: dict[str, TableImage] = {}
    for told in orjson.loads(data[int(found[4], 16) + len(b',"_index":') : -2]).values():
        begin, end = told["span"]
        texts = data[begin:end].split(b"\n")[1::2]
        tables[told["id"]] = table_image(told, texts, kinds.get(told["id"]))
    return Snapshot(int(found[2]), len(data), Image(tables))


def _parse_foreign(data: bytes, file: Path) -> Snapshot:
    """Read a file that another program wrote, as stock TinyDB does after a change by hand."""
    try:
        whole = orjson.loads(data)
        told = whole.pop(STORE_TABLE)["1"]
        form, sequence = told["format"], told["sequence"]
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise StoreDamaged(file, 0, f"this is no snapshot: {wrong}") from None
    if not isinstance(form, int) or not isinstance(sequence, int) or data.startswith(_OURS):
        raise StoreDamaged(file, 0, "the first line is not that of a snapshot")
    if form > FORMAT:
        raise StoreTooNew(file, form, FORMAT)
    whole.pop(INDEX_TABLE, None)
    tables: dict[str, TableImage] = {}
    for kind, documents in whole.items():
        tables[kind] = _foreign_table(kind, documents, file)
    return Snapshot(sequence, len(data), Image(tables))


def _foreign_table(kind: str, documents: Any, file: Path) -> TableImage:
    try:
        rows = {int(number): orjson.dumps(document) for number, document in documents.items()}
        ids = {document["id"]: int(number) for number, document in documents.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise StoreDamaged(file, 0, f"the table {kind} holds something that is no document: {wrong}") from None
    if len(ids) != len(rows) or not all(isinstance(identity, str) for identity in ids):
        raise StoreDamaged(file, 0, f"the ids in the table {kind} are not one text for each document")
    return TableImage.bare(dict(sorted(rows.items())), ids)
