"""The indexes and orders of the documents of one kind: what is found without looking at every document."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isfinite
from sys import intern
from types import NoneType
from typing import Any, TypeAlias

import orjson
from sortedcontainers import SortedList

from emulator.store.kinds import Kind, decoded

Value = str | int
"""A value to search for or to sort by; fractional numbers are compared with whole ones."""

Entry = tuple[Any, ...]
"""A document's entry in an order: `([group,] by, id)`."""

Bucket: TypeAlias = int | list[int] | SortedList
"""The numbers of the documents with a value, ascending. One alone is no list, as that takes a third of the memory."""

SORTED_FROM = 4096  # numbers in a SortedList, once one is removed: a removal moves all that follow it in a list

_TEXTS: frozenset[type] = frozenset((str, NoneType))
_QUOTE = ord('"')


def _column(member: str, texts: Iterable[bytes]) -> list[Any]:
    """The values of a member in documents, of which only those are decoded in which it cannot be seen.

    A quote within a text is escaped, so that `,"member":` is always a key; and if no object ends between it and the end
    of the document, it is a key of the document itself.
    """
    key = b",%b:" % orjson.dumps(member)
    first, size = b"{" + key[1:], len(key)
    column: list[Any] = []
    add = column.append
    for text in texts:
        at = text.rfind(key) + size
        if at >= size:
            if text[at] == _QUOTE and text.find(b"}", at) == len(text) - 1:
                value = text[at + 1 : text.index(b'"', at + 1)]
                if b"\\" not in value:
                    add(value.decode())
                    continue
        elif not text.startswith(first):
            add(None)
            continue
        add(decoded(text).get(member))
    return column


class _Top:
    """Greater than every text and number."""

    def __gt__(self, other: object) -> bool:
        return True


_TOP = _Top()


def _add(buckets: dict[Value, Bucket], value: Value, number: int) -> None:
    bucket = buckets.get(value)
    if isinstance(bucket, list):
        insort(bucket, number)
    elif bucket is None:
        buckets[value] = number
    elif isinstance(bucket, int):
        buckets[value] = [bucket, number] if bucket < number else [number, bucket]
    else:
        bucket.add(number)


def _remove(buckets: dict[Value, Bucket], value: Value, number: int) -> None:
    bucket = buckets[value]
    if isinstance(bucket, int):
        del buckets[value]
        return
    if isinstance(bucket, list) and len(bucket) >= SORTED_FROM:
        bucket = buckets[value] = SortedList(bucket)
    del bucket[bisect_left(bucket, number)]
    if len(bucket) == 1:
        buckets[value] = bucket[0]


def _searched(value: Any) -> Iterable[Value]:
    """The values under which a member is indexed: none, one, or each element of a list."""
    if value is None:
        return ()
    return dict.fromkeys(value) if isinstance(value, (list, tuple)) else (value,)


def _entry(values: list[Any], by: int, group: int | None, identity: str) -> Entry | None:
    """A document's entry in an order; None if it has no value or group."""
    if values[by] is None:
        return None
    if group is None:
        return values[by], identity
    return None if values[group] is None else (intern(values[group]), values[by], identity)


def _is_value(value: object) -> bool:
    return isinstance(value, (str, int)) or (isinstance(value, float) and isfinite(value))


