"""The connections of one process to the store: each serves one turn at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from emulator.store.postgres.database import Database

CONNECTIONS = 8  # at most; turns of more banks than that wait for each other


class Pool:
    """Connections to the store behind a URL, made when they are needed; for one event loop at a time."""

    def __init__(self, url: str, schema: str) -> None:
        self._url = url
        self._schema = schema
        self._places = asyncio.Semaphore(CONNECTIONS)
        self._unused: list[Database] = []
        self._closed = False

    @asynccontextmanager
    async def database(self) -> AsyncIterator[Database]:
        """The store over a connection that nobody else uses meanwhile; the one used last is taken first."""
        async with self._places:
            database = self._unused.pop() if self._unused else Database(self._url, self._schema)
            try:
                yield database
            finally:
                if self._closed:
                    await database.close()
                else:
                    self._unused.append(database)

    def open(self) -> None:
        """Keep connections from now on, in the running event loop."""
        self._closed = False

    async def close(self) -> None:
        """Close the connections; those in use are closed after it."""
        self._closed = True
        while self._unused:
            await self._unused.pop().close()
