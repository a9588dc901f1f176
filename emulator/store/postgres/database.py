"""The database as a turn uses it: what it reads and locks when it begins, and writes when it ends; checkpoints.

One connection serves one turn at a time (see `pool.py`); a checkpoint is written over one of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import accumulate
from typing import Any, cast
from uuid import UUID

import orjson
import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from psycopg.sql import quote

from emulator.store.postgres import layout, statements
from emulator.store.postgres.connection import ANSWERING, DatabaseConnection
from emulator.store.postgres.errors import StoreUnreachable, line_of, unreachable, unusable
from emulator.store.postgres.records import (
    NOWHERE,
    SERVICE,
    Appended,
    Committed,
    Content,
    Head,
    Outcome,
    Position,
    StoredExchange,
    Tail,
    TurnStart,
    Work,
    content_from,
)
from emulator.store.postgres.statements import BUSY

LOADING = 120.0  # seconds for a bank as a whole
PART = 1 << 20  # bytes of a checkpoint in one row
LONG = 1 << 20  # bytes of a tail that takes long to apply: a second on a busy machine
TAIL_KEPT = 1000  # changes before a checkpoint that stay, so that others need not load it
_LOST = frozenset({"08", "57", "58", "XX"})  # classes of errors of the connection or the server


class Database(DatabaseConnection):
    """The store behind a URL over one connection, for one event loop; `schema` is a plain name."""

    # The tables

    async def prepare(self) -> None:
        """Connect, and create or migrate the tables; StoreUnusable, StoreLayoutNewer."""
        try:
            await layout.prepare(await self._connected(), self._schema)
        except psycopg.Error as error:
            raise unusable(error, self._schema) from error

    async def verify(self) -> None:
        """Connect, and check that the tables have this version, without changes; raises as `prepare`."""
        try:
            await layout.verify(await self._connected(), self._schema)
        except psycopg.Error as error:
            raise unusable(error, self._schema) from error

    # The begin of a turn

    async def begin(
        self, positions: Mapping[str, Position], *, lock: Iterable[str] = (), numbers: int = 0, busy: bool = False
    ) -> TurnStart:
        """The heads of these banks with their tails, and so many numbers for exchanges; to those that are to `lock`
        no other transaction may append until `commit` or `end`, which may take long where the turn is `busy`.

        A tail has at most LONG bytes: see `whole`. StoreUnreachable, and then nothing is locked.
        """
        within = BUSY if busy else ANSWERING
        return await self._first(within, lambda: self._begin(positions, sorted(lock), numbers, busy=busy, most=LONG))

    async def whole(self, positions: Mapping[str, Position]) -> dict[str, Head]:
        """The heads of these banks with their tails as a whole, which may take long. StoreUnreachable."""
        start = await self._first(LOADING, lambda: self._begin(positions, [], 0, most=1 << 62))
        return start.heads

    async def _begin(
        self, positions: Mapping[str, Position], lock: list[str], numbers: int, *, most: int, busy: bool = False
    ) -> TurnStart:
        connection = await self._connected()
        names = sorted(positions)
        # one message in the simple protocol: each further statement would cost as much as a third of a payment
        begin = self._in_schema(statements.HEADS).replace("{numbers}", str(numbers)).replace("{most}", str(most))
        begin = begin.replace("{positions}", ", ".join(_row(name, positions[name]) for name in names))
        if lock:
            limits = statements.LIMITS_BUSY if busy else statements.LIMITS
            locked = self._in_schema(statements.LOCK).replace("{names}", ", ".join(map(_quoted, lock)))
            begin = f"BEGIN ISOLATION LEVEL READ COMMITTED; {limits}; {locked}; {begin}"
        cursor = await connection.execute(begin, binary=not lock)
        while cursor.nextset():
            pass
        heads: dict[str, Head] = {}
        drawn: list[int] = []
        for row in await cursor.fetchall():
            name, drawn = row[0], row[12] or []
            head = heads.get(name)
            if head is None:
                position = Position(row[1], row[2], row[3], row[6])
                head = heads[name] = Head(name, position, row[4], row[5], row[7])
            if row[8] is None:
                continue
            if row[8] == positions[name].sequence:
                head.follows = row[9] == positions[name].turn
            elif row[10] is None:
                head.partial = True
            elif not head.partial:
                head.tail.append(Tail(row[8], row[9], row[10], row[11]))
        for name, head in heads.items():
            # a bank without a change has no row to compare
            head.follows = head.follows or positions[name][:3] == head.position[:3]
        return TurnStart(heads, drawn)

    # A turn that only reads

    async def read(
        self, positions: Mapping[str, Position], exchanges: Sequence[StoredExchange]
    ) -> Sequence[int] | None:
        """Store the exchanges of a turn that has only read, if these banks are still at these positions: the numbers
        of the exchanges, in this order; None where a bank has moved on, and then nothing is stored.

        StoreUnreachable. Exchanges whose connection is lost as they are stored may be stored twice.
        """
        values = [
            orjson.dumps([{"name": name, **position._asdict()} for name, position in positions.items()]).decode(),
            *_joined(exchanges),
        ]
        [(current, numbers)] = await self._first(ANSWERING, lambda: self._rows(statements.READ, values))
        return numbers if current else None

    # What a turn reads besides

    async def banks(self) -> dict[str, int]:
        """Name and incarnation of every bank."""
        rows = await self._read("SELECT name, incarnation FROM {schema}.bank WHERE name <> ''")
        return dict(rows)

    async def load(self, name: str, after: int = NOWHERE.sequence) -> Content | None:
        """A whole bank as of one moment, or None; StoreUnreachable. Not within a turn's transaction.

        The tail also has the events of the changes from `after` to the checkpoint, as far as they are stored.
        """
        return await self._asked(LOADING, self._load(name, after))

    async def _load(self, name: str, after: int) -> Content | None:
        connection = await self._connected()
        try:
            async with connection.pipeline():
                await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                heads = await connection.execute(self._in_schema(statements.HEAD), [name], binary=True)
                changes = await connection.execute(self._in_schema(statements.CHANGES), [name, after], binary=True)
            row = await heads.fetchone()
            if row is None:
                return None
            parts = await self._parts(connection, name, checkpoint=row[3])
            return content_from(name, row, await changes.fetchall(), parts)
        finally:
            if not connection.closed:
                await connection.execute("ROLLBACK")

    async def _parts(self, connection: AsyncConnection[TupleRow], name: str, checkpoint: int) -> list[bytes]:
        """The parts of a checkpoint, one at a time: while one is received, the server reads the next."""
        async with connection.cursor() as cursor:
            rows = cursor.stream(self._in_schema(statements.PARTS), [name, checkpoint], binary=True)
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
            "SELECT name, created FROM {schema}.snapshot WHERE bank = %s AND name !~ '^[.]' ORDER BY created, name",
            [name],
        )

    async def snapshot(self, bank: str, name: str) -> tuple[datetime, bytes] | None:
        """Time and content of a snapshot of a bank, or None; may take long. StoreUnreachable."""
        rows: list[tuple[datetime, bytes]] = await self._asked(LOADING, self._rows(statements.SNAPSHOT, [bank, name]))
        return rows[0] if rows else None

    async def secrets(self, after: int) -> list[tuple[str, str, int, bytes]]:
        """Kind, name, version and body of what came after a version, the oldest first."""
        return await self._read(
            "SELECT kind, name, version, body FROM {schema}.secret WHERE version > %s ORDER BY version, kind, name",
            [after],
        )

    async def _read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return await self._asked(ANSWERING, self._rows(statement, values))

    # The end of a turn

    async def commit(self, work: Work) -> Committed:
        """Write and commit.

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

    async def _commit(self, connection: AsyncConnection[TupleRow], work: Work) -> Committed:
        if not work.needs_lock:
            return Committed([], await self._store(connection, work.exchanges))
        async with connection.pipeline():
            returning = await self._write(connection, work)
            committed = await connection.execute("COMMIT")
        if committed.statusmessage != "COMMIT":
            raise StoreUnreachable(f"PostgreSQL has undone the transaction: {committed.statusmessage}")
        rows = [row for cursor in returning for row in await cursor.fetchall()]
        return Committed([row[0] for row in rows if row[1]], [number for row in rows for number in row[2]])

    async def _store(self, connection: AsyncConnection[TupleRow], exchanges: Sequence[StoredExchange]) -> list[int]:
        """Store the exchanges of a turn that has changed nothing; their numbers."""
        locked = connection.info.transaction_status != TransactionStatus.IDLE
        async with connection.pipeline():
            values = ["[]", *_joined(exchanges)]
            cursor = await connection.execute(self._in_schema(statements.READ), values, binary=True)
            if locked:
                await connection.execute("COMMIT")
        [(_, numbers)] = await cursor.fetchall()
        return cast(list[int], numbers)

    async def _write(self, connection: AsyncConnection[TupleRow], work: Work) -> list[AsyncCursor[TupleRow]]:
        """Write everything; cursors whose rows are the name of a bank, whether its checkpoint is due, and the numbers
        of exchanges.
        """
        returning = []
        if work.is_large:
            await connection.execute(statements.LIMITS_BUSY)
        for name in work.deleted:
            for table in ("bank", "change", "checkpoint", "exchange", "snapshot"):
                column = "name" if table == "bank" else "bank"
                # a staged content may be that of a bank that somebody creates at this moment
                placed = " AND sequence >= 0" if table == "checkpoint" else ""
                statement = f"DELETE FROM {{schema}}.{table} WHERE {column} = %s{placed}"
                await connection.execute(self._in_schema(statement), [name])
        for name, incarnation in work.new_banks:
            await connection.execute(self._in_schema(statements.MAKE), [name, incarnation, work.turn])
        for name in work.cleared:
            await connection.execute(self._in_schema("DELETE FROM {schema}.exchange WHERE bank = %s"), [name])
        exchanges = work.exchanges
        for appended in work.appended:
            returning.append(await self._append(connection, work.turn, appended, exchanges))
            exchanges = []
            if appended.name == SERVICE:
                oldest = [SERVICE, appended.first - TAIL_KEPT]
                await connection.execute(self._in_schema(statements.TRIM), oldest)
        for bank, snapshot, created, image in work.snapshots:
            if isinstance(image, bytes):
                saved = [bank, snapshot, created, image]
                await connection.execute(self._in_schema(statements.SAVE_SNAPSHOT), saved)
                continue
            await connection.execute(self._in_schema(statements.DROP_SNAPSHOT), [bank, snapshot])
            if image is not None:
                renamed = [snapshot, created, bank, image]
                await connection.execute(self._in_schema(statements.NAME_SNAPSHOT), renamed)
        for content in work.contents:
            staged, checkpoint = int(content.name), content.checkpoint
            values = ([content.bank, checkpoint], [checkpoint, content.bank, staged], [checkpoint, content.bank])
            for statement, these in zip(statements.PLACE_CONTENT, values, strict=True):
                await connection.execute(self._in_schema(statement), these)
        for secret in work.secrets:
            await connection.execute(self._in_schema(statements.KEEP_SECRET), secret)
        if exchanges:
            statement = self._in_schema(statements.STORE)
            returning.append(await connection.execute(statement, _joined(exchanges), binary=True))
        return returning

    async def _append(
        self,
        connection: AsyncConnection[TupleRow],
        turn: UUID,
        appended: Appended,
        exchanges: Sequence[StoredExchange],
    ) -> AsyncCursor[TupleRow]:
        """Append the changes of a bank and advance its head; the last change, the head and the exchanges of the turn
        are one statement.
        """
        changes = [
            [appended.name, sequence, turn, body, events]
            for sequence, (body, events) in enumerate(appended.changes, appended.first)
        ]
        for change in changes[:-1]:
            await connection.execute(self._in_schema(statements.APPEND), change)
        parts, result = [statements.ADVANCE], statements.ADVANCED_ONLY
        values: list[Any] = []
        if exchanges:
            parts.insert(0, statements.EXCHANGES)
            values[:0] = _joined(exchanges)
            result = statements.ADVANCED
        if changes:
            parts.insert(0, f"appended AS ({statements.APPEND})")
            values[:0] = changes[-1]
        values += [
            appended.first + len(changes) - 1,
            turn,
            bool(changes),
            appended.size,
            appended.limit,
            appended.written,
            appended.counts,
            appended.name,
        ]
        statement = self._in_schema(statements.together(parts, result))
        return await connection.execute(statement, values, binary=True)

    async def outcome(self, work: Work) -> Outcome:
        """Whether a commit without an answer was applied.

        The head is locked for it, which waits until the server is done with the transaction in question.
        """
        appended = next((appended for appended in work.appended if appended.changes), None)
        if appended is None:
            return Outcome.UNKNOWN
        try:
            start = await self.begin({appended.name: NOWHERE}, lock=[appended.name])
            head = start.heads.get(appended.name)
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
        """Store a bank as of a change, replacing the earlier checkpoint, and delete what is no longer needed."""
        try:
            await self._checkpoint(name, incarnation, sequence, snapshot)
        except psycopg.Error as error:
            raise unreachable(error, self._schema) from error

    async def _checkpoint(self, name: str, incarnation: int, sequence: int, snapshot: bytes) -> None:
        async with await self.connect() as connection:
            async with connection.transaction():
                await connection.execute(statements.LIMITS_BUSY)
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
                        self._in_schema(statements.CHECKPOINT_PART), [name, sequence, part, snapshot[at : at + PART]]
                    )
                await connection.execute(
                    self._in_schema("UPDATE {schema}.bank SET checkpoint = %s WHERE name = %s"), [sequence, name]
                )
                await connection.execute(self._in_schema(statements.DROP_CHECKPOINTS), [name, name])
            await connection.execute(self._in_schema(statements.TRIM), [name, sequence - TAIL_KEPT])

    async def drop_checkpoints(self, name: str) -> None:
        """Delete the checkpoints of a bank that a staged content has replaced."""
        await self._asked(LOADING, self._rows(f"{statements.DROP_CHECKPOINTS} RETURNING 1", [name, name]))

    async def trim_exchanges(self, name: str, most: int) -> None:
        """Delete all but the last exchanges of a bank."""
        await self._read(
            "DELETE FROM {schema}.exchange WHERE bank = %s AND id <="
            " (SELECT id FROM {schema}.exchange WHERE bank = %s ORDER BY id DESC OFFSET %s LIMIT 1) RETURNING 1",
            [name, name, most],
        )


def _joined(exchanges: Sequence[StoredExchange]) -> list[Any]:
    """Exchanges as the values of a statement: their bodies, one behind the other, and what else there is of each."""
    ends = accumulate((len(exchange.body) for exchange in exchanges), initial=1)
    rows = [
        {"bank": bank, "incarnation": incarnation, "id": number, "place": place, "start": start, "size": len(body)}
        for place, (start, (bank, incarnation, number, body)) in enumerate(zip(ends, exchanges, strict=False))
    ]
    return [b"".join(exchange.body for exchange in exchanges), orjson.dumps(rows).decode()]


def _row(name: str, position: Position) -> str:
    """What `Database.begin` asks about a bank, as SQL."""
    return f"({_quoted(name)}, {position.incarnation}, {position.sequence}, {position.counted})"


@lru_cache(maxsize=4096)
def _quoted(name: str) -> str:
    return quote(name)
