"""One connection to the database, on which every wait is limited.

A server that does not answer costs the turn, not the process.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from os import dup
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, BaseConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from emulator.store.postgres.errors import StoreUnreachable, unreachable

T = TypeVar("T")

CONNECTING = 3  # seconds
ANSWERING = 6.0  # seconds for what a turn asks


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


class DatabaseConnection:
    """A connection to the server behind a URL, made when it is needed, for one event loop; `schema` is a plain name."""

    def __init__(self, url: str, schema: str) -> None:
        self._url = url
        self._schema = schema
        self._connection: AsyncConnection[TupleRow] | None = None
        self._sql: dict[str, str] = {}
        logging.getLogger("psycopg").setLevel(logging.ERROR)  # a lost connection is logged where it matters

    async def _connected(self) -> AsyncConnection[TupleRow]:
        connection = self._connection
        if connection is None or connection.closed:
            connection = self._connection = await self.connect()
        return connection

    async def connect(self) -> AsyncConnection[TupleRow]:
        """A new connection; psycopg.Error."""
        return await AsyncConnection.connect(self._url, autocommit=True, **options(self._url, self._schema))

    async def close(self) -> None:
        """Close the connection; what was not committed is undone."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                await connection.close()

    async def _within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`; after the timeout the connection is dropped. StoreUnreachable, psycopg.Error."""
        task = asyncio.ensure_future(work)
        done, _ = await asyncio.wait((task,), timeout=seconds)
        if not done:
            hang_up(self._connection)
            done, _ = await asyncio.wait((task,), timeout=CONNECTING + 1)
            if not done:
                task.cancel()
            self._connection = None
            with suppress(psycopg.Error, asyncio.CancelledError):
                await task
            raise StoreUnreachable(f"PostgreSQL has not answered within {seconds:g} seconds")
        return task.result()

    async def _first(self, seconds: float, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the first work of a turn, over a new connection if the last one broke; StoreUnreachable."""
        known = self._connection
        try:
            return await self._within(seconds, work())
        except psycopg.Error as error:
            await self.end()
            if known is None:
                raise unreachable(error, self._schema) from error
            # one that broke while it was not in use has done nothing
            self._connection = None
            hang_up(known)
        try:
            return await self._within(seconds, work())
        except psycopg.Error as error:
            await self.end()
            raise unreachable(error, self._schema) from error

    async def _rows(self, statement: str, values: Sequence[Any]) -> list[Any]:
        connection = await self._connected()
        return await (await connection.execute(self._in_schema(statement), values, binary=True)).fetchall()

    async def _asked(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await self._within(seconds, work)
        except psycopg.Error as error:
            raise unreachable(error, self._schema) from error

    async def end(self) -> None:
        """Roll back; a connection that cannot is dropped."""
        connection = self._connection
        if connection is None or connection.closed:
            self._connection = None
        elif connection.info.transaction_status != TransactionStatus.IDLE:
            try:
                await self._within(ANSWERING, _rollback(connection))
            except (psycopg.Error, StoreUnreachable):
                self._connection = None
                hang_up(connection)

    def _in_schema(self, statement: str) -> str:
        text = self._sql.get(statement)
        if text is None:
            text = self._sql[statement] = statement.replace("{schema}", f'"{self._schema}"')
        return text


async def _rollback(connection: AsyncConnection[TupleRow]) -> None:
    await connection.execute("ROLLBACK")


def hang_up(connection: BaseConnection[Any] | None) -> None:
    """Close a connection whose server does not answer, so that its waiters fail at once."""
    if connection is None or connection.closed:
        return
    with suppress(OSError, psycopg.Error), socket.socket(fileno=dup(connection.fileno())) as own:
        own.shutdown(socket.SHUT_RDWR)
