"""Work beside everything else, in a thread: between two steps of a request that waits for it others are answered."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

SLICE = 0.005  # seconds that the work gets for itself between two answers to others


def beside(work: Callable[[], T]) -> Generator[Future[T], None, T]:
    """Do `work` in a thread, which gets the process for a moment in each step; gives and raises what it does.

    Each step gives its Future, so that whoever has better ways to wait knows for what. The work touches nothing that
    others change meanwhile. Closing the sequence lets the thread end by itself.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    thread = Thread(target=run, name="beside", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(SLICE)
        yield done
    return done.result()
