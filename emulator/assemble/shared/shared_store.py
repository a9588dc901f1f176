"""The tables of a PostgreSQL as of one moment: a place to copy from and to, and to check (`state check --store`)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from time import monotonic, sleep, time_ns
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import orjson
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from emulator.api.shared_log import stored_exchange
from emulator.assemble.shared.authority import CA, TPP, check_secret, files_of, secret_of
from emulator.assemble.shared.copying import (
    Copied,
    InUse,
    Missing,
    Secrets,
    StoredBank,
    TargetHoldsBanks,
    stored_bank,
)
from emulator.assemble.shared.open_bank import about_service, check_written, counters_of, fill, image_of
from emulator.bank.kinds import KINDS
from emulator.store import StoreError, memory_store
from emulator.store.check import disagreement
from emulator.store.postgres import NOWHERE, SERVICE, Content, Database, StoredDataDamaged, statements
from emulator.store.postgres.connection import application_name, options
from emulator.store.postgres.database import PART
from emulator.store.postgres.errors import unusable
from emulator.store.postgres.records import content_from
from emulator.store.snapshot import image_from_bytes

_OWN_NAME = "bank-emulator state"  # of the application, as PostgreSQL shows it
_ENDING = 4.0  # seconds after the end of a process in which its connections may still look used
# A process asks for news four times a second. A connection without that is one that a pool of PostgreSQL keeps; those
# of other roles may hide what they do.
_USER = (
    "SELECT coalesce(host(client_addr), 'this machine') FROM pg_catalog.pg_stat_activity"
    " WHERE datname = current_database() AND application_name = left(%s, 63) AND pid <> pg_backend_pid()"
    " AND (state IS DISTINCT FROM 'idle' OR state_change > clock_timestamp() - interval '3 seconds') LIMIT 1"
)
_NUMBERED = re.compile(r"(.+):(\d+)")


class SharedStore:
    """A PostgreSQL; `url` has all that a connection needs."""

    def __init__(self, url: str, schema: str) -> None:
        self._url = url
        self._schema = schema
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    def __str__(self) -> str:
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path} (schema {self._schema})"

    def query(self, statement: str, *values: Any) -> psycopg.Cursor[tuple[Any, ...]]:
        """The result of a statement, in which `{schema}` stands for the schema."""
        if self._connection is None:
            raise RuntimeError("the place is not open")
        query = sql.SQL(statement).format(schema=sql.Identifier(self._schema))
        return self._connection.execute(query, values, binary=True)

    @contextmanager
    def open(self, *, writes: bool = False) -> Iterator[None]:
        """A transaction that reads as of one moment, or one that `writes`; before that, tables are made or migrated.

        StoreError for a server that cannot be used and a layout that this program does not know.
        """
        try:
            url = make_conninfo(self._url, application_name=_OWN_NAME)
        except psycopg.Error as error:
            raise unusable(error, self._schema) from error
        database = Database(url, self._schema)

        async def connected() -> None:
            try:
                await (database.prepare() if writes else database.verify())
            finally:
                await database.close()

        asyncio.run(connected())
        try:
            with psycopg.connect(url, autocommit=True, **options(url, self._schema)) as connection:
                self._connection = connection
                connection.execute(
                    f"BEGIN ISOLATION LEVEL {'READ COMMITTED' if writes else 'REPEATABLE READ READ ONLY'}"
                )
                yield
                connection.execute("COMMIT")
        except psycopg.Error as error:
            raise unusable(error, self._schema) from error
        finally:
            self._connection = None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Everything as of one moment, also while processes write."""
        with self.open():
            if not self.names():
                raise Missing(f"{self} holds no bank")
            yield

    def names(self) -> list[str]:
        """The existing banks."""
        return [name for (name,) in self.query("SELECT name FROM {schema}.bank WHERE name <> '' ORDER BY name")]

    def secrets(self) -> Secrets:
        """The CA and the TPPs."""
        rows = self.query("SELECT kind, name, body FROM {schema}.secret ORDER BY version, kind, name")
        return {(kind, name): files_of(kind, name, body) for kind, name, body in rows}

    def content(self, name: str) -> Content:
        """A bank: its checkpoint and the changes after it."""
        row = self.query(statements.HEAD, name).fetchone()
        if row is None:
            raise Missing(f"{self} has no bank {name}")
        changes = self.query(statements.CHANGES, name, NOWHERE.sequence)
        parts = self.query(statements.PARTS, name, row[3])
        return content_from(name, row, changes, [body for (body,) in parts])

    def snapshots(self, name: str) -> list[tuple[str, datetime, bytes]]:
        """The snapshots of a bank, the oldest first."""
        statement = (
            "SELECT name, created, body FROM {schema}.snapshot WHERE bank = %s AND name !~ '^[.]'"
            " ORDER BY created, name"
        )
        return [(saved, created, body) for saved, created, body in self.query(statement, name)]

    def banks(self) -> Iterator[StoredBank]:
        """Every bank; StoreDamaged."""
        for name in self.names():
            documents = memory_store(KINDS)
            content = self.content(name)
            fill(documents, content, image_of(content))
            yield stored_bank(name, documents, content.head.position.sequence, self.snapshots(name))

    def write(self, secrets: Secrets, banks: Iterator[StoredBank], *, replace: bool) -> Copied:
        """Replace the content of the store by what is given, in one transaction."""
        with self.open(writes=True):
            if replace:
                self._check_unused()
            locked = self.query("SELECT name, sequence, counts FROM {schema}.bank ORDER BY name FOR UPDATE")
            heads = {name: (sequence, counts) for name, sequence, counts in locked}
            present = sorted(heads.keys() - {SERVICE})
            has_ca = self.query("SELECT 1 FROM {schema}.secret LIMIT 1").fetchone() is not None
            if (present or has_ca) and not replace:
                what = f"banks ({', '.join(present)})" if present else "a sandbox CA"
                raise TargetHoldsBanks(f"{self} holds {what}; --replace deletes what is there")
            self._check_unused()  # again: from now on a process that starts waits for the lock
            for table in ("change", "checkpoint", "exchange", "snapshot"):
                self.query(f"DELETE FROM {{schema}}.{table} WHERE bank <> ''")
            self.query("DELETE FROM {schema}.bank WHERE name <> ''")
            self.query("DELETE FROM {schema}.secret")
            service, about = heads[SERVICE][0] + 1, orjson.loads(heads[SERVICE][1])
            latest, created = about.get("made", 0), about.get("created", {})
            about.pop("scenarios", None)  # of the banks that are replaced
            copied = Copied()
            for bank in banks:
                latest += 1
                stream = _NUMBERED.fullmatch(bank.stream)
                number = int(stream[2]) if stream is not None and stream[1] == bank.name else 1
                created[bank.name] = max(number, created.get(bank.name, 0))
                self._write_bank(bank, latest)
                copied.banks += 1
                copied.snapshots += len(bank.snapshots)
            for (kind, name), files in secrets.items():
                copied.tpps += kind == TPP
                self.query(statements.KEEP_SECRET, kind, name, service, secret_of(files))
            turn = uuid4()
            self.query(statements.APPEND, SERVICE, service, turn, b"{}", None)
            self.query(
                "UPDATE {schema}.bank SET sequence = %s, turn = %s, counts = %b, counted = counted + 1 WHERE name = ''",
                service,
                turn,
                orjson.dumps({**about, "made": latest, "created": created}),
            )
            return copied

    def _check_unused(self) -> None:
        """InUse if processes use the store; those that have just ended may still have a connection for a moment."""
        name = application_name(self._url, self._schema)
        until = monotonic() + _ENDING
        while True:
            self.query("SELECT pg_catalog.pg_stat_clear_snapshot()")  # else a transaction sees the same each time
            user = self.query(_USER, name).fetchone()
            if user is None:
                return
            if monotonic() > until:
                raise InUse(f"{self} is in use by a process connected from {user[0]}: stop all processes that use it")
            sleep(_ENDING / 10)

    def _write_bank(self, bank: StoredBank, incarnation: int) -> None:
        self.query(
            "INSERT INTO {schema}.bank (name, incarnation, sequence, turn, checkpoint, written)"
            " VALUES (%s, %s, %s, %s, %s, %s)",
            bank.name,
            incarnation,
            bank.sequence,
            uuid4(),
            bank.sequence,
            time_ns() // 1000,
        )
        for part, at in enumerate(range(0, len(bank.body), PART)):
            self.query(statements.CHECKPOINT_PART, bank.name, bank.sequence, part, bank.body[at : at + PART])
        for name, created, body in bank.snapshots:
            self.query(statements.SAVE_SNAPSHOT, bank.name, name, created, body)


