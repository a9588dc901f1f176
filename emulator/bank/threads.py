"""Runs work in threads: that of a request, so that others are answered meanwhile, and what nobody waits for."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from contextlib import suppress
from threading import Thread
from typing import TypeVar

from emulator.store import StoreUnwritable

T = TypeVar("T")

SLICE = 0.005  # seconds that a step waits for the work


class Lasting(Future[T]):
    """What a thread does that lasts: its request goes on to its end, whether or not the client still waits."""


LASTS: Lasting[None] = Lasting()
"""What a step gives after which the request goes on to its end in the same way."""
LASTS.set_result(None)


def in_thread(work: Callable[[], T], *, lasts: bool = False) -> Generator[Future[T] | bool, None, T]:
    """Run `work` in a thread. Returns its result, or raises its exception.

    Yields the future of the result, which the caller waits for before the next step; an earlier step waits briefly. The
    work must not use data that is changed elsewhere meanwhile. When the generator is closed, the thread continues to
    its end. `lasts`: what it has done lasts although changes of the documents fail meanwhile, which is left out then,
    and although the client has gone (`Lasting`), as what is in memory must agree with it; the last step, True, marks
    the request as begun, so that nobody does it again where another process has the bank.
    """
    future: Future[T] = Lasting() if lasts else Future()
    thread = Thread(target=_run, args=(work, future), name="request-work", daemon=True)
    thread.start()
    while not future.done():
        try:
            yield future
        except StoreUnwritable:
            if not lasts:
                raise
        wait([future], SLICE)
    thread.join()  # at its end it has no more of the result
    try:
        result = future.result()
    finally:
        del future  # as in `_run`
    if lasts:
        with suppress(StoreUnwritable):
            yield True
    return result


def aside(work: Callable[[], T]) -> Future[T]:
    """Do `work` in a thread that not even the end of the process waits for, as it may never end; none cancels it."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()
    Thread(target=_run, args=(work, done), name="aside", daemon=True).start()
    return done


def _run(work: Callable[[], T], future: Future[T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)
    finally:
        del future  # or its exception would keep the frames that it names, perhaps with a whole body, and they it


def run_to_end(steps: Generator[object, None, T]) -> T:
    """Run all steps without a pause and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
