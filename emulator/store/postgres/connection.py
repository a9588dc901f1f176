"""The PostgreSQL behind a URL: a few connections, on which every wait is limited.

Each statement is a transaction of its own. So nothing outlives it: a process that is stopped between two statements
holds no lock, and pgbouncer in transaction mode may stand between. What takes long (a bank as a whole, a checkpoint)
leaves one connection to what must not wait (leases and commits), as long as there is more than one.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager, nullcontext, suppress
from os import dup
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, BaseConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from emulator.store.errors import StoreUncertain, StoreUnwritable
from emulator.store.postgres.errors import StoreUnreachable, unreachable

T = TypeVar("T")

CONNECTING = 3  # seconds
ANSWERING = 6.0  # seconds for a statement
LOADING = 120.0  # seconds for a bank as a whole


def application_name(url: str, schema: str) -> str:
    """The name that every connection to these tables has in `pg_stat_activity`, where `state copy` looks for it."""
    return str(conninfo_to_dict(url).get("application_name") or f"bank-emulator {schema}")


def options(url: str, schema: str) -> dict[str, Any]:
    """How every connection to these tables is made, as far as the URL does not say."""
    asked = conninfo_to_dict(url)
    defaults: dict[str, Any] = {
        "connect_timeout": CONNECTING,
        "application_name": application_name(url, schema),
        "target_session_attrs": "read-write",
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
    }
    given = {name: value for name, value in defaults.items() if name not in asked}
    return {**given, "client_encoding": "utf8", "prepare_threshold": None}


class OutcomeUnknown(StoreUnreachable):
    """The connection was lost after a statement was sent: it may have been executed or not, or may still be."""


def unwritable(error: StoreUnreachable, *, again: bool = False) -> StoreUnwritable:
    """What the answer to a request becomes whose statement has failed; `again`: it does no harm twice."""
    if isinstance(error, OutcomeUnknown) and not again:
        return StoreUncertain(f"nobody knows whether it was stored: {error}")
    return StoreUnwritable(str(error))


class Server:
    """At most `connections` to the server; `schema` is a plain name. For one event loop at a time."""

    def __init__(self, url: str, schema: str, connections: int = 2) -> None:
        self.url = url
        self.schema = schema
        self._free: list[AsyncConnection[TupleRow]] = []
        self._connections = connections
        self._limit()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sql: dict[str, str] = {}
        self._in_use: set[AsyncConnection[TupleRow]] = set()
        self._cut = self.closed = False
        logging.getLogger("psycopg").setLevel(logging.ERROR)  # a lost connection is logged where it matters

    async def rows(self, statement: str, *values: Any, within: float = ANSWERING, again: bool = True) -> list[Any]:
        """The rows of a statement, in which `{schema}` stands for the schema.

        `again`: it does no harm twice, and is sent once more if a connection that nobody used meanwhile was broken.
        StoreUnreachable: it had no effect; OutcomeUnknown: nobody knows.
        """
        if (sql := self._sql.get(statement)) is None:
            sql = self._sql[statement] = statement.replace("{schema}", f'"{self.schema}"')
        async with self._long if within > ANSWERING else nullcontext(), self._places:
            used, connection = bool(self._free), await self._connection()
            try:
                return await self._executed(within, connection, sql, values)
            except OutcomeUnknown:
                if not (used and again):
                    raise
            connection = await self._connection(new=True)
            return await self._executed(within, connection, sql, values)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[TupleRow]]:
        """A connection of its own, for a start; psycopg.Error."""
        async with self._places, await self._connect() as connection:
            yield connection

    async def _connection(self, *, new: bool = False) -> AsyncConnection[TupleRow]:
        self._loop = asyncio.get_running_loop()
        if self._cut:
            raise StoreUnreachable("this process is ending")
        while self._free and not new:
            connection = self._free.pop()
            if not connection.closed:
                return connection
        try:
            return await asyncio.wait_for(self._connect(), CONNECTING + 1)
        except TimeoutError as error:
            raise StoreUnreachable(f"PostgreSQL has not answered within {CONNECTING + 1} seconds") from error
        except psycopg.Error as error:
            raise unreachable(error, self.schema) from error

    async def _connect(self) -> AsyncConnection[TupleRow]:
        return await AsyncConnection.connect(self.url, autocommit=True, **options(self.url, self.schema))

    async def _executed(self, within: float, connection: AsyncConnection[TupleRow], sql: str, values: Any) -> list[Any]:
        """The rows of a statement on a connection, which is free again after it, or closed."""
        late = False

        def cut() -> None:
            nonlocal late
            late = True
            hang_up(connection)

        timer = asyncio.get_running_loop().call_later(within, cut)
        self._in_use.add(connection)
        try:
            cursor = await connection.execute(sql, values, binary=True)
            rows = await cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            if late or connection.closed or error.sqlstate is None or error.sqlstate[:2] in _LOST:
                hang_up(connection)
                await connection.close()
                reason = f"PostgreSQL has not answered within {within:g} seconds" if late else None
                raise OutcomeUnknown(reason or str(unreachable(error, self.schema))) from error
            self._free.append(connection)
            raise unreachable(error, self.schema) from error
        except BaseException:
            hang_up(connection)
            raise
        finally:
            timer.cancel()
            self._in_use.discard(connection)
        if self.closed:
            await connection.close()
        else:
            self._free.append(connection)
        return rows

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Do `work` in the event loop, for another thread."""
        if self._loop is None:
            raise RuntimeError("there was no event loop yet")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def rows_in_thread(self, statement: str, *values: Any, again: bool = True) -> list[Any]:
        """`rows` of a long statement, for another thread than that of the event loop.

        StoreUnwritable: it had no effect; StoreUncertain: nobody knows, and it would do harm `again`.
        """
        try:
            return self.submit(self.rows(statement, *values, within=LOADING, again=again)).result()
        except StoreUnreachable as error:
            raise unwritable(error, again=again) from error

    def cut(self) -> None:
        """End what goes on, as the process ends. Cancelling it would take as long as the server does not answer."""
        self._cut = True
        for connection in self._in_use:
            hang_up(connection)

    async def close(self) -> None:
        """Close the connections; those in use are closed after it."""
        self.closed = True
        while self._free:
            with suppress(psycopg.Error):
                await self._free.pop().close()

    def _limit(self) -> None:
        self._places = asyncio.Semaphore(self._connections)
        self._long = asyncio.Semaphore(max(1, self._connections - 1))

    def open(self) -> None:
        """From now on keep connections open, in the running event loop."""
        self.closed = False
        self._limit()  # once somebody has waited for a semaphore, it belongs to the loop of that time
        self._loop = asyncio.get_running_loop()


_LOST = frozenset({"08", "57", "58", "XX"})  # classes of errors of the connection or the server


def hang_up(connection: BaseConnection[Any]) -> None:
    """Cut a connection whose server does not answer, so that whoever waits for it fails at once."""
    if not connection.closed:
        with suppress(OSError, psycopg.Error), socket.socket(fileno=dup(connection.fileno())) as own:
            own.shutdown(socket.SHUT_RDWR)