@dataclass(slots=True)
class Checked:
    """The result for a bank, or for the service as a whole."""

    name: str
    sequence: int
    documents: int = 0
    problems: list[str] = field(default_factory=list)


def check(stored: SharedStore) -> list[Checked]:
    """Everything that is stored, as of one moment; StoreError if it cannot be read."""
    with stored.open():
        return [_check_service(stored), *(_check_bank(stored, name) for name in stored.names())]


def _check_service(stored: SharedStore) -> Checked:
    checked = Checked("the service", 0)
    row = stored.query("SELECT sequence, counts FROM {schema}.bank WHERE name = ''").fetchone()
    if row is None:
        checked.problems.append("its row in bank is missing")
        return checked
    checked.sequence, counts = row
    _check_positions(stored, checked, SERVICE, checked.sequence, checked.sequence)
    checked.problems += _damage(about_service, counts)
    secrets = stored.query("SELECT kind, name, version, body FROM {schema}.secret ORDER BY kind, name").fetchall()
    for secret in secrets:
        checked.problems += _damage(check_secret, *secret)
    if stored.names() and not any(kind == CA for kind, _, _, _ in secrets):
        checked.problems.append("the sandbox CA is missing")
    left = stored.query(
        "SELECT bank FROM (SELECT bank FROM {schema}.change UNION SELECT bank FROM {schema}.checkpoint"
        " WHERE sequence >= 0) rows WHERE bank NOT IN (SELECT name FROM {schema}.bank) ORDER BY bank"
    )
    checked.problems += [f"the row in bank of {name} is missing" for (name,) in left]
    return checked


