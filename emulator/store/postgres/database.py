"""All SQL of turns, and the connections: what a turn reads and locks when it begins, and writes when it ends.

One connection serves one turn at a time (see `pool.py`); a checkpoint is written over one of its own. Every wait has an
end: a server that does not answer costs the turn, not the process.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from os import dup
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from emulator.store.postgres import layout
from emulator.store.postgres.errors import StoreUnreachable, line_of, unreachable, unusable
from emulator.store.postgres.parts import Parts

T = TypeVar("T")

SERVICE = ""  # the row of `bank` that stands for the service as a whole
CONNECTING = 3  # seconds
ANSWERING = 6.0  # seconds for what a turn asks
LOADING = 120.0  # seconds for a bank as a whole
IDLE = 2.0  # seconds between two steps of a turn, after which the server ends it: a stopped process holds nobody up
BUSY = 120.0  # the same of a turn that is known to work for long, or whose commit is large
LARGE = 8 << 20  # bytes of such a commit
PART = 1 << 20  # bytes of a checkpoint in one row
TAIL_KEPT = 1000  # changes before a checkpoint that stay, so that others need not load it


class Position(NamedTuple):
    """How far this process is with a bank: its incarnation, its last change and the counters that it has."""

    incarnation: int
    sequence: int
    turn: UUID
    counted: int


NOWHERE = Position(-1, 1 << 62, UUID(int=0), -1)
"""Of a bank that this process does not have: its tail is not read."""


class Tail(NamedTuple):
    """A change that another process has appended."""

    sequence: int
    turn: UUID
    body: bytes
    events: bytes | None


@dataclass(slots=True)
class Head:
    """A bank as the database has it; `counts` None: the process has them; `tail`: the changes after its position.

    `follows`: the change at the position is the one that the process knows, so that the tail goes on from there.
    """

    name: str
    position: Position
    checkpoint: int
    written: int
    counts: bytes | None
    follows: bool = False
    tail: list[Tail] = field(default_factory=list)


class Transaction(NamedTuple):
    """What a turn begins with."""

    heads: dict[str, Head]
    numbers: list[int]


class Content(NamedTuple):
    """A whole bank: its snapshot as of `head.checkpoint`, if there is one, and all changes after it."""

    head: Head
    snapshot: Parts | None
    counts: bytes


class Appended(NamedTuple):
    """What a turn has changed in a bank: body and events of each change, from `first` on, and how it stands now."""

    name: str
    first: int
    changes: Sequence[tuple[bytes, bytes | None]]
    written: int
    counts: bytes | None
    limit: int = 1 << 62  # bytes of changes for a checkpoint

    @property
    def size(self) -> int:
        return sum(len(body) for body, _ in self.changes)


class StoredExchange(NamedTuple):
    """An exchange of the request log of a bank."""

    bank: str
    incarnation: int
    id: int
    body: bytes


@dataclass(slots=True)
class Work:
    """All that a turn writes."""

    turn: UUID
    new_banks: list[tuple[str, int]] = field(default_factory=list)  # banks: name, incarnation
    deleted: list[str] = field(default_factory=list)
    appended: list[Appended] = field(default_factory=list)
    cleared: list[str] = field(default_factory=list)  # banks whose request log is emptied
    exchanges: list[StoredExchange] = field(default_factory=list)
    snapshots: list[tuple[str, str, datetime, bytes | None]] = field(default_factory=list)  # None: deleted
    secrets: list[tuple[str, str, int, bytes]] = field(default_factory=list)

    @property
    def is_large(self) -> bool:
        """Whether writing it may take long."""
        snapshots = sum(len(image) for _, _, _, image in self.snapshots if image is not None)
        return snapshots + sum(appended.size for appended in self.appended) > LARGE

    @property
    def needs_lock(self) -> bool:
        """Whether it may only be written by who has the heads locked."""
        return bool(self.new_banks or self.deleted or self.appended or self.cleared or self.snapshots or self.secrets)


class Outcome(Enum):
    """What became of a commit whose answer did not arrive."""

    WRITTEN = "written"
    LOST = "lost"
    UNKNOWN = "unknown"


class Database:
    """The store behind a URL over one connection, for one event loop; `schema` is a plain name."""

    def __init__(self, url: str, schema: str) -> None:
        self._url = url
        self._schema = schema
        self._connection: AsyncConnection[TupleRow] | None = None
        self._sql: dict[str, str] = {}
        logging.getLogger("psycopg").setLevel(logging.ERROR)  # a lost connection is logged where it matters

    # Connections

    async def prepare(self) -> None:
        """Connect, and make or migrate the tables; StoreUnusable, StoreLayoutNewer."""
        try:
            await layout.prepare(await self._connected(), self._schema)
        except psycopg.Error as error:
            raise unusable(error, self._schema) from error

    async def verify(self) -> None:
        """Connect, and see that the tables are those of this version, changing nothing; as `prepare`."""
        try:
            await layout.verify(await self._connected(), self._schema)
        except psycopg.Error as error:
            raise unusable(error, self._schema) from error

    async def _connected(self) -> AsyncConnection[TupleRow]:
        connection = self._connection
        if connection is None or connection.closed:
            connection = self._connection = await self.connect()
        return connection

    async def connect(self) -> AsyncConnection[TupleRow]:
        """A new connection; psycopg.Error."""
        asked = conninfo_to_dict(self._url)
        defaults: dict[str, Any] = {
            "connect_timeout": CONNECTING,
            "application_name": "bank-emulator",
            "target_session_attrs": "read-write",
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
        }
        return await AsyncConnection.connect(
            self._url,
            autocommit=True,
            prepare_threshold=None,
            **{name: value for name, value in defaults.items() if name not in asked},
        )

    async def close(self) -> None:
        """Close the connection; what was not committed is undone."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                await connection.close()

    async def _within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives; a server that takes longer has lost the connection. StoreUnreachable, psycopg.Error."""
        task = asyncio.ensure_future(work)
        done, _ = await asyncio.wait((task,), timeout=seconds)
        if not done:
            _hang_up(self._connection)
            done, _ = await asyncio.wait((task,), timeout=CONNECTING + 1)
            if not done:
                task.cancel()
            self._connection = None
            with suppress(psycopg.Error, asyncio.CancelledError):
                await task
            raise StoreUnreachable(f"PostgreSQL has not answered within {seconds:g} seconds")
        return task.result()

    def _in_schema(self, statement: str) -> str:
        text = self._sql.get(statement)
        if text is None:
            text = self._sql[statement] = statement.replace("{schema}", f'"{self._schema}"')
        return text

    # The begin of a turn

    async def begin(
        self, positions: Mapping[str, Position], *, lock: Iterable[str] = (), numbers: int = 0, busy: bool = False
    ) -> Transaction:
        """The heads of these banks with their tails, and so many numbers for exchanges; to those that are to `lock`
        nobody else may append until `commit` or `end`, which may take long where the turn is `busy`.

        StoreUnreachable, and then nothing is locked.
        """
        within = BUSY if busy else ANSWERING
        return await self._first(within, lambda: self._begin(positions, sorted(lock), numbers, busy))

    async def _first(self, seconds: float, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the first work of a turn gives, over a new connection where the last one broke; StoreUnreachable."""
        known = self._connection
        try:
            return await self._within(seconds, work())
        except psycopg.Error as error:
            await self.end()
            if known is None:
                raise unreachable(error, self._schema) from error
            # one that broke while nobody used it has done nothing
            self._connection = None
            _hang_up(known)
        try:
            return await self._within(seconds, work())
        except psycopg.Error as error:
            await self.end()
            raise unreachable(error, self._schema) from error

    async def _begin(self, positions: Mapping[str, Position], lock: list[str], numbers: int, busy: bool) -> Transaction:
        connection = await self._connected()
        names = sorted(positions)
        asked = [positions[name] for name in names]
        async with connection.pipeline():
            if lock:
                await connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
                await connection.execute(_LIMITS_BUSY if busy else _LIMITS)
                await connection.execute(self._in_schema(_LOCK), [lock])
            cursor = await connection.execute(
                self._in_schema(_HEADS),
                [
                    names,
                    [position.incarnation for position in asked],
                    [position.sequence for position in asked],
                    [position.counted for position in asked],
                ],
                binary=True,
            )
            drawn = await connection.execute(self._in_schema(_NUMBERS), [numbers]) if numbers else None
        heads: dict[str, Head] = {}
        for row in await cursor.fetchall():
            name = row[0]
            head = heads.get(name)
            if head is None:
                position = Position(row[1], row[2], row[3], row[6])
                head = heads[name] = Head(name, position, row[4], row[5], row[7])
            if row[8] is None:
                continue
            if row[8] == positions[name].sequence:
                head.follows = row[9] == positions[name].turn
            else:
                head.tail.append(Tail(row[8], row[9], row[10], row[11]))
        for name, head in heads.items():
            # a bank without a change has no row to compare
            head.follows = head.follows or positions[name][:3] == head.position[:3]
        return Transaction(heads, [row[0] for row in await drawn.fetchall()] if drawn is not None else [])

    # A turn that only reads

    async def read(
        self, positions: Mapping[str, Position], exchanges: Sequence[StoredExchange]
    ) -> Sequence[int] | None:
        """Store the exchanges of a turn that has only read, if these banks are still at these positions: the numbers
        of the exchanges, in this order; None where a bank has moved on, and then nothing is stored.

        StoreUnreachable. Exchanges whose connection is lost as they are stored may be stored twice.
        """
        names = list(positions)
        values = [
            names,
            *map(list, zip(*(position for position in positions.values()), strict=True)),
            [exchange.bank for exchange in exchanges],
            [exchange.body for exchange in exchanges],
        ]
        [(current, numbers)] = await self._first(ANSWERING, lambda: self._rows(_READ, values))
        return numbers if current else None

    # What a turn reads besides

    async def banks(self) -> dict[str, int]:
        """Name and incarnation of every bank."""
        rows = await self._read("SELECT name, incarnation FROM {schema}.bank WHERE name <> ''")
        return dict(rows)

    async def load(self, name: str) -> Content | None:
        """A whole bank, or None; StoreUnreachable. Within a transaction, or consistent by itself."""
        return await self._asked(LOADING, self._load(name))

    async def _load(self, name: str) -> Content | None:
        connection = await self._connected()
        own = connection.info.transaction_status == TransactionStatus.IDLE
        try:
            async with connection.pipeline():
                if own:
                    await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                heads = await connection.execute(self._in_schema(_HEAD), [name], binary=True)
                changes = await connection.execute(self._in_schema(_CHANGES), [name, name], binary=True)
            row = await heads.fetchone()
            if row is None:
                return None
            head = Head(name, Position(row[0], row[1], row[2], row[5]), row[3], row[4], row[6], follows=True)
            head.tail = [Tail(*change) for change in await changes.fetchall()]
            snapshot = await self._parts(connection, name, head.checkpoint) if head.checkpoint else []
            return Content(head, Parts(snapshot) if snapshot else None, row[6])
        finally:
            if own and not connection.closed:
                await connection.execute("ROLLBACK")

    async def _parts(self, connection: AsyncConnection[TupleRow], name: str, checkpoint: int) -> list[bytes]:
        """The parts of a checkpoint, one at a time: while one is received, the server reads the next."""
        async with connection.cursor() as cursor:
            rows = cursor.stream(self._in_schema(_PARTS), [name, checkpoint], binary=True)
            return [body async for (body,) in rows]

    async def exchanges(self, name: str, known: Iterable[int], most: int) -> list[tuple[int, bytes | None]]:
        """The last exchanges of a bank, the newest first; those that are `known` without their body."""
        return await self._read(
            "SELECT id, CASE WHEN id = ANY(%s::bigint[]) THEN NULL ELSE body END FROM {schema}.exchange"
            " WHERE bank = %s ORDER BY id DESC LIMIT %s",
            [list(known), name, most],
        )

    async def snapshots(self, name: str) -> list[tuple[str, datetime]]:
        """Names and times of the snapshots of a bank."""
        return await self._read(
            "SELECT name, created FROM {schema}.snapshot WHERE bank = %s ORDER BY created, name", [name]
        )

    async def snapshot(self, bank: str, name: str) -> bytes | None:
        """A snapshot of a bank, or None."""
        rows = await self._read("SELECT body FROM {schema}.snapshot WHERE bank = %s AND name = %s", [bank, name])
        return rows[0][0] if rows else None

    async def secrets(self, after: int) -> list[tuple[str, str, int, bytes]]:
        """Kind, name, version and body of what came after a version, the oldest first."""
        return await self._read(
            "SELECT kind, name, version, body FROM {schema}.secret WHERE version > %s ORDER BY version, kind, name",
            [after],
        )

    async def _read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return await self._asked(ANSWERING, self._rows(statement, values))

    async def _rows(self, statement: str, values: Sequence[Any]) -> list[Any]:
        connection = await self._connected()
        return await (await connection.execute(self._in_schema(statement), values, binary=True)).fetchall()

    async def _asked(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await self._within(seconds, work)
        except psycopg.Error as error:
            raise unreachable(error, self._schema) from error

    # The end of a turn

    async def commit(self, work: Work) -> list[str]:
        """Write and commit; the banks whose checkpoint is due, which this process is to write.

        StoreShared, and then nothing was written, or ConnectionError, where that is unknown.
        """
        connection = self._connection
        if connection is None or connection.closed:
            raise StoreUnreachable("the connection to PostgreSQL was lost")
        try:
            within = BUSY if work.is_large else ANSWERING
            return await self._within(within, self._commit(connection, work))
        except psycopg.Error as error:
            await self.end()
            # anything else is an error of a statement, and those come before the commit
            if error.sqlstate is None or error.sqlstate[:2] in _LOST:
                raise ConnectionError(line_of(error)) from error
            raise unreachable(error, self._schema) from error
        except StoreUnreachable as error:
            if self._connection is None:
                raise ConnectionError(str(error)) from error
            await self.end()
            raise

    async def _commit(self, connection: AsyncConnection[TupleRow], work: Work) -> list[str]:
        if not work.needs_lock:
            locked = connection.info.transaction_status != TransactionStatus.IDLE
            async with connection.pipeline():
                await self._insert_exchanges(connection, work.exchanges, _UNSYNCED)
                if locked:
                    await connection.execute("COMMIT")
            return []
        advanced = []
        async with connection.pipeline():
            if work.is_large:
                await connection.execute(_LIMITS_BUSY)
            for name in work.deleted:
                for table in ("bank", "change", "checkpoint", "exchange", "snapshot"):
                    column = "name" if table == "bank" else "bank"
                    statement = f"DELETE FROM {{schema}}.{table} WHERE {column} = %s"
                    await connection.execute(self._in_schema(statement), [name])
            for name, incarnation in work.new_banks:
                await connection.execute(self._in_schema(_MAKE), [name, incarnation, work.turn])
            for appended in work.appended:
                for sequence, (body, events) in enumerate(appended.changes, appended.first):
                    values = [appended.name, sequence, work.turn, body, events]
                    await connection.execute(self._in_schema(_APPEND), values)
                values = [
                    appended.first + len(appended.changes) - 1,
                    work.turn,
                    bool(appended.changes),
                    appended.size,
                    appended.limit,
                    appended.written,
                    appended.counts,
                    appended.name,
                ]
                advanced.append(await connection.execute(self._in_schema(_ADVANCE), values))
                if appended.name == SERVICE:
                    oldest = [SERVICE, appended.first - TAIL_KEPT]
                    await connection.execute(self._in_schema(_TRIM), oldest)
            for name in work.cleared:
                await connection.execute(self._in_schema("DELETE FROM {schema}.exchange WHERE bank = %s"), [name])
            for bank, snapshot, created, image in work.snapshots:
                if image is None:
                    await connection.execute(self._in_schema(_DROP_SNAPSHOT), [bank, snapshot])
                else:
                    await connection.execute(self._in_schema(_SAVE_SNAPSHOT), [bank, snapshot, created, image])
            for secret in work.secrets:
                await connection.execute(self._in_schema(_KEEP_SECRET), secret)
            if work.exchanges:
                await self._insert_exchanges(connection, work.exchanges, _SYNCED)
            committed = await connection.execute("COMMIT")
        if committed.statusmessage != "COMMIT":
            raise StoreUnreachable(f"PostgreSQL has undone the transaction: {committed.statusmessage}")
        rows = [await cursor.fetchone() for cursor in advanced]
        return [name for row in rows if row is not None for name, due in [row] if due]

    async def _insert_exchanges(
        self, connection: AsyncConnection[TupleRow], exchanges: Sequence[StoredExchange], statement: str
    ) -> None:
        columns = [list(column) for column in zip(*exchanges, strict=True)]
        await connection.execute(self._in_schema(statement), columns)

    async def end(self) -> None:
        """Undo what is under way; a connection that cannot is given up."""
        connection = self._connection
        if connection is None or connection.closed:
            self._connection = None
        elif connection.info.transaction_status != TransactionStatus.IDLE:
            try:
                await self._within(ANSWERING, _rollback(connection))
            except (psycopg.Error, StoreUnreachable):
                self._connection = None
                _hang_up(connection)

    async def outcome(self, work: Work) -> Outcome:
        """Whether a commit that was not answered came to be.

        The head is locked for it, which waits until the server is done with the transaction in question.
        """
        appended = next((appended for appended in work.appended if appended.changes), None)
        if appended is None:
            return Outcome.UNKNOWN
        try:
            transaction = await self.begin({appended.name: NOWHERE}, lock=[appended.name])
            head = transaction.heads.get(appended.name)
            rows = await self._read(
                "SELECT turn FROM {schema}.change WHERE bank = %s AND sequence = %s", [appended.name, appended.first]
            )
        finally:
            await self.end()
        if rows:
            return Outcome.WRITTEN if rows[0][0] == work.turn else Outcome.LOST
        if head is None or head.position.sequence < appended.first:
            return Outcome.LOST
        return Outcome.UNKNOWN  # others have appended so much since that it was trimmed

    # Upkeep

    async def checkpoint(self, name: str, incarnation: int, sequence: int, snapshot: bytes) -> None:
        """Keep a bank as of a change, in place of an earlier checkpoint, and trim what nobody needs any more."""
        try:
            await self._checkpoint(name, incarnation, sequence, snapshot)
        except psycopg.Error as error:
            raise unreachable(error, self._schema) from error

    async def _checkpoint(self, name: str, incarnation: int, sequence: int, snapshot: bytes) -> None:
        async with await self.connect() as connection:
            async with connection.transaction():
                await connection.execute(_LIMITS_BUSY)
                cursor = await connection.execute(
                    self._in_schema(
                        "SELECT checkpoint FROM {schema}.bank WHERE name = %s AND incarnation = %s FOR UPDATE"
                    ),
                    [name, incarnation],
                )
                row = await cursor.fetchone()
                if row is None or row[0] >= sequence:
                    return
                for part, at in enumerate(range(0, len(snapshot), PART)):
                    await connection.execute(
                        self._in_schema(
                            "INSERT INTO {schema}.checkpoint (bank, sequence, part, body) VALUES (%s, %s, %s, %b)"
                        ),
                        [name, sequence, part, snapshot[at : at + PART]],
                    )
                await connection.execute(
                    self._in_schema("DELETE FROM {schema}.checkpoint WHERE bank = %s AND sequence < %s"),
                    [name, sequence],
                )
                await connection.execute(
                    self._in_schema("UPDATE {schema}.bank SET checkpoint = %s WHERE name = %s"), [sequence, name]
                )
            await connection.execute(self._in_schema(_TRIM), [name, sequence - TAIL_KEPT])

    async def trim_exchanges(self, name: str, most: int) -> None:
        """Forget all but the last exchanges of a bank."""
        await self._read(
            "DELETE FROM {schema}.exchange WHERE bank = %s AND id <="
            " (SELECT id FROM {schema}.exchange WHERE bank = %s ORDER BY id DESC OFFSET %s LIMIT 1) RETURNING 1",
            [name, name, most],
        )


_LOST = frozenset({"08", "57", "58", "XX"})  # classes of errors of the connection or the server


def _limits(idle: float, statement: float) -> str:
    return (
        f"SELECT set_config('idle_in_transaction_session_timeout', '{idle * 1000:.0f}', true),"
        f" set_config('statement_timeout', '{statement * 1000:.0f}', true)"
    )


_LIMITS = _limits(IDLE, ANSWERING - 0.5)
_LIMITS_BUSY = _limits(BUSY, BUSY)
_LOCK = "SELECT name FROM {schema}.bank WHERE name = ANY(%s) ORDER BY name FOR UPDATE"
# one statement, so that head and tail are of one moment
_HEADS = (
    "SELECT b.name, b.incarnation, b.sequence, b.turn, b.checkpoint, b.written, b.counted,"
    " CASE WHEN b.counted = k.counted AND b.incarnation = k.incarnation THEN NULL ELSE b.counts END,"
    " c.sequence, c.turn, CASE WHEN c.sequence > k.sequence THEN c.body END,"
    " CASE WHEN c.sequence > k.sequence THEN c.events END"
    " FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[]) k (name, incarnation, sequence, counted)"
    " JOIN {schema}.bank b ON b.name = k.name"
    " LEFT JOIN {schema}.change c ON c.bank = k.name AND c.sequence >= k.sequence ORDER BY b.name, c.sequence"
)
# nobody's money is lost with exchanges; a position that changes between two statements would be seen by neither
_READ = (
    "WITH unsynced AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),"
    " stale AS (SELECT FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::uuid[], %s::bigint[])"
    " k (name, incarnation, sequence, turn, counted) LEFT JOIN {schema}.bank b ON b.name = k.name"
    " WHERE (b.incarnation, b.sequence, b.turn, b.counted)"
    " IS DISTINCT FROM (k.incarnation, k.sequence, k.turn, k.counted)),"
    " numbered AS MATERIALIZED (SELECT e.bank, e.body, e.place, nextval('{schema}.exchange_number') AS id"
    " FROM unnest(%s::text[], %b::bytea[]) WITH ORDINALITY e (bank, body, place), unsynced"
    " WHERE NOT EXISTS (SELECT FROM stale)),"
    " stored AS (INSERT INTO {schema}.exchange (bank, id, body) SELECT bank, id, body FROM numbered)"
    " SELECT NOT EXISTS (SELECT FROM stale), ARRAY(SELECT id FROM numbered ORDER BY place)"
)
_NUMBERS = "SELECT nextval('{schema}.exchange_number') FROM generate_series(1, %s)"
_HEAD = "SELECT incarnation, sequence, turn, checkpoint, written, counted, counts FROM {schema}.bank WHERE name = %s"
_PARTS = "SELECT body FROM {schema}.checkpoint WHERE bank = %s AND sequence = %s ORDER BY part"
_CHANGES = (
    "SELECT sequence, turn, body, events FROM {schema}.change WHERE bank = %s"
    " AND sequence > (SELECT checkpoint FROM {schema}.bank WHERE name = %s) ORDER BY sequence"
)
_MAKE = "INSERT INTO {schema}.bank (name, incarnation, sequence, turn) VALUES (%s, %s, 0, %s)"
_APPEND = "INSERT INTO {schema}.change (bank, sequence, turn, body, events) VALUES (%s, %s, %s, %b, %b)"
# whoever brings the size over the limit writes the checkpoint
_ADVANCE = (
    "UPDATE {schema}.bank b SET sequence = v.sequence, turn = CASE WHEN v.changed THEN v.turn ELSE b.turn END,"
    " size = CASE WHEN b.size + v.size < v.most THEN b.size + v.size ELSE 0 END,"
    " written = greatest(b.written, v.written), counts = coalesce(v.counts, b.counts),"
    " counted = b.counted + CASE WHEN v.counts IS NULL THEN 0 ELSE 1 END"
    " FROM (SELECT %s::bigint AS sequence, %s::uuid AS turn, %s::boolean AS changed, %s::bigint AS size,"
    " %s::bigint AS most, %s::bigint AS written, %b::bytea AS counts, %s::text AS name) v WHERE b.name = v.name"
    " RETURNING b.name, b.size = 0 AND v.size > 0"
)
_TRIM = "DELETE FROM {schema}.change WHERE bank = %s AND sequence <= %s"
_EXCHANGES = (
    "INSERT INTO {schema}.exchange (bank, id, body) SELECT e.bank, e.id, e.body"
    " FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %b::bytea[]) e (bank, incarnation, id, body)"
    " JOIN {schema}.bank b ON b.name = e.bank AND b.incarnation = e.incarnation"
)
_SYNCED = _EXCHANGES
# nobody's money is lost with them
_UNSYNCED = f"WITH unsynced AS (SELECT set_config('synchronous_commit', 'off', true)) {_EXCHANGES}, unsynced"
_SAVE_SNAPSHOT = (
    "INSERT INTO {schema}.snapshot (bank, name, created, body) VALUES (%s, %s, %s, %b)"
    " ON CONFLICT (bank, name) DO UPDATE SET created = excluded.created, body = excluded.body"
)
_DROP_SNAPSHOT = "DELETE FROM {schema}.snapshot WHERE bank = %s AND name = %s"
_KEEP_SECRET = (
    "INSERT INTO {schema}.secret (kind, name, version, body) VALUES (%s, %s, %s, %b)"
    " ON CONFLICT (kind, name) DO UPDATE SET version = excluded.version, body = excluded.body"
)


async def _rollback(connection: AsyncConnection[TupleRow]) -> None:
    await connection.execute("ROLLBACK")


def _hang_up(connection: AsyncConnection[TupleRow] | None) -> None:
    """End a connection whose server does not answer: whoever waits for it learns that at once."""
    if connection is None or connection.closed:
        return
    with suppress(OSError, psycopg.Error), socket.socket(fileno=dup(connection.fileno())) as own:
        own.shutdown(socket.SHUT_RDWR)
