"""What the requests of one turn of the loop change is written at once; no answer leaves before, and none is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from unittest.mock import Mock

import pytest

from emulator.api.messages import Delivery, Request, Response, Steps, Unfinished
from emulator.bank.threads import LASTS
from emulator.store import Document, Documents, Kind, StoreUnwritable, open_store
from emulator.store.disk import Disk
from emulator.web import handler
from emulator.web.connection import Connections
from emulator.web.wire import Limits
from tests.e2e.serving import MadeUpSite
from tests.unit.web.peer import Peer, connections_of, turn

NOTE = Kind[Document]("note")
KINDS = (NOTE,)


class CountingDisk(Disk):
    """Counts writes, and lets none through while it is full."""

    def __init__(self) -> None:
        self.writes = 0
        self.full = False

    def write(self, file: int, data: bytes | memoryview) -> int:
        if self.full:
            raise OSError(28, "No space left on device")
        self.writes += 1
        return super().write(file, data)


class World:
    """A bank of notes: /v1/write adds one, /v1/count tells how many there are, /count as well but is no TPP's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = CountingDisk()
        self.store: Documents = open_store(folder, KINDS, disk=self.disk)
        self.application = MadeUpSite()
        self.logged: list[Response] = []
        self.failures: list[str] = []
        self.ended = 0
        self.application.store = self.store
        self.application.answers.update(
            {
                "/v1/write": self.write,
                "/long": lambda request: Unfinished(self.steps(request)).step(),
                "/v1/late": lambda request: self.write(request, Delivery(delay=0.0001)),
                "/v1/count": self.count,
                "/count": self.count,
            }
        )

    def write(self, request: Request, delivery: Delivery | None = None) -> Response:
        try:
            self.store.put(NOTE, {"id": str(len(self.application.requests)), "text": request.target})
        except StoreUnwritable:
            return Response(503, [], b"refused by the core")
        answer = Response(201, [("X-Request-ID", "7")], b"written")
        self.logged.append(answer)
        if delivery is not None:
            answer.delivery = delivery
        return answer

    def steps(self, request: Request) -> Steps:
        """Three steps that each write a note; what is said where one is not kept."""
        try:
            for step in range(3):
                self.store.put(NOTE, {"id": f"{id(request)}-{step}", "text": "long"})
                yield
        except StoreUnwritable as failed:
            self.failures.append(str(failed))
            return Response(503, [], b"one step failed")
        finally:
            self.ended += 1
        return Response(200, [], b"all three")

    def count(self, request: Request) -> Response:
        return Response(200, [], str(self.store.count(NOTE)).encode())

    def clients(self, number: int) -> list[Peer]:
        connections = connections_of(self.application)
        return [Peer(connections) for _ in range(number)]

    def stored(self) -> int:
        """How many notes a restart finds."""
        self.store.close()
        return open_store(self.folder, KINDS).count(NOTE)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0)


async def test_the_changes_of_a_turn_are_one_write_and_no_answer_leaves_before(world: World) -> None:
    clients = world.clients(20)
    for client in clients:
        client.ask("/v1/write")
    assert (world.disk.writes, {client.got for client in clients}) == (0, {b""})
    await turn()
    assert world.disk.writes == 1
    assert [client.statuses for client in clients] == [[201]] * 20
    assert world.stored() == 20


async def writes_for_two_in_successive_rounds(world: World, clients: Sequence[Peer]) -> int:
    """The writes for two requests of which the second arrives one round of the loop after the first."""
    before = world.disk.writes
    clients[0].ask("/v1/write")
    asyncio.get_running_loop().call_soon(clients[1].ask, "/v1/write")
    await turn()
    return world.disk.writes - before


async def test_after_a_turn_of_several_requests_the_next_begins_a_round_of_the_loop_later(world: World) -> None:
    clients = world.clients(4)
    assert await writes_for_two_in_successive_rounds(world, clients) == 2  # after no turn: at once
    for client in clients:
        client.ask("/v1/write")
    await turn()
    assert await writes_for_two_in_successive_rounds(world, clients) == 1
    clients[0].ask("/v1/write")
    await turn()
    assert await writes_for_two_in_successive_rounds(world, clients) == 2  # after a turn of one: at once
    assert [client.statuses for client in clients] == [[201] * number for number in (5, 4, 1, 1)]


async def test_who_has_seen_what_is_not_written_waits_as_well(world: World) -> None:
    writer, reader = world.clients(2)
    writer.ask("/v1/write")
    reader.ask("/v1/count")
    assert reader.got == b""
    await turn()
    assert (reader.statuses, reader.last) == ([200], "1")


