"""Turns over a shared store (see `web.application.Turn`): those of one bank one behind the other, others meanwhile.

A turn fetches the banks that its requests name, with what other processes have changed since, and answers the requests;
what they changed is appended and committed before any answer leaves. Where a request may change something the banks are
locked first, so that no other process appends to them; reads come without a lock. A read of banks that nobody else has
changed of late is answered from memory, and one statement sees afterwards that this was all that is stored. A turn that
turns out to need more, the lock or something that is not in memory, is undone and run again with it.

Answering is synchronous, so that two turns never answer at the same time; they wait for the store at the same time. A
turn that changes the service (which banks and TPPs there are) concerns every other: from its answers to the end of its
commit nobody else answers.

What takes long (see `Unfinished`) is a turn for each step: the lock is given back after it, and the next step sees what
other processes have changed. A step that needs more begins the request again, unless something of it was done before.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar
from weakref import WeakKeyDictionary

from emulator.api import render
from emulator.api.headers import Headers
from emulator.api.messages import Answered, Delivery, Request, Response, Unfinished
from emulator.api.pipeline import finish
from emulator.assemble.registry import DEFAULT
from emulator.assemble.shared.authority import SharedAuthority
from emulator.assemble.shared.needs import Needs, bank_of, needs_of
from emulator.assemble.shared.open_bank import OpenBank
from emulator.assemble.shared.registry import SharedRegistry
from emulator.assemble.shared.running import BeginAgain, TurnRunner, Unanswered
from emulator.assemble.shared.upkeep import SharedUpkeep
from emulator.bank.errors import BankError
from emulator.store import StoreError, StoreUnwritable
from emulator.store.postgres import Pool, Work

logger = logging.getLogger(__name__)

T = TypeVar("T")
Waiting = tuple[Request, "asyncio.Future[Answered]"]

LONGEST = 64  # requests of a turn


class _Replaced(Exception):
    """A bank of something that takes long is another one by now, or deleted."""


class SharedTurns:
    """The turns of one process."""

    waits = True

    def __init__(self, pool: Pool, registry: SharedRegistry, authority: SharedAuthority) -> None:
        self._registry = registry
        self._runner = TurnRunner(pool, registry, authority, self._look_after)
        self._upkeep = SharedUpkeep(pool, registry, self._runner)
        self.answers: Callable[[Request], Answered]
        """What answers a request within a turn, or does the next step of it; set by whoever serves."""
        self._waiting: dict[str, deque[Waiting]] = {}  # by bank
        self._unfinished: WeakKeyDictionary[Unfinished, Needs] = WeakKeyDictionary()
        self.count = 0  # requests so far

    def _look_after(self, work: Work, due: Iterable[str]) -> None:
        self._upkeep.look_after(work, due)

    def start(self) -> None:
        """Look from now on what other processes do."""
        self._upkeep.start()

    def stop(self) -> None:
        """Look no more, and leave checkpoints unwritten; turns that have begun end by themselves."""
        self._upkeep.stop()

    # Requests

    def begin(self, requests: Sequence[Request]) -> Sequence[asyncio.Future[Answered]]:
        """The answers, each once all that it tells of is stored."""
        loop = asyncio.get_running_loop()
        answers: list[asyncio.Future[Answered]] = []
        for request in requests:
            answer: asyncio.Future[Answered] = loop.create_future()
            answers.append(answer)
            if request.target.partition("?")[0] == "/health":
                answer.set_result(self.handle(request))  # it asks no bank
                continue
            awaited = None if request.unfinished is None else request.unfinished.awaits
            if awaited is None or awaited.done():
                self._wait((request, answer))
            else:  # without a turn, which others would have to wait for
                asyncio.wrap_future(awaited).add_done_callback(partial(self._wait, (request, answer)))
        self.count += len(requests)
        return answers

    def _wait(self, one: Waiting, _awaited: object = None) -> None:
        """Let a request wait for a turn of its bank."""
        name = bank_of(one[0])
        waiting = self._waiting.get(name)
        if waiting is None:
            waiting = self._waiting[name] = deque()
            self._upkeep.spawn(self._work(name, waiting))
        waiting.append(one)

    def end(self) -> None:
        """A turn that is awaited ends by itself."""

    async def _work(self, name: str, waiting: deque[Waiting]) -> None:
        """Run the turns of a bank until nobody waits for one."""
        try:
            while waiting:
                taken = _next_of(waiting)
                requests = [request for request, _ in taken]
                try:
                    unfinished = requests[0].unfinished
                    if unfinished is None:
                        answers = await self._answers(requests, needs_of(name, requests))
                    else:
                        answers = [await self._step(requests[0], unfinished)]
                except Exception as error:
                    logger.exception("a turn has failed")
                    answers = [render.refusal(render.failed(request, error)) for request in requests]
                for (_, future), answer in zip(taken, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)
        finally:
            del self._waiting[name]

    async def _answers(self, requests: Sequence[Request], needs: Needs) -> Sequence[Answered]:
        """Answer requests about a bank in one turn."""
        answers: list[Answered] = []

        def act() -> Sequence[Answered]:
            _abandon(answers)  # those of a run that was undone
            answers[:] = map(self.handle, requests)
            return answers

        try:
            await self._runner.run(act, needs)
        except Unanswered:
            _abandon(answers)
            return [_HANG_UP for _ in requests]
        except StoreError as error:
            _abandon(answers)
            self._runner.note(error)
            return [_refused(request, error) for request in requests]
        for answer in answers:
            if isinstance(answer, Unfinished):
                self._unfinished[answer] = needs.next_step()
        return answers

    async def _step(self, request: Request, unfinished: Unfinished) -> Answered:
        """Do the next step of what takes long, as a turn of its own.

        Where it cannot be stored the work hears of it in one more step, so that it can say what it has done before.
        """
        needs = self._unfinished[unfinished]
        banks, failed = needs.banks, unfinished.failed

        def act() -> Answered:
            if any(self._registry.open_banks.get(name) is not opened for name, opened in banks.items()):
                raise _Replaced
            return self.handle(request)

        try:
            answer = await self._runner.run(act, needs)
        except BeginAgain:
            if unfinished.begun:
                raise RuntimeError("a step needs what none before has needed") from None
            request.unfinished = None
            return (await self._answers([request], needs.again()))[0]
        except _Replaced:
            unfinished.abandon()
            return render.refusal(BankError("CONFLICT", "The bank was deleted or created again meanwhile."))
        except Unanswered:
            unfinished.abandon()
            return _HANG_UP
        except StoreError as error:
            self._runner.note(error)
            if failed is None:
                unfinished.failed = StoreUnwritable(str(error))
                self._unfinished[unfinished] = needs.next_step()
                return unfinished
            unfinished.abandon()
            return _refused(request, error)
        if isinstance(answer, Unfinished):
            self._unfinished[answer] = needs.next_step()
        return answer

    def handle(self, request: Request) -> Answered:
        """Answer a request within a turn, or do the next step of it."""
        return self._grouped(lambda: self.answers(request))

    def _grouped(self, act: Callable[[], T]) -> T:
        """What `act` gives; its changes are written by the end of the turn."""
        group = self._registry.group
        group.open = True
        try:
            return act()
        finally:
            group.open = False

    # Turns

    async def act(self, act: Callable[[], T], names: Iterable[str] = (DEFAULT,), *, write: bool = True) -> T:
        """Do something as a turn of its own; StoreError with nothing changed, Unanswered."""
        return await self._runner.run(lambda: self._grouped(act), Needs(set(names), write))

    async def change(self, change: Callable[[], T], name: str) -> T:
        """Let `change` change a bank, as a turn of its own; StoreUnwritable, with nothing changed or nobody knowing."""
        try:
            return await self.act(change, [name])
        except (StoreError, Unanswered) as error:
            raise StoreUnwritable(str(error)) from error

    async def settle(self) -> None:
        """Apply what has fallen due in the banks that somebody watches."""
        await asyncio.gather(*(self._settle(opened) for opened in self._registry.watched_banks()))

    async def _settle(self, opened: OpenBank) -> None:
        pieces = opened.service.settling()
        try:
            while await self.act(lambda: next(pieces, self)) is None:  # there are more
                pass
        except (StoreError, Unanswered) as error:
            logger.error("what is due could not be stored: %s", error)


_HANG_UP = Response(503, delivery=Delivery(disconnect="after"))


def _next_of(waiting: deque[Waiting]) -> list[Waiting]:
    """The requests of the next turn; the next step of what takes long is one by itself."""
    taken = [waiting.popleft()]
    if taken[0][0].unfinished is None:
        while waiting and len(taken) < LONGEST and waiting[0][0].unfinished is None:
            taken.append(waiting.popleft())
    return taken


def _abandon(answers: Iterable[Answered]) -> None:
    for answer in answers:
        if isinstance(answer, Unfinished):
            answer.abandon()


def _refused(request: Request, error: StoreError) -> Response:
    changed = "nothing was changed" if request.unfinished is None else "the changes made so far remain"
    text = f"The bank's store cannot be used at the moment, {changed}: {error}."
    response = render.refusal(BankError("SYSTEM_ERROR", text, status=503))
    finish(response, Headers(request.headers))
    return response
