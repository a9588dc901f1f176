"""Secondary indexes and sorted orders of documents, by number.

A number is a document's position in the insertion order of its kind. The cost of every operation is constant, or grows
with the logarithm of the number of documents.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import groupby
from math import isfinite
from operator import itemgetter
from typing import Any, TypeAlias

from sortedcontainers import SortedList

from emulator.store.kinds import Kind, Ordered

Value = str | int
"""A value to search for or to sort by; fractional numbers are compared with whole ones."""

Entry = tuple[Any, ...]
"""A document's entry in an order: `([group,] by, id)`."""


Bucket: TypeAlias = int | list[int] | SortedList
"""The numbers of the documents with a value, ascending; one alone is no list, as that takes a third of the memory."""

# A list of fewer numbers is replaced, never changed in place, so that an image of the index may share it.
SHARED_BELOW = 16

# A list of as many becomes a SortedList when a number is removed: a removal moves all that follow it in a list.
SORTED_FROM = 4096


class Index:
    """Value -> numbers of the documents that have it, in insertion order."""

    __slots__ = ("buckets", "many")

    def __init__(self, buckets: dict[Value, Bucket] | None = None, many: Iterable[Value] = ()) -> None:
        self.buckets: dict[Value, Bucket] = {} if buckets is None else buckets
        # values whose list or SortedList is changed in place
        self.many: set[Value] = set(many)

    def add(self, value: Value, number: int) -> None:
        """Add the document `number` under `value`."""
        bucket = self.buckets.get(value)
        if bucket is None:
            self.buckets[value] = number
        elif isinstance(bucket, int):
            self.buckets[value] = [bucket, number] if bucket < number else [number, bucket]
        elif isinstance(bucket, SortedList):
            bucket.add(number)
        else:
            if len(bucket) < SHARED_BELOW:
                bucket = self.buckets[value] = bucket.copy()
                if len(bucket) == SHARED_BELOW - 1:
                    self.many.add(value)
            insort(bucket, number)

    def remove(self, value: Value, number: int) -> None:
        """Remove the document `number` from `value`."""
        bucket = self.buckets[value]
        if isinstance(bucket, int):
            del self.buckets[value]
            return
        if len(bucket) >= SORTED_FROM and isinstance(bucket, list):
            bucket = self.buckets[value] = SortedList(bucket)
        if isinstance(bucket, SortedList):
            bucket.remove(number)
            if len(bucket) == SHARED_BELOW:
                self.buckets[value] = list(bucket)
            return
        place = bisect_left(bucket, number)
        if len(bucket) > SHARED_BELOW:
            del bucket[place]
            return
        self.many.discard(value)
        rest = bucket[:place] + bucket[place + 1 :]
        self.buckets[value] = rest if len(rest) > 1 else rest[0]

    def copy(self) -> Index:
        """A copy. If another thread changes this index meanwhile, the copy differs in numbers of changed documents."""
        buckets = self.buckets.copy()
        for value in tuple(self.many):
            bucket = buckets.get(value)
            if isinstance(bucket, (list, SortedList)):
                buckets[value] = bucket.copy()
        return Index(buckets, self.many)

    def set(self, value: Value, bucket: Bucket) -> None:
        """Add a value that this index does not have."""
        self.buckets[value] = bucket
        if isinstance(bucket, list) and len(bucket) >= SHARED_BELOW:
            self.many.add(value)

    def take_over(self, buckets: Iterable[tuple[Value, Bucket]], only: Container[int]) -> None:
        """Add values that this index does not have, with those of their numbers that are in `only`."""
        for value, bucket in buckets:
            if isinstance(bucket, int):
                if bucket in only:
                    self.buckets[value] = bucket
                continue
            numbers = [number for number in bucket if number in only]
            if numbers:
                self.set(value, numbers if len(numbers) > 1 else numbers[0])


