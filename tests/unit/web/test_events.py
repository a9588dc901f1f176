"""Waking the core at what falls due: at once as long as something comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from emulator.web.handler import Watchers
from tests.unit.web.peer import turn


class Bank:
    """Something is due `due` seconds from now; `stuck`: it cannot be written and stays due."""

    def __init__(self) -> None:
        self.due: float | None = 0.0
        self.stuck = True
        self.broken = False
        self.shared: asyncio.Future[None] | None = None
        self.applied = 0

    def next_due(self) -> float | None:
        return self.due

    def apply_due(self) -> Awaitable[None] | None:
        self.applied += 1
        if self.broken:
            raise OSError("no room")
        if not self.stuck:
            self.due = 3600.0
        return self.shared


class Stream:
    left = False

    def leave(self) -> None:
        self.left = True


class Pauses:
    """The seconds of each wait, in a time that stands still; the last is over when `ring` says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[float] = []
        self._waits: list[tuple[asyncio.Handle, Callable[[], None]]] = []
        self._now = 1000.0
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: self._now)
        monkeypatch.setattr(loop, "call_at", self._call_at)

    def _call_at(self, when: float, callback: Callable[[], None]) -> asyncio.Handle:
        self.seen.append(round(when - self._now, 3))
        handle = asyncio.Handle(callback, (), asyncio.get_running_loop())
        self._waits.append((handle, callback))
        return handle

    async def ring(self) -> None:
        self._now += self.seen[-1]
        handle, callback = self._waits[-1]
        if not handle.cancelled():
            callback()
        await turn()


@pytest.fixture
async def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    return Pauses(monkeypatch)


async def test_what_stays_due_is_tried_ever_more_rarely_and_at_once_again_when_it_goes(pauses: Pauses) -> None:
    bank, stream = Bank(), Stream()
    watchers = Watchers(cast(Any, bank))
    watchers.add(stream.leave)
    await turn()
    for _ in range(10):
        await pauses.ring()
    assert pauses.seen == [0, 0.02, 0.08, 0.32, 1.28, 5.12, 20.48, 60, 60, 60, 60]
    watchers.look_again()  # a request changes nothing about that
    assert pauses.seen[-1] == 60
    bank.stuck = False
    await pauses.ring()
    bank.due = 0.0
    watchers.look_again()
    assert pauses.seen[-2:] == [3600, 0.005]
    watchers.discard(stream.leave)


async def test_what_is_due_is_not_put_off_by_requests_that_come_ever_sooner(pauses: Pauses) -> None:
    bank, stream = Bank(), Stream()
    bank.stuck = False
    watchers = Watchers(cast(Any, bank))
    watchers.add(stream.leave)
    await pauses.ring()
    bank.due = 0.0
    for _ in range(5):
        watchers.look_again()
    assert pauses.seen == [0, 3600, *[0.005] * 5], "from the last time on, not from the request"
    await pauses.ring()
    assert bank.applied == 2
    watchers.discard(stream.leave)


@pytest.mark.parametrize("fails", [False, True])
async def test_what_has_to_be_awaited_is_looked_at_again_when_it_is_done(pauses: Pauses, fails: bool) -> None:
    bank, stream = Bank(), Stream()
    bank.stuck, bank.broken = False, fails
    bank.shared = asyncio.get_running_loop().create_future()
    watchers = Watchers(cast(Any, bank))
    watchers.add(stream.leave)
    await turn()
    await pauses.ring()
    if not fails:
        watchers.look_again()
        assert pauses.seen == [0]
        bank.shared.set_result(None)
        await turn()
    assert pauses.seen == [0, 0.02 if fails else 3600]
    assert bank.applied == 1
    watchers.discard(stream.leave)


async def test_nothing_is_applied_when_the_last_stream_has_ended(pauses: Pauses) -> None:
    bank, streams = Bank(), [Stream(), Stream()]
    watchers = Watchers(cast(Any, bank))
    for stream in streams:
        watchers.add(stream.leave)
    watchers.discard(streams[0].leave)
    await pauses.ring()
    assert bank.applied == 1
    watchers.discard(streams[1].leave)
    await pauses.ring()
    assert bank.applied == 1


async def test_a_stream_that_opens_while_the_server_stops_ends_at_once(pauses: Pauses) -> None:
    watchers, streams = Watchers(cast(Any, Bank())), [Stream(), Stream()]
    watchers.add(streams[0].leave)
    watchers.end()
    watchers.add(streams[1].leave)
    assert [stream.left for stream in streams] == [True, True]
    for stream in streams:
        watchers.discard(stream.leave)
    await turn()
