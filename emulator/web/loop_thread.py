"""An event loop in a thread of its own, on which banks run beside other work of the process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoopThread:
    """An event loop that runs in the background until the process ends."""

    def __init__(self) -> None:
        # Not uvloop: a garbage collection of another thread may free its handles, and crash the process.
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="bank-emulator", daemon=True).start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run `work` on the loop and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def call(self, function: Callable[[], Result]) -> Result:
        """Call `function` on the thread of the loop, which is that of the banks, between two requests."""
        done: Future[Result] = Future()

        def work() -> None:
            try:
                done.set_result(function())
            except BaseException as error:  # raised in the thread that waits
                done.set_exception(error)

        self._loop.call_soon_threadsafe(work)
        return done.result()
