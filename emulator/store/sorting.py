"""A sorted list in pieces: the next entry usually goes to the end, any other moves few."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import itemgetter
from typing import Any

PIECE = 1000

_last = itemgetter(-1)


class SortedList:
    """Entries in ascending order, each of them once; no piece is empty."""

    __slots__ = ("pieces",)

    def __init__(self, entries: Iterable[Any] = ()) -> None:
        ordered = sorted(entries)
        self.pieces = [ordered[at : at + PIECE] for at in range(0, len(ordered), PIECE)]

    def add(self, entry: Any) -> None:
        """Put an entry in its place; TypeError, with nothing changed, when it does not sort among the others."""
        pieces = self.pieces
        if not pieces:
            pieces.append([entry])
            return
        piece = pieces[-1]
        if piece[-1] < entry:
            if len(piece) < PIECE:
                piece.append(entry)
            else:
                pieces.append([entry])
            return
        place = bisect_left(pieces, entry, key=_last)
        piece = pieces[place]
        insort(piece, entry)
        if len(piece) > 2 * PIECE:
            pieces.insert(place + 1, piece[PIECE:])
            del piece[PIECE:]

    def remove(self, entry: Any) -> None:
        """Take an entry out; ValueError when it is not there."""
        place = bisect_left(self.pieces, entry, key=_last)
        piece = self.pieces[place] if place < len(self.pieces) else []
        at = bisect_left(piece, entry)
        if at == len(piece) or piece[at] != entry:
            raise ValueError(f"there is no entry {entry!r}")
        del piece[at]
        if not piece:
            del self.pieces[place]

    def before(self, bound: Any) -> int:
        """How many entries are less than `bound`."""
        place = bisect_left(self.pieces, bound, key=_last)
        whole = sum(map(len, self.pieces[:place]))
        return whole if place == len(self.pieces) else whole + bisect_left(self.pieces[place], bound)

    def between(self, start: int, stop: int) -> list[Any]:
        """The entries from place `start` to before `stop`."""
        found: list[Any] = []
        for piece in self.pieces:
            if stop <= 0:
                break
            if start < len(piece):
                found += piece[max(0, start) : stop]
            start -= len(piece)
            stop -= len(piece)
        return found

    def first(self) -> Any:
        """The least entry, None when there is none."""
        return self.pieces[0][0] if self.pieces else None

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self.pieces)

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    def __bool__(self) -> bool:
        return bool(self.pieces)
