"""The snapshot: the whole content as one plain JSON file that stock TinyDB opens.

    {"_store":{"1":{"id":"snapshot","format":1,"sequence":17,"rows":"<crc>","index":"<offset>","crc":"<crc>"}}
    ,"payment":{
    "1":{"id":...},
    "2":{"id":...}
    }
    ,"_index":{"1":{"id":"payment",...}
    }}

`_index` has the positions of the documents in the file, with ids, indexes and orders, so that a start need not decode
any document. `rows` is the CRC-32 of everything between the first line and `_index`, `crc` that of `_index` and of the
first line with zeros in its place: every byte is covered.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain, groupby, repeat
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import orjson

from emulator.store.disk import Disk, closing, write_whole
from emulator.store.errors import StoreDamaged, StoreTooNew
from emulator.store.image import FrozenTable, Image, TableImage
from emulator.store.index import Bucket, Entry, Index, Value
from emulator.store.kinds import Kind, by_name
from emulator.store.table import decoded, encoded

FORMAT = 1
STORE_TABLE, INDEX_TABLE = "_store", "_index"
INDEX_OPENING = b',"_index":'
HEAD_OPENING = b'{"_store":{"1":'
HEAD_FORM = re.compile(
    rb'\{"_store":\{"1":\{"id":"snapshot","format":(\d+),"sequence":(\d+),'
    rb'"rows":"([0-9a-f]{8})","index":"([0-9a-f]{16})","crc":"([0-9a-f]{8})"\}\}\n'
)
_HEAD = b'{"_store":{"1":{"id":"snapshot","format":%d,"sequence":%d,"rows":"%08x","index":"%016x","crc":"%08x"}}\n'

_BUFFER = 1 << 18
_VALUES_AT_ONCE = 2000
# Small enough to stay in the processor's cache between computing the checksum and splitting.
_AT_ONCE = 1 << 22

Out = Callable[[bytes], None]

Read = Callable[[int, int], bytes]
"""`read(offset, size)`: that part of the file, shorter only at its end."""

Tables = Mapping[str, TableImage | FrozenTable]


class Body:
    """Writes all but the first line to `out` in parts; afterwards `head` returns the first line."""

    def __init__(self, tables: Tables, sequence: int, out: Out, pause: Callable[[], None]) -> None:
        self._tables = tables
        self._sequence = sequence
        self._out = out
        self._pause = pause
        self._index_at = 0
        self._rows_check = 0
        self._check = 0
        self._position = len(self.head())

    def write(self) -> None:
        """Write everything to `out`."""
        written = {kind: self._rows(kind, table) for kind, table in self._tables.items()}
        self._index_at, self._rows_check = self._position, self._check
        self._check = 0
        self._put(INDEX_OPENING + b"{")
        for number, (kind, (place, indexed)) in enumerate(written.items(), 1):
            self._put(b'%b"%d":' % (b"" if number == 1 else b",", number))
            index_document(kind, indexed, place, self._put)
            self._put(b"\n")
        self._put(b"}}\n")

    def head(self) -> bytes:
        """The first line; before `write`, a line of the same size."""
        if not self._index_at:
            return _HEAD % (FORMAT, self._sequence, 0, 0, 0)
        fields = (FORMAT, self._sequence, self._rows_check, self._index_at)
        return _HEAD % (*fields, crc32(_HEAD % (*fields, 0), self._check))

    def _put(self, piece: bytes) -> None:
        self._check = crc32(piece, self._check)
        self._position += len(piece)
        self._out(piece)
        self._pause()

    def _rows(self, kind: str, table: TableImage | FrozenTable) -> tuple[RowPlaces, TableImage]:
        """Write the documents of a kind; returns their positions, and the ids, indexes and orders."""
        place = RowPlaces([], [], [])
        self._put(b",%b:{" % orjson.dumps(kind))
        for numbers, texts in table.batches():
            leads = [b',\n"%d":' % number for number in numbers]
            if not place.runs:
                leads[0] = leads[0][1:]  # no comma before the first document
            pieces = [piece for row in zip(leads, texts, strict=True) for piece in row]
            bounds = list(accumulate(map(len, pieces), initial=self._position))
            place.add(numbers, bounds[1::2], map(len, texts))
            self._put(b"".join(pieces))
        self._put(b"\n}\n")
        return place, table if isinstance(table, TableImage) else table.indexed(self._pause)


def _no_pause() -> None:
    """Do nothing: no other thread waits."""


def snapshot_bytes(tables: Tables, sequence: int = 0, pause: Callable[[], None] = _no_pause) -> bytes:
    """The whole file; `pause` is called between parts of the work."""
    pieces: list[bytes] = []
    body = Body(tables, sequence, pieces.append, pause)
    body.write()
    return b"".join([body.head(), *pieces])


def write_snapshot(
    disk: Disk, path: Path, tables: Tables, sequence: int, pause: Callable[[], None] | None = None
) -> int:
    """Write and sync a snapshot file; returns its size in bytes. Raises OSError.

    `pause` is called between parts of the work.
    """
    with closing(disk, disk.create(path)) as file:
        pieces: list[bytes] = []
        size = waiting = 0

        def out(piece: bytes) -> None:
            nonlocal size, waiting
            pieces.append(piece)
            size += len(piece)
            waiting += len(piece)
            if waiting >= _BUFFER:
                write_whole(disk, file, b"".join(pieces))
                pieces.clear()
                waiting = 0

        body = Body(tables, sequence, out, pause or _no_pause)
        out(body.head())  # reserves the space of the first line, known at the end
        body.write()
        write_whole(disk, file, b"".join(pieces))
        disk.write_at(file, body.head(), 0)
        disk.sync(file)
    return size


# Indexes and orders as JSON, in their form in memory


def _put_list(values: Sequence[Any], put: Out) -> None:
    """A JSON array, a few values at a time."""
    put(b"[")
    for at in range(0, len(values), _VALUES_AT_ONCE):
        some = orjson.dumps(values[at : at + _VALUES_AT_ONCE])[1:-1]
        put(some if at == 0 else b"," + some)
    put(b"]")


def _put_object(values: dict[str, Any], put: Out) -> None:
    """A JSON object, a few members at a time."""
    items = list(values.items())
    put(b"{")
    for at in range(0, len(items), _VALUES_AT_ONCE):
        some = orjson.dumps(dict(items[at : at + _VALUES_AT_ONCE]))[1:-1]
        put(some if at == 0 else b"," + some)
    put(b"}")


class RowPlaces(NamedTuple):
    """The positions of the documents of a kind in a file: [first, last] of each unbroken run of their numbers,
    ascending, and the offset and size of each text.
    """

    runs: list[list[int]]
    starts: list[int]
    sizes: list[int]

    def add(self, numbers: Sequence[int], starts: Iterable[int], sizes: Iterable[int]) -> None:
        """Add at least one document; `numbers` are greater than all before."""
        first, last = numbers[0], numbers[-1]
        unbroken = last - first == len(numbers) - 1
        for run in [[first, last]] if unbroken else [[number, number] for number in numbers]:
            if self.runs and self.runs[-1][1] == run[0] - 1:
                self.runs[-1][1] = run[1]
            else:
                self.runs.append(run)
        self.starts.extend(starts)
        self.sizes.extend(sizes)


def index_document(kind: str, table: TableImage, place: RowPlaces, put: Out) -> None:
    """Write the document about one kind to `put`, in parts."""
    about = {"id": kind, "kind": table.kind.signature(), "next": table.next_number}
    put(orjson.dumps(about)[:-1] + b',"numbers":')
    _put_list(place.runs, put)
    put(b',"starts":')
    _put_list(place.starts, put)
    put(b',"sizes":')
    _put_list(place.sizes, put)
    if not table.is_bare:
        _put_keys(table, put)
    put(b"}")


def _put_keys(table: TableImage, put: Out) -> None:
    put(b',"ids":')
    _put_list(sorted(table.numbers, key=table.numbers.__getitem__), put)
    put(b',"indexes":{')
    for place, (member, index) in enumerate(table.indexes.items()):
        put(b"%b%b:" % (b"," if place else b"", orjson.dumps(member)))
        _put_index(index, put)
    put(b'},"orders":{')
    for place, (name, entries) in enumerate(table.orders.items()):
        put(b"%b%b:" % (b"," if place else b"", orjson.dumps(name)))
        _put_order(entries, table.numbers, put)
    put(b"}")


def _put_index(index: Index, put: Out) -> None:
    few: dict[str, Bucket] = {}
    many: dict[str, Bucket] = {}
    others: list[tuple[Value, Bucket]] = []
    for value, bucket in index.buckets.items():
        if not isinstance(value, str):
            others.append((value, bucket))
        elif value in index.many:
            many[value] = bucket if isinstance(bucket, int) else list(bucket)
        else:
            few[value] = bucket
    put(b'{"few":')
    _put_object(few, put)
    put(b',"many":')
    _put_object(many, put)
    put(b',"others":')
    _put_list(others, put)
    put(b"}")


def _put_order(entries: Sequence[Entry], numbers: Mapping[str, int], put: Out) -> None:
    put(b'{"numbers":')
    _put_list([numbers[entry[-1]] for entry in entries], put)
    put(b',"by":')
    _put_list([entry[-2] for entry in entries], put)
    put(b',"groups":')
    groups = groupby(entry[0] for entry in entries if len(entry) == 3)
    _put_list([(group, sum(1 for _ in some)) for group, some in groups], put)
    put(b"}")


def table_image(stored: dict[str, Any], texts: list[bytes], declared: Kind[Any] | None) -> TableImage:
    """The image of one kind from its document in `_index` and the texts of its documents."""
    numbers = list(chain.from_iterable(range(first, last + 1) for first, last in stored["numbers"]))
    rows = dict(zip(numbers, texts, strict=True))
    kind = declared or Kind(stored["id"])
    if "ids" not in stored or kind.signature() != stored["kind"]:
        return TableImage.bare(rows, stored["next"])
    by_number = dict(zip(numbers, stored["ids"], strict=True))
    return TableImage(
        kind,
        stored["next"],
        rows,
        dict(zip(stored["ids"], numbers, strict=True)),
        {member: _index(stored["indexes"][member]) for member in kind.indexes},
        {name: _entries(stored["orders"][name], by_number, rule.group) for name, rule in kind.ordered.items()},
    )


def _index(stored: dict[str, Any]) -> Index:
    buckets: dict[Value, Bucket] = stored["few"]
    buckets.update(stored["many"])
    index = Index(buckets, stored["many"])
    for value, bucket in stored["others"]:
        index.set(value, bucket)
    return index


def _entries(stored: dict[str, Any], ids: Mapping[int, str], group: str | None) -> list[Entry]:
    identities = map(ids.__getitem__, stored["numbers"])
    if group is None:
        return list(zip(stored["by"], identities, strict=True))
    groups = chain.from_iterable(repeat(name, count) for name, count in stored["groups"])
    return list(zip(groups, stored["by"], identities, strict=True))


# Reading, also files that another program wrote


class Snapshot(NamedTuple):
    """The content of a snapshot file: the number of its last change, and the documents.

    `fits`: it has indexes, and they match the declared kinds.
    """

    sequence: int
    image: Image
    fits: bool


def image_from_bytes(data: bytes, kinds: Iterable[Kind[Any]], *, file: Path = Path("image")) -> Image:
    """The image that `snapshot_bytes` wrote; raises StoreDamaged and StoreTooNew, naming `file`."""
    return load(lambda offset, size: data[offset : offset + size], len(data), file, by_name(kinds)).image


def load(read: Read, size: int, file: Path, kinds: Mapping[str, Kind[Any]]) -> Snapshot:
    """Read a snapshot of `size` bytes; raises StoreDamaged, and StoreTooNew for a later format."""
    head = HEAD_FORM.match(read(0, 256))
    if head is None:
        return _load_foreign(read(0, size), file)
    form, sequence = int(head[1]), int(head[2])
    if form > FORMAT:
        raise StoreTooNew(file, form, FORMAT)
    index_at = int(head[4], 16)
    index = read(index_at, max(0, size - index_at))
    blank = head[0][: head.start(5)] + b"00000000" + head[0][head.end(5) :]
    if crc32(blank, crc32(index)) != int(head[5], 16):
        raise StoreDamaged(file, 0, "the checksum of first line and index is wrong")
    rows = _Rows(read, head.end())
    tables = {
        stored["id"]: table_image(stored, rows.take(stored["starts"], stored["sizes"]), kinds.get(stored["id"]))
        for stored in decoded(index[len(INDEX_OPENING) : -2]).values()
    }
    if rows.check_up_to(index_at) != int(head[3], 16):
        raise StoreDamaged(file, head.end(), "the checksum of the documents is wrong")
    fits = not any(table.is_bare or (name in kinds and table.kind is not kinds[name]) for name, table in tables.items())
    return Snapshot(sequence, Image(tables), fits)


class _Rows:
    """Reads the documents of a file in order and computes their checksum."""

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
        """The documents at these positions."""
        texts: list[bytes] = []
        first = 0
        while first < len(starts):
            base = self._position
            upto = bisect_right(starts, base + _AT_ONCE, first + 1)
            piece = self._next(starts[upto - 1] + sizes[upto - 1])
            places = zip(starts[first:upto], sizes[first:upto], strict=True)
            texts += [piece[start - base : start - base + size] for start, size in places]
            first = upto
        return texts

    def check_up_to(self, end: int) -> int:
        """The CRC-32 of everything from the first document's kind to before `end`."""
        self._next(end)
        return self._check


def _load_foreign(data: bytes, file: Path) -> Snapshot:
    """Read a file that another program wrote, such as stock TinyDB after a manual change."""
    try:
        whole = decoded(data)
        stored = whole.pop(STORE_TABLE)["1"]
        form, sequence = stored["format"], stored["sequence"]
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise StoreDamaged(file, 0, f"the file is not a snapshot: {wrong}") from None
    if isinstance(form, int) and form > FORMAT:
        raise StoreTooNew(file, form, FORMAT)
    if form != FORMAT or not isinstance(sequence, int) or data.startswith(HEAD_OPENING):
        raise StoreDamaged(file, 0, "the first line does not belong to a snapshot")
    whole.pop(INDEX_TABLE, None)
    tables = {kind: _foreign_table(kind, documents, file) for kind, documents in whole.items()}
    return Snapshot(sequence, Image(tables), fits=False)


def _foreign_table(kind: str, documents: Any, file: Path) -> TableImage:
    try:
        rows = {int(number): encoded(document) for number, document in documents.items()}
    except (ValueError, AttributeError) as wrong:
        raise StoreDamaged(file, 0, f"the table {kind} contains a value that is not a document: {wrong}") from None
    return TableImage.bare(dict(sorted(rows.items())))
