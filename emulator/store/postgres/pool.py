"""The connections of one process to the store: each serves one turn at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from secrets import randbelow
from threading import Timer
from time import time_ns
from typing import Any
from uuid import uuid4

import psycopg

from emulator.store.errors import StoreUnwritable
from emulator.store.postgres.connection import hang_up, options
from emulator.store.postgres.database import PART, Database
from emulator.store.postgres.errors import unreachable
from emulator.store.postgres.statements import (
    BUSY,
    CHECKPOINT_PART,
    DROP_STAGED,
    DROP_STAGED_CONTENTS,
    LIMITS_BUSY,
    SAVE_SNAPSHOT,
)

CONNECTIONS = 8  # at most; turns of more banks than that wait for each other
_RANDOM = 10  # bits of the name of a staged content; the others are its time
_STAYS = 24 * 3600 * 1_000_000  # microseconds after which a staged content is of a process that has ended since


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
        """A `with` block with the store over a connection of its own; the one used last is taken first."""
        async with self._places:
            database = self._unused.pop() if self._unused else Database(self._url, self._schema)
            try:
                yield database
            finally:
                if self._closed:
                    await database.close()
                else:
                    self._unused.append(database)

    def stage_snapshot(self, bank: str, content: bytes) -> str:
        """Store the content of a snapshot under a name that no list shows, until a turn gives it its own: that name.

        Over a connection of its own, for a thread. StoreUnwritable.
        """
        name = f".{uuid4().hex}"
        with self._staging() as execute:
            execute(DROP_STAGED, [])
            execute(SAVE_SNAPSHOT, [bank, name, datetime.now(UTC), content])
        return name

    def stage_content(self, bank: str, content: bytes) -> str:
        """Store a whole content of a bank as its checkpoint-to-be, until a turn places it: the name for that turn.

        Over a connection of its own, for a thread. StoreUnwritable.
        """
        now = time_ns() // 1000
        name = -(now << _RANDOM) - randbelow(1 << _RANDOM)
        with self._staging() as execute:
            execute(DROP_STAGED_CONTENTS, [-((now - _STAYS) << _RANDOM)])
            for part, at in enumerate(range(0, len(content), PART)):
                execute(CHECKPOINT_PART, [bank, name, part, content[at : at + PART]])
        return str(name)

    @contextmanager
    def _staging(self) -> Iterator[Callable[[str, Sequence[Any]], object]]:
        """What executes statements in a transaction of its own, which may take long; StoreUnwritable.

        A server that does not answer any more is given up, as by a turn: the request would wait for ever.
        """
        schema = f'"{self._schema}"'
        try:
            with psycopg.connect(self._url, **options(self._url, self._schema)) as connection, _given_up(connection):
                connection.execute(LIMITS_BUSY)
                yield lambda text, row: connection.execute(text.replace("{schema}", schema), row, binary=True)
                connection.commit()
        except psycopg.Error as error:
            raise StoreUnwritable(str(unreachable(error, self._schema))) from error

    def open(self) -> None:
        """From now on keep connections open, in the running event loop."""
        self._closed = False

    async def close(self) -> None:
        """Close the connections; those in use are closed after it."""
        self._closed = True
        while self._unused:
            await self._unused.pop().close()


@contextmanager
def _given_up(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """A `with` block that the connection does not survive for longer than a large commit may take."""
    limit = Timer(BUSY, hang_up, [connection])
    limit.daemon = True
    limit.start()
    try:
        yield
    finally:
        limit.cancel()
