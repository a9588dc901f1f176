"""The banks of a service over a shared store, and their part in a turn.

Only banks that turns have requested are in memory. A bank may be read only in a turn that has fetched it, and changed
only in one that has locked it: `enter` and `leave` are the bounds of a turn, and what is asked for beyond its Scope
raises NotFetched. What a turn has changed stays in memory while it is committed, and is then confirmed or undone; turns
of other banks come between.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import getrandbits
from time import monotonic
from typing import Any
from uuid import UUID

import orjson

from emulator.api.service import BankService
from emulator.api.shared_log import SharedRequestLog, reader
from emulator.assemble.registry import DEFAULT, BankRegistry, RegistryConfig, about_all, changed_meanwhile, is_busy
from emulator.assemble.shared.open_bank import OpenBank, about_service, fill
from emulator.assemble.shared.snapshots import SharedSnapshots
from emulator.bank.bank import Bank
from emulator.bank.kinds import BANK, KINDS
from emulator.bank.snapshots import Snapshots
from emulator.conformance.shared import SharedConformance
from emulator.control.operation import BankSpec
from emulator.scenario.rules import RuleSet
from emulator.store import Image, NotFetched, Part, Store
from emulator.store.postgres import (
    NOWHERE,
    SERVICE,
    Appended,
    Content,
    Head,
    Pool,
    Position,
    PostgresLog,
    Work,
)

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Scope:
    """What one turn has fetched, and its changes to the service; `service`: it has locked the service."""

    banks: dict[str, OpenBank]
    numbers: deque[int]  # for exchanges
    service: bool
    parts: Collection[Part]
    numbered_later: bool = False  # exchanges get their numbers as they are stored
    begun: bool = False  # scenarios were applied for the service
    undo: list[Callable[[], None]] = field(default_factory=list)
    new_banks: list[str] = field(default_factory=list)
    deleted: list[tuple[str, OpenBank | None]] = field(default_factory=list)
    published: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether the turn has changed the service."""
        return bool(self.published or self.new_banks or self.deleted or self.begun)


