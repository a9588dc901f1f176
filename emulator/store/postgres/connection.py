"""The PostgreSQL behind a URL: a few connections, on which every wait is limited; and why it cannot be used.

Each statement is a transaction of its own. So nothing outlives it: a process that is stopped between two statements
holds no lock, and pgbouncer in transaction mode may stand between. What takes long (a bank as a whole, a checkpoint)
leaves one connection to what must not wait (leases and commits), as long as there is more than one.

An error is one line with the cause and a remedy. That of a statement has a SQLSTATE; one of connecting has only the
server's text, which may be in its own language: where that is not recognized, the advice is the general one.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from os import dup
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, BaseConnection, Connection
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from emulator.store.errors import StoreShared, StoreUncertain, StoreUnwritable

T = TypeVar("T")

logger = logging.getLogger(__name__)

CONNECTING = 3  # seconds
ANSWERING = 6.0  # seconds for a statement
LOADING = 120.0  # seconds for a bank as a whole


class StoreUnreachable(StoreShared):
    """The server does not answer, or does not do what is asked, at the moment."""


class StoreUnusable(StoreShared):
    """The server answers, and the store cannot be used as it was named: one line with a remedy (exit status 2)."""


class StoreLayoutNewer(StoreShared):
    """The tables were made by a later version of this program (exit status 3)."""

    unreadable = True


class StoredDataDamaged(StoreShared):
    """`what` the tables hold cannot be read, for this `reason` (exit status 3)."""

    unreadable = True

    def __init__(self, what: str, reason: object) -> None:
        super().__init__(f"{what} is damaged: {reason}: restore the tables from a backup of PostgreSQL")
        self.problem = f"{what} is damaged: {reason}"


class OutcomeUnknown(StoreUnreachable):
    """The connection was lost after a statement was sent: it may have been executed or not, or may still be."""


_ADVICE: tuple[tuple[frozenset[str], tuple[str, ...], str], ...] = (
    (
        frozenset({"42501"}),
        (),
        "give the user all rights on schema {schema} and its tables, or the right to create the schema",
    ),
    (frozenset({"25006"}), ("read-only",), "name the primary, a server that takes writes"),
    (frozenset({"53100"}), (), "make room on the server"),
    (frozenset({"57P03"}), ("the database system is",), "try again when PostgreSQL has started"),
    (
        frozenset({"53300"}),
        ("too many", "connection slots"),
        "raise the limit of connections, end others, or lower --store-connections",
    ),
    (frozenset({"42P01", "42703", "42883"}), (), "the tables in schema {schema} were changed: restore them"),
    (frozenset(), ("timestamp too",), "a time in schema {schema} is damaged: restore it"),
    (frozenset(), ("SSL", "certificate"), "check sslmode in the address"),
    (frozenset(), ("resolve",), "check host and port in the address"),
    (frozenset(), ("invalid",), "check the address"),
    (frozenset({"28P01", "28000"}), ("password", "authentication", "role"), "check user and password"),
    (frozenset({"3D000"}), ("database",), "create the database, or name another one"),
)
"""SQLSTATEs, pieces of a text without one, and what helps; the first that fits."""

_GENERAL = "check that PostgreSQL runs and can be reached from here"


def line_of(error: BaseException) -> str:
    """The first line of what psycopg says."""
    return " ".join(str(error).partition("\n")[0].split())


def _advised(error: psycopg.Error, schema: str) -> str:
    line = line_of(error)
    # the address of the server, which is the user's own, must not be mistaken for a reason
    reason = line.rpartition("failed: ")[2]
    for states, pieces, advice in _ADVICE:
        if error.sqlstate in states if error.sqlstate is not None else any(piece in reason for piece in pieces):
            return f"{line}: {advice.format(schema=schema)}"
    return f"{line}: {_GENERAL}"


def unusable(error: psycopg.Error, schema: str) -> StoreUnusable:
    """Why a start or a command cannot use the store."""
    if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
        cause = re.sub(r'"[^"]*[^"\w][^"]*"', "...", line_of(error))  # what is quoted may hold the password
        return StoreUnusable(f"this is no address of a PostgreSQL ({cause}): postgresql://user:password@host/database")
    return StoreUnusable(_advised(error, schema))


def unreachable(error: psycopg.Error, schema: str) -> StoreUnreachable:
    """Why a turn cannot use the store."""
    return StoreUnreachable(f"PostgreSQL: {_advised(error, schema)}")


def unwritable(error: StoreUnreachable) -> StoreUnwritable:
    """What the answer to a request becomes whose statement has failed."""
    if isinstance(error, OutcomeUnknown):
        return StoreUncertain(f"nobody knows whether it was stored: {error}")
    return StoreUnwritable(str(error))


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


class StoreSession:
    """One connection, for a start or a command; psycopg.Error."""

    def __init__(self, connection: Connection[TupleRow], schema: str) -> None:
        self.connection = connection
        self.schema = schema

    def rows(self, statement: str, *values: Any) -> list[TupleRow]:
        """The rows of a statement, in which `{schema}` stands for the schema."""
        sql = statement.replace("{schema}", f'"{self.schema}"')
        cursor = self.connection.execute(sql, values, binary=True)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def session(url: str, schema: str) -> Iterator[StoreSession]:
    """A `with` block with a connection; psycopg.Error."""
    with psycopg.connect(url, autocommit=True, **options(url, schema)) as connection:
        yield StoreSession(connection, schema)


class Server:
    """At most `connections` to the server; `schema` is a plain name. For one event loop at a time (`open`)."""

    def __init__(self, url: str, schema: str, connections: int = 2) -> None:
        self.url = url
        self.schema = schema
        self._free: list[AsyncConnection[TupleRow]] = []
        self._connections = connections
        self._sql: dict[str, str] = {}
        self._in_use: set[AsyncConnection[TupleRow]] = set()
        self._cut = self.closed = False
        self._narrow = False  # there are fewer connections than `connections`, which was logged
        self._answered = self._unanswered = 0  # statements, and attempts to connect
        logging.getLogger("psycopg").setLevel(logging.ERROR)  # a lost connection is logged where it matters

    async def rows(
        self, statement: str, *values: Any, within: float = ANSWERING, again: bool = True, urgent: bool = False
    ) -> list[Any]:
        """The rows of a statement, in which `{schema}` stands for the schema.

        `urgent`: it does not wait for others that take long, whatever it takes itself.
        `again`: it does no harm twice, and is sent once more if a connection that nobody used meanwhile was broken.
        Whoever waits for a connection while the server answers nobody fails with the first: they would take turns.
        StoreUnreachable: it had no effect; OutcomeUnknown: nobody knows.
        """
        if (sql := self._sql.get(statement)) is None:
            sql = self._sql[statement] = statement.replace("{schema}", f'"{self.schema}"')
        answered, unanswered = self._answered, self._unanswered
        async with nullcontext() if urgent or within <= ANSWERING else self._long, self._places:
            if self._unanswered > unanswered and self._answered == answered:
                raise StoreUnreachable("PostgreSQL does not answer")
            used, connection = bool(self._free), await self._connection()
            try:
                return await self._executed(within, connection, sql, values)
            except OutcomeUnknown:
                if not (used and again):
                    raise
            connection = await self._connection(new=True)
            return await self._executed(within, connection, sql, values)

    async def _connection(self, *, new: bool = False) -> AsyncConnection[TupleRow]:
        if self._cut:
            raise StoreUnreachable("this process is ending")
        while self._free and not new:
            connection = self._free.pop()
            if not connection.closed:
                return connection
        try:
            connecting = AsyncConnection.connect(self.url, autocommit=True, **options(self.url, self.schema))
            return await asyncio.wait_for(connecting, CONNECTING + 1)
        except TimeoutError as error:
            self._unanswered += 1
            raise StoreUnreachable(f"PostgreSQL has not answered within {CONNECTING + 1} seconds") from error
        except psycopg.Error as error:
            silent = isinstance(error, psycopg.errors.ConnectionTimeout)
            self._unanswered += silent
            failure = unreachable(error, self.schema)
            if new or silent or not (self._free or self._in_use):
                raise failure from error
            if not self._narrow:
                logger.warning("%s; this process goes on with those that it has", failure)
            self._narrow = True
        async with self._places:  # when another one has ended
            return await self._connection()

    async def _executed(self, within: float, connection: AsyncConnection[TupleRow], sql: str, values: Any) -> list[Any]:
        """The rows of a statement on a connection, which is free again after it, or closed."""
        late = False

        def cut() -> None:
            nonlocal late
            late = True
            self._unanswered += 1
            hang_up(connection)

        timer = asyncio.get_running_loop().call_later(within, cut)
        self._in_use.add(connection)
        try:
            cursor = await connection.execute(sql, values, binary=True)
            rows = await cursor.fetchall() if cursor.description else []
            self._answered += 1
        except psycopg.Error as error:
            if late or connection.closed or error.sqlstate is None or error.sqlstate[:2] in _LOST:
                hang_up(connection)
                await connection.close()
                reason = f"PostgreSQL has not answered within {within:g} seconds" if late else None
                raise OutcomeUnknown(reason or str(unreachable(error, self.schema))) from error
            self._answered += 1
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
        return asyncio.run_coroutine_threadsafe(work, self._loop)

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

    def open(self) -> None:
        """From now on keep connections open, in the running event loop."""
        self.closed = False
        self._loop = asyncio.get_running_loop()
        # once somebody has waited for a semaphore, it belongs to the loop of that time
        self._places = asyncio.Semaphore(self._connections)
        self._long = asyncio.Semaphore(max(1, self._connections - 1))


_LOST = frozenset({"08", "57", "58", "XX"})  # classes of errors of the connection or the server


def hang_up(connection: BaseConnection[Any]) -> None:
    """Cut a connection whose server does not answer, so that whoever waits for it fails at once."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=dup(connection.fileno())) as own:
        own.shutdown(socket.SHUT_RDWR)
