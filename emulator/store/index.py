"""Secondary indexes and sorted orders over documents known by number.

A number is a document's place in the insertion order of its kind. Everything here costs the same with a hundred
documents as with a hundred thousand, or grows with the logarithm.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sortedcontainers import SortedList

from emulator.store.kinds import Document, Ordered

Value = str | int
Bucket = int | list[int]
Entry = tuple[Any, ...]

# A list of fewer numbers is replaced, never changed in place, so that a picture of the index may share it.
SHARED_BELOW = 16


def indexed_values(document: Document, member: str) -> Sequence[Value]:
    """The values under which a document is found by `member`: none, one, or each element of a list.

    Raises ValueError for a value that cannot be searched for.
    """
    value = document.get(member)
    if value is None:
        return ()
    if isinstance(value, (str, int)):
        return (value,)
    if isinstance(value, (list, tuple)) and all(isinstance(v, (str, int)) for v in value):
        return tuple(dict.fromkeys(value))
    raise ValueError(f"the indexed member {member!r} is neither text, a whole number nor a list of such")


class Index:
    """Value -> numbers of the documents that have it, in insertion order."""

    __slots__ = ("buckets", "many")

    def __init__(self, buckets: dict[Value, Bucket] | None = None, many: Iterable[Value] = ()) -> None:
        self.buckets: dict[Value, Bucket] = {} if buckets is None else buckets
        # the values whose list is changed in place
        self.many: set[Value] = set(many)

    def numbers(self, value: Value) -> Sequence[int]:
        """The numbers under `value`, smallest first; not to be changed."""
        bucket = self.buckets.get(value)
        if bucket is None:
            return ()
        return (bucket,) if isinstance(bucket, int) else bucket

    def count(self, value: Value) -> int:
        bucket = self.buckets.get(value)
        if bucket is None:
            return 0
        return 1 if isinstance(bucket, int) else len(bucket)

    def add(self, value: Value, number: int) -> None:
        """Note that the document `number` has `value`."""
        bucket = self.buckets.get(value)
        if bucket is None:
            self.buckets[value] = number
        elif isinstance(bucket, int):
            self.buckets[value] = [bucket, number] if bucket < number else [number, bucket]
        elif len(bucket) < SHARED_BELOW:
            grown = bucket.copy()
            insort(grown, number)
            self.buckets[value] = grown
            if len(grown) == SHARED_BELOW:
                self.many.add(value)
        else:
            insort(bucket, number)

    def remove(self, value: Value, number: int) -> None:
        """Forget that the document `number` has `value`."""
        bucket = self.buckets[value]
        if isinstance(bucket, int):
            del self.buckets[value]
            return
        place = bisect_left(bucket, number)
        if len(bucket) > SHARED_BELOW:
            del bucket[place]
            return
        self.many.discard(value)
        rest = bucket[:place] + bucket[place + 1 :]
        self.buckets[value] = rest if len(rest) > 1 else rest[0]

    def copy(self) -> Index:
        """An index of its own, equal to this one at this moment."""
        buckets = self.buckets.copy()
        for value in self.many:
            buckets[value] = list(self.numbers(value))
        return Index(buckets, self.many)


class _Top:
    """Sorts after every text and number."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True


_TOP = _Top()


class Order:
    """Documents sorted by one member, ties by id, inside each group; entries are `([group,] by, id)`."""

    __slots__ = ("_groups", "_type", "entries", "rule")

    def __init__(self, rule: Ordered, entries: Iterable[Entry] = ()) -> None:
        self.rule = rule
        self.entries = SortedList(entries)
        self._type: type | None = None
        # group -> [the one text object that all its entries share, how many]
        self._groups: dict[str, list[Any]] = {}
        by = 0 if rule.group is None else 1
        if self.entries:
            self._type = type(self.entries[0][by])
        if rule.group is not None:
            for entry in self.entries:
                self._enter(entry[0])

    def entry(self, document: Document) -> Entry | None:
        """Where `document` stands; None when it has no place. Raises ValueError for a member that cannot sort."""
        rule = self.rule
        by = document.get(rule.by)
        if by is None:
            return None
        if type(by) is not self._type and not self._sortable(by):
            raise ValueError(f"the member {rule.by!r} does not sort among the others of its order: {by!r}")
        if rule.group is None:
            return (by, document["id"])
        group = document.get(rule.group)
        if group is None:
            return None
        if not isinstance(group, str):
            raise ValueError(f"the grouping member {rule.group!r} is not text")
        return (group, by, document["id"])

    def _sortable(self, by: object) -> bool:
        if isinstance(by, bool) or not isinstance(by, (str, int)):
            return False
        return not self.entries or isinstance(by, str) == isinstance(self.entries[0][-2], str)

    def _enter(self, group: str) -> str:
        known = self._groups.get(group)
        if known is None:
            self._groups[group] = [group, 1]
            return group
        known[1] += 1
        shared: str = known[0]
        return shared

    def _leave(self, group: str) -> None:
        known = self._groups[group]
        known[1] -= 1
        if not known[1]:
            del self._groups[group]

    def add(self, entry: Entry) -> None:
        """Put an entry made by `entry` in its place."""
        if self.rule.group is not None:
            entry = (self._enter(entry[0]), *entry[1:])
        self._type = type(entry[-2])
        self.entries.add(entry)

    def remove(self, entry: Entry) -> None:
        self.entries.remove(entry)
        if self.rule.group is not None:
            self._leave(entry[0])

    def between(self, group: str | None, low: Value | None, high: Value | None) -> tuple[int, int]:
        """First place and the place after the last of the entries with low <= by <= high."""
        if (group is None) != (self.rule.group is None):
            raise ValueError("a group is named exactly where the order is declared with one")
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

    def ids(self, start: int, stop: int, *, reverse: bool = False) -> Iterator[str]:
        """The ids of the entries from place `start` to before `stop`."""
        return (entry[-1] for entry in self.entries.islice(start, stop, reverse=reverse))

    def by_at(self, place: int) -> Value:
        """The `by` value at a place."""
        value: Value = self.entries[place][-2]
        return value