async def test_a_full_disk_is_503_for_all_of_the_turn_and_nothing_is_changed(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, reader = world.clients(3)
    first.ask("/v1/write")
    await turn()
    world.disk.full = True
    first.ask("/v1/write")
    second.ask("/v1/write", more="Accept-Encoding: gzip\r\n")
    reader.ask("/v1/count")
    await turn()
    assert [first.statuses, second.statuses, reader.statuses] == [[201, 503], [503], [503]]
    assert b"X-Request-ID: 7" in second.got
    assert b"Content-Encoding: gzip" in second.got
    assert "cannot store its documents" in first.last
    assert world.store.count(NOTE) == 1
    assert [answer.status for answer in world.logged] == [201, 503, 503]
    (line,) = caplog.messages
    assert line.startswith("503 to 3 requests: the change cannot be written: "), "a line per turn for who runs the bank"


async def test_a_turn_that_there_is_no_memory_to_write_is_503_with_the_cause(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (writer,) = world.clients(1)
    with monkeypatch.context() as patch:
        patch.setattr("emulator.store.journal_log.sealed", Mock(side_effect=MemoryError))
        writer.ask("/v1/write")
        await turn()
    assert (writer.statuses, world.store.count(NOTE)) == ([503], 0)
    assert "The bank cannot store its documents: not enough memory." in writer.last
    assert caplog.messages == ["503 to 1 requests: not enough memory"]


async def test_after_a_failure_reads_go_on_and_changes_wait_for_nobody_until_one_succeeds(world: World) -> None:
    writer, reader = world.clients(2)
    world.disk.full = True
    writer.ask("/v1/write")
    await turn()
    writer.ask("/v1/write")
    reader.ask("/v1/count")
    await turn()
    assert (writer.last, reader.last) == ("refused by the core", "0")
    world.disk.full = False
    for _ in range(2):
        writer.ask("/v1/write")
        reader.ask("/v1/write")
        await turn()
    assert writer.statuses == [503, 503, 201, 201]
    assert world.disk.writes == 3  # two of the turn after the failure, one of the next
    assert world.stored() == 4


async def test_what_is_no_request_of_a_tpp_is_written_with_the_others(world: World) -> None:
    world.application.answers["/clock"] = world.write
    writer, tester = world.clients(2)
    writer.ask("/v1/write")
    tester.ask("/clock")
    await turn()
    assert (writer.statuses, tester.statuses, world.disk.writes) == ([201], [201], 1)


async def test_the_change_of_a_client_that_has_gone_is_kept(world: World) -> None:
    gone, other = world.clients(2)
    gone.ask("/v1/write")
    other.ask("/v1/write")
    await until(lambda: len(world.application.requests) == 2)
    gone.leave()
    await turn()
    assert (gone.got, other.statuses) == (b"", [201])
    assert world.stored() == 2


async def test_a_thousand_clients_do_not_wait_for_one_another(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler, "LONGEST", 4)
    clients = world.clients(10)
    seen: list[int] = []

    def look(request: Request) -> Response:
        seen.append(world.disk.writes)
        return world.write(request)

    world.application.answers["/v1/look"] = look
    for client in clients:
        client.ask("/v1/look")
    await turn()
    assert [client.statuses for client in clients] == [[201]] * 10
    assert seen == [0] * 4 + [1] * 4 + [2] * 2
    assert world.disk.writes == 3


@pytest.mark.parametrize("full", [False, True])
async def test_an_answer_that_is_held_back_waits_for_the_write_too(world: World, full: bool) -> None:
    (client,) = world.clients(1)
    world.disk.full = full
    client.ask("/v1/late")
    while not client.got:
        await asyncio.sleep(0)
    assert client.statuses == [503 if full else 201]
    assert world.stored() == (0 if full else 1)


@pytest.mark.parametrize("full", [False, True])
async def test_a_change_from_elsewhere_takes_what_waits_along(world: World, full: bool) -> None:
    (client,) = world.clients(1)
    client.ask("/v1/write")
    world.disk.full = full
    change: Callable[[], None] = lambda: world.store.put(NOTE, {"id": "clock"})  # noqa: E731
    if full:
        with pytest.raises(StoreUnwritable):
            change()
    else:
        change()
    await turn()
    assert client.statuses == [503 if full else 201]
    assert world.store.count(NOTE) == (0 if full else 2)


async def test_what_falls_due_is_applied_between_the_steps_of_long_work(world: World) -> None:
    steps_until_applied: list[int] = []

    def long() -> Steps:
        for step in range(1000):
            world.application.due = None if steps_until_applied else 0.0
            if world.application.woken.is_set() and not steps_until_applied:
                steps_until_applied.append(step)
            yield
        return Response(200, [], b"done")

    world.application.answers["/long"] = lambda _: Unfinished(long()).step()
    connections = connections_of(world.application)
    connections.handler.watchers.add(lambda: None)
    client = Peer(connections)
    client.ask("/long")
    await until(lambda: bool(client.statuses))
    assert steps_until_applied[0] < 900


async def test_a_fault_in_writing_leaves_nobody_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    (client,) = world.clients(1)

    def broken() -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(world.store, "_write", broken)
    client.ask("/v1/write")
    await turn()
    assert client.statuses == [503]


async def test_a_compaction_that_a_control_request_makes_due_begins_once(world: World) -> None:
    def grow(request: Request) -> Response:
        while not world.store.log.compaction_due:
            world.store.put(NOTE, {"id": "grown", "text": f"{world.store.sequence:1000000}"})
            world.store.flush()
        return Response(201, [], b"grown")

    world.application.answers["/grow"] = grow
    first, second = world.clients(2)
    first.ask("/v1/write")
    second.ask("/grow")
    await turn()
    assert (first.statuses, second.statuses, world.store.log.compaction_due) == ([201], [201], False)
    world.application.stop()
    assert world.stored() == 2


async def test_the_end_of_a_turn_that_writes_begins_the_compaction_that_is_due(world: World) -> None:
    (client,) = world.clients(1)
    while not world.store.log.compaction_due:
        world.store.put(NOTE, {"id": "grown", "text": f"{world.store.sequence:1000000}"})
    assert world.store.log.compaction_due
    client.ask("/v1/write")
    await turn()
    assert (client.statuses, world.store.log.compaction_due) == ([201], False)
    world.application.stop()
    assert world.stored() == 2


async def test_others_are_answered_between_the_steps_of_what_takes_long(world: World) -> None:
    long, other = world.clients(2)
    long.ask("/long")
    seen = []
    while not long.got:
        other.ask("/count")
        await other.answered(len(seen) + 1)
        seen.append(int(other.last))
    assert (long.statuses, long.last) == ([200], "all three")
    assert len(set(seen)) >= 2, "each step is kept by itself, and answers come after it"
    assert world.stored() == 3


async def test_several_that_take_long_go_on_in_turn(world: World) -> None:
    clients = world.clients(3)
    for client in clients:
        client.ask("/long")
    for client in clients:
        assert await client.answered(1) == [200]
    assert world.stored() == 9


async def test_a_step_that_cannot_be_kept_is_raised_in_the_next(world: World) -> None:
    long, other = world.clients(2)
    long.ask("/long")
    await until(lambda: world.disk.writes == 1)
    world.disk.full = True
    assert await long.answered(1) == [503]
    assert (long.last, len(world.failures), world.ended) == ("one step failed", 1, 1)
    world.disk.full = False
    other.ask("/v1/write")
    assert await other.answered(1) == [201]
    assert world.stored() == 2, "the first step and the other's"


@pytest.mark.parametrize("steps", [0, 1])
async def test_what_takes_long_ends_when_the_server_stops(world: World, steps: int) -> None:
    """`steps` that are done by then; the first one is done all the same."""
    answering = handler.Handler(world.application)
    long = Peer(Connections(answering, Limits()))
    long.ask("/long")
    await until(lambda: world.disk.writes == steps)
    answering.stop()
    assert await long.answered(1) == [503]
    assert world.ended == 1
    assert "the changes made so far remain" in long.last
    assert world.stored() < 3


async def test_what_is_not_to_stop_half_way_ends_before_the_server(world: World) -> None:
    """Or what it has stored by then, as the name of a TPP, would be without the answer that has the key."""
    goes_on, begun = Future[None](), list[Request]()

    def lasting(request: Request) -> Steps:
        yield LASTS
        begun.append(request)
        yield goes_on
        return world.write(request)

    world.application.answers["/lasting"] = lambda request: Unfinished(lasting(request)).step()
    answering = handler.Handler(world.application)
    client = Peer(Connections(answering, Limits()))
    client.ask("/lasting")
    await until(lambda: begun)
    answering.stop()
    goes_on.set_result(None)
    assert await client.answered(1) == [201]
