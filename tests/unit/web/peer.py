"""A client without a socket: the transport of one connection, and what it was sent."""

from __future__ import annotations

import asyncio
import re

from emulator.settings import ServeSettings
from emulator.web.connection import Connection, Connections
from emulator.web.handler import Handler
from emulator.web.wire import Base, Limits
from tests.e2e.serving import PATIENCE, MadeUpSite

ROUNDS = 1000  # of the loop, by which everything is answered


class Peer(asyncio.Transport):
    """The other end of one of the connections."""

    def __init__(self, connections: Connections) -> None:
        super().__init__()
        self.got = b""
        self.closed = False
        self.no_more = False
        self._ended = asyncio.Event()
        self.connection = Connection(connections, Base("http", 1, ServeSettings()))
        self.connection.connection_made(self)

    def ask(self, *targets: str, more: str = "") -> None:
        requests = [f"GET {target} HTTP/1.1\r\nHost: x\r\n{more}\r\n" for target in targets]
        self.connection.data_received("".join(requests).encode())

    @property
    def statuses(self) -> list[int]:
        """Those of the answers so far, without 100."""
        return [int(status) for status in re.findall(r"HTTP/1\.1 ([2-5]\d\d) ", self.got.decode("latin-1"))]

    @property
    def last(self) -> str:
        return self.got.decode("latin-1").rpartition("\r\n\r\n")[2]

    async def answered(self, number: int) -> list[int]:
        """The statuses as soon as there are `number`, or when nothing more comes."""
        for _ in range(ROUNDS):
            if len(self.statuses) >= number:
                break
            await asyncio.sleep(0)
        return self.statuses

    async def until_closed(self) -> None:
        """Wait until the server has closed the connection."""
        await asyncio.wait_for(self._ended.wait(), PATIENCE)

    def leave(self) -> None:
        """Close the connection, as a client does."""
        self.close()

    # What the server calls

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.got += bytes(data)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.no_more = True

    def is_closing(self) -> bool:
        return self.closed

    def resume_reading(self) -> None:
        """Nothing is held back."""

    def pause_reading(self) -> None:
        """Nothing can be held back."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._ended.set()
            asyncio.get_running_loop().call_soon(self.connection.connection_lost, None)

    def abort(self) -> None:
        self.close()


def connections_of(application: MadeUpSite, limits: Limits | None = None) -> Connections:
    return Connections(Handler(application), limits or Limits())


async def turn() -> None:
    """Let the loop go round until the requests that have come are answered."""
    for _ in range(40):
        await asyncio.sleep(0)
