"""What each cached function saves a create, a status read and a page: bytecodes, and time where the work is done in C.

    python -m tests.bench.caches

Every `lru_cache` and `cache` of the program gets a switch before the program is imported; then requests are answered
with one of them switched off at a time. Only those that a warm request asks are listed.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any, ClassVar

COUNTED = 20
_real = functools.lru_cache


class Switched:
    """A cached function with a switch; `calls` and `spent` (ns, of the function itself) while it is off."""

    every: ClassVar[list[Switched]] = []
    off: Switched | None = None

    def __init__(self, work: Callable[..., Any], cached: Any) -> None:
        self.name = f"{work.__module__.removeprefix('emulator.')}.{work.__qualname__}"
        self.work, self.cached = work, cached
        self.calls, self.spent = 0, 0
        Switched.every.append(self)

    def function(self) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if Switched.off is not self:
                return self.cached(*arguments, **named)
            began = perf_counter_ns()
            try:
                return self.work(*arguments, **named)
            finally:
                self.spent += perf_counter_ns() - began
                self.calls += 1

        for name in ("cache_info", "cache_clear"):
            setattr(call, name, getattr(self.cached, name))
        return functools.wraps(self.work)(call) if hasattr(self.work, "__name__") else call


def _switching(maxsize: Any = 128, typed: bool = False) -> Any:
    if callable(maxsize):
        return _switching()(maxsize)

    def decorate(work: Callable[..., Any]) -> Any:
        cached = _real(maxsize, typed)(work)
        is_ours = getattr(work, "__module__", "").startswith("emulator.") and hasattr(work, "__qualname__")
        return Switched(work, cached).function() if is_ours else cached

    return decorate


@contextmanager
def _without(one: Switched) -> Any:
    Switched.off, one.calls, one.spent = one, 0, 0
    yield
    Switched.off = None


def main() -> None:
    functools.lru_cache = _switching
    import uvloop

    from tests.bench import bytecodes

    bytecodes.WARM_UP, bytecodes.COUNTED = 300, 0

    def show(own: Any, whole: Any, rows: int) -> None: ...

    async def counted(send: Any, requests: Any) -> Any:
        """In place of the counting: once for each function that the last request asked."""
        before = {one: one.cached.cache_info().hits for one in Switched.every}
        await send(pending.pop())
        asked = [one for one in Switched.every if one.cached.cache_info().hits > before[one]]
        own, _ = await original(send, [pending.pop() for _ in range(COUNTED)])
        all_of_it = own.total() / COUNTED
        began = perf_counter_ns()
        for _ in range(COUNTED):
            await send(pending.pop())
        whole = (perf_counter_ns() - began) / COUNTED
        print(f"\n{kind}: {all_of_it:,.0f} bytecodes with the switches, {whole / 1000:,.0f} us\n")
        print("  bytecodes      %      us      %  calls  function")
        rows = []
        for one in asked:
            with _without(one):
                own, _ = await original(send, [pending.pop() for _ in range(COUNTED // 4)])
                one.calls, one.spent = 0, 0
                for _ in range(COUNTED):
                    await send(pending.pop())
                rows.append((own.total() * 4 / COUNTED - all_of_it, one.spent / COUNTED, one.calls / COUNTED, one.name))
        for saved, spent, calls, name in sorted(rows, reverse=True):
            share, of_time = 100 * saved / all_of_it, 100 * spent / whole
            print(f"{saved:>11,.0f}{share:>7.1f}{spent / 1000:>8.1f}{of_time:>7.1f}{calls:>7.0f}  {name}")
        return own, whole

    original, bytecodes.counted, bytecodes.show = bytecodes.counted, counted, show
    prepared = bytecodes.prepared
    pending: list[bytes] = []

    def more(folder: Any, asked: str) -> list[bytes]:
        bytecodes.COUNTED = 2500
        pending[:] = prepared(folder, asked)
        return [pending.pop() for _ in range(bytecodes.WARM_UP)]

    bytecodes.prepared = more
    for kind in ("create", "status", "page"):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(bytecodes.measure(kind, 0, judging=False))


if __name__ == "__main__":
    main()
