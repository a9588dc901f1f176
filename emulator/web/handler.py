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
follows, when that is awaited (`_stored`); the next turn may be computed meanwhile.

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
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from ssl import SSLContext
from typing import Any, Protocol

from emulator.api.headers import Headers
from emulator.api.messages import Answered, Request, Response, Stream, Unfinished
from emulator.api.render import refusal
from emulator.api.service import finish
from emulator.bank.errors import BankError

logger = logging.getLogger(__name__)

LONGEST = 64  # requests in a turn; if a thousand arrive together, the first must not wait for the last
_SHORTEST_PAUSE = 0.005  # seconds: a due time in the past must not become a busy loop
_LONGEST_PAUSE = 3600.0  # the clock of the loop stands still while the machine is suspended
_SLOWER = 4.0  # factor for the pause after an attempt that could not apply everything: the disk may be full
_SLOWEST = 60.0

Answering = Callable[[Request], Awaitable[Response | Stream]]
"""Gives the answer to a request, once it may be sent."""
Waiter = asyncio.Future[Response | Stream]
Batch = Sequence[tuple[Request, Waiter]]


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
        self._waiting: deque[tuple[Request, Waiter]] = deque()
        self._unfinished: dict[Waiter, tuple[Request, Unfinished]] = {}  # in turn
        self._stepped = False  # the last turn was a step of an unfinished request
        self._crowded = False  # the last turn had several requests
        self._stopped = False
        self._scheduled = False  # a turn is scheduled
        self._storing: set[asyncio.Future[Any]] = set()

    def in_turn(self, request: Request) -> Waiter:
        """The core's answer, after all changes it reports are stored; or the exception that the core raised."""
        answer: Waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((request, answer))
        self._schedule()
        return answer

    def _next_turn(self) -> None:
        """Take the waiting requests, or one step of long work: by turns where there are both."""
        waiting, going_on = self._waiting, self._going_on() if self._unfinished else None
        self._stepped = going_on is not None and not (waiting and self._stepped)
        if going_on is not None and self._stepped:
            batch = [(self._unfinished.pop(going_on)[0], going_on)]
        else:
            batch = [waiting.popleft() for _ in range(min(len(waiting), LONGEST))]
        self._crowded = len(batch) > 1
        if batch:  # else the server stops
            self._handle(self.application.turn(), batch)
        self._scheduled = False
        if waiting or (self._unfinished and self._going_on() is not None):
            self._schedule()
        if self.watchers.open:
            self.watchers.look_again()

    def _going_on(self) -> Waiter | None:
        """Who waits for the next step of long work, if that waits for no thread."""
        return next((waiter for waiter, (_, work) in self._unfinished.items() if work.awaits is None), None)

    def _handle(self, turn: Turn, batch: Batch) -> None:
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
            storing = asyncio.ensure_future(ended)
            self._storing.add(storing)
            storing.add_done_callback(partial(self._stored, batch, answers))

    def _stored(self, batch: Batch, answers: Sequence[Answered | BaseException], storing: asyncio.Future[Any]) -> None:
        self._storing.discard(storing)
        if not storing.cancelled():  # else the process ends
            error = storing.exception()
            self._deliver(batch, answers if error is None else [error] * len(batch))

    def _deliver(self, batch: Batch, answers: Sequence[Answered | BaseException]) -> None:
        for (request, waiter), answer in zip(batch, answers, strict=True):
            if isinstance(answer, Unfinished):
                request.unfinished = answer
                if self._goes_on(answer, waiter):
                    self._unfinished[waiter] = request, answer
                    self._schedule_after(answer.awaits)
                    continue
                answer = _abandoned(request)
            if request.unfinished is not None:
                request.unfinished.abandon()
            if waiter.done():  # its task was cancelled
                continue
            if isinstance(answer, BaseException):
                waiter.set_exception(answer)
            else:
                waiter.set_result(answer)

    def _schedule_after(self, work: Future[Any] | None) -> None:
        """Schedule a turn once a thread has done its work, if there is any."""
        if work is None:
            self._schedule()
            return
        loop = asyncio.get_running_loop()

        def done(_: object) -> None:
            with suppress(RuntimeError):  # the loop of a process that ends is closed
                loop.call_soon_threadsafe(self._schedule)

        work.add_done_callback(done)

    def stop(self) -> None:
        """End event streams, and abandon long work with 503, when the server stops."""
        self.watchers.end()
        self._stopped = True
        for waiter, (request, work) in tuple(self._unfinished.items()):
            if not self._goes_on(work, waiter):
                del self._unfinished[waiter]
                self._deliver([(request, waiter)], [_abandoned(request)])

    def _goes_on(self, work: Unfinished, waiter: Waiter) -> bool:
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
        self._waking: asyncio.TimerHandle | None = None
        self._applying: asyncio.Task[None] | None = None
        self._pause = _SHORTEST_PAUSE
        self._earliest = 0.0  # when to apply next, in the time of the loop
        self._at = 0.0  # when `_waking` is called

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
        """Wait for what falls due next, which a request may have changed."""
        loop = asyncio.get_running_loop()
        if self._waking is not None:
            if self._at <= loop.time():
                return  # the loop calls it next; turns that follow one another closely must not put it off
            self._waking.cancel()
            self._waking = None
        seconds = self._application.next_due() if self.open and self._applying is None else None
        if seconds is not None:
            self._at = max(loop.time() + min(seconds, _LONGEST_PAUSE), self._earliest)
            self._waking = loop.call_at(self._at, self._wake)

    def end(self) -> None:
        """End all streams, when the server stops."""
        self._ended = True
        for leave in tuple(self.open):
            leave()

    def _wake(self) -> None:
        self._waking = None
        self._applying = asyncio.get_running_loop().create_task(self._apply())

    async def _apply(self) -> None:
        """Apply what has fallen due; what stays due, as on a full disk, is tried ever more rarely."""
        try:
            applying = self._application.apply_due()
            if applying is not None:
                await applying
        except Exception:
            logger.exception("what has fallen due could not be applied")
        self._pause = min(self._pause * _SLOWER, _SLOWEST) if self._application.next_due() == 0 else _SHORTEST_PAUSE
        self._earliest = asyncio.get_running_loop().time() + self._pause
        self._applying = None
        self.look_again()
