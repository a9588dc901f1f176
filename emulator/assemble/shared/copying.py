"""A whole service copied from a state directory or a PostgreSQL to another one, and the check of what PostgreSQL has.

What is copied: every bank's documents as of its last change, its snapshots, the sandbox CA with all TPPs. What is not:
the request log and the counters of rules, which a directory does not keep either.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import time_ns
from typing import Any, Protocol
from urllib.parse import urlsplit
from uuid import uuid4

import orjson
import psycopg
from psycopg import sql

from emulator.assemble.folders import Folders
from emulator.assemble.replacement import complete, replacement
from emulator.assemble.shared.authority import ANSWERS, CA, TPP, files_of, secret_of
from emulator.assemble.shared.open_bank import fill
from emulator.bank import snapshots
from emulator.bank.kinds import BANK, KINDS
from emulator.ca.files import make_private, write_folder, write_private
from emulator.store import Image, Store, StoreDamaged, StoreError, memory_store
from emulator.store.check import disagreement
from emulator.store.disk import Disk, shared_lock
from emulator.store.postgres import SERVICE, Content, Database, Head, Parts, Position, Tail
from emulator.store.postgres.database import PART
from emulator.store.postgres.errors import unusable
from emulator.store.recovery import SNAPSHOT, recover
from emulator.store.snapshot import as_bytes

Secrets = dict[tuple[str, str], dict[str, bytes]]
"""The CA, the bank's certificate and the TPPs: by kind and name, the content of each file."""

_CA_FILES = ("ca.pem", "ca-key.pem")
_ENDING = ".snapshot.json"
_NUMBERED = re.compile(r"(.+):(\d+)")


class TargetHoldsBanks(StoreError):
    """There is something where the copy should go; the text names it."""


class Missing(StoreError):
    """There is nothing to copy; the text says where."""


@dataclass(frozen=True, slots=True)
class StoredBank:
    """A bank: the snapshot file as of its last change, and its named snapshots (name, time, file), the oldest first."""

    name: str
    sequence: int
    body: bytes
    stream: str
    snapshots: Sequence[tuple[str, datetime, bytes]]


@dataclass(slots=True)
class Copied:
    """How much was copied."""

    banks: int = 0
    snapshots: int = 0
    tpps: int = 0


class Place(Protocol):
    """Where a service is stored; `open` gives access to it as of one moment. Raises StoreError, OSError."""

    def reading(self) -> Any: ...
    def secrets(self) -> Secrets: ...
    def banks(self) -> Iterator[StoredBank]: ...
    def write(self, secrets: Secrets, banks: Iterator[StoredBank], *, replace: bool) -> Copied: ...


def copy(source: Place, target: Place, *, replace: bool) -> Copied:
    """Copy everything; StoreError (TargetHoldsBanks without `replace`, Missing, StoreLocked), OSError."""
    with source.reading():
        return target.write(source.secrets(), source.banks(), replace=replace)


def _stored(name: str, documents: Store, sequence: int, saved: Sequence[tuple[str, datetime, bytes]]) -> StoredBank:
    origin = BANK.read(documents)
    stream = name if origin is None else origin.get("stream", name)
    return StoredBank(name, sequence, as_bytes(documents.image().tables, sequence), stream, saved)


