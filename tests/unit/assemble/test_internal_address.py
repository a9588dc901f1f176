"""The address at which processes reach each other, while connections end on either side."""

from __future__ import annotations

import asyncio
import gc
import socket
from contextlib import suppress
from time import monotonic
from typing import Any

import orjson
import pytest

from emulator.api.messages import Push, Request, Response, Stream
from emulator.assemble import forwarding
from emulator.assemble.forwarding import Broken, Entrance, Ways
from emulator.web.handler import Watchers
from tests.e2e.serving import MadeUpSite, both_loops

SECRET = b"a secret of thirty-two bytes here"


class Home:
    """A home whose answers wait until they are let go, and what goes wrong at it without being told to anybody."""

    def __init__(self, stream: Stream | None = None) -> None:
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.answered = asyncio.Event()
        self.stream = stream
        self.unexpected: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: self.unexpected.append(context))
        bound = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:{1}".format(*bound.getsockname())
        self.entrance = Entrance(bound, "home", SECRET, self.answer, Watchers(MadeUpSite()))

    async def answer(self, _bank: str, _request: Request) -> Response | Stream:
        """The answer to any request."""
        self.asked.set()
        await self.may_answer.wait()
        self.answered.set()
        return self.stream or Response(200, [], b"done")

    async def ended(self) -> list[dict[str, Any]]:
        """What went wrong, once every connection has ended."""
        for _ in range(10):
            await asyncio.sleep(0)
        gc.collect(1)  # what is as young as this
        return self.unexpected


def asked(**more: Any) -> bytes:
    """A request as it goes over."""
    head = {"home": "home", "bank": "default", "method": "GET", "target": "/", "headers": [], "base": "", "peer": None}
    text = orjson.dumps({**head, "size": 0, **more})
    return len(text).to_bytes(4, "big") + text


@both_loops
@pytest.mark.parametrize("begun", [b"", b"a secret", b"no secret at all"])
async def test_a_process_ends_while_another_connects(begun: bytes) -> None:
    home = Home()
    await home.entrance.open()
    reader, writer = await asyncio.open_connection(*home.address.split(":"))
    writer.write(begun)
    while not home.entrance._connections:
        await asyncio.sleep(0)
    await home.entrance.close()
    with suppress(ConnectionResetError):
        assert await reader.read() == b""
    writer.close()
    assert await home.ended() == []


@both_loops
async def test_a_process_ends_as_soon_as_another_has_connected() -> None:
    """The end of its loop cancels what it has just begun."""
    home = Home()
    await home.entrance.open()
    _, writer = await asyncio.open_connection(*home.address.split(":"))
    while not home.entrance._connections:
        await asyncio.sleep(0)
    for serving in home.entrance._connections:
        serving.cancel()
    assert await home.ended() == []
    writer.close()


@both_loops
@pytest.mark.parametrize("kind", ["whole", "elsewhere", "stream"])
async def test_an_answer_is_ready_when_its_connection_has_ended(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pushes: list[Push] = []

    def subscribe(push: Push) -> Any:
        pushes.append(push)
        return lambda: None

    home = Home(Stream(200, [], subscribe) if kind == "stream" else None)
    if kind == "elsewhere":
        monkeypatch.setattr(home.entrance, "_here", lambda bank, request: _none(home, bank, request))
    await home.entrance.open()
    reader, writer = await asyncio.open_connection(*home.address.split(":"))
    writer.write(SECRET + asked())
    await home.asked.wait()
    (serving,) = home.entrance._connections.values()
    serving.transport.abort()
    home.may_answer.set()
    await home.answered.wait()
    assert await reader.read() == b""
    writer.close()
    await home.entrance.close()
    assert await home.ended() == []


async def _none(home: Home, bank: str, request: Request) -> None:
    await home.answer(bank, request)


@both_loops
async def test_a_request_that_was_under_way_when_its_home_ended_hears_that_it_is_elsewhere() -> None:
    """Only so does its sender know that it was not carried out."""
    home = Home()
    await home.entrance.open()
    reader, writer = await asyncio.open_connection(*home.address.split(":"))
    writer.write(SECRET)
    while not home.entrance._connections:
        await asyncio.sleep(0)
    home.entrance._here = lambda _bank, _request: nobody()
    ending = asyncio.ensure_future(home.entrance.close())
    await asyncio.sleep(0)
    writer.write(asked())
    size = int.from_bytes(await reader.readexactly(4), "big")
    assert orjson.loads(await reader.readexactly(size))["as"] == "elsewhere"
    await ending
    assert await reader.read() == b""
    writer.close()
    assert await home.ended() == []


@both_loops
async def test_a_process_that_ends_does_not_wait_for_who_keeps_a_connection_after_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forwarding, "ENDING", 60.0)  # longer than any test may take
    home = Home()
    await home.entrance.open()
    reader, writer = await asyncio.open_connection(*home.address.split(":"))
    writer.write(SECRET + asked())
    await home.asked.wait()
    monkeypatch.setattr(forwarding, "LINGERING", 0.0)
    ending = asyncio.ensure_future(home.entrance.close())
    while not home.entrance._ending:
        await asyncio.sleep(0)
    home.may_answer.set()
    assert b"done" in await reader.read()
    await ending
    writer.close()
    assert await home.ended() == []


@both_loops
async def test_what_was_passed_on_is_answered_as_long_as_what_is_asked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "ENDING", 0.0)
    monkeypatch.setattr(forwarding, "LINGERING", 0.0)
    home = Home()
    await home.entrance.open()
    reader, writer = await asyncio.open_connection(*home.address.split(":"))
    writer.write(SECRET + asked())
    await home.asked.wait()
    ending = asyncio.ensure_future(home.entrance.close(monotonic() + 60))
    await asyncio.sleep(0.05)
    home.may_answer.set()
    assert b"done" in await reader.read()
    await ending
    writer.close()
    assert await home.ended() == []


async def nobody() -> None:
    """What a process answers that is not the home of a bank."""


@both_loops
async def test_a_home_ends_before_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home()
    home.may_answer.set()
    await home.entrance.open()

    async def is_home(_bank: str, _home: str) -> bool:
        return True

    ways = Ways(SECRET, is_home)
    open_connection = asyncio.open_connection

    async def one_that_has_ended(*where: Any, **how: Any) -> Any:
        reader, writer = await open_connection(*where, **how)
        writer.transport.abort()
        return reader, writer

    monkeypatch.setattr(forwarding.asyncio, "open_connection", one_that_has_ended)
    with pytest.raises((Broken, forwarding.NotDelivered)):
        await ways.send(home.address, "home", "default", Request("GET", "/", ()))
    await home.entrance.close()
    assert await home.ended() == []
