"""Processes over a shared store without their web servers, in the event loop of the test.

They answer requests as the web server hands them over, and pass them on to each other over real connections.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import psycopg

from emulator.api.messages import Request, Response, Stream
from emulator.assemble import forwarding
from emulator.assemble.joining import SharedApplication, assembled
from emulator.bank.clock import LIVE
from emulator.settings import ServeSettings
from emulator.store.postgres.log import PostgresLog
from emulator.web.handler import Handler

HEADERS = (("Host", "127.0.0.1:8080"), ("Content-Type", "application/json"))
PATIENCE = 20.0


class Process:
    """One process over the store; `url` is that of the store."""

    def __init__(self, application: SharedApplication, url: str) -> None:
        self.application = application
        self.homes = application.homes
        self.registry = application.homes.registry
        self.leases = application.homes.leases
        self.url = url
        self.handler = Handler(application)
        application.start()

    def send(self, request: Request) -> asyncio.Task[Response | Stream]:
        """The answer to a request that has reached this process."""

        async def answer() -> Response | Stream:
            return await asyncio.wait_for(asyncio.ensure_future(self.handler.answer(request)), PATIENCE)

        return asyncio.ensure_future(answer())

    def ask(self, method: str, path: str, body: Any = None, *, bank: str = "") -> asyncio.Task[Response | Stream]:
        """The answer to a control request."""
        return self.send(request(method, path, body, bank=bank))

    async def control(self, method: str, path: str, body: Any = None, *, bank: str = "", status: int = 0) -> Any:
        """The JSON of the answer to a control request, which has this status, or was carried out."""
        answer = await self.ask(method, path, body, bank=bank)
        assert isinstance(answer, Response)
        assert answer.status == status or (not status and answer.status < 300), answer.body
        content = await whole(answer)
        return json.loads(content) if content else None

    def log(self, bank: str) -> PostgresLog:
        """The log of a bank whose home this process is."""
        documents = self.registry.documents(bank)
        assert documents is not None, f"another process has bank {bank}"
        assert isinstance(documents.log, PostgresLog)
        return documents.log

    async def pause(self) -> None:
        """Nothing goes on any more without a request: as with a process that is stopped, leases are not renewed."""
        for task in list(self.homes._tasks):
            task.cancel()
        await asyncio.sleep(0)

    async def end(self) -> None:
        """End in order, as at SIGTERM."""
        self.application.stop()
        self.handler.stop()
        await self.application.leave()
        self.application.close()

    async def kill(self) -> None:
        """End without a word to anybody."""
        await self.pause()
        self.application.stop()
        self.handler.stop()
        assert self.homes._entrance is not None
        with mock.patch.multiple(forwarding, LINGERING=0, ENDING=0.1):
            await self.homes._entrance.close()
        await self.homes.server.close()


def request(method: str, path: str, body: Any = None, *, bank: str = "") -> Request:
    content = b"" if method in ("GET", "HEAD") else json.dumps(body or {}).encode()
    return Request(method, f"{bank and f'/banks/{bank}'}/_emulator/{path}", HEADERS, content)


async def whole(answer: Response) -> bytes:
    """The body with its parts."""
    return answer.body + b"".join([piece async for piece in answer.parts] if answer.parts else [])


async def execute(url: str, statement: str, *values: Any) -> list[Any]:
    """The rows of a statement in the schema of the store."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(statement.replace("{schema}", "bank_emulator").encode(), values)
        return await cursor.fetchall() if cursor.description else []


async def eventually(true: Any) -> None:
    """Wait until `true()` holds."""
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.01)


async def deletions(one: Process) -> None:
    """Wait until a process has deleted the contents that nothing refers to; no answer waits for that."""
    await asyncio.sleep(0)
    if one.homes.commits._tasks:
        await asyncio.wait(one.homes.commits._tasks)


@asynccontextmanager
async def process(store_url: str, state: Path, **settings: Any) -> AsyncIterator[Process]:
    """A process; it is killed at the end, unless it has ended."""
    application = await asyncio.to_thread(assembled, ServeSettings(state=state, store=store_url, **settings), LIVE)
    assert isinstance(application, SharedApplication)
    one = Process(application, store_url)
    try:
        yield one
    finally:
        await one.kill()
