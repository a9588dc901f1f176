"""The application behind the connections: what the server demands of it, its answers, computed in turns, and what
falls due while somebody watches.

The core is synchronous and does no I/O: a request runs whole, and only one runs at a time. A request is in one of these
places, and moves as the loop calls:

    place           what it waits for                           left by
    `_waiting`      the next turn                               `_next_turn`: up to LONGEST of them, in order of arrival
    (in a turn)     its handler, then the end of the turn       `_handle`; `_deliver` once the changes are stored
    `_unfinished`   the next step of its long work, and where   `_next_turn`: one step, alternating with waiting ones
                    a thread prepares that, the thread

No answer leaves before the changes of its turn are stored: with the end of the turn, or, where an fsync or a commit
follows, when that is awaited (`_deliver_later`); the next turn may be computed meanwhile.

    failure                             consequence
    a handler raises                    that request alone gets the error (500); the others of the turn go on
    the turn cannot be stored           the application undoes the changes and has made 503 of its answers
    the end of the turn itself raises   all requests of the turn get the error: none may wait for ever
    a client goes away                  its answer is dropped; its changes stay, as they are stored; long work ends,
                                        but for what is not to stop half-way (`Unfinished.lasts`)
    the server stops                    waiting requests are answered, long work is abandoned with 503, but for what
                                        is not to stop half-way and has a client
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from ssl import SSLContext
from typing import Protocol

from emulator.api.headers import Headers
from emulator.api.messages import Answered, Request, Response, Stream, Unfinished
from emulator.api.render import refusal
from emulator.api.service import finish
from emulator.bank.errors import BankError

logger = logging.getLogger(__name__)

LONGEST = 64  # requests in a turn; if a thousand arrive together, the first must not wait for the last
_SHORTEST_PAUSE = 0.005  # seconds: a due time in the past must not become a busy loop
_LONGEST_PAUSE = 3600.0
_SLOWER = 4.0  # factor for the pause after an attempt that could not apply everything: the disk may be full
_SLOWEST = 60.0

Answering = Callable[[Request], Awaitable[Response | Stream]]
"""Gives the answer to a request, once it may be sent."""
Waiting = tuple[Request, "asyncio.Future[Response | Stream]"]


class Turn(Protocol):
    """A batch of requests whose changes are stored together: `handle` for each request, then `end`.

    Each request sees the changes of the earlier ones, so no answer is sent before `end` has completed. Every `handle`
    and the call of `end` run one after the other. The next turn may begin once `end` was called, even while its result
    is still being awaited.
    """

    def handle(self, request: Request, /) -> Answered:
        """Answer any request: /v1, /_emulator, /sca, /console, /health and the rest; synchronous, never raises.

        A long operation returns Unfinished: it is stored as `request.unfinished`, and the request is passed in again in
        later turns.
        """

    def end(self) -> Awaitable[Exception | None] | Exception | None:
        """Store the changes of the turn; returns the failure if some were rolled back.

        Answers that reported such changes have then been replaced by 503, in place: write answers after `end` only.
        """


class Application(Protocol):
    """All banks and pages of a process; what an application that inherits this leaves out does nothing."""

    def turn(self) -> Turn:
        """Create the next turn."""

    def around(self, local: Answering, watchers: Watchers) -> Answering:
        """What answers requests: `local`, which does it in turns, or something that may pass them on elsewhere.

        `watchers`: those who hear of events at this process; whoever passes a stream on to another is one of them.
        """
        del watchers
        return local

    def refused(self, request: Request, response: Response) -> None:
        """Add to `response`, which refuses a request before its body was read, the headers that its bank adds."""

    def next_due(self) -> float | None:
        """Seconds of real time until something falls due; None if nothing does, or if no event stream is open."""
        return None

    def apply_due(self) -> Awaitable[None] | None:
        """Apply what has fallen due, so that event streams report it without a request; not within a turn."""
        return None

    def tls_context(self) -> SSLContext:
        """The settings for --tls-port: TLS 1.2 or higher with the bank's certificate."""

    def start(self) -> None:
        """Called within the running event loop before the first request."""
        return

    def stop(self) -> None:
        """Called when no further requests are accepted."""
        return

    async def leave(self) -> None:
        """Called once the last answer is computed, within the event loop; clients may still be reading it."""
        return

    def close(self) -> None:
        """Compact and close the stored documents, and release the state directory."""
        return


