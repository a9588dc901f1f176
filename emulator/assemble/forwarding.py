"""The way to the home of a bank: requests that one process passes on to another, and their answers.

Each process listens on an address of its own for the others. A request goes over as the core sees it, after the wire
rules were applied by the process that the client has reached, and the answer comes back as the core has given it: so
scripted delays, disconnections, compression and HEAD are carried out once, by that same process. A connection carries
one request at a time, so that back-pressure and a client that goes away need nothing of their own: who stops to read
holds the other end up, who closes ends the work there.

A connection begins with the secret of the store. A wrong one, as from whoever takes this address for that of the
interface, is answered in HTTP, with 403.

A message is a head, JSON behind its size in four bytes, and a body of as many bytes as the head says. The first message
of an answer says how it goes on: `whole`, not at all; `parts`, until one that is the `last`; `stream`, with events
until the connection ends. Or it says why there is none: `elsewhere`, `another` (see `_NOT_DELIVERED`), `refused`.

What the sender may do when it fails depends on how far it came:

- It could not connect, or was told `elsewhere`: nothing was done. NotDelivered: it looks again who is the home.
- The connection ended before an answer. A request that only reads, and is not counted, is sent again. Another one may
  have been carried out: Broken, and the client gets no answer either; it sends its request again, with the same
  X-Request-ID.
- Nothing came for LATE seconds, no answer or not the rest of one: the process may be stopped, or the network lets
  nothing through. It looks each second whether that process is still the home, and breaks the connection once it is
  not. If it is, and the network lets nothing through, that ends by itself within 11 seconds (`_keep_alive`).
- The connection ended within an answer: the client's ends too.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, TypeVar

import orjson

from emulator.api.messages import BodyParts, Delivery, Fields, Push, Request, Response, Stream, Unsubscribe
from emulator.store import StoreError
from emulator.web.handler import Watchers

T = TypeVar("T")

logger = logging.getLogger(__name__)

CONNECTING = 2.0  # seconds
ENDING = 1.0  # seconds, or more, in which requests in progress are answered when the process ends
LINGERING = 0.1  # seconds in which others hear that this process is not the home any more
LATE = 1.0  # seconds
IDLE = 16  # connections to one address that are kept while nobody uses them
LARGEST_HEAD = 4 << 20  # bytes
LARGEST_BODY = 64 << 20
_TEXT = b"Here only the processes of this bank are answered, which know its secret.\n"
# for who takes this address for that of the interface
_HEAD = b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
_FORBIDDEN = _HEAD % len(_TEXT) + _TEXT
UNREAD = 1 << 20  # bytes of events that a reader may be behind
_SILENCE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3}  # seconds, and a number; as to PostgreSQL
# of a request that was sent; not at the home, as a client may read its answers slowly
_UNACKNOWLEDGED = {"TCP_USER_TIMEOUT": 11_000}  # milliseconds


_NOT_DELIVERED = {
    "elsewhere": "the process at {} is not the home any more",
    "another": "at {} is another process than the home: is --advertise the same?",
    "refused": "the process at {} has another secret: it is of another store",
}


class NotDelivered(Exception):
    """The request was not carried out: the process cannot be reached, or is not the home."""

    def __init__(self, reason: str, *, moved: bool) -> None:
        super().__init__(reason)
        self.moved = moved  # the process was reached, and another one is the home


class Broken(Exception):
    """The connection ended before an answer: nobody knows whether the request was carried out."""


Here = Callable[[str, Request], Awaitable[Response | Stream | None]]
"""Answers a request to a bank whose home this process is; None if it is not."""


def _keep_alive(line: socket.socket, limits: Mapping[str, int]) -> None:
    """Let a connection end soon where the network lets nothing through any more, and none end because it is idle."""
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in limits.items():
        if hasattr(socket, name):
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _write(writer: StreamWriter, data: bytes) -> None:
    """Write, or raise ConnectionResetError if the connection has ended: uvloop has an error of its own for that."""
    if writer.is_closing():
        raise ConnectionResetError("the connection has ended")
    writer.write(data)


async def _send(writer: StreamWriter, head: dict[str, Any], body: bytes = b"") -> None:
    whole = {**head, "size": len(body)}
    try:
        text = orjson.dumps(whole)
    except TypeError:  # a target or a header that is not UTF-8
        text = json.dumps(whole).encode()
    _write(writer, b"".join((len(text).to_bytes(4, "big"), text, body)))
    if writer.transport.get_write_buffer_size():
        await writer.drain()


async def _receive(reader: StreamReader) -> tuple[dict[str, Any], bytes]:
    """The next message; ValueError for what is none, IncompleteReadError and OSError for an end."""
    begins = await reader.readexactly(4)
    if begins == _FORBIDDEN[:4]:
        return {"as": "refused"}, b""
    size = int.from_bytes(begins, "big")
    if size > LARGEST_HEAD:
        raise ValueError("too large a head")
    text = await reader.readexactly(size)
    try:
        head = orjson.loads(text)
    except ValueError:
        head = json.loads(text)
    if not isinstance(head, dict) or not 0 <= head.get("size", -1) <= LARGEST_BODY:
        raise ValueError("not a message")
    return head, await reader.readexactly(head["size"]) if head["size"] else b""


# The side of the home


class Entrance:
    """Where the other processes reach this one, `home` by its id; `secret` is what they must know."""

    def __init__(self, bound: socket.socket, home: str, secret: bytes, here: Here, watchers: Watchers) -> None:
        self._bound = bound
        _keep_alive(bound, _SILENCE)  # what it accepts inherits that
        self._home = home
        self._secret = secret
        self._here = here
        self._watchers = watchers
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], StreamWriter] = {}
        self._answering: set[StreamWriter] = set()
        self._ending = False

    async def open(self) -> None:
        """Begin to accept connections."""
        self._server = await asyncio.start_server(self._serve, sock=self._bound)

    async def close(self, until: float = 0.0) -> None:
        """End all connections, once the requests in progress are answered, at the latest after ENDING or at `until`.

        They stay open for a moment: a request that was sent before the other process knew better hears `elsewhere`, and
        is sent to the new home. A connection that just ended would not say whether the request was carried out.
        """
        (self._server or self._bound).close()
        if self._connections:
            await asyncio.sleep(LINGERING)
        self._ending = True
        for writer in set(self._connections.values()) - self._answering:
            writer.close()
        if self._connections:
            await asyncio.wait(self._connections, timeout=max(ENDING, until - monotonic()))
        for task, writer in self._connections.items():
            writer.transport.abort()
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        try:
            given = await self._given(reader)
            if not hmac.compare_digest(given, self._secret):
                if given and not self._ending:
                    peer = writer.get_extra_info("peername")
                    logger.warning("an internal connection with a wrong secret came from %s", peer)
                _write(writer, _FORBIDDEN)
                return
            while not self._ending and await self._answer(reader, writer):
                self._answering.discard(writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # one of the sides has ended; a task that is cancelled would be logged as an error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            logger.warning("an internal connection sent something else than a request: %s", error)
        finally:
            del self._connections[task]
            self._answering.discard(writer)
            writer.close()

    async def _given(self, reader: StreamReader) -> bytes:
        """What a connection begins with, at most as much as the secret; empty if it is only tried."""
        given = b""
        with suppress(TimeoutError):
            async with asyncio.timeout(CONNECTING):
                while len(given) < len(self._secret) and (more := await reader.read(len(self._secret) - len(given))):
                    given += more
                    if not self._secret.startswith(given[:4]) and b"\r\n\r\n" in given:
                        break  # HTTP, which waits for an answer
        return given

    async def _answer(self, reader: StreamReader, writer: StreamWriter) -> bool:
        """Answer the next request; whether another one may follow."""
        head, body = await _receive(reader)
        self._answering.add(writer)
        if head["home"] != self._home:
            await _send(writer, {"as": "another"})
            return False
        names, values = zip(*head["headers"], strict=True) if head["headers"] else ((), ())
        fields = Fields(tuple(names), tuple(map(str.lower, names)), tuple(values))
        request = Request(head["method"], head["target"], fields, body, head["base"], peer=head["peer"])
        answer = await self._here(head["bank"], request)
        if answer is None:
            await _send(writer, {"as": "elsewhere"})
            return True
        shown = {"status": answer.status, "headers": answer.headers}
        if isinstance(answer, Stream):
            await _send(writer, {"as": "stream", **shown})
            await self._stream(answer, reader, writer)
            return False
        shown |= {"delay": answer.delivery.delay, "disconnect": answer.delivery.disconnect}
        if answer.parts is None:
            await _send(writer, {"as": "whole", **shown}, answer.body)
            return True
        await _send(writer, {"as": "parts", **shown, "parts": answer.parts.size}, answer.body)
        async for piece in answer.parts:
            await _send(writer, {}, piece)
            await asyncio.sleep(0)  # requests come between
        await _send(writer, {"last": True})
        return True

    async def _stream(self, stream: Stream, reader: StreamReader, writer: StreamWriter) -> None:
        """Pass events on until one of the sides ends."""
        ended = asyncio.get_running_loop().create_task(reader.read(1))

        def push(chunk: bytes | None) -> None:
            behind = writer.transport.get_write_buffer_size() > UNREAD
            if chunk is None or behind or writer.is_closing():
                ended.cancel()
            else:
                _write(writer, chunk)

        unsubscribe = stream.subscribe(push)
        self._watchers.add(ended.cancel)
        try:
            await asyncio.wait([ended])
        finally:
            unsubscribe()
            self._watchers.discard(ended.cancel)
            ended.cancel()


# The side of the process that the client has reached


class Ways:
    """The connections of a process to the others, by address; `is_home`: whether a bank has this home."""

    def __init__(self, secret: bytes, is_home: Callable[[str, str], Awaitable[bool]]) -> None:
        self._secret = secret
        self._is_home = is_home
        self._free: dict[str, list[tuple[StreamReader, StreamWriter]]] = {}

    def close(self) -> None:
        """Close what nobody uses."""
        for free in self._free.values():
            for _, writer in free:
                writer.close()
        self._free.clear()

    async def lead_to(self, address: str) -> bool:
        """Whether anything can be connected to at this address."""
        try:
            _, writer = await self._connection(address)
        except (OSError, TimeoutError, ValueError):
            return False
        writer.close()
        return True

    async def send(self, address: str, home: str, bank: str, request: Request) -> Response | Stream:
        """Pass a request on to the home of a bank; NotDelivered, Broken."""
        head = {
            "home": home,
            "bank": bank,
            "method": request.method,
            "target": request.target,
            "headers": list(request.headers),
            "base": request.base,
            "peer": request.peer,
        }
        try:
            reader, writer = await self._connection(address)
        except (OSError, TimeoutError, ValueError) as error:
            reason = f"the process at {address} cannot be reached: {error or 'no answer'}"
            raise NotDelivered(reason, moved=False) from error
        try:
            await _send(writer, head, request.body)
            answer, body = await self._sent(_receive(reader), writer, bank, home)
            kind = answer["as"]
            if kind in _NOT_DELIVERED:
                writer.close()
                raise NotDelivered(_NOT_DELIVERED[kind].format(address), moved=kind == "elsewhere")
            status, headers = answer["status"], [(name, value) for name, value in answer["headers"]]
            if kind == "stream":
                chunks = partial(self._chunks, reader, writer, bank, home)
                return Stream(status, headers, lambda push: _subscribed(chunks(push), writer))
            response = Response(status, headers, body, Delivery(answer["delay"], answer["disconnect"]))
            if kind == "parts":
                response.parts = BodyParts(answer["parts"], self._pieces(address, reader, writer, bank, home))
            else:
                self._release(address, reader, writer)
            return response
        except (OSError, asyncio.IncompleteReadError, ValueError, KeyError) as error:
            writer.close()
            raise Broken(f"the process at {address} has gone") from error
        except asyncio.CancelledError:  # the client has gone
            writer.close()
            raise

    async def _sent(self, reading: Awaitable[T], writer: StreamWriter, bank: str, home: str) -> T:
        """What a process sends next; its connection ends once it is not the home any more, as it may be stopped."""
        loop, watching = asyncio.get_running_loop(), list[asyncio.Task[None]]()
        timer = loop.call_later(LATE, lambda: watching.append(loop.create_task(self._cut(writer, bank, home))))
        try:
            return await reading
        finally:
            timer.cancel()
            for watch in watching:
                watch.cancel()

    async def _cut(self, writer: StreamWriter, bank: str, home: str) -> None:
        """End a connection once the bank has another home."""
        while not writer.is_closing():
            with suppress(StoreError):  # nobody can take the bank meanwhile
                if not await self._is_home(bank, home):
                    writer.transport.abort()
            await asyncio.sleep(LATE)

    async def _connection(self, address: str) -> tuple[StreamReader, StreamWriter]:
        free = self._free.get(address, [])
        while free:
            reader, writer = free.pop()
            if not (writer.is_closing() or reader.at_eof()):
                return reader, writer
            writer.close()
        host, _, port = address.rpartition(":")
        opening = asyncio.open_connection(host.strip("[]"), int(port), limit=1 << 20)
        reader, writer = await asyncio.wait_for(opening, CONNECTING)
        _write(writer, self._secret)
        _keep_alive(writer.get_extra_info("socket"), _SILENCE | _UNACKNOWLEDGED)
        return reader, writer

    def _release(self, address: str, reader: StreamReader, writer: StreamWriter) -> None:
        free = self._free.setdefault(address, [])
        if len(free) < IDLE:
            free.append((reader, writer))
        else:
            writer.close()

    async def _chunks(self, reader: StreamReader, writer: StreamWriter, bank: str, home: str, push: Push) -> None:
        """Pass a stream of events on to its end."""
        with suppress(OSError):
            while chunk := await self._sent(reader.read(1 << 16), writer, bank, home):
                push(chunk)
        push(None)

    async def _pieces(
        self, address: str, reader: StreamReader, writer: StreamWriter, bank: str, home: str
    ) -> AsyncIterator[bytes]:
        try:
            while True:
                head, piece = await self._sent(_receive(reader), writer, bank, home)
                if head.get("last"):
                    break
                yield piece
        except (asyncio.IncompleteReadError, ValueError) as error:
            writer.close()
            raise ConnectionResetError("the home of the bank has gone") from error
        except BaseException:
            writer.close()
            raise
        self._release(address, reader, writer)


def _subscribed(chunks: Coroutine[Any, Any, None], writer: StreamWriter) -> Unsubscribe:
    reading = asyncio.get_running_loop().create_task(chunks)

    def unsubscribe() -> None:
        reading.cancel()
        writer.close()

    return unsubscribe
