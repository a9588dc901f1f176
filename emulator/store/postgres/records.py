"""What a turn reads from the database when it begins, and writes when it ends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import UUID

SERVICE = ""  # the row of `bank` that stands for the service as a whole
LARGE = 8 << 20  # bytes of a commit that may take long


class Position(NamedTuple):
    """How far this process is with a bank: its incarnation, its last change and the counters that it has."""

    incarnation: int
    sequence: int
    turn: UUID
    counted: int


NOWHERE = Position(-1, 1 << 62, UUID(int=0), -1)
"""Of a bank that this process does not have: its tail is not read."""


class Tail(NamedTuple):
    """A change that another process has appended."""

    sequence: int
    turn: UUID
    body: bytes
    events: bytes | None


@dataclass(slots=True)
class Head:
    """A bank as the database has it; `counts` None: the process has them; `tail`: the changes after its position.

    `follows`: the change at the position is the one that the process knows, so that the tail goes on from there;
    `partial`: the tail does not go on to the last change, as it is long.
    """

    name: str
    position: Position
    checkpoint: int
    written: int
    counts: bytes | None
    follows: bool = False
    partial: bool = False
    tail: list[Tail] = field(default_factory=list)


class TurnStart(NamedTuple):
    """What a turn begins with: the heads of its banks, and numbers for exchanges."""

    heads: dict[str, Head]
    numbers: list[int]


class Parts:
    """A checkpoint: a snapshot file in parts, which `snapshot.load` reads without putting them together.

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


class Content(NamedTuple):
    """A whole bank: its snapshot as of `head.checkpoint`, if there is one, and all changes after it."""

    head: Head
    snapshot: Parts | None
    counts: bytes


def content_from(name: str, row: Sequence[Any], changes: Iterable[Sequence[Any]], parts: Sequence[bytes]) -> Content:
    """The bank `name` from the rows of the statements HEAD, CHANGES and PARTS."""
    incarnation, sequence, turn, checkpoint, written, counted, counts = row
    head = Head(name, Position(incarnation, sequence, turn, counted), checkpoint, written, counts, follows=True)
    head.tail = [Tail(*change) for change in changes]
    return Content(head, Parts(parts) if parts else None, counts)


class Appended(NamedTuple):
    """What a turn has changed in a bank: body and events of each change, from `first` on, and how it stands now."""

    name: str
    first: int
    changes: Sequence[tuple[bytes, bytes | None]]
    written: int
    counts: bytes | None
    limit: int = 1 << 62  # bytes of changes for a checkpoint

    @property
    def size(self) -> int:
        return sum(len(body) for body, _ in self.changes)


class PlacedContent(NamedTuple):
    """A staged content that a change refers to: it becomes the checkpoint before this change."""

    bank: str
    name: str  # that of `Pool.stage_content`
    checkpoint: int


class StoredExchange(NamedTuple):
    """An exchange of the request log of a bank; an `id` below 1: it gets the next number as it is stored."""

    bank: str
    incarnation: int
    id: int
    body: bytes


@dataclass(slots=True)
class Work:
    """All that a turn writes."""

    turn: UUID
    new_banks: list[tuple[str, int]] = field(default_factory=list)  # banks: name, incarnation
    deleted: list[str] = field(default_factory=list)
    appended: list[Appended] = field(default_factory=list)
    contents: list[PlacedContent] = field(default_factory=list)
    cleared: list[str] = field(default_factory=list)  # banks whose request log is emptied
    exchanges: list[StoredExchange] = field(default_factory=list)
    # bank, name, time, content; a text: of the row with that name (`Pool.stage_snapshot`), None: deleted
    snapshots: list[tuple[str, str, datetime, bytes | str | None]] = field(default_factory=list)
    secrets: list[tuple[str, str, int, bytes]] = field(default_factory=list)

    @property
    def is_large(self) -> bool:
        """Whether writing it may take long."""
        snapshots = sum(len(image) for _, _, _, image in self.snapshots if isinstance(image, bytes))
        return snapshots + sum(appended.size for appended in self.appended) > LARGE

    @property
    def needs_lock(self) -> bool:
        """Whether it may only be written by who has the heads locked."""
        return bool(self.new_banks or self.deleted or self.appended or self.cleared or self.snapshots or self.secrets)


class Committed(NamedTuple):
    """The outcome of a commit.

    `due`: the banks whose checkpoint this process is to write; `numbers`: those of the exchanges, in their order, None
    where that is not known.
    """

    due: list[str]
    numbers: list[int] | None


class Outcome(Enum):
    """The outcome of a commit whose answer did not arrive."""

    WRITTEN = "written"
    LOST = "lost"
    UNKNOWN = "unknown"
