"""One bank of a shared store, in memory: applies the changes of other processes and collects those of a turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, time_ns
from typing import Any
from uuid import UUID

import orjson

from emulator.api.service import BankService
from emulator.api.shared_log import FetchedExchange, SharedRequestLog
from emulator.assemble.shared.snapshots import SharedSnapshots
from emulator.bank.kinds import KINDS
from emulator.conformance.shared import SharedConformance
from emulator.scenario.rules import RuleSet
from emulator.store import Image, Store, StoreDamaged
from emulator.store.kinds import by_name
from emulator.store.postgres import (
    Appended,
    Content,
    Head,
    PlacedContent,
    Position,
    PostgresLog,
    StoredDataDamaged,
    StoredExchange,
    Tail,
    Work,
)
from emulator.store.snapshot import load
from emulator.store.tx import content_named

NOTHING_COUNTED = b"{}"
REPORT = "conformance"  # beside the serials of rules: the change with which the report began again
_LATEST = 7_258_118_400_000_000  # the year 2200 in microseconds since 1970
_SERVICE_ROW = "the row of the service"
_ABOUT = {"flags": dict, "scenarios": list, "made": int, "created": dict}
CHECKPOINT = 4 << 20  # bytes of changes after which one is written, or half of the size of the last one


@dataclass(slots=True, eq=False)
class OpenBank:
    """A bank in memory: as of `position`, with the counters of its rules as they are stored."""

    service: BankService
    documents: Store
    log: PostgresLog
    requests: SharedRequestLog
    rules: RuleSet
    snapshots: SharedSnapshots
    observer: SharedConformance
    position: Position
    counts: bytes = NOTHING_COUNTED
    weight: int = 0  # bytes of its last checkpoint
    used: float = field(default_factory=monotonic)  # when a turn has last used it
    still: bool = True  # no other process had changed it when this one last read its position
    incarnation: int = field(init=False)  # of its documents, also where the position is forgotten

    def __post_init__(self) -> None:
        self.incarnation = self.position.incarnation

    @property
    def name(self) -> str:
        return self.service.bank.name

    def catch_up(self, head: Head) -> bool:
        """Apply the changes of other processes; False if the bank must be loaded, since they do not continue from here
        or one of them has replaced the whole content.
        """
        position, self.still = self.position, not head.tail and head.counts is None
        if not head.follows or head.position.incarnation != position.incarnation:
            return False
        if any(content_named(change.body) for change in head.tail):
            return False
        try:
            if not repeat(self.name, self.documents, head.tail) or self.documents.sequence != head.position.sequence:
                return False
            if head.counts is not None:
                self._count(head.counts)
            self._at(head)
        except StoredDataDamaged:
            self.forget()  # what was applied of it
            raise
        return True

    def load(self, content: Content, image: Image) -> None:
        """Load the bank as it is stored, `image` being its checkpoint, and publish the events of later changes.

        Where the log no longer has all of them, watchers get an event that says so. StoredDataDamaged.
        """
        head = content.head
        same = head.position.incarnation == self.incarnation
        published = self.documents.sequence if same else head.position.sequence
        oldest = head.tail[0].sequence if head.tail else head.position.sequence + 1
        missed = not same or oldest > published + 1

        def replaced() -> None:
            if missed:
                self._missed()
            for change in head.tail:
                if published < change.sequence <= head.checkpoint:
                    with _reading(self.name, change):
                        for event in _decoded(change.events):
                            self.service.bank.tell(event)

        fill(self.documents, content, image, published, replaced)
        self.loaded(content)

    def _missed(self) -> None:
        bank = self.service.bank
        bank.tell({"type": "events", "id": bank.name, "status": "missed", "at": bank.clock.stamp()})

    def loaded(self, content: Content) -> None:
        """The documents have been loaded as they are stored."""
        self.weight = 0 if content.snapshot is None else content.snapshot.size
        self._count(content.counts)
        self._at(content.head)

    def _count(self, counts: bytes) -> None:
        counters = counters_of(self.name, counts)
        self.counts = counts
        self.rules.count_from(counters)
        self.observer.begin_again(counters.get(REPORT, [0])[0])

    def _counts(self) -> bytes:
        counters: dict[str, Any] = dict(self.rules.counters())
        if self.observer.since:
            counters[REPORT] = [self.observer.since, 0]
        return orjson.dumps(counters)

    def _at(self, head: Head) -> None:
        check_written(self.name, head.written)
        self.position = head.position
        self.incarnation = head.position.incarnation
        self.service.bank.clock.not_before(head.written / 1e6)

    # What a turn has changed

    def add_to(self, work: Work) -> None:
        """Add the changes of this turn to `work`."""
        changes = [(change.payload, _events(change.events)) for change in self.log.take()]
        counts: bytes | None = self._counts()
        if counts == self.counts:
            counts = None
        if changes or counts is not None:
            written = max(self.service.bank.clock.latest, time_ns() // 1000)
            first = self.documents.sequence - len(changes) + 1
            limit = max(CHECKPOINT, self.weight // 2)
            work.appended.append(Appended(self.name, first, changes, written, counts, limit))
            for sequence, (body, _) in enumerate(changes, first):
                if (content := content_named(body)) is not None:
                    work.contents.append(PlacedContent(self.name, content, sequence - 1))
        if self.requests.cleared:
            work.cleared.append(self.name)
        incarnation = self.position.incarnation
        work.exchanges += [StoredExchange(self.name, incarnation, *row) for row in self.requests.rows()]
        work.snapshots += [(self.name, *change) for change in self.snapshots.changes()]

    def confirm(self, turn: UUID, numbers: Iterator[int] | None) -> None:
        """The changes of this turn are stored, its exchanges under the next of these numbers: publish their events."""
        position, sequence = self.position, self.documents.sequence
        counts = self._counts()
        self.position = Position(
            position.incarnation,
            sequence,
            turn if sequence != position.sequence else position.turn,
            position.counted + (counts != self.counts),
        )
        self.counts = counts
        self.snapshots.confirm()
        answered = self.requests.confirm(numbers)
        if self.observer.on:
            for exchange in answered:
                self.observer.request(exchange)
        self.documents.confirm(sequence)
        self.tell_of(answered)

    def fetched(self, rows: Sequence[FetchedExchange], most: int) -> None:
        """Replace the request log by the stored exchanges, at most `most` of them."""
        exchanges = self.requests.merge(rows)
        self.observer.collect(exchanges)
        if len(exchanges) == most:  # none of them was known: those between are no longer stored
            self._missed()
        self.tell_of(exchanges)

    def undo(self) -> None:
        """Undo the changes of this turn."""
        self.log.take()
        self.documents.revert(self.position.sequence, "the turn is undone")
        self.rules.count_from(orjson.loads(self.counts))
        self.requests.undo()
        self.snapshots.undo()

    def tell_of(self, exchanges: Iterable[Any]) -> None:
        """Publish the events of requests that were answered."""
        bank = self.service.bank
        if bank.watchers:
            for exchange in exchanges:
                bank.tell({"type": "request", **exchange.summary()})

    def forget(self) -> None:
        """The documents in memory may be wrong: load the bank before its next use."""
        self.still = False
        self.position = self.position._replace(incarnation=-1)


def image_of(content: Content) -> Image:
    """The checkpoint of a bank; may run in any thread. StoredDataDamaged."""
    name = f"the checkpoint of bank {content.head.name}"
    if content.snapshot is None:
        if content.head.checkpoint:
            raise StoredDataDamaged(name, "it is missing")
        return Image({})
    try:
        return load(content.snapshot.read, content.snapshot.size, Path("checkpoint"), by_name(KINDS)).image
    except StoreDamaged as error:
        raise StoredDataDamaged(name, error.reason) from error


def fill(
    documents: Store,
    content: Content,
    image: Image,
    published: int = 0,
    replaced: Callable[[], None] = lambda: None,
) -> None:
    """Load the stored documents, `image` being the checkpoint, and publish the events of the changes after `published`
    and after the checkpoint; StoredDataDamaged.

    `replaced` is called before these events, with the documents of the checkpoint.
    """
    head = content.head
    try:
        documents.replace(image, head.checkpoint)
    except ValueError as error:
        raise StoredDataDamaged(f"the checkpoint of bank {head.name}", error) from error
    replaced()
    tail = [change for change in head.tail if change.sequence > head.checkpoint]
    if not repeat(head.name, documents, tail, published) or documents.sequence != head.position.sequence:
        raise StoredDataDamaged(f"bank {head.name}", f"changes after {documents.sequence} are missing")


def repeat(name: str, documents: Store, tail: Iterable[Tail], published: int = 0) -> bool:
    """Apply changes of other processes, with their events after `published`; False if an earlier one is missing.

    StoredDataDamaged, and then the documents may have a part of a change.
    """
    for change in tail:
        if change.sequence != documents.sequence + 1:
            return False
        with _reading(name, change):
            documents.apply(change.body, _decoded(change.events) if change.sequence > published else ())
    return True


@contextmanager
def _reading(name: str, change: Tail) -> Iterator[None]:
    """A `with` block that raises StoredDataDamaged if the change of this bank cannot be applied in it."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoredDataDamaged(f"change {change.sequence} of bank {name}", error) from error