class Handler:
    """Answers requests in turns: up to LONGEST in order of arrival, one write for all their changes, then the answers.

    That costs a fraction of one write per request. After a turn of several requests the next begins one round of the
    loop later, so that clients who send again at once are in it.
    """

    def __init__(self, application: Application) -> None:
        self.application = application
        self.watchers = Watchers(application)
        self.answer = application.around(self.in_turn, self.watchers)
        """Answers a request, or passes it on to another process."""
        self._waiting: deque[Waiting] = deque()
        self._unfinished: deque[Waiting] = deque()  # in turn
        self._stepped = False  # the last turn was a step of an unfinished request
        self._crowded = False  # the last turn had several requests
        self._stopped = False
        self._scheduled = False  # a turn is scheduled
        self._delivering: set[asyncio.Task[None]] = set()

    def in_turn(self, request: Request) -> asyncio.Future[Response | Stream]:
        """The core's answer, after all changes it reports are stored; or the exception that the core raised."""
        answer: asyncio.Future[Response | Stream] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, answer))
        self._schedule()
        return answer

    def _next_turn(self) -> None:
        """Take the waiting requests, or one step of long work: by turns where there are both."""
        waiting, steps = self._waiting, self._steps() if self._unfinished else []
        self._stepped = bool(steps) and not (waiting and self._stepped)
        if self._stepped:
            batch = steps[:1]
            self._unfinished.remove(steps[0])
        else:
            batch = [waiting.popleft() for _ in range(min(len(waiting), LONGEST))]
        self._crowded = len(batch) > 1
        if batch:  # else the server stops
            self._handle(self.application.turn(), batch)
        self._scheduled = False
        if waiting or (self._unfinished and self._steps()):
            self._schedule()

    def _steps(self) -> list[Waiting]:
        """The requests whose long work waits for no thread."""
        return [one for one in self._unfinished if one[0].unfinished is None or one[0].unfinished.awaits is None]

    def _handle(self, turn: Turn, batch: Sequence[Waiting]) -> None:
        answers: list[Answered | Exception] = []
        for request, _ in batch:
            try:
                answers.append(turn.handle(request))
            except Exception as error:
                answers.append(error)
        try:
            ended = turn.end()
        except Exception as error:  # of any kind: no request may wait forever
            ended, answers = None, [error] * len(batch)
        if ended is None or isinstance(ended, Exception):
            self._deliver(batch, answers)
        else:
            delivering = asyncio.ensure_future(self._deliver_later(ended, batch, answers))
            self._delivering.add(delivering)
            delivering.add_done_callback(self._delivering.discard)
        if self.watchers.open:
            self.watchers.look_again()

    async def _deliver_later(
        self,
        ended: Awaitable[Exception | None],
        batch: Sequence[Waiting],
        answers: Sequence[Answered | Exception],
    ) -> None:
        try:
            await ended
        except Exception as error:
            answers = [error] * len(batch)
        self._deliver(batch, answers)

    def _deliver(self, batch: Sequence[Waiting], answers: Sequence[Answered | Exception]) -> None:
        for (request, waiter), answer in zip(batch, answers, strict=True):
            if isinstance(answer, Unfinished):
                request.unfinished = answer
                if self._goes_on(answer, waiter):
                    self._continue(request, waiter, answer)
                    continue
            if request.unfinished is not None:
                request.unfinished.abandon()
            if waiter.done():  # its task was cancelled
                continue
            if isinstance(answer, Unfinished):
                waiter.set_result(_abandoned(request))
            elif isinstance(answer, Exception):
                waiter.set_exception(answer)
            else:
                waiter.set_result(answer)

    def _continue(self, request: Request, waiter: asyncio.Future[Response | Stream], unfinished: Unfinished) -> None:
        """Go on with a request in a later turn, once a thread has done what its next step waits for."""
        self._unfinished.append((request, waiter))
        awaits, loop = unfinished.awaits, asyncio.get_running_loop()
        if awaits is None:
            self._schedule()
            return

        def done(_: object) -> None:
            with suppress(RuntimeError):  # the loop of a process that ends is closed
                loop.call_soon_threadsafe(self._schedule)

        awaits.add_done_callback(done)

    def stop(self) -> None:
        """End event streams, and abandon long work with 503, when the server stops."""
        self.watchers.end()
        self._stopped = True
        for one in list(self._unfinished):
            request, waiter = one
            if request.unfinished is not None and not self._goes_on(request.unfinished, waiter):
                self._unfinished.remove(one)
                self._deliver([one], [_abandoned(request)])

    def _goes_on(self, work: Unfinished, waiter: asyncio.Future[Response | Stream]) -> bool:
        if self._stopped:
            return work.lasts and not waiter.done()
        return work.lasts or not waiter.done()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            loop = asyncio.get_running_loop()
            if self._crowded:  # the clients of the last turn may be sending again: the loop polls once more
                loop.call_soon(loop.call_soon, self._next_turn)
            else:
                loop.call_soon(self._next_turn)


def _abandoned(request: Request) -> Response:
    """503 for long work that ends with the process."""
    text = "The bank cannot answer at the moment; the changes made so far remain."
    response = refusal(BankError("SYSTEM_ERROR", text, status=503))
    finish(response, Headers(request.headers))
    return response


class Watchers:
    """The open event streams, each as what ends it; while there are any, what falls due is applied unasked."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self.open: set[Callable[[], object]] = set()
        self._ended = False
        self._changed = asyncio.Event()
        self._waking: asyncio.Task[None] | None = None

    def add(self, leave: Callable[[], object]) -> None:
        """Add a new stream, which ends at once if the server stops: its request had arrived before."""
        self.open.add(leave)
        self.look_again()
        if self._ended:
            leave()

    def discard(self, leave: Callable[[], object]) -> None:
        self.open.discard(leave)
        self.look_again()

    def look_again(self) -> None:
        """Find anew what falls due next, which a request may have changed."""
        self._changed.set()
        if self.open and self._waking is None:
            self._waking = asyncio.get_running_loop().create_task(self._wake())

    def end(self) -> None:
        """End all streams, when the server stops."""
        self._ended = True
        for leave in tuple(self.open):
            leave()

    async def _wake(self) -> None:
        """Wait for what falls due next and apply it, until no stream is open."""
        try:
            pause = _SHORTEST_PAUSE
            while self.open:
                self._changed.clear()
                seconds = self._application.next_due()
                is_due = seconds is not None and seconds <= pause  # nothing that a request changes falls due earlier
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if seconds is None else min(max(seconds, pause), _LONGEST_PAUSE)):
                        await self._changed.wait()
                        while is_due and self.open:  # else requests that come ever sooner would put it off
                            self._changed.clear()
                            await self._changed.wait()
                    continue
                try:
                    applying = self._application.apply_due()
                    if applying is not None:
                        await applying
                except Exception:
                    logger.exception("what has fallen due could not be applied")
                pause = min(pause * _SLOWER, _SLOWEST) if self._application.next_due() == 0 else _SHORTEST_PAUSE
        finally:
            self._waking = None
