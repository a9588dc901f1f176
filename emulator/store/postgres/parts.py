"""A checkpoint as the database has it: a snapshot file in parts, which are read without being put together."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate


class Parts:
    """The parts of one file; `read` is what `snapshot.load` reads with.

    Parts that were read are released: a large bank should not be in memory twice.
    """

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = list(parts)
        self._bounds = list(accumulate(map(len, self._parts), initial=0))
        self._given_up = 0  # parts
        self._end = 0  # of the last read

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._bounds[-1]

    def read(self, offset: int, size: int) -> bytes:
        """That part of the file, shorter only at its end; a read that goes on where the last one ended gives up what
        is before it.
        """
        first = bisect_right(self._bounds, offset) - 1
        if 0 < offset == self._end:
            for number in range(self._given_up, min(first, len(self._parts))):
                self._parts[number] = b""
            self._given_up = max(self._given_up, first)
        end = self._end = min(offset + size, self.size)
        pieces = []
        for start, part in zip(self._bounds[first:], self._parts[first:], strict=False):
            if start >= end:
                break
            pieces.append(part[max(0, offset - start) : end - start])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