def counters_of(name: str, counts: bytes) -> dict[str, Any]:
    """The counters of rules in the row of a bank; StoredDataDamaged."""
    counters = _counts_of(f"the row of bank {name}", counts)
    for serial, pair in counters.items():
        if not (isinstance(pair, list) and [type(number) for number in pair] == [int, int]):
            raise StoredDataDamaged(f"the row of bank {name}", f"{serial} in its counts is not a pair of numbers")
    return counters


def check_written(name: str, written: int) -> None:
    """StoredDataDamaged unless `written` is a time of bank `name` in microseconds since 1970."""
    if not 0 <= written <= _LATEST:
        raise StoredDataDamaged(f"the row of bank {name}", f"the time {written} in it is out of range")


def about_service(counts: bytes) -> dict[str, Any]:
    """The content of the row of the service; StoredDataDamaged."""
    about = _counts_of(_SERVICE_ROW, counts)
    for member, kind in _ABOUT.items():
        if not isinstance(about.get(member, kind()), kind):
            raise StoredDataDamaged(_SERVICE_ROW, f"{member} in its counts has another type")
    if not all(type(count) is int for count in about.get("created", {}).values()):
        raise StoredDataDamaged(_SERVICE_ROW, "created in its counts has another type")
    if not isinstance(about.get("flags", {}).get("seed"), int | None):
        raise StoredDataDamaged(_SERVICE_ROW, "flags.seed in its counts has another type")
    return about


def _counts_of(row: str, counts: bytes) -> dict[str, Any]:
    try:
        decoded = orjson.loads(counts)
    except ValueError as error:
        raise StoredDataDamaged(row, error) from error
    if not isinstance(decoded, dict):
        raise StoredDataDamaged(row, "its counts are not an object")
    return decoded


def _decoded(events: bytes | None) -> Iterable[dict[str, Any]]:
    several: list[dict[str, Any]] = [] if events is None else orjson.loads(events)
    return several


def _events(events: Iterable[dict[str, Any]]) -> bytes | None:
    several = list(events)
    return orjson.dumps(several) if several else None
