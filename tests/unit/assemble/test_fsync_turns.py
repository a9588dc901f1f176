"""With durability `power` no answer acknowledges a change that a failed fsync has taken back."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path

import pytest

from emulator.api.messages import Request, Response
from emulator.store import Document, Documents, Kind, StoreUnwritable, journal_log, open_store
from emulator.store.disk import Disk
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
    """A site over a bank of notes to which each request adds one."""

    def __init__(self, folder: Path) -> None:
        self.disk = FailingDisk()
        self.store: Documents = open_store(folder, (NOTE,), "power", disk=self.disk)
        self.application = MadeUpSite()
        self.application.store = self.store
        self.application.answers[TARGET] = self._write

    def _write(self, request: Request) -> Response:
        self.store.put(NOTE, {"id": str(len(self.application.requests))})
        return Response(201)

    def asks(self) -> tuple[Response, Awaitable[Exception | None]]:
        """The answer to a request whose turn waits for its fsync, and the end of that turn."""
        turn = self.application.turn()
        request = Request("GET", TARGET)
        answer = turn.handle(request)
        ended = turn.end()
        assert isinstance(answer, Response)
        assert isinstance(ended, Awaitable)
        return answer, ended


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_a_change_is_lost_by_an_fsync_that_fails_before_its_own_begins(world: World) -> None:
    answer, ended = world.asks()
    world.disk.failing = True
    with pytest.raises(StoreUnwritable):
        world.store.log.sync()
    assert isinstance(await ended, StoreUnwritable)
    assert answer.status == 503
    assert world.store.count(NOTE) == 0


async def test_a_change_is_lost_by_the_fsync_of_a_compaction_that_it_makes_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_log, "SMALL_JOURNAL", 0)
    world = World(tmp_path)
    world.disk.failing = True
    answer, ended = world.asks()
    assert isinstance(await ended, StoreUnwritable)
    assert answer.status == 503
    assert world.store.count(NOTE) == 0
