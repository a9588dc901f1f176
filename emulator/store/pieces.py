"""Indexes and orders as JSON inside a snapshot, in the form in which they stand in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import orjson

from emulator.store.image import TableImage
from emulator.store.index import SHARED_BELOW, Bucket, Entry, Index, Value
from emulator.store.kinds import Kind

_VALUES_AT_ONCE = 2000


def runs(numbers: Iterable[int]) -> list[list[int]]:
    """Ascending numbers as [first, last] of each unbroken run."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def _put_list(values: Sequence[Any], put: Callable[[bytes], None]) -> None:
    """A JSON array, a few values at a time."""
    put(b"[")
    for at in range(0, len(values), _VALUES_AT_ONCE):
        some = orjson.dumps(values[at : at + _VALUES_AT_ONCE])[1:-1]
        put(some if at == 0 else b"," + some)
    put(b"]")


def _put_object(values: dict[str, Any], put: Callable[[bytes], None]) -> None:
    """A JSON object, a few members at a time."""
    items = list(values.items())
    put(b"{")
    for at in range(0, len(items), _VALUES_AT_ONCE):
        some = orjson.dumps(dict(items[at : at + _VALUES_AT_ONCE]))[1:-1]
        put(some if at == 0 else b"," + some)
    put(b"}")


def index_document(kind: str, table: TableImage, span: tuple[int, int], put: Callable[[bytes], None]) -> None:
    """Hand the document about one kind to `put`, piece by piece; `span`: where its rows stand in the file."""
    about = {"id": kind, "kind": table.kind.signature(), "next": table.next_number, "span": span}
    put(orjson.dumps(about)[:-1] + b',"numbers":')
    _put_list(runs(table.rows), put)
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
    put(b"}}")


def _put_index(index: Index, put: Callable[[bytes], None]) -> None:
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


def _put_order(entries: Sequence[Entry], numbers: dict[str, int], put: Callable[[bytes], None]) -> None:
    put(b'{"numbers":')
    _put_list([numbers[entry[-1]] for entry in entries], put)
    put(b',"by":')
    _put_list([entry[-2] for entry in entries], put)
    put(b',"groups":')
    _put_list([entry[0] for entry in entries if len(entry) == 3], put)
    put(b"}")


def table_image(told: dict[str, Any], texts: list[bytes], declared: Kind | None) -> TableImage:
    """The picture of one kind from its document in `_index` and the texts of its rows."""
    numbers = list(chain.from_iterable(range(first, last + 1) for first, last in told["numbers"]))
    ids: list[str] = told["ids"]
    rows = dict(zip(numbers, texts, strict=True))
    kind = declared or Kind()
    if kind.signature() != told["kind"]:
        return TableImage.bare(rows, dict(zip(ids, numbers, strict=True)))
    by_number = dict(zip(numbers, ids, strict=True))
    return TableImage(
        kind,
        rows,
        dict(zip(ids, numbers, strict=True)),
        told["next"],
        {member: _index(told["indexes"][member]) for member in kind.indexes},
        {name: _entries(told["orders"][name], by_number) for name in kind.ordered},
    )


def _index(told: dict[str, Any]) -> Index:
    buckets: dict[Value, Bucket] = told["few"]
    buckets.update(told["many"])
    many = set(told["many"])
    for value, bucket in told["others"]:
        buckets[value] = bucket
        if isinstance(bucket, list) and len(bucket) >= SHARED_BELOW:
            many.add(value)
    return Index(buckets, many)


def _entries(told: dict[str, Any], ids: dict[int, str]) -> list[Entry]:
    columns = [told["by"], [ids[number] for number in told["numbers"]]]
    if told["groups"]:
        columns.insert(0, told["groups"])
    return list(zip(*columns, strict=True))