class Keys:
    """The indexes and orders of one kind. The methods take `of(document)`, the values of `members`.

    `indexes`: member -> value -> numbers; `orders`: name -> entries. `unchecked`: the types of
    values that need no `check`; none, once an order has had a number.
    """

    __slots__ = ("_indexed", "_nothing", "_sorted", "indexes", "kind", "members", "orders", "unchecked")

    def __init__(self, kind: Kind[Any]) -> None:
        self.kind = kind
        self.indexes: dict[str, dict[Value, Bucket]] = {member: {} for member in kind.indexes}
        self.orders: dict[str, SortedList] = {name: SortedList() for name in kind.ordered}
        used = dict.fromkeys(kind.indexes)
        for rule in kind.ordered.values():
            used.update(dict.fromkeys((rule.by,) if rule.group is None else (rule.by, rule.group)))
        self.members = tuple(used)
        place = {member: number for number, member in enumerate(self.members)}
        self._indexed = [(place[member], buckets) for member, buckets in self.indexes.items()]
        self._sorted = [
            (place[rule.by], None if rule.group is None else place[rule.group], self.orders[name])
            for name, rule in kind.ordered.items()
        ]
        self._nothing = [None] * len(self.members)
        self.unchecked = _TEXTS

    def copy(self) -> Keys:
        """A copy that can be changed for itself."""
        other = Keys(self.kind)
        other.unchecked = self.unchecked
        for member, buckets in self.indexes.items():
            copied = other.indexes[member]
            copied.update(buckets)
            for value, bucket in buckets.items():
                if not isinstance(bucket, int):
                    copied[value] = bucket.copy()
        for name, order in self.orders.items():
            other.orders[name].update(order)
        return other

    def of(self, document: Mapping[str, Any]) -> list[Any]:
        """The values of the members that are indexed or sorted by."""
        return list(map(document.get, self.members))

    def check(self, values: list[Any]) -> None:
        """Raise ValueError for values that cannot be indexed, or sorted among the others: all are text, or none."""
        for place, _ in self._indexed:
            value = values[place]
            if value is not None and not all(map(_is_value, value if isinstance(value, (list, tuple)) else (value,))):
                raise ValueError(f"the indexed member {self.members[place]!r} is not text, a number or a list of them")
        for by, group, order in self._sorted:
            if group is not None and not isinstance(values[group], (str, NoneType)):
                raise ValueError(f"the grouping member {self.members[group]!r} is not text")
            value, is_text = values[by], isinstance(values[by], str)
            if value is None:
                continue
            others = order if group is None or values[group] is not None else ()
            if not _is_value(value) or (others and isinstance(others[0][-2], str) is not is_text):
                raise ValueError(f"the member {self.members[by]!r} cannot be sorted among the others of its order")
            if not is_text:
                self.unchecked = frozenset()

    def change(self, was: list[Any] | None, becomes: list[Any] | None, number: int, identity: str) -> None:
        """Change the values of a document, which were checked; None: it does not exist."""
        was, becomes = was or self._nothing, becomes or self._nothing
        for place, buckets in self._indexed:
            before, after = was[place], becomes[place]
            if before != after:
                if before is not None:
                    for value in _searched(before):
                        _remove(buckets, value, number)
                if type(after) is str and after not in buckets:
                    buckets[after] = number
                else:
                    for value in _searched(after):
                        _add(buckets, value, number)
        for by, group, order in self._sorted:
            if was[by] != becomes[by] or (group is not None and was[group] != becomes[group]):
                if (old := _entry(was, by, group, identity)) is not None:
                    order.remove(old)
                if (new := _entry(becomes, by, group, identity)) is not None:
                    order.add(new)

    def fill(self, texts: Collection[bytes], numbers: Mapping[str, int]) -> None:
        """Add many documents, a member at a time; as `change`, but each order is sorted once. Raises ValueError."""
        columns = [_column(member, texts) for member in self.members]
        if not all(_TEXTS.issuperset(map(type, column)) for column in columns):
            for values in zip(*columns, strict=True):
                self.check(list(values))
        for place, buckets in self._indexed:
            column, several = columns[place], defaultdict[Value, list[int]](list)
            if {str}.issuperset(map(type, column)):
                buckets.update(zip(column, numbers.values(), strict=True))
                if len(buckets) == len(column):  # each has a value of its own
                    continue
            for value, number in zip(column, numbers.values(), strict=True):
                for one in _searched(value) if type(value) is not str else (value,):
                    several[one].append(number)
            buckets.update((value, bucket if len(bucket) > 1 else bucket[0]) for value, bucket in several.items())
        for by, group, order in self._sorted:
            parts = [columns[by]]
            if group is not None:
                parts.insert(0, [None if value is None else intern(value) for value in columns[group]])
            try:
                order.update(entry for entry in zip(*parts, numbers, strict=True) if None not in entry)
            except TypeError:
                text = f"the member {self.members[by]!r} cannot be sorted among the others of its order"
                raise ValueError(text) from None

    def numbers(self, equals: Mapping[str, Value | None]) -> Sequence[int]:
        """The numbers of the documents whose indexed member has the value; ValueError unless one index is named."""
        if len(equals) != 1:
            raise ValueError("exactly one index must be named")
        ((member, value),) = equals.items()
        if (buckets := self.indexes.get(member)) is None:
            raise ValueError(f"{self.kind.name} has no index {member!r}")
        bucket = None if value is None else buckets.get(value)
        return () if bucket is None else (bucket,) if isinstance(bucket, int) else bucket

    def between(
        self, name: str, group: str | None, low: Value | None, high: Value | None
    ) -> tuple[SortedList, int, int]:
        """An order, the position of its first entry with low <= by <= high, and the one after its last."""
        order = self.orders.get(name)
        if order is None:
            raise ValueError(f"{self.kind.name} has no order {name!r}")
        if (group is None) != (self.kind.ordered[name].group is None):
            raise ValueError("a group must be named if, and only if, the order is declared with one")
        head: Entry = () if group is None else (group,)
        start = order.bisect_left(head if low is None else (*head, low)) if head or low is not None else 0
        if high is None and not head:
            return order, start, len(order)
        stop = order.bisect_left((*head, _TOP) if high is None else (*head, high, _TOP))
        return order, start, max(start, stop)
