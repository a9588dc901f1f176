"""Indexes and orders as JSON inside a snapshot, in the form in which they stand in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, groupby, repeat
from typing import Any, NamedTuple

import orjson

from emulator.store import index as held
from emulator.store.image import FrozenTable, TableImage
from emulator.store.index import Bucket, Index
from emulator.store.kinds import Kind
from emulator.store.order import Entry, Value

Out = Callable[[bytes], None]

_VALUES_AT_ONCE = 2000


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


class Place(NamedTuple):
    """Where the documents of a kind stand in a file: [first, last] of each unbroken run of their numbers, ascending,
    and each text's begin and size.
    """

    runs: list[list[int]]
    starts: list[int]
    sizes: list[int]

    def add(self, numbers: Sequence[int], starts: Iterable[int], sizes: Iterable[int]) -> None:
        """Note some more, at least one; `numbers` go on where the last ones ended."""
        first, last = numbers[0], numbers[-1]
        unbroken = last - first == len(numbers) - 1
        for run in [[first, last]] if unbroken else [[number, number] for number in numbers]:
            if self.runs and self.runs[-1][1] == run[0] - 1:
                self.runs[-1][1] = run[1]
            else:
                self.runs.append(run)
        self.starts.extend(starts)
        self.sizes.extend(sizes)


def index_document(kind: str, table: TableImage | FrozenTable, place: Place, put: Out) -> None:
    """Hand the document about one kind to `put`, piece by piece."""
    about = {"id": kind, "kind": table.kind.signature(), "next": table.next_number}
    put(orjson.dumps(about)[:-1] + b',"numbers":')
    _put_list(place.runs, put)
    put(b',"starts":')
    _put_list(place.starts, put)
    put(b',"sizes":')
    _put_list(place.sizes, put)
    if isinstance(table, TableImage) and not table.is_bare:
        _put_keys(table, put)
    put(b"}")


def _put_keys(table: TableImage, put: Out) -> None:
    put(b',"ids":')
    by_number = {number: identity for identity, number in table.numbers.items()}
    _put_list([by_number[number] for number in table.rows], put)
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
            many[value] = bucket
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


def table_image(told: dict[str, Any], texts: list[bytes], declared: Kind[Any] | None) -> TableImage:
    """The picture of one kind from its document in `_index` and the texts of its documents."""
    numbers = list(chain.from_iterable(range(first, last + 1) for first, last in told["numbers"]))
    rows = dict(zip(numbers, texts, strict=True))
    kind = declared or Kind(told["id"])
    if "ids" not in told or kind.signature() != told["kind"]:
        return TableImage.bare(rows, told["next"])
    by_number = dict(zip(numbers, told["ids"], strict=True))
    return TableImage(
        kind,
        told["next"],
        rows,
        dict(zip(told["ids"], numbers, strict=True)),
        {member: _index(told["indexes"][member]) for member in kind.indexes},
        {name: _entries(told["orders"][name], by_number, rule.group) for name, rule in kind.ordered.items()},
    )


def _index(told: dict[str, Any]) -> Index:
    buckets: dict[Value, Bucket] = told["few"]
    buckets.update(told["many"])
    many: set[Value] = set(told["many"])
    for value, bucket in told["others"]:
        buckets[value] = bucket
        if isinstance(bucket, list) and len(bucket) >= held.SHARED_BELOW:
            many.add(value)
    return Index(buckets, many)


def _entries(told: dict[str, Any], ids: Mapping[int, str], group: str | None) -> list[Entry]:
    identities = map(ids.__getitem__, told["numbers"])
    if group is None:
        return list(zip(told["by"], identities, strict=True))
    groups = chain.from_iterable(repeat(name, count) for name, count in told["groups"])
    return list(zip(groups, told["by"], identities, strict=True))
