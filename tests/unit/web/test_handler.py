"""With durability `power` no answer acknowledges a change that a failed fsync has taken back."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp.http import HttpVersion11, RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from emulator.api.messages import Request, Response
from emulator.store import Document, Kind, Store, StoreUnwritable, open_store, storage
from emulator.store.disk import Disk
from emulator.web.answers import Answer
from emulator.web.handler import Handler
from tests.e2e.serving import MadeUpSite

TARGET = "/v1/write"

NOTE = Kind[Document]("note")


class FailingDisk(Disk):
    """Fails every fsync of a file while `failing`."""

    failing = False

    def sync(self, file: int) -> None:
        if self.failing:
            raise OSError(5, "Input/output error")
        super().sync(file)


class World:
    """A handler over a bank of notes to which each request adds one."""

    def __init__(self, folder: Path) -> None:
        self.disk = FailingDisk()
        self.store: Store = open_store(folder, (NOTE,), "power", disk=self.disk)
        self.application = MadeUpSite()
        self.application.store = self.store
        self.application.answers[TARGET] = self._write
        self.handler = Handler(self.application)

    def _write(self, request: Request) -> Response:
        self.store.put(NOTE, {"id": str(len(self.application.requests))})
        return Response(201)

    def asks(self) -> Any:
        """A request that has come whole and waits for its fsync."""
        headers = CIMultiDictProxy(CIMultiDict({"Host": "x"}))
        raw = ((b"Host", b"x"),)
        url = URL(TARGET)
        message = RawRequestMessage("GET", TARGET, HttpVersion11, headers, raw, False, None, False, False, url)
        base = SimpleNamespace(of=lambda host: "http://x")
        connection = SimpleNamespace(received=100, base=base, transport=None, acted=None)
        assert not self.handler.at_once(connection, message, EMPTY_PAYLOAD)
        return SimpleNamespace(connection=connection, message=message)

    async def status(self, exchange: Any) -> int:
        answer = await self.handler(exchange)
        assert isinstance(answer, Answer)
        return answer._response.status


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_a_change_is_lost_by_an_fsync_that_fails_before_its_own_begins(world: World) -> None:
    exchange = world.asks()
    world.disk.failing = True
    with pytest.raises(StoreUnwritable):
        world.store.sync()
    assert await world.status(exchange) == 503
    assert world.store.count(NOTE) == 0
    assert world.application.taken_back == [world.store]


async def test_a_change_is_lost_by_the_fsync_of_a_compaction_that_it_makes_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "SMALL_JOURNAL", 0)
    world = World(tmp_path)
    world.disk.failing = True
    assert await world.status(world.asks()) == 503
    assert world.store.count(NOTE) == 0
    assert world.application.taken_back == [world.store]