class Directory:
    """A state directory that no process uses."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._folders = Folders(state / "banks", power=True)

    def __str__(self) -> str:
        return str(self._state)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep writers out of every bank meanwhile; StoreLocked."""
        complete(self._state)
        names = self._folders.names()
        if not names:
            raise Missing(f"{self._state} holds no bank")
        with ExitStack() as locked:
            for name in sorted(names):
                locked.enter_context(shared_lock(self._folders.of(name)))
            yield

    def secrets(self) -> Secrets:
        """The files of the CA and of the TPPs."""
        if not (self._state / "ca.pem").exists():
            raise Missing(f"{self._state} has no sandbox CA (ca.pem)")
        secrets: Secrets = {(CA, ""): {name: (self._state / name).read_bytes() for name in _CA_FILES}}
        answers = self._state / "bank"
        if (answers / "certificate.pem").exists():
            secrets[ANSWERS, ""] = _content(answers)
        issued = (self._state / "tpps").glob("*/certificate.pem")
        for file in sorted(issued, key=lambda file: file.stat().st_mtime_ns):
            secrets[TPP, file.parent.name] = _content(file.parent)
        return secrets

    def banks(self) -> Iterator[StoredBank]:
        """Every bank as a start would find it; StoreDamaged, StoreTooNew."""
        for name in sorted(self._folders.names()):
            folder = self._folders.of(name)
            documents = memory_store(KINDS)
            recover(folder, Disk(), documents)
            yield _stored(name, documents, documents.sequence, list(self._snapshots(folder / "snapshots")))

    @staticmethod
    def _snapshots(folder: Path) -> Iterator[tuple[str, datetime, bytes]]:
        for file in sorted(snapshots.files(folder), key=lambda file: file.stat().st_mtime):
            created = datetime.fromtimestamp(file.stat().st_mtime, UTC)
            yield file.name.removesuffix(_ENDING), created, file.read_bytes()

    def write(self, secrets: Secrets, banks: Iterator[StoredBank], *, replace: bool) -> Copied:
        """Make this directory what is given."""
        complete(self._state)
        present = self._folders.names()
        if (present or (self._state / "ca.pem").exists()) and not replace:
            what = f"banks ({', '.join(sorted(present))})" if present else "a sandbox CA (ca.pem)"
            raise TargetHoldsBanks(f"{self._state} holds {what}; --replace deletes what is there")
        copied = Copied()
        with ExitStack() as locked:
            for name in sorted(present):
                locked.enter_context(shared_lock(self._folders.of(name)))
            folder = locked.enter_context(replacement(self._state))
            for name in ("banks", "tpps", "bank"):
                make_private(folder / name)
            for bank in banks:
                _write_bank(folder / "banks" / bank.name, bank)
                copied.banks += 1
                copied.snapshots += len(bank.snapshots)
            _write_secrets(folder, secrets)
        copied.tpps = sum(kind == TPP for kind, _ in secrets)
        return copied


def _write_bank(folder: Path, bank: StoredBank) -> None:
    make_private(folder)
    write_private(folder / SNAPSHOT, bank.body)
    if bank.snapshots:
        make_private(folder / "snapshots")
    for name, created, body in bank.snapshots:
        file = folder / "snapshots" / f"{name}{_ENDING}"
        write_private(file, body)
        os.utime(file, (created.timestamp(), created.timestamp()))


def _write_secrets(state: Path, secrets: Secrets) -> None:
    for (kind, name), files in secrets.items():
        if kind == CA:
            for file, content in files.items():
                write_private(state / file, content)
        else:
            folder = state / "bank" if kind == ANSWERS else state / "tpps" / name
            write_folder(folder, files, replace=True)


def _content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}


