"""Sorted orders of documents, each by one member inside the groups that another member makes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from math import isfinite
from operator import itemgetter
from typing import Any

from sortedcontainers import SortedList

from emulator.store.kinds import Ordered

Value = str | int
"""What is searched for and sorted by; a fractional number is compared with whole ones."""

Entry = tuple[Any, ...]
"""A document's place in an order: `([group,] by, id)`."""


class _Top:
    """Sorts after every text and number."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True


_TOP = _Top()


class Order:
    """The documents that have a `by` value (and a group, where groups are declared), ties by id.

    `numeric`: it holds numbers, so that no text sorts among them. `first`: the smallest entry, None without any.
    """

    __slots__ = ("_groups", "entries", "first", "members", "numeric", "rule")

    def __init__(self, rule: Ordered, entries: Iterable[Entry] = ()) -> None:
        self.rule = rule
        self.members = (rule.by,) if rule.group is None else (rule.by, rule.group)
        self.entries = SortedList(entries)
        self.first: Entry | None = next(iter(self.entries), None)
        self.numeric = self.first is not None and not isinstance(self.first[-2], str)
        # group -> [the one text object that all its entries share, how many]
        self._groups: dict[str, list[Any]] = {}
        if rule.group is not None:
            for group, some in groupby(map(itemgetter(0), self.entries)):
                self._groups[group] = [group, sum(1 for _ in some)]

    def check(self, by: Any, group: Any) -> None:
        """Raises ValueError for values that do not sort among the others; what has no place here need not sort."""
        if by is None or (group is None and self.rule.group is not None):
            return
        if isinstance(by, str):
            fits = not self.numeric
        else:
            fits = isinstance(by, int) or (isinstance(by, float) and isfinite(by))
            fits = fits and (self.numeric or self.first is None)
        if not fits:
            raise ValueError(f"the member {self.rule.by!r} does not sort among the others of its order")
        if group is not None and not isinstance(group, str):
            raise ValueError(f"the grouping member {self.rule.group!r} is no text")

    def entry(self, by: Any, group: Any, identity: str) -> Entry | None:
        """Where a document stands; None when it has no place."""
        if by is None:
            return None
        if self.rule.group is None:
            return (by, identity)
        if group is None:
            return None
        return (group, by, identity)

    def add(self, entry: Entry) -> None:
        """Put an entry in its place."""
        if self.rule.group is not None:
            known = self._groups.setdefault(entry[0], [entry[0], 0])
            known[1] += 1
            entry = (known[0], entry[1], entry[2])
        self.numeric = not isinstance(entry[-2], str)
        self.insert(entry)

    def insert(self, entry: Entry) -> None:
        """Put an entry in its place: all of `add` for text in an order without groups that holds no numbers."""
        self.entries.add(entry)
        if self.first is None or entry < self.first:
            self.first = entry

    def remove(self, entry: Entry) -> None:
        """Take an entry out."""
        self.entries.remove(entry)
        if entry == self.first:
            self.first = next(iter(self.entries), None)
        self.numeric = self.numeric and self.first is not None
        if self.rule.group is not None:
            known = self._groups[entry[0]]
            known[1] -= 1
            if not known[1]:
                del self._groups[entry[0]]

    def groups(self) -> dict[str, int]:
        """How many entries each group has."""
        return {group: known[1] for group, known in self._groups.items()}

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

    def ids(self, start: int, stop: int) -> list[str]:
        """The ids of the entries from place `start` to before `stop`."""
        return [entry[-1] for entry in self.entries.islice(start, stop)]