class _Top:
    """Sorts after every text and number."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True


_TOP = _Top()


_identity_of: Callable[[Entry], str] = itemgetter(-1)


class SortedIndex:
    """The documents that have a `by` value (and a group, if groups are declared), sorted by it and then by id.

    `numeric`: the values are numbers, so that text cannot be added. `first`: the smallest entry, None if empty.
    """

    __slots__ = ("_groups", "entries", "first", "members", "numeric", "rule")

    def __init__(self, rule: Ordered, entries: Iterable[Entry] = ()) -> None:
        self.rule = rule
        self.members = (rule.by,) if rule.group is None else (rule.by, rule.group)
        self.entries = SortedList(entries)
        self.first: Entry | None = next(iter(self.entries), None)
        self.numeric = self.first is not None and not isinstance(self.first[-2], str)
        # group -> [the text object that all its entries share, number of entries]
        self._groups: dict[str, list[Any]] = {}
        if rule.group is not None:
            for group, some in groupby(map(itemgetter(0), self.entries)):
                self._groups[group] = [group, sum(1 for _ in some)]

    def check(self, entry: Entry) -> None:
        """Raise ValueError for an entry that cannot be sorted among the others."""
        by = entry[-2]
        if isinstance(by, str):
            fits = not self.numeric
        else:
            fits = isinstance(by, int) or (isinstance(by, float) and isfinite(by))
            fits = fits and (self.numeric or self.first is None)
        if not fits:
            raise ValueError(f"the member {self.rule.by!r} cannot be sorted among the others of its order")
        if self.rule.group is not None and not isinstance(entry[0], str):
            raise ValueError(f"the grouping member {self.rule.group!r} is not text")

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        if self.rule.group is not None:
            group = self._groups.setdefault(entry[0], [entry[0], 0])
            group[1] += 1
            entry = (group[0], entry[1], entry[2])
        self.numeric = not isinstance(entry[-2], str)
        self.insert(entry)

    def insert(self, entry: Entry) -> None:
        """Add an entry with text to an order without groups and without numbers, where `add` has no more to do."""
        self.entries.add(entry)
        if self.first is None or entry < self.first:
            self.first = entry

    def remove(self, entry: Entry) -> None:
        """Remove an entry."""
        self.entries.remove(entry)
        if entry == self.first:
            self.first = next(iter(self.entries), None)
        self.numeric = self.numeric and self.first is not None
        if self.rule.group is not None:
            group = self._groups[entry[0]]
            group[1] -= 1
            if not group[1]:
                del self._groups[entry[0]]

    def groups(self) -> dict[str, int]:
        """The number of entries of each group."""
        return {name: group[1] for name, group in self._groups.items()}

    def between(self, group: str | None, low: Value | None, high: Value | None) -> tuple[int, int]:
        """The positions of the first entry with low <= by <= high and after the last one."""
        if (group is None) != (self.rule.group is None):
            raise ValueError("a group must be named if, and only if, the order is declared with one")
        head: Entry = () if group is None else (group,)
        if low is not None:
            start = self.entries.bisect_left((*head, low))
        else:
            start = self.entries.bisect_left(head) if head else 0
        if high is not None:
            stop = self.entries.bisect_left((*head, high, _TOP))
        else:
            stop = self.entries.bisect_left((*head, _TOP)) if head else len(self.entries)
        return start, max(start, stop)

    def ids(self, start: int, stop: int) -> list[str]:
        """The ids of the entries from position `start` to before `stop`."""
        return list(map(_identity_of, self.entries.islice(start, stop)))


def _searched(value: Any) -> Iterable[Value]:
    """The values under which a member is indexed: none, one, or each element of a list."""
    if value is None:
        return ()
    if isinstance(value, (list, tuple)):
        return dict.fromkeys(value)
    return (value,)


_TEXTS = frozenset((str, type(None)))
_NOTHING: frozenset[type] = frozenset()


def _searchable(value: object) -> bool:
    return isinstance(value, (str, int)) or (isinstance(value, float) and isfinite(value))


class Keys:
    """All indexes and orders of one kind.

    Their methods take `of(document)`, the values of `members`; text and numbers are compared as in Python.
    """

    __slots__ = ("_indexed", "_plain", "_sorted", "indexes", "members", "orders")

    def __init__(
        self, kind: Kind[Any], indexes: dict[str, Index] | None = None, orders: dict[str, SortedIndex] | None = None
    ) -> None:
        self.indexes = {member: Index() for member in kind.indexes} if indexes is None else indexes
        self.orders = {name: SortedIndex(rule) for name, rule in kind.ordered.items()} if orders is None else orders
        used = dict.fromkeys(self.indexes)
        for order in self.orders.values():
            used.update(dict.fromkeys(order.members))
        self.members = tuple(used)
        place = {member: number for number, member in enumerate(self.members)}
        self._indexed = [(place[member], index) for member, index in self.indexes.items()]
        self._sorted = [
            (place[order.rule.by], None if order.rule.group is None else place[order.rule.group], order)
            for order in self.orders.values()
        ]
        # the types of values that need no check: none once an order has numbers, among which text cannot be sorted
        self._plain = _NOTHING if any(order.numeric for order in self.orders.values()) else _TEXTS

    def of(self, document: Mapping[str, Any]) -> list[Any]:
        """The values of the members that are indexed or sorted by."""
        return list(map(document.get, self.members))

    def enter(self, document: Mapping[str, Any], number: int, identity: str) -> None:
        """`check` and `add` for the greatest number, fast for members that are text or missing, as nearly all are."""
        values: list[Any] = list(map(document.get, self.members))
        if not self._plain.issuperset(map(type, values)):
            self.check(values)
            self.add(values, number, identity)
            return
        for place, index in self._indexed:
            value = values[place]
            buckets: dict[Any, Any] = index.buckets
            if value not in buckets:
                if value is not None:
                    buckets[value] = number
            elif value in index.many and type(bucket := buckets[value]) is list:
                bucket.append(number)
            else:
                index.add(value, number)
        for by, group, order in self._sorted:
            value = values[by]
            if value is None:
                continue
            if group is None:
                order.insert((value, identity))
            elif values[group] is not None:
                order.add((values[group], value, identity))

    def check(self, values: list[Any]) -> None:
        """Raise ValueError for values that cannot be indexed or cannot be sorted among the others."""
        for place, _ in self._indexed:
            value = values[place]
            if value is not None and not all(map(_searchable, value if isinstance(value, (list, tuple)) else (value,))):
                raise ValueError(f"the indexed member {self.members[place]!r} is not text, a number or a list of them")
        for order, entry in self._entries(values, ""):
            if entry is not None:
                order.check(entry)

    def add(self, values: list[Any], number: int, identity: str) -> None:
        """Add a document whose values were checked."""
        for place, index in self._indexed:
            for value in _searched(values[place]):
                index.add(value, number)
        for order, entry in self._entries(values, identity):
            self._exchange(order, None, entry)

    def move(self, was: list[Any], becomes: list[Any], number: int, identity: str) -> None:
        """Change the values of a document, which were checked; equal values are skipped."""
        for place, index in self._indexed:
            before, after = was[place], becomes[place]
            if before != after:
                for value in _searched(before):
                    index.remove(value, number)
                for value in _searched(after):
                    index.add(value, number)
        for (order, entry), (_, new) in zip(
            self._entries(was, identity), self._entries(becomes, identity), strict=True
        ):
            if entry != new:
                self._exchange(order, entry, new)

    def remove(self, values: list[Any], number: int, identity: str) -> None:
        """Remove a document with these values."""
        for place, index in self._indexed:
            for value in _searched(values[place]):
                index.remove(value, number)
        for order, entry in self._entries(values, identity):
            self._exchange(order, entry, None)

    def _entries(self, values: list[Any], identity: str) -> Iterator[tuple[SortedIndex, Entry | None]]:
        """Each order with the entry of a document, None if it has no value or group."""
        for by, group, order in self._sorted:
            if values[by] is None or (group is not None and values[group] is None):
                yield order, None
            else:
                yield order, (values[by], identity) if group is None else (values[group], values[by], identity)

    def _exchange(self, order: SortedIndex, entry: Entry | None, new: Entry | None) -> None:
        if entry is not None:
            order.remove(entry)
        if new is not None:
            order.add(new)
            if order.numeric:
                self._plain = _NOTHING