class Shared:
    """A PostgreSQL; `url` with everything that connecting takes."""

    def __init__(self, url: str, schema: str) -> None:
        self._url = url
        self._schema = schema
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    def __str__(self) -> str:
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path} (schema {self._schema})"

    def _query(self, statement: str, *values: Any) -> psycopg.Cursor[tuple[Any, ...]]:
        if self._connection is None:
            raise RuntimeError("the place is not open")
        query = sql.SQL(statement).format(schema=sql.Identifier(self._schema))
        return self._connection.execute(query, values, binary=True)

    @contextmanager
    def _open(self, begin: str, *, writes: bool = False) -> Iterator[None]:
        """A transaction; with `writes` tables are made or migrated before it.

        StoreError for a server that cannot be used and a layout that this program does not know.
        """
        database = Database(self._url, self._schema)

        async def connected() -> None:
            try:
                await (database.prepare() if writes else database.verify())
            finally:
                await database.close()

        asyncio.run(connected())
        try:
            with psycopg.connect(self._url, autocommit=True, prepare_threshold=None) as connection:
                self._connection = connection
                connection.execute(begin)
                yield
                connection.execute("COMMIT")
        except psycopg.Error as error:
            raise unusable(error, self._schema) from error
        finally:
            self._connection = None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Everything as of one moment, whoever writes meanwhile."""
        with self._open("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            if not self.names():
                raise Missing(f"{self} holds no bank")
            yield

    def names(self) -> list[str]:
        """The banks there are."""
        return [name for (name,) in self._query("SELECT name FROM {schema}.bank WHERE name <> '' ORDER BY name")]

    def secrets(self) -> Secrets:
        """The CA and the TPPs."""
        rows = self._query("SELECT kind, name, body FROM {schema}.secret ORDER BY version, kind, name")
        return {(kind, name): files_of(body) for kind, name, body in rows}

    def content(self, name: str) -> Content:
        """A bank: its checkpoint and the changes after it."""
        row = self._query(
            "SELECT incarnation, sequence, turn, checkpoint, written, counted, counts FROM {schema}.bank"
            " WHERE name = %s",
            name,
        ).fetchone()
        if row is None:
            raise Missing(f"{self} has no bank {name}")
        incarnation, sequence, turn, checkpoint, written, counted, counts = row
        parts = self._query(
            "SELECT body FROM {schema}.checkpoint WHERE bank = %s AND sequence = %s ORDER BY part", name, checkpoint
        ).fetchall()
        changes = self._query(
            "SELECT sequence, turn, body, events FROM {schema}.change WHERE bank = %s AND sequence > %s"
            " ORDER BY sequence",
            name,
            checkpoint,
        )
        head = Head(name, Position(incarnation, sequence, turn, counted), checkpoint, written, counts, follows=True)
        head.tail = [Tail(*change) for change in changes]
        return Content(head, Parts(part for (part,) in parts) if parts else None, counts)

    def snapshots(self, name: str) -> list[tuple[str, datetime, bytes]]:
        """The snapshots of a bank, the oldest first."""
        statement = "SELECT name, created, body FROM {schema}.snapshot WHERE bank = %s ORDER BY created, name"
        return [(saved, created, body) for saved, created, body in self._query(statement, name)]

    def banks(self) -> Iterator[StoredBank]:
        """Every bank; StoreDamaged."""
        for name in self.names():
            documents = memory_store(KINDS)
            content = self.content(name)
            fill(documents, content)
            yield _stored(name, documents, content.head.position.sequence, self.snapshots(name))

    def write(self, secrets: Secrets, banks: Iterator[StoredBank], *, replace: bool) -> Copied:
        """Make the store what is given, in one transaction."""
        with self._open("BEGIN ISOLATION LEVEL READ COMMITTED", writes=True):
            locked = self._query("SELECT name, sequence, counts FROM {schema}.bank ORDER BY name FOR UPDATE")
            heads = {name: (sequence, counts) for name, sequence, counts in locked}
            present = sorted(heads.keys() - {SERVICE})
            has_ca = self._query("SELECT 1 FROM {schema}.secret LIMIT 1").fetchone() is not None
            if (present or has_ca) and not replace:
                what = f"banks ({', '.join(present)})" if present else "a sandbox CA"
                raise TargetHoldsBanks(f"{self} holds {what}; --replace deletes what is there")
            for table in ("change", "checkpoint", "exchange", "snapshot"):
                self._query(f"DELETE FROM {{schema}}.{table} WHERE bank <> ''")
            self._query("DELETE FROM {schema}.bank WHERE name <> ''")
            self._query("DELETE FROM {schema}.secret")
            service, about = heads[SERVICE][0] + 1, orjson.loads(heads[SERVICE][1])
            latest, created = about.get("made", 0), about.get("created", {})
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
                self._query(
                    "INSERT INTO {schema}.secret (kind, name, version, body) VALUES (%s, %s, %s, %b)",
                    kind,
                    name,
                    service,
                    secret_of(files),
                )
            turn = uuid4()
            self._query(
                "INSERT INTO {schema}.change (bank, sequence, turn, body) VALUES ('', %s, %s, %b)", service, turn, b"{}"
            )
            self._query(
                "UPDATE {schema}.bank SET sequence = %s, turn = %s, counts = %b, counted = counted + 1 WHERE name = ''",
                service,
                turn,
                orjson.dumps({**about, "made": latest, "created": created}),
            )
            return copied

    def _write_bank(self, bank: StoredBank, incarnation: int) -> None:
        self._query(
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
            self._query(
                "INSERT INTO {schema}.checkpoint (bank, sequence, part, body) VALUES (%s, %s, %s, %b)",
                bank.name,
                bank.sequence,
                part,
                bank.body[at : at + PART],
            )
        for name, created, body in bank.snapshots:
            self._query(
                "INSERT INTO {schema}.snapshot (bank, name, created, body) VALUES (%s, %s, %s, %b)",
                bank.name,
                name,
                created,
                body,
            )

    # Checking

    def check(self) -> list[Checked]:
        """Everything that is stored, as of one moment; StoreError where it cannot be looked at."""
        with self._open("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            return [self._check_service(), *(self._check_bank(name) for name in self.names())]

    def _check_service(self) -> Checked:
        checked = Checked("the service", 0)
        rows = self._query("SELECT sequence FROM {schema}.bank WHERE name = ''").fetchall()
        if len(rows) != 1:
            checked.problems.append("its row in bank is missing")
            return checked
        checked.sequence = rows[0][0]
        self._check_positions(checked, SERVICE, checked.sequence, checked.sequence)
        try:
            secrets = self.secrets()
        except ValueError as error:
            checked.problems.append(f"a secret cannot be read: {error}")
            return checked
        missing = [file for file in _CA_FILES if file not in secrets.get((CA, ""), {})]
        if missing and self.names():
            checked.problems.append(f"the sandbox CA is not whole: {', '.join(missing)}")
        for (kind, name), files in secrets.items():
            if kind == TPP and not {"certificate.pem", "key.pem"} <= files.keys():
                checked.problems.append(f"the TPP {name} has no certificate or key")
        return checked

    def _check_bank(self, name: str) -> Checked:
        content = self.content(name)
        head = content.head
        checked = Checked(name, head.position.sequence)
        if head.checkpoint and content.snapshot is None:
            checked.problems.append(f"the checkpoint at change {head.checkpoint} is missing")
        self._check_positions(checked, name, head.checkpoint, head.position.sequence)
        last = head.tail[-1] if head.tail else None
        if last is not None and last.sequence == head.position.sequence and last.turn != head.position.turn:
            checked.problems.append("the head names another turn than its last change")
        if not checked.problems:
            self._check_documents(checked, content)
        for saved, _, body in self.snapshots(name):
            try:
                Image.from_bytes(body, KINDS, file=Path(saved))
            except StoreError as error:
                checked.problems.append(f"the snapshot {saved} cannot be read: {error}")
        for number, body in self._query("SELECT id, body FROM {schema}.exchange WHERE bank = %s ORDER BY id", name):
            try:
                orjson.loads(body)
            except ValueError:
                checked.problems.append(f"the exchange {number} of the request log cannot be read")
        return checked

    def _check_documents(self, checked: Checked, content: Content) -> None:
        documents = memory_store(KINDS)
        try:
            fill(documents, content)
        except (StoreError, ValueError, KeyError, TypeError) as error:
            checked.problems.append(
                error.reason if isinstance(error, StoreDamaged) else f"a change cannot be read: {error}"
            )
            return
        tables = documents.tables
        checked.documents = sum(len(table.rows) for table in tables.values())
        for kind, table in tables.items():
            if (wrong := disagreement(table)) is not None:
                checked.problems.append(f"kind {kind}: {wrong}")

    def _check_positions(self, checked: Checked, name: str, checkpoint: int, sequence: int) -> None:
        """Changes up to the head, one by one, from the checkpoint on at least."""
        row = self._query(
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


@dataclass(slots=True)
class Checked:
    """What was found of a bank, or of the service as a whole."""

    name: str
    sequence: int
    documents: int = 0
    problems: list[str] = field(default_factory=list)


def place(text: str, schema: str) -> Directory | Shared:
    """A directory or the URL of a PostgreSQL."""
    return Shared(text, schema) if re.match(r"postgres(ql)?://", text) else Directory(Path(text))
