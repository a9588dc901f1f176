"""Waking the core at what falls due: at once as long as something comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, cast

import pytest

from emulator.web.events import Watchers


class Bank:
    """Something is due `due` seconds from now; `stuck`: it cannot be written and stays due."""

    def __init__(self) -> None:
        self.due: float | None = 0.0
        self.stuck = True
        self.shared: asyncio.Future[None] | None = None

    def next_due(self) -> float | None:
        return self.due

    def apply_due(self) -> Awaitable[None] | None:
        if not self.stuck:
            self.due = 0.01
        return self.shared


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each timer that is set; none of them rings by itself."""
    seen: list[float] = []

    class Loop:
        def call_later(self, seconds: float, ring: Any) -> asyncio.TimerHandle:
            seen.append(seconds)
            return cast(Any, asyncio.Handle(ring, (), cast(Any, self)))

        def get_debug(self) -> bool:
            return False

    monkeypatch.setattr(asyncio, "get_running_loop", Loop)
    return seen


def test_what_stays_due_is_tried_ever_more_rarely_and_at_once_again_when_it_goes(pauses: list[float]) -> None:
    bank = Bank()
    watchers = Watchers(cast(Any, bank))
    watchers.add(cast(Any, object()))
    for _ in range(10):
        watchers.ring()
    assert pauses == [0.005, 0.02, 0.08, 0.32, 1.28, 5.12, 20.48, 60, 60, 60, 60]
    watchers.set_timer()  # a request changes nothing about that
    assert pauses[-1] == 60
    bank.stuck = False
    watchers.ring()
    bank.due = 0.0
    watchers.set_timer()
    assert pauses[-2:] == [0.01, 0.005]


async def test_what_has_to_be_awaited_is_looked_at_again_when_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[asyncio.TimerHandle] = []
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def set_timer(seconds: float, ring: Any) -> asyncio.TimerHandle:
        timers.append(call_later(seconds, ring))
        return timers[-1]

    monkeypatch.setattr(loop, "call_later", set_timer)
    bank = Bank()
    bank.due, bank.stuck = 3600.0, False
    bank.shared = asyncio.get_running_loop().create_future()
    watchers = Watchers(cast(Any, bank))
    watchers.add(cast(Any, object()))
    timers.pop().cancel()
    watchers.ring()
    assert timers == []
    bank.shared.set_result(None)
    for _ in range(3):
        await asyncio.sleep(0)
    [timer] = timers
    assert not timer.cancelled()
    for watcher in tuple(watchers.open):
        watchers.discard(watcher)
    assert timer.cancelled()
