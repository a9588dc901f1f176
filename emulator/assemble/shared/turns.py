"""Turns over a shared store (see `web.application.Turn`): one at a time for each bank, several banks at the same time.

Requests wait here for a turn of their bank, which answers up to LONGEST of them; `running.py` says how a turn runs.

What takes long (see `Unfinished`) is a turn for each step: the lock is given back after it, and the next step sees what
other processes have changed. A step that needs more begins the request again, unless something of it was done before.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary

from emulator.api import render
from emulator.api.headers import Headers
from emulator.api.messages import Answered, Delivery, Request, Response, Unfinished
from emulator.api.service import finish
from emulator.assemble.registry import DEFAULT
from emulator.assemble.shared.authority import SharedAuthority
from emulator.assemble.shared.needs import Needs, bank_of, needs_of, numbers_for, reads
from emulator.assemble.shared.open_bank import OpenBank
from emulator.assemble.shared.registry import SharedRegistry
from emulator.assemble.shared.running import BeginAgain, TurnRunner, Unanswered
from emulator.assemble.shared.upkeep import SharedUpkeep
from emulator.bank.errors import BankError
from emulator.store import StoreError, StoreUnwritable
from emulator.store.postgres import Pool

logger = logging.getLogger(__name__)

T = TypeVar("T")
Waiting = tuple[Request, "asyncio.Future[Answered]"]

LONGEST = 64  # requests of a turn


class _Replaced(Exception):
    """The bank of a long operation was deleted or created again."""


class SharedTurns:
    """The turns of one process."""

    def __init__(self, pool: Pool, registry: SharedRegistry, authority: SharedAuthority) -> None:
        self._registry = registry
        self._runner = TurnRunner(pool, registry, authority)
        self._upkeep = SharedUpkeep(pool, registry, authority, self._runner)
        self.answers: Callable[[Request], Answered]
        """What answers a request within a turn, or does the next step of it; set by whoever serves."""
        self._waiting: dict[str, deque[Waiting]] = {}  # by bank
        self._unfinished: WeakKeyDictionary[Unfinished, Needs] = WeakKeyDictionary()
        self.count = 0  # requests so far

    def start(self) -> None:
        """Start to follow other processes."""
        self._upkeep.start()

    def stop(self) -> None:
        """Stop following, and leave checkpoints unwritten; turns that have begun end by themselves."""
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
            self._wait((request, answer))
        self.count += len(requests)
        return answers

    def _wait(self, one: Waiting) -> None:
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
        """Run the turns of a bank until no request waits for one."""
        try:
            while waiting:
                taken: list[Waiting] = []
                _take(waiting, taken)
                request = taken[0][0]
                try:
                    if request.unfinished is None:
                        needs = needs_of(name, [request for request, _ in taken])
                        answers = await self._answers(taken, needs, waiting)
                    else:
                        answers = [await self._step(taken[0], request.unfinished)]
                except Exception as error:
                    logger.exception("a turn has failed")
                    answers = [render.refusal(render.failed(request, error)) for request, _ in taken]
                for (_, future), answer in zip(taken, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)
        finally:
            del self._waiting[name]

    async def _answers(self, taken: list[Waiting], needs: Needs, waiting: deque[Waiting]) -> Sequence[Answered]:
        """Answer the requests that were `taken` about a bank in one turn.

        As many turns cost more than large ones, it also takes those that have come while it was waiting for its lock.
        """
        answers: list[Answered] = []
        first = True

        def act() -> Sequence[Answered]:
            nonlocal first
            if first:  # a run with more must not find that it needs still more, for those that have come meanwhile
                first, before = False, len(taken)
                _take(waiting, taken, write=needs.write)
                needs.numbers += numbers_for(request for request, _ in taken[before:])
            _abandon(answers)  # those of a run that was undone
            answers[:] = [self.handle(request) for request, _ in taken]
            return answers

        try:
            await self._runner.run(act, needs)
        except Unanswered:
            _abandon(answers)
            return [_HANG_UP for _ in taken]
        except StoreError as error:
            _abandon(answers)
            self._runner.note(error)
            return [_refused(request, error) for request, _ in taken]
        for answer in answers:
            if isinstance(answer, Unfinished):
                self._unfinished[answer] = needs.next_step()
        return answers

    async def _step(self, one: Waiting, unfinished: Unfinished) -> Answered:
        """Do the next step of a long operation, as a turn of its own.

        Where it cannot be stored, and was not the last one, the work hears of it in one more step, so that it can say
        what it has done before.
        """
        request, needs = one[0], self._unfinished[unfinished]
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
            return (await self._answers([one], needs.again(), deque()))[0]
        except _Replaced:
            unfinished.abandon()
            return render.refusal(BankError("CONFLICT", "The bank was deleted or created again meanwhile."))
        except Unanswered:
            unfinished.abandon()
            return _HANG_UP
        except StoreError as error:
            self._runner.note(error)
            if failed is None and not unfinished.ended:
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
        """The result of `act`; its changes are written by the end of the turn."""
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
        """Let `change` change a bank, as a turn of its own; StoreUnwritable.

        Then nothing was changed, or the outcome is unknown.
        """
        try:
            return await self.act(change, [name])
        except (StoreError, Unanswered) as error:
            raise StoreUnwritable(str(error)) from error

    async def settle(self) -> None:
        """Apply what is due in watched banks."""
        await asyncio.gather(*(self._settle(opened) for opened in self._registry.watched_banks()))

    async def _settle(self, opened: OpenBank) -> None:
        pieces = opened.service.settling()
        try:
            while await self.act(lambda: next(pieces, self)) is None:  # there are more
                pass
        except (StoreError, Unanswered) as error:
            logger.error("what is due could not be stored: %s", error)


_HANG_UP = Response(503, delivery=Delivery(disconnect="after"))


def _take(waiting: deque[Waiting], taken: list[Waiting], *, write: bool = True) -> None:
    """Add to the requests of a turn those that can be answered with them, in order; without `write` only reads.

    The next step of a long operation is a turn by itself.
    """
    while waiting and len(taken) < LONGEST:
        request = waiting[0][0]
        if taken and (request.unfinished is not None or not (write or reads(request))):
            break
        taken.append(waiting.popleft())
        if request.unfinished is not None:
            break


def _abandon(answers: Iterable[Answered]) -> None:
    for answer in answers:
        if isinstance(answer, Unfinished):
            answer.abandon()


def _refused(request: Request, error: StoreError) -> Response:
    begun = request.unfinished is not None and request.unfinished.begun
    changed = "the changes made so far remain" if begun else "nothing was changed"
    text = f"The bank's store cannot be used at the moment, {changed}: {error}."
    response = render.refusal(BankError("SYSTEM_ERROR", text, status=503))
    finish(response, Headers(request.headers))
    return response
