"""Work beside everything else, in a thread: between two steps of a request that waits for it others are answered."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")

SLICE = 0.005  # seconds that the work gets for itself between two answers to others


def beside(work: Callable[[], T], *, discard: Callable[[T], Any] | None = None) -> Generator[Future[T], None, T]:
    """Do `work` in a thread, which gets the process for a moment in each step; gives and raises what it does.

    Yields what will have its result, for who would rather wait for that. The work touches nothing that others change
    meanwhile. Closing the sequence lets the thread end by itself; `discard` is then called with what it came to.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    thread = Thread(target=run, name="beside", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(SLICE)
            yield done
    except GeneratorExit:
        if discard is not None:
            done.add_done_callback(lambda ended: None if ended.exception() else discard(ended.result()))
        raise
    return done.result()


def completed(steps: Generator[object, None, T]) -> T:
    """What the steps come to, done one behind the other."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
