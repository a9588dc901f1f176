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

import orjson
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from emulator.assemble.copying import Copied, InUse, Missing, Secrets, StoredBank, TargetHoldsBanks, stored_bank
from emulator.assemble.stored_authority import CA, KEEP, READ, TPP, check_secret, files_of, secret_of
from emulator.bank.kinds import KINDS
from emulator.store import StoreError, memory_store
from emulator.store.changes import content_named
from emulator.store.check import disagreement
from emulator.store.postgres import layout
from emulator.store.postgres.connection import application_name, options
from emulator.store.postgres.errors import StoredDataDamaged, unusable
from emulator.store.postgres.log import CHANGES, PART, PARTS, Content, fill
from emulator.store.snapshot import image_from_bytes

_OWN_NAME = "bank-emulator state"  # of the application, as PostgreSQL shows it
_ENDING = 4.0  # seconds after the end of a process in which its connections may still look used
# A process renews its leases each second. A connection without that is one that a pool of PostgreSQL keeps; those of
# other roles may hide what they do.
_USER = (
    "SELECT coalesce(host(client_addr), 'this machine') FROM pg_catalog.pg_stat_activity"
    " WHERE datname = current_database() AND application_name = left(%s, 63) AND pid <> pg_backend_pid()"
    " AND (state IS DISTINCT FROM 'idle' OR state_change > clock_timestamp() - interval '3 seconds') LIMIT 1"
)
_NUMBERED = re.compile(r"(.+):(\d+)")
_LATEST = 7_258_118_400_000_000  # the year 2200 in microseconds since 1970


