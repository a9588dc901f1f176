"""The snapshot: the whole content as one plain JSON file that stock TinyDB opens.

    {"_store":{"1":{"id":"snapshot","format":1,"sequence":17,"rows":"<crc>","index":"<offset>","crc":"<crc>"}}
    ,"payment":{
    "1":{"id":...},
    "2":{"id":...}
    }
    ,"_index":{"1":{"id":"payment",...}
    }}

`_index` tells where the documents stand and repeats what ids, indexes and orders need, so that a start decodes no
document. `rows` is the CRC-32 of all between the first line and `_index`, `crc` that of `_index` and of the first
line with zeros in its place: every byte is covered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate
from zlib import crc32

import orjson

from emulator.store.image import FrozenTable, Image, TableImage
from emulator.store.index_codec import Out, Place, index_document

FORMAT = 1
STORE_TABLE, INDEX_TABLE = "_store", "_index"
INDEX_OPENING = b',"_index":'
HEAD_OPENING = b'{"_store":{"1":'
HEAD_FORM = re.compile(
    rb'\{"_store":\{"1":\{"id":"snapshot","format":(\d+),"sequence":(\d+),'
    rb'"rows":"([0-9a-f]{8})","index":"([0-9a-f]{16})","crc":"([0-9a-f]{8})"\}\}\n'
)
_HEAD = b'{"_store":{"1":{"id":"snapshot","format":%d,"sequence":%d,"rows":"%08x","index":"%016x","crc":"%08x"}}\n'

Tables = Mapping[str, TableImage | FrozenTable]


class Body:
    """Writes all but the first line to `out`, piece by piece, and knows then what the first line must say."""

    def __init__(self, tables: Tables, sequence: int, out: Out) -> None:
        self._tables = tables
        self._sequence = sequence
        self._out = out
        self._index_at = 0
        self._rows_check = 0
        self._check = 0
        self._position = len(self.head())

    def write(self) -> None:
        """Hand everything to `out`."""
        places = {kind: self._rows(kind, table) for kind, table in self._tables.items()}
        self._index_at, self._rows_check = self._position, self._check
        self._check = 0
        self._put(INDEX_OPENING + b"{")
        for number, (kind, table) in enumerate(self._tables.items(), 1):
            self._put(b'%b"%d":' % (b"" if number == 1 else b",", number))
            index_document(kind, table, places[kind], self._put)
            self._put(b"\n")
        self._put(b"}}\n")

    def head(self) -> bytes:
        """The first line; of the same size before `write`."""
        if not self._index_at:
            return _HEAD % (FORMAT, self._sequence, 0, 0, 0)
        told = (FORMAT, self._sequence, self._rows_check, self._index_at)
        return _HEAD % (*told, crc32(_HEAD % (*told, 0), self._check))

    def _put(self, piece: bytes) -> None:
        self._check = crc32(piece, self._check)
        self._position += len(piece)
        self._out(piece)

    def _rows(self, kind: str, table: TableImage | FrozenTable) -> Place:
        """Write the documents of a kind; where they stand."""
        place = Place([], [], [])
        self._put(b",%b:{" % orjson.dumps(kind))
        for numbers, texts in table.batches():
            leads = [b',\n"%d":' % number for number in numbers]
            if not place.runs:
                leads[0] = leads[0][1:]  # nothing stands before the first
            pieces = [piece for row in zip(leads, texts, strict=True) for piece in row]
            bounds = list(accumulate(map(len, pieces), initial=self._position))
            place.add(numbers, bounds[1::2], map(len, texts))
            self._put(b"".join(pieces))
        self._put(b"\n}\n")
        return place


def as_bytes(image: Image) -> bytes:
    """The whole file."""
    pieces: list[bytes] = []
    body = Body(image.tables, 0, pieces.append)
    body.write()
    return b"".join([body.head(), *pieces])