class SharedRegistry(BankRegistry):
    """The banks by name. `stored`: the incarnation of every existing bank.

    `compare_flags` is called with the flags of another process that has started since.
    """

    def __init__(self, common: RegistryConfig, compare_flags: Callable[[Mapping[str, Any]], None], pool: Pool) -> None:
        self._compare_flags = compare_flags
        self._pool = pool
        self.stored: dict[str, int] = {}
        self.open_banks: dict[str, OpenBank] = {}
        self.service = Position(0, -1, UUID(int=0), -1)
        self._about: dict[str, Any] = {}  # the service's own `counts`
        self._scope: Scope | None = None  # of the turn that acts
        # the bank's own X-Request-ID is made from the number, and must not be that of another process
        self._provisional = -getrandbits(62)
        super().__init__(common)

    def _begin(self) -> None:
        """The default bank is opened by the first turn."""

    # What turns see

    def names(self) -> list[str]:
        """Every bank, the default one first."""
        return [DEFAULT, *sorted(self.stored.keys() - {DEFAULT})]

    def watched_banks(self) -> list[OpenBank]:
        """The open banks with watchers at this process."""
        return [self.open_banks[service.bank.name] for service in self.watched()]

    def exists(self, name: str) -> bool:
        """Whether there is a bank of this name."""
        return name in self.stored

    def find(self, name: str) -> BankService | None:
        """The bank with this name, or None."""
        if name not in self.stored:
            return None
        scope = self._scope
        if scope is not None and name not in scope.banks:
            raise NotFetched(bank=name)
        return self.open_banks[name].service

    @contextmanager
    def without_damage(self, name: str) -> Iterator[None]:
        """A `with` block; unlike in a directory, damaged data is not set aside."""
        self.find(name)
        yield

    def demand_service(self) -> None:
        """Raise NotFetched unless the turn has locked the service, which a change of banks or TPPs requires."""
        self._with_service()

    def _with_service(self) -> Scope:
        if self._scope is None or not self._scope.service:
            raise NotFetched(bank=SERVICE)
        return self._scope

    def _demand(self, name: str, part: Part) -> None:
        """Raise NotFetched unless the turn has fetched this part of a bank."""
        scope = self._scope
        if scope is not None and part not in scope.parts and name not in scope.new_banks:
            raise NotFetched(bank=name, part=part)

    def publish_to_all(self, kind: str, name: str, status: str) -> None:
        """Publish an event about the service to the watchers of every bank, at every process."""
        self._with_service().published.append((kind, name, status))

    def begins_with(self, scenarios: Sequence[str]) -> bool:
        """Whether no process before has started with just these; from now on one has."""
        if self._about.get("scenarios") == list(scenarios):
            return False
        scope = self._with_service()
        scope.undo.append(partial(setattr, self, "_about", self._about))
        self._about = {**self._about, "scenarios": list(scenarios)}
        scope.begun = True
        return True

    def open(self, name: str) -> BankService:
        """Create a bank from --fixtures, the default one of a new store."""
        return self.make(name)

    def _create(self, name: str, spec: BankSpec) -> Generator[object, None, BankService]:
        self._with_service()
        documents = self._empty(name)
        ready = yield from self._prepared(spec, documents)
        if name in self.stored:
            raise changed_meanwhile(name)
        scope = self._with_service()
        number = self._about.get("made", 0) + 1
        with ExitStack() as undo:
            undo.callback(self._drop, name)
            opened = self._opened(name, number, spec.seed, documents)
            undo.callback(opened.documents.discard)
            self._fill(opened.service, documents, spec, ready)
            undo.pop_all()
        scope.undo += [partial(self._drop, name), partial(setattr, self, "_about", self._about)]
        created = {**self._about.get("created", {}), name: self._count_of(name) + 1}
        self._about = {**self._about, "made": number, "created": created}
        self.stored[name] = number
        scope.new_banks.append(name)
        scope.banks[name] = opened
        return opened.service

    def _count_of(self, name: str) -> int:
        count: int = self._about.get("created", {}).get(name, 0)
        return count

    def _drop(self, name: str) -> None:
        self.stored.pop(name, None)
        self._close(name)

    def _close(self, name: str) -> OpenBank | None:
        self._open.pop(name, None)
        self._stores.pop(name, None)
        return self.open_banks.pop(name, None)

    def _delete(self, name: str) -> None:
        scope = self._with_service()
        self.find(name)  # with its lock
        number, opened = self.stored[name], self.open_banks.get(name)
        self._drop(name)
        if name in scope.new_banks:
            scope.new_banks.remove(name)
            del scope.banks[name]
        else:
            scope.deleted.append((name, opened))

        def undo() -> None:
            self.stored[name] = number
            if opened is not None:
                self._keep(opened)

        scope.undo.append(undo)

    def _request_log(self, bank: Bank) -> SharedRequestLog:
        demand = partial(self._demand, bank.name, "exchanges")
        return SharedRequestLog(bank.documents, self._draw, reader(bank, self._router), demand)

    def _observer(self, bank: Bank) -> SharedConformance:
        return SharedConformance(bank, partial(self._demand, bank.name, "exchanges"))

    def _draw(self) -> int | None:
        if self._scope is None:
            return None
        if self._scope.numbered_later:
            self._provisional -= 1
            return self._provisional
        if not self._scope.numbers:
            raise NotFetched(numbers=1)
        return self._scope.numbers.popleft()

    def snapshots_of(self, name: str) -> Snapshots:
        """The snapshots of a bank."""
        return self.open_banks[name].snapshots

    def _stream(self, name: str, documents: Store) -> str:
        origin = BANK.read(documents)
        if origin is not None:
            return origin.get("stream", name)
        number = self._count_of(name) + 1
        return name if number == 1 else f"{name}:{number}"

    # What turns do

    def positions(self, names: Iterable[str]) -> dict[str, Position]:
        """The positions of the service and of these banks in this process."""
        opened = self.open_banks
        positions = {name: opened[name].position if name in opened else NOWHERE for name in names}
        return {**positions, SERVICE: self.service}

    def take_service(self, head: Head, stored: Mapping[str, int]) -> None:
        """Update the list of banks; close those that were deleted or created again. StoredDataDamaged."""
        first = self.service.sequence < 0
        if head.counts is not None:
            before, self._about = self._about, about_service(head.counts)
            if not first and self._about.get("flags") != before.get("flags"):
                self._compare_flags(self._about.get("flags", {}))
        self.service = head.position
        self.stored = dict(stored)
        for name, opened in list(self.open_banks.items()):
            if opened.position.incarnation not in (-1, self.stored.get(name)):
                if name == DEFAULT:
                    opened.forget()
                else:
                    self._close(name)
                    opened.service.bank.dismiss()
        if not first:
            for change in head.tail:
                try:
                    self._tell(orjson.loads(change.events) if change.events is not None else ())
                except (ValueError, TypeError) as error:
                    logger.warning("the events of change %s of the service are damaged: %s", change.sequence, error)

    def _tell(self, events: Iterable[Iterable[str]]) -> None:
        for kind, name, status in events:
            for service in self.services():
                if service.bank.watchers:
                    service.bank.tell(about_all(service.bank, kind, name, status))

    def load(self, name: str, content: Content, image: Image) -> None:
        """Open a bank as it is stored, or bring one that is open up to date; StoredDataDamaged.

        `image`: that of its checkpoint.
        """
        opened = self.open_banks.get(name)
        if opened is not None:
            opened.load(content, image)
            return
        documents = self._empty(name)
        fill(documents, content, image)
        with ExitStack() as undo:
            undo.callback(self._close, name)
            self._opened(name, content.head.position.incarnation, None, documents).loaded(content)
            undo.pop_all()

    def _empty(self, name: str) -> Store:
        """The documents of a bank before it has any."""
        return Store(PostgresLog(lambda content: self._pool.stage_content(name, content)), KINDS)

    def _opened(self, name: str, incarnation: int, seed: int | None, documents: Store) -> OpenBank:
        """A bank in memory, with its documents."""
        service = self._service(name, documents, seed)
        rules, requests, observer, log = service.rules, service.log, service.observer, documents.log
        if not isinstance(rules, RuleSet) or not isinstance(requests, SharedRequestLog):
            raise TypeError("the banks of a shared store have shared rules and logs")
        if not isinstance(observer, SharedConformance) or not isinstance(log, PostgresLog):
            raise TypeError("the banks of a shared store have a shared report and log")
        position = Position(incarnation, 0, UUID(int=0), 0)
        snapshots = SharedSnapshots(name, partial(self._demand, name, "snapshots"), self._pool.stage_snapshot)
        opened = OpenBank(service, documents, log, requests, rules, snapshots, observer, position)
        documents.join(self.group)
        self._keep(opened)
        return opened

    def _keep(self, opened: OpenBank) -> None:
        name = opened.name
        self.open_banks[name], self._open[name], self._stores[name] = opened, opened.service, opened.documents
        if name == DEFAULT:
            self.default = opened.service
        if self.on_open is not None:
            self.on_open(opened.service)

    def idle(self) -> list[str]:
        """The named banks in memory that no turn has used for --idle-hours, and that have nothing to do."""
        limit = self.config.idle_seconds
        return [
            name
            for name, opened in self.open_banks.items()
            if limit
            and monotonic() - opened.used > limit
            and not (name == DEFAULT or opened.requests.waiting or is_busy(opened.service, opened.documents))
        ]

    def unload(self, name: str) -> None:
        """Remove a bank from memory if it is idle; the next turn loads it."""
        if name in self.idle():
            self._close(name)

    def are_still(self, names: Iterable[str]) -> bool:
        """Whether the banks are in memory, probably as they are stored."""
        opened = self.open_banks
        return self.service.sequence >= 0 and all(name in opened and opened[name].still for name in names)

    def enter(
        self, names: Iterable[str], numbers: Iterable[int] | None, *, service: bool, parts: Collection[Part] = ()
    ) -> Scope:
        """Begin the synchronous part of a turn that has fetched these banks and `parts` of them.

        `numbers`: for exchanges, None where they get theirs as they are stored.
        """
        banks = {name: self.open_banks[name] for name in names if name in self.open_banks}
        scope = self._scope = Scope(banks, deque(numbers or ()), service, parts, numbers is None)
        now = monotonic()
        for opened in banks.values():
            opened.used = now
            opened.requests.number_waiting()
        return scope

    def leave(self) -> None:
        """End the synchronous part of the turn."""
        self._scope = None

    def waiting(self, names: Iterable[str]) -> int:
        """How many exchanges wait for a number."""
        return sum(len(self.open_banks[name].requests.waiting) for name in names if name in self.open_banks)

    def work(self, scope: Scope, turn: UUID) -> Work:
        """The changes of the turn, to be stored; called before `leave`."""
        self._flush()
        work = Work(turn)
        work.deleted = [name for name, _ in scope.deleted]
        work.new_banks = [(name, self.stored[name]) for name in scope.new_banks]
        for opened in self._open_in(scope):
            opened.add_to(work)
        return work

    def _open_in(self, scope: Scope) -> list[OpenBank]:
        """The banks of a turn without those that are deleted."""
        return [opened for name, opened in scope.banks.items() if self.open_banks.get(name) is opened]

    def _flush(self) -> None:
        group, self.group.waiting = self.group.waiting, []
        for documents in group:
            documents.flush()

    def add_service(self, scope: Scope, work: Work) -> int:
        """Add to `work` what has changed about the service; the number of that change."""
        events = orjson.dumps(scope.published) if scope.published else None
        number = self.service.sequence + 1
        work.appended.append(Appended(SERVICE, number, [(b"{}", events)], 0, orjson.dumps(self._about)))
        return number

    def confirm(self, scope: Scope, work: Work, numbers: Iterable[int] | None) -> None:
        """The turn is stored, its exchanges under these numbers, in the order of `work`.

        None: they are not known, and the exchanges are read again as those of other processes are.
        """
        for _, deleted in scope.deleted:
            if deleted is not None:
                deleted.service.bank.dismiss()
        if any(appended.name == SERVICE for appended in work.appended):
            service = self.service
            self.service = Position(service.incarnation, service.sequence + 1, work.turn, service.counted + 1)
        left = None if numbers is None else iter(numbers)
        for opened in self._open_in(scope):
            opened.confirm(work.turn, left)
        self._tell(scope.published)

    def undo(self, scope: Scope) -> None:
        """Undo the changes of the turn."""
        self._flush()
        for step in reversed(scope.undo):
            step()
        for opened in scope.banks.values():
            opened.undo()

    def close(self, _until: float | None = None) -> None:
        """Nothing to do: every change is stored."""
