"""A server on a free port with a made-up application behind it, and raw sockets to talk to it."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uvloop

from emulator.api.messages import Answered, Push, Request, Response, Stream
from emulator.api.outcomes import Outcomes
from emulator.assemble.registry import BankRegistry
from emulator.assemble.storage import Storage
from emulator.assemble.turns import Turns
from emulator.metrics.counts import ProcessCounts
from emulator.settings import ServeSettings
from emulator.store import Documents, WriteGroup
from emulator.web.handler import Answering, Watchers
from emulator.web.server import WebServer, listen, port_of
from emulator.web.wire import Limits

LOOPS = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
PATIENCE = 10.0  # seconds until a test gives up; no test waits for it to pass

AsyncTest = Callable[..., Coroutine[Any, Any, None]]


def both_loops(test: AsyncTest) -> Callable[..., None]:
    """Run a test on uvloop, which serves where the platform has it, and on asyncio's own loop."""

    @functools.wraps(test)
    def run(*, loop: str, **given: Any) -> None:
        with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            runner.run(asyncio.wait_for(test(**given), 3 * PATIENCE))

    own = inspect.signature(test)
    loop = inspect.Parameter("loop", inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), loop])
    return pytest.mark.parametrize("loop", LOOPS)(run)


class MadeUpSite:
    """Echoes what reached it as JSON; `answers` holds other answers by target."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.refusals: list[Request] = []
        self.answers: dict[str, Callable[[Request], Answered]] = {}
        self.pushes: list[Push] = []
        self.ended = asyncio.Event()
        self.left = asyncio.Event()
        self.due: float | None = None
        self.woken = asyncio.Event()
        self.tls: ssl.SSLContext | None = None
        self.group = WriteGroup()
        self.outcomes = Outcomes()
        self.counts = ProcessCounts()
        self.storage = Storage()
        self._store: Documents | None = None
        self._turn: Turns | None = None

    @property
    def store(self) -> Documents | None:
        """The documents, where a test needs some."""
        return self._store

    @store.setter
    def store(self, store: Documents) -> None:
        store.join(self.group)
        self._store = store
        self.storage.confirms = store.log.confirms

    def documents(self, _name: str = "default") -> Documents | None:
        return self.store

    def services(self) -> Iterator[Any]:
        if self.store is not None:
            yield SimpleNamespace(bank=SimpleNamespace(name="default", documents=self.store))

    def around(self, local: Answering, _watchers: Watchers) -> Answering:
        return local

    def turn(self) -> Turns:
        if self._turn is None:
            self._turn = Turns(cast(BankRegistry, self), self.handle, lambda *_: None)
        return self._turn

    def handle(self, request: Request) -> Answered:
        if request.unfinished is not None:
            return request.unfinished.step()
        self.requests.append(request)
        if (answer := self.answers.get(request.target)) is not None:
            return answer(request)
        echo = {"method": request.method, "target": request.target, "body": request.body.decode("latin-1")}
        return Response(200, [("Content-Type", "application/json; charset=utf-8")], json.dumps(echo).encode())

    def events(self, request: Request) -> Stream:
        """A stream whose pushes the test makes."""

        def subscribe(push: Push) -> Callable[[], None]:
            self.pushes.append(push)
            push(b"data: first\n\n")
            return self.ended.set

        return Stream(200, [("Content-Type", "text/event-stream")], subscribe)

    def refused(self, request: Request, response: Response) -> None:
        """What the wire refused is marked, so that tests see what the application adds go out."""
        self.refusals.append(request)
        response.headers.append(("X-Told", "yes"))

    def next_due(self) -> float | None:
        return self.due

    def apply_due(self) -> None:
        self.due = None
        self.woken.set()

    def start(self) -> None:
        """Nothing is done besides."""

    def stop(self) -> None:
        if self._turn is not None:
            self._turn.stop()

    def tls_context(self) -> ssl.SSLContext:
        if self.tls is None:
            raise AssertionError("this test has no certificate")
        return self.tls

    async def leave(self) -> None:
        self.left.set()

    def close(self) -> None:
        """Nothing is held."""


@dataclass
class Served:
    application: MadeUpSite
    server: WebServer
    port: int
    tls_port: int | None
    clients: list[Client] = field(default_factory=list)

    async def connect(self) -> Client:
        self.clients.append(Client(*await asyncio.open_connection("127.0.0.1", self.port)))
        return self.clients[-1]

    async def connect_tls(self, context: ssl.SSLContext) -> Client:
        return Client(*await asyncio.open_connection("localhost", self.tls_port, ssl=context))

    async def exchange(self, *parts: bytes) -> Answer:
        """Send `parts` on a connection of their own; the one answer, after which the server must close."""
        client = await self.connect()
        for part in parts:
            await client.send(part)
            await asyncio.sleep(0)  # the server reads it by itself
        answer = await client.answer()
        answer.rest = await client.until_closed()
        return answer


@asynccontextmanager
async def serving(
    application: MadeUpSite | None = None,
    limits: Limits | None = None,
    *,
    tls: bool = False,
    public_url: str | None = None,
    allowed: tuple[str, ...] = (),
) -> AsyncIterator[Served]:
    """A running server."""
    application = application or MadeUpSite()
    plain = listen(["127.0.0.1"], 0)
    secure = listen(["127.0.0.1"], 0) if tls else None
    settings = ServeSettings(public_url=public_url, allow_host=allowed)
    server = WebServer(application, settings, plain=plain, tls=secure, limits=limits)
    await server.start()
    served = Served(application, server, port_of(plain), port_of(secure) if secure else None)
    try:
        yield served
    finally:
        for client in served.clients:
            client.vanish()  # a connection that was refused something lingers until its client goes
        await server.stop()


@dataclass
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    rest: bytes = b""

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """A raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """Send, whether the server still takes it or not."""
        try:
            self.writer.write(data)
            await asyncio.wait_for(self.writer.drain(), PATIENCE)
        except ConnectionError:
            pass

    async def ask(self, data: bytes, *, bare: bool = False) -> Answer:
        """Send, and the next answer."""
        await self.send(data)
        return await self.answer(bare=bare)

    def end(self) -> None:
        """Say that nothing more comes, and go on reading."""
        self.writer.write_eof()

    def vanish(self) -> None:
        self.writer.transport.abort()

    async def answer(self, *, bare: bool = False) -> Answer:
        """The next answer; `bare` for one without a body, whatever its Content-Length says."""
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), PATIENCE)
        first, *lines = head.decode().rstrip("\r\n").split("\r\n")
        headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
        answer = Answer(int(first.split()[1]), headers, b"")
        length = answer.header("Content-Length")
        if length is not None and not bare:
            answer.body = await asyncio.wait_for(self.reader.readexactly(int(length)), PATIENCE)
        return answer

    async def until_closed(self) -> bytes:
        """What still comes until the server closes; b"" also for a reset."""
        try:
            return await asyncio.wait_for(self.reader.read(), PATIENCE)
        except ConnectionError:
            return b""


def get(target: str = "/", *headers: str, version: str = "1.1") -> bytes:
    return head("GET", target, *headers, version=version)


def post(body: bytes, *headers: str, target: str = "/") -> bytes:
    return head("POST", target, f"Content-Length: {len(body)}", *headers) + body


def head(method: str, target: str, *headers: str, version: str = "1.1") -> bytes:
    lines = [f"{method} {target} HTTP/{version}", "Host: localhost", *headers, "", ""]
    return "\r\n".join(lines).encode()


def chunked(*lines: str) -> bytes:
    return head("POST", "/", "Transfer-Encoding: chunked") + "\r\n".join(lines).encode()


def assert_refused(answer: Answer, status: int, phrase: str) -> None:
    """The error form (errors.md), exactly, and the connection closed behind it."""
    assert answer.status == status
    assert answer.header("Content-Type") == "application/json; charset=utf-8"
    assert answer.header("Connection") == "close"
    text = answer.json()["tppMessages"][0]["text"]
    entry = {"category": "ERROR", "code": "BAD_REQUEST", "text": text}
    expected = json.dumps({"tppMessages": [entry]}, separators=(",", ":"), ensure_ascii=False)
    assert answer.body.decode() == expected
    assert phrase in text
    assert answer.rest == b""
