"""Waking the core at what falls due: at once as long as something comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
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
    """The seconds of each wait; each is over when `ring` says so."""

    def __init__(self) -> None:
        self.seen: list[float | None] = []
        self._waits: list[asyncio.Timeout] = []

    def __call__(self, seconds: float | None) -> asyncio.Timeout:
        self.seen.append(seconds)
        self._waits.append(asyncio.Timeout(None))
        return self._waits[-1]

    async def ring(self) -> None:
        self._waits[-1].reschedule(0)
        await turn()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    seen = Pauses()
    monkeypatch.setattr(asyncio, "timeout", seen)
    return seen


async def test_what_stays_due_is_tried_ever_more_rarely_and_at_once_again_when_it_goes(pauses: Pauses) -> None:
    bank, stream = Bank(), Stream()
    watchers = Watchers(cast(Any, bank))
    watchers.add(stream.leave)
    await turn()
    for _ in range(10):
        await pauses.ring()
    assert pauses.seen == [0.005, 0.02, 0.08, 0.32, 1.28, 5.12, 20.48, 60, 60, 60, 60]
    watchers.look_again()  # a request changes nothing about that
    await turn()
    assert pauses.seen[-1] == 60
    bank.stuck = False
    await pauses.ring()
    bank.due = 0.0
    watchers.look_again()
    await turn()
    assert pauses.seen[-2:] == [3600, 0.005]
    watchers.discard(stream.leave)


async def test_what_is_due_is_not_put_off_by_requests_that_come_ever_sooner(pauses: Pauses) -> None:
    bank, stream = Bank(), Stream()
    bank.stuck = False
    watchers = Watchers(cast(Any, bank))
    watchers.add(stream.leave)
    await turn()
    for _ in range(5):
        watchers.look_again()
        await turn()
    assert pauses.seen == [0.005]
    await pauses.ring()
    assert bank.applied == 1
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
        await turn()
        assert pauses.seen == [0.005]
        bank.shared.set_result(None)
        await turn()
    assert pauses.seen == [0.005, 0.02 if fails else 3600]
    assert bank.applied == 1
    watchers.discard(stream.leave)


async def test_nothing_is_applied_when_the_last_stream_has_ended(pauses: Pauses) -> None:
    bank, streams = Bank(), [Stream(), Stream()]
    watchers = Watchers(cast(Any, bank))
    for stream in streams:
        watchers.add(stream.leave)
    await turn()
    watchers.discard(streams[0].leave)
    await turn()
    await pauses.ring()
    assert bank.applied == 1
    waits = len(pauses.seen)
    watchers.discard(streams[1].leave)
    await turn()
    assert (len(pauses.seen), bank.applied) == (waits, 1)


async def test_a_stream_that_opens_while_the_server_stops_ends_at_once(pauses: Pauses) -> None:
    watchers, streams = Watchers(cast(Any, Bank())), [Stream(), Stream()]
    watchers.add(streams[0].leave)
    watchers.end()
    watchers.add(streams[1].leave)
    assert [stream.left for stream in streams] == [True, True]
    for stream in streams:
        watchers.discard(stream.leave)
    await turn()
