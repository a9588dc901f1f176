"""What a turn fetches and locks before it acts, and which turns of a process wait for each other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from emulator.api.messages import Request
from emulator.assemble.registry import DEFAULT, NAMED_BANK
from emulator.assemble.shared.open_bank import OpenBank
from emulator.store import NotFetched, Part
from emulator.store.postgres import SERVICE

SLOW = 1.0  # seconds of work after which a turn that has lost its connection gets a longer lock the first time
_READS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(slots=True)
class Needs:
    """What a turn fetches; it grows as it turns out to need more."""

    names: set[str]
    write: bool
    numbers: int = 0
    drawn: list[int] = field(default_factory=list)
    service: bool = False
    busy: bool = False
    parts: set[Part] = field(default_factory=set)
    snapshots: set[tuple[str, str]] = field(default_factory=set)
    banks: dict[str, OpenBank] = field(default_factory=dict)  # as the last run had them
    seconds: float = 0.0  # of processor time that the last run took to act
    lost: int = 0  # runs that have lost their connection
    left: deque[int] = field(default_factory=deque)  # numbers that it has not used
    step: bool = False  # not the first one: what it does cannot be repeated
    fetch: bool = False  # what is in memory is not what is stored

    def add(self, missing: NotFetched) -> None:
        """Fetch this as well."""
        self.numbers += 4 * missing.numbers
        if missing.bank == SERVICE:
            self.service = self.write = True
        elif missing.bank is not None:
            self.names.add(missing.bank)
            if missing.part is not None:
                self.parts.add(missing.part)
            if missing.snapshot is not None:
                self.snapshots.add((missing.bank, missing.snapshot))

    def next_step(self) -> Needs:
        """What the next step needs; one whose request has no number yet takes one of those that are left."""
        drawn = [self.left.popleft()] if self.left else []
        return Needs(
            set(self.names),
            write=True,
            numbers=len(drawn),
            drawn=drawn,
            service=self.service,
            busy=self.seconds > SLOW / 2,
            parts=set(self.parts),
            banks=self.banks,
            step=True,
        )

    def again(self) -> Needs:
        """What the first step needs where a later one turned out to need this."""
        return Needs(self.names, True, self.numbers, service=self.service, parts=self.parts, snapshots=self.snapshots)

    @property
    def order(self) -> frozenset[str]:
        """What no other turn of this process may use at the same time."""
        return frozenset(self.names | {SERVICE} if self.service else self.names)


def needs_of(name: str, requests: Sequence[Request]) -> Needs:
    """What a turn needs to answer these requests, as far as can be seen from them."""
    return Needs({name}, not all(map(reads, requests)), numbers_for(requests))


def reads(request: Request) -> bool:
    """Whether a request most likely changes nothing."""
    return request.method in _READS


def numbers_for(requests: Iterable[Request]) -> int:
    """How many exchanges the requests will most likely add to the request log."""
    return sum("/v1/" in request.target for request in requests)


def bank_of(request: Request) -> str:
    """The name of the bank that a request addresses."""
    named = NAMED_BANK.match(request.target)
    return DEFAULT if named is None else named[1]


class TurnOrder:
    """Turns that use the same bank run in sequence."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, names: Iterable[str]) -> AsyncIterator[None]:
        """A `with` block in which no other turn of this process uses these banks."""
        async with AsyncExitStack() as held:
            for name in sorted(names):
                lock = self._locks.get(name)
                if lock is None:
                    lock = self._locks[name] = asyncio.Lock()
                await held.enter_async_context(lock)
            yield