def _damage(read: Callable[..., object], *stored: Any) -> Iterator[str]:
    """The problem that `read` has with what is stored, if there is one."""
    try:
        read(*stored)
    except StoredDataDamaged as error:
        yield error.problem


def _check_bank(stored: SharedStore, name: str) -> Checked:
    content = stored.content(name)
    head = content.head
    checked = Checked(name, head.position.sequence)
    _check_positions(stored, checked, name, head.checkpoint, head.position.sequence)
    last = head.tail[-1] if head.tail else None
    if last is not None and last.sequence == head.position.sequence and last.turn != head.position.turn:
        checked.problems.append("the head names another turn than its last change")
    checked.problems += _damage(counters_of, name, content.counts)
    checked.problems += _damage(check_written, name, head.written)
    if not checked.problems:
        _check_documents(checked, content)
    for saved, _, body in stored.snapshots(name):
        try:
            image_from_bytes(body, KINDS, file=Path(saved))
        except StoreError as error:
            checked.problems.append(f"the snapshot {saved} cannot be read: {error}")
    for number, body in stored.query("SELECT id, body FROM {schema}.exchange WHERE bank = %s ORDER BY id", name):
        try:
            stored_exchange(body)
        except ValueError as error:
            checked.problems.append(f"the exchange {number} of the request log cannot be read: {error}")
    return checked


def _check_documents(checked: Checked, content: Content) -> None:
    documents = memory_store(KINDS)
    problems = list(_damage(lambda: fill(documents, content, image_of(content))))
    checked.problems += problems
    if problems:
        return
    tables = documents.tables
    checked.documents = sum(len(table.rows) for table in tables.values())
    for kind, table in tables.items():
        if (wrong := disagreement(table)) is not None:
            checked.problems.append(f"kind {kind}: {wrong}")


def _check_positions(stored: SharedStore, checked: Checked, name: str, checkpoint: int, sequence: int) -> None:
    """Changes up to the head, one by one, from the checkpoint on at least."""
    row = stored.query(
        "SELECT count(*), min(sequence), max(sequence) FROM {schema}.change WHERE bank = %s", name
    ).fetchone()
    count, first, last = row if row is not None else (0, None, None)
    if count == 0:
        if sequence > checkpoint:
            checked.problems.append(f"changes {checkpoint + 1} to {sequence} are missing")
    elif last != sequence:
        checked.problems.append(f"the head is at change {sequence}, the last stored one is {last}")
    elif count != last - first + 1:
        checked.problems.append(f"changes are missing between {first} and {last}: {last - first + 1 - count}")
    elif first > checkpoint + 1:
        checked.problems.append(f"changes {checkpoint + 1} to {first - 1} are missing")
