"""What stands between the parts of a cluster: a balancer before the banks, a proxy before PostgreSQL that can fail.

Both run on one event loop in a thread of its own, so that tests use them from plain functions.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

SILENCE = 2.0  # seconds without an answer after which the balancer closes the client's connection
LOOK = 0.2  # seconds between two looks whether a process answers
LONGEST = 1 << 20  # bytes of the head of a request or an answer
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there; its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def close(self) -> None:
        async def cancel() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self.run(cancel())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@dataclass(slots=True)
class Target:
    """A process behind the balancer."""

    port: int
    answers: bool = True
    requests: int = 0


@dataclass
class Balancer:
    """Sends each request of a connection to the next process in turn, leaving out those that do not answer.

    A request that no process has received goes to another one. One that a process may have carried out is never
    repeated: its connection closes without an answer, and the client does not know.
    """

    loop: Loop
    targets: list[Target]
    silence: float = SILENCE
    port: int = 0
    _next: int = 0
    _server: asyncio.Server | None = field(default=None, repr=False)

    def start(self) -> Balancer:
        async def listen() -> asyncio.Server:
            server = await asyncio.start_server(self._client, "127.0.0.1", self.port, limit=LONGEST)
            self._watch = asyncio.create_task(self._look())
            return server

        self._server = self.loop.run(listen())
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _look(self) -> None:
        while True:
            await asyncio.gather(*(self._look_at(target) for target in self.targets))
            await asyncio.sleep(LOOK)

    async def _look_at(self, target: Target) -> None:
        port = target.port
        try:
            async with asyncio.timeout(1):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    writer.write(HEALTH)
                    alive = (await reader.readline()).startswith(b"HTTP/1.1 200")
                finally:
                    writer.transport.abort()
        except (OSError, TimeoutError):
            alive = False
        if port == target.port:  # else it was restarted elsewhere meanwhile
            target.answers = alive

    def _in_turn(self) -> list[Target]:
        """All processes, the next one first; those that do not answer come last."""
        at, self._next = self._next, (self._next + 1) % len(self.targets)
        turned = self.targets[at:] + self.targets[:at]
        return sorted(turned, key=lambda target: not target.answers)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await _body(reader, head)
                if not await self._forward(head + body, writer):
                    break
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # cancelled: the loop ends, and asyncio would log it as an error of this callback
        finally:
            writer.transport.abort() if writer.transport.get_write_buffer_size() == 0 else writer.close()

    async def _forward(self, request: bytes, client: asyncio.StreamWriter) -> bool:
        """Send the request on and its answer back; whether the client's connection stays open."""
        for target in self._in_turn():
            try:
                async with asyncio.timeout(1):
                    reader, writer = await asyncio.open_connection("127.0.0.1", target.port, limit=LONGEST)
            except (OSError, TimeoutError):
                target.answers = False
                continue
            try:
                target.requests += 1
                writer.write(request)
                return await self._answer(request, reader, client, target)
            finally:
                writer.transport.abort()
        return False

    async def _answer(
        self, request: bytes, reader: asyncio.StreamReader, client: asyncio.StreamWriter, target: Target
    ) -> bool:
        try:
            async with asyncio.timeout(self.silence):
                head = await reader.readuntil(b"\r\n\r\n")
        except TimeoutError:
            target.answers = False
            raise
        if request.startswith(b"HEAD "):
            client.write(head)
        elif _header(head, b"content-length") is not None or head.split(b" ", 2)[1] in (b"204", b"304"):
            client.write(head + await _body(reader, head))
        else:  # an answer without a known end, such as an event stream: it ends with its connection
            client.write(head)
            while data := await reader.read(1 << 16):
                client.write(data)
                await client.drain()
            return False
        await client.drain()
        return _header(head, b"connection") != b"close"

    def stop(self) -> None:
        async def close() -> None:
            self._watch.cancel()
            if self._server is not None:
                self._server.close()

        self.loop.run(close())


def _header(head: bytes, name: bytes) -> bytes | None:
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip().lower()
    return None


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    """The body that follows a head, as it stands on the wire."""
    if _header(head, b"transfer-encoding") == b"chunked":
        body = b""
        while True:
            size = await reader.readuntil(b"\r\n")
            chunk = await reader.readexactly(int(size.split(b";")[0], 16) + 2)
            body += size + chunk
            if chunk == b"\r\n":
                return body
    return await reader.readexactly(int(_header(head, b"content-length") or 0))


@dataclass
class Proxy:
    """Carries bytes to a server, until it is told to cut, stall or refuse; `lead_to` gives it another server.

    What the server answers comes `delay` seconds later.
    """

    loop: Loop
    target: int
    port: int = 0
    delay: float = 0.0
    _pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = field(default_factory=set, repr=False)
    _refusing: bool = False

    def start(self) -> Proxy:
        async def listen() -> asyncio.Server:
            self._flowing = asyncio.Event()
            self._flowing.set()
            return await asyncio.start_server(self._client, "127.0.0.1", self.port)

        self._server = self.loop.run(listen())
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        try:
            onward_reader, onward = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        pair = (writer, onward)
        self._pairs.add(pair)
        there = asyncio.create_task(self._carry(reader, onward))
        back = asyncio.create_task(self._carry(onward_reader, writer, self.delay))
        try:
            await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
        finally:
            there.cancel()
            back.cancel()
            self._pairs.discard(pair)
            for end in pair:
                end.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float = 0.0) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                if delay:
                    await asyncio.sleep(delay)
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()

    def _do(self, work: Any) -> None:
        async def on_the_loop() -> None:
            work()

        self.loop.run(on_the_loop())

    def cut(self) -> None:
        """Reset every connection; new ones are carried."""

        def abort() -> None:
            for pair in self._pairs:
                for end in pair:
                    end.transport.abort()

        self._do(abort)

    def stall(self) -> None:
        """Let nothing through, in either direction, until `flow`; connections stay open."""
        self._do(lambda: self._flowing.clear())

    def flow(self) -> None:
        """Carry bytes, and take new connections, as at first."""
        self._refusing = False
        self._do(lambda: self._flowing.set())

    def refuse(self) -> None:
        """Reset every connection and every new one, until `flow`."""
        self._refusing = True
        self.cut()

    def lead_to(self, port: int) -> None:
        """Carry new connections to another server; those that stand are reset."""
        self.target = port
        self.cut()

    def stop(self) -> None:
        self.refuse()
        self._do(lambda: self._server.close())