class StoredService:
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
            asyncio.run(self._examined(url, writes=writes))
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

    async def _examined(self, url: str, *, writes: bool) -> None:
        """Create or migrate the tables, or check that they are there."""
        connecting = psycopg.AsyncConnection.connect(url, autocommit=True, **options(url, self._schema))
        async with await connecting as connection:
            await (layout.prepare if writes else layout.verify)(connection, self._schema)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Everything as of one moment, also while processes write."""
        with self.open():
            if not self.names():
                raise Missing(f"{self} holds no bank")
            yield

    def names(self) -> list[str]:
        """The existing banks."""
        return [name for (name,) in self.query("SELECT name FROM {schema}.bank WHERE sequence > 0 ORDER BY name")]

    def secrets(self) -> Secrets:
        """The CA and the TPPs."""
        return {(kind, name): files_of(kind, name, body) for kind, name, _, body in self.query(READ, -1)}

    def content(self, name: str) -> Content:
        """A bank: its checkpoint and the changes after it."""
        row = self.query("SELECT sequence, checkpoint FROM {schema}.bank WHERE name = %s", name).fetchone()
        if row is None:
            raise Missing(f"{self} has no bank {name}")
        sequence, checkpoint = row
        changes = self.query(CHANGES, name, checkpoint).fetchall()
        named = {file: self._parts(name, int(file)) for _, body in changes if (file := content_named(body)) is not None}
        return Content(sequence, checkpoint, self._parts(name, checkpoint), changes, named)

    def _parts(self, name: str, sequence: int) -> bytes:
        return b"".join(body for (body,) in self.query(PARTS, name, sequence))

    def snapshots(self, name: str) -> list[tuple[str, datetime, bytes]]:
        """The snapshots of a bank, the oldest first."""
        statement = "SELECT name, created, body FROM {schema}.snapshot WHERE bank = %s ORDER BY created, name"
        return [(saved, created, body) for saved, created, body in self.query(statement, name)]

    def banks(self) -> Iterator[StoredBank]:
        """Every bank; StoreDamaged."""
        for name in self.names():
            documents, content = memory_store(KINDS), self.content(name)
            fill(documents, name, content)
            yield stored_bank(name, documents, content.sequence, self.snapshots(name))

    def write(self, secrets: Secrets, banks: Iterator[StoredBank], *, replace: bool) -> Copied:
        """Replace the content of the store by what is given, in one transaction."""
        with self.open(writes=True):
            if replace:
                self._check_unused()
            self.query("SELECT news FROM {schema}.layout FOR UPDATE")
            locked = self.query("SELECT name, sequence FROM {schema}.bank ORDER BY name FOR UPDATE")
            present = [name for name, sequence in locked if sequence > 0]
            has_ca = self.query("SELECT 1 FROM {schema}.secret WHERE kind = %s", CA).fetchone() is not None
            if (present or has_ca) and not replace:
                what = f"banks ({', '.join(present)})" if present else "a sandbox CA"
                raise TargetHoldsBanks(f"{self} holds {what}; --replace deletes what is there")
            self._check_unused()  # again: from now on a process that starts waits for the lock
            for table in ("change", "checkpoint", "snapshot", "secret"):
                self.query(f"DELETE FROM {{schema}}.{table} WHERE true")
            # the rows stay, as their epochs must not begin again: a process may still believe to have a bank
            self.query(
                "UPDATE {schema}.bank SET epoch = epoch + 1, sequence = 0, checkpoint = 0, home = NULL,"
                " until = 'epoch', memory = NULL"
            )
            copied = Copied()
            for bank in banks:
                self._write_bank(bank)
                copied.banks += 1
                copied.snapshots += len(bank.snapshots)
            for (kind, name), files in secrets.items():
                copied.tpps += kind == TPP
                self.query(KEEP, kind, name, secret_of(files), True)
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

    def _write_bank(self, bank: StoredBank) -> None:
        stream = _NUMBERED.fullmatch(bank.stream)
        count = int(stream[2]) - 1 if stream is not None and stream[1] == bank.name else 0
        self.query(
            "INSERT INTO {schema}.bank AS b (name, epoch, made, sequence, checkpoint, written)"
            " VALUES (%s, 1, %s, %s, %s, %s)"
            " ON CONFLICT (name) DO UPDATE SET epoch = b.epoch + 1, made = greatest(b.made, excluded.made),"
            " sequence = excluded.sequence, checkpoint = excluded.checkpoint, written = excluded.written",
            *(bank.name, count, bank.sequence, bank.sequence, time_ns() // 1000),
        )
        for part, at in enumerate(range(0, len(bank.body), PART)):
            self.query(
                "INSERT INTO {schema}.checkpoint (bank, sequence, part, body) VALUES (%s, %s, %s, %b)",
                *(bank.name, bank.sequence, part, bank.body[at : at + PART]),
            )
        for name, created, body in bank.snapshots:
            statement = "INSERT INTO {schema}.snapshot (bank, name, created, body) VALUES (%s, %s, %s, %b)"
            self.query(statement, bank.name, name, created, body)


@dataclass(slots=True)
class Checked:
    """The result for a bank, or for the service as a whole."""

    name: str
    sequence: int
    documents: int = 0
    problems: list[str] = field(default_factory=list)


def check(stored: StoredService) -> list[Checked]:
    """Everything that is stored, as of one moment; StoreError if it cannot be read."""
    with stored.open():
        return [_check_service(stored), *(_check_bank(stored, name) for name in stored.names())]


def _check_service(stored: StoredService) -> Checked:
    from emulator.assemble.joining import SERVICE, about

    checked = Checked("the service", 0)
    secrets = stored.query("SELECT kind, name, version, body FROM {schema}.secret ORDER BY kind, name").fetchall()
    for secret in secrets:
        checked.sequence = max(checked.sequence, secret[2])
        if secret[0] == SERVICE:
            checked.problems += _damage(about, secret[3])
        elif secret[0] in (CA, "answers", TPP):
            checked.problems += _damage(check_secret, *secret)
    if stored.names() and not any(kind == CA for kind, _, _, _ in secrets):
        checked.problems.append("the sandbox CA is missing")
    left = stored.query(
        "SELECT DISTINCT bank FROM {schema}.change WHERE bank NOT IN (SELECT name FROM {schema}.bank) ORDER BY bank"
    )
    checked.problems += [f"the row in bank of {name} is missing" for (name,) in left]
    return checked


def _damage(read: Callable[..., object], *stored: Any) -> Iterator[str]:
    """The problem that `read` has with what is stored, if there is one."""
    try:
        read(*stored)
    except StoredDataDamaged as error:
        yield error.problem


def _check_bank(stored: StoredService, name: str) -> Checked:
    content = stored.content(name)
    checked = Checked(name, content.sequence)
    _check_positions(checked, content)
    row = stored.query("SELECT written, memory FROM {schema}.bank WHERE name = %s", name).fetchone()
    written, memory = row or (0, None)
    if not 0 <= written <= _LATEST:
        checked.problems.append(f"the time {written} in the row of bank {name} is out of range")
    try:
        orjson.loads(memory or b"{}")
    except ValueError as error:
        checked.problems.append(f"what the last home of bank {name} had in memory cannot be read: {error}")
    if not checked.problems:
        _check_documents(checked, content)
    for saved, _, body in stored.snapshots(name):
        try:
            image_from_bytes(body, KINDS, file=Path(saved))
        except StoreError as error:
            checked.problems.append(f"the snapshot {saved} cannot be read: {error}")
    return checked


def _check_documents(checked: Checked, content: Content) -> None:
    documents = memory_store(KINDS)
    problems = list(_damage(fill, documents, checked.name, content))
    checked.problems += problems
    if problems:
        return
    tables = documents.tables
    checked.documents = sum(len(table.rows) for table in tables.values())
    for kind, table in tables.items():
        if (wrong := disagreement(table)) is not None:
            checked.problems.append(f"kind {kind}: {wrong}")


def _check_positions(checked: Checked, content: Content) -> None:
    """Changes up to the head, one by one, from the checkpoint on."""
    numbers = [sequence for sequence, _ in content.changes]
    expected = list(range(content.checkpoint + 1, content.sequence + 1))
    missing = sorted(set(expected) - set(numbers))
    if missing:
        checked.problems.append(f"{len(missing)} changes are missing, the first of them {missing[0]}")
    elif len(numbers) > len(expected):
        checked.problems.append(f"the head is at change {content.sequence}, the last stored one is {numbers[-1]}")
