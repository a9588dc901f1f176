"""The tables of a PostgreSQL as of one moment: a place to copy from and to, and to check (`state check --store`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from time import monotonic, sleep, time_ns
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import make_conninfo

from emulator.assemble.copying import StoredFile, not_empty
from emulator.assemble.handover import memory_read
from emulator.assemble.stored_authority import ANSWERS, CA, KEEP, READ, TPP, files_of, secret_of
from emulator.bank.kinds import KINDS
from emulator.ca.files import ca_file
from emulator.store import SNAPSHOTS, LoadedDocuments, StoreError
from emulator.store.check import undecodable
from emulator.store.journal import SNAPSHOT
from emulator.store.postgres import layout
from emulator.store.postgres.connection import StoredDataDamaged, StoreSession, application_name, session, unusable
from emulator.store.postgres.log import CHANGES, PART, PARTS, Content, row_of
from emulator.store.snapshot import snapshot_bytes

_OWN_NAME = "bank-emulator state"  # of the application, as PostgreSQL shows it
_ENDING = 4.0  # seconds after the end of a process in which its connections may still look used
# A process renews its leases each second. A connection without that is one that a pool of PostgreSQL keeps; those of
# other roles may hide what they do.
_USER = (
    "SELECT coalesce(host(client_addr), 'this machine') FROM pg_catalog.pg_stat_activity"
    " WHERE datname = current_database() AND application_name = left(%s, 63) AND pid <> pg_backend_pid()"
    " AND (state IS DISTINCT FROM 'idle' OR state_change > clock_timestamp() - interval '3 seconds') LIMIT 1"
)
_ALL = 2**31 - 1
_LATEST = 7_258_118_400_000_000  # the year 2200 in microseconds since 1970


class StoredService:
    """A PostgreSQL; `url` has all that a connection needs."""

    def __init__(self, url: str, schema: str) -> None:
        self._url = url
        self._schema = schema

    def __str__(self) -> str:
        parts = urlsplit(self._url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path} (schema {self._schema})"

    @contextmanager
    def open(self, *, writes: bool = False) -> Iterator[StoreSession]:
        """A transaction that reads as of one moment, or one that `writes`; before that, tables are made or migrated.

        StoreError for a server that cannot be used and a layout that this program does not know.
        """
        try:
            with session(make_conninfo(self._url, application_name=_OWN_NAME), self._schema) as opened:
                (layout.prepare if writes else layout.verify)(opened)
                opened.rows(f"BEGIN ISOLATION LEVEL {'READ COMMITTED' if writes else 'REPEATABLE READ READ ONLY'}")
                yield opened
                opened.rows("COMMIT")
        except psycopg.Error as error:
            raise unusable(error, self._schema) from error

    @contextmanager
    def reading(self) -> Iterator[Iterator[StoredFile]]:
        """Everything as of one moment, also while processes write; StoredDataDamaged."""
        with self.open() as opened:
            if not _names(opened):
                raise StoreError(f"{self} holds no bank")
            yield _files(opened)

    def write(self, files: Iterator[StoredFile], *, replace: bool) -> None:
        """Replace the content of the store by what is given, in one transaction."""
        with self.open(writes=True) as opened:
            if replace:
                self._check_unused(opened)
            opened.rows("SELECT news FROM {schema}.layout FOR UPDATE")
            locked = opened.rows("SELECT name, sequence FROM {schema}.bank ORDER BY name FOR UPDATE")
            present = [name for name, sequence in locked if sequence > 0]
            if (present or opened.rows("SELECT 1 FROM {schema}.secret WHERE kind = %s", CA)) and not replace:
                raise not_empty(self, present)
            self._check_unused(opened)  # again: from now on a process that starts waits for the lock
            for table in ("change", "checkpoint", "secret"):
                opened.rows(f"DELETE FROM {{schema}}.{table} WHERE true")
            # the rows stay, as their epochs must not begin again: a process may still believe to have a bank
            opened.rows(
                "UPDATE {schema}.bank SET epoch = epoch + 1, sequence = 0, checkpoint = 0, home = NULL,"
                " until = 'epoch', memory = NULL"
            )
            for (kind, name), group in groupby(files, _secret):
                if kind:
                    body = secret_of({file.path.name: file.content for file in group})
                    opened.rows(KEEP, kind, name, body, True)
                    continue
                for file in group:
                    if file.path.name == SNAPSHOT:
                        _write_bank(opened, name, file.content)
                    else:
                        _write_file(opened, name, row_of(file.path.name), file.content)

    def _check_unused(self, opened: StoreSession) -> None:
        """StoreError if processes use the store; those that have just ended may have a connection for a moment."""
        name = application_name(self._url, self._schema)
        until = monotonic() + _ENDING
        while True:
            opened.rows("SELECT pg_catalog.pg_stat_clear_snapshot()")  # else a transaction sees the same each time
            users = opened.rows(_USER, name)
            if not users:
                return
            if monotonic() > until:
                used = f"{self} is in use by a process connected from {users[0][0]}"
                raise StoreError(f"{used}: stop all processes that use it")
            sleep(_ENDING / 10)


def _names(opened: StoreSession) -> list[str]:
    """The existing banks."""
    return [name for (name,) in opened.rows("SELECT name FROM {schema}.bank WHERE sequence > 0 ORDER BY name")]


def _files(opened: StoreSession) -> Iterator[StoredFile]:
    for kind, name, _, body in opened.rows(READ, -1):
        folder = {ANSWERS: Path("bank"), TPP: Path("tpps", name)}.get(kind, Path())
        for file, content in files_of(kind, name, body).items():
            yield StoredFile(ca_file(folder, file) if kind == CA else folder / file, content)
    for name in _names(opened):
        documents, whole = LoadedDocuments(KINDS), _content(opened, name)
        whole.fill(documents)
        body = snapshot_bytes(documents.freeze(), whole.sequence)
        yield StoredFile(Path("banks", name, SNAPSHOT), body)
        for file in documents.contents():
            yield StoredFile(Path("banks", name, file), b"".join(whole.parts(row_of(file))))


def _content(opened: StoreSession, name: str) -> Content:
    """A bank: its checkpoint and the changes after it."""
    [(sequence, checkpoint)] = opened.rows("SELECT sequence, checkpoint FROM {schema}.bank WHERE name = %s", name)
    changes = opened.rows(CHANGES, name, checkpoint)
    return Content(name, partial(_parts, opened, name), sequence, checkpoint, changes)


def _parts(opened: StoreSession, name: str, number: int) -> Iterator[bytes]:
    return (body for (body,) in opened.rows(PARTS, name, number, 0, _ALL))


def _write_bank(opened: StoreSession, name: str, body: bytes) -> None:
    """A bank from its snapshot file, which says its last change, and which bank of its name it is."""
    sequence = int(re.findall(rb'"sequence":(\d+)', body[:256])[0])
    numbered = re.search(rb'"stream":"%b:(\d+)"' % name.encode(), body)
    opened.rows(
        "INSERT INTO {schema}.bank AS b (name, epoch, made, sequence, checkpoint, written)"
        " VALUES (%s, 1, %s, %s, %s, %s)"
        " ON CONFLICT (name) DO UPDATE SET epoch = b.epoch + 1, made = greatest(b.made, excluded.made),"
        " sequence = excluded.sequence, checkpoint = excluded.checkpoint, written = excluded.written",
        *(name, int(numbered[1]) - 1 if numbered else 0, sequence, sequence, time_ns() // 1000),
    )
    _write_file(opened, name, sequence, body)


def _write_file(opened: StoreSession, name: str, number: int, body: bytes) -> None:
    for part, at in enumerate(range(0, len(body), PART)):
        values = (name, number, part, body[at : at + PART])
        opened.rows("INSERT INTO {schema}.checkpoint VALUES (%s, %s, %s, %b)", *values)


def _secret(file: StoredFile) -> tuple[str, str]:
    """Kind and name of the secret that a file belongs to; "" and the bank for one that is none."""
    folder, name, *_ = (*file.path.parts, "")
    return {"banks": ("", name), "tpps": (TPP, name), "bank": (ANSWERS, "")}.get(folder, (CA, ""))


@dataclass(slots=True)
class Checked:
    """The result for a bank, or for the service as a whole."""

    name: str
    sequence: int = 0
    documents: int = 0
    problems: list[str] = field(default_factory=list)

    @contextmanager
    def finding(self, what: str = "") -> Iterator[None]:
        """A `with` block that reads something, which may be damaged."""
        try:
            yield
        except StoredDataDamaged as error:
            self.problems.append(error.problem)
        except (StoreError, ValueError) as error:
            self.problems.append(f"{what} cannot be read: {error}")


def check(stored: StoredService) -> list[Checked]:
    """Everything that is stored, as of one moment; StoreError if it cannot be read."""
    with stored.open() as opened:
        return [_check_service(opened), *(_check_bank(opened, name) for name in _names(opened))]


def _check_service(opened: StoreSession) -> Checked:
    from emulator.assemble.joining import SERVICE, about

    checked = Checked("the service")
    secrets = opened.rows("SELECT kind, name, version, body FROM {schema}.secret ORDER BY kind, name")
    for kind, name, version, body in secrets:
        checked.sequence = max(checked.sequence, version)
        with checked.finding():
            if kind == SERVICE:
                about(body)
            elif kind in (CA, ANSWERS, TPP):
                files_of(kind, name, body, checked=True)
    if _names(opened) and not any(secret[0] == CA for secret in secrets):
        checked.problems.append("the sandbox CA is missing")
    left = opened.rows(
        "SELECT DISTINCT bank FROM {schema}.change WHERE bank NOT IN (SELECT name FROM {schema}.bank) ORDER BY bank"
    )
    checked.problems += [f"the row in bank of {name} is missing" for (name,) in left]
    return checked


def _check_bank(opened: StoreSession, name: str) -> Checked:
    content, documents = _content(opened, name), LoadedDocuments(KINDS)
    checked = Checked(name, content.sequence)
    [(written, memory)] = opened.rows("SELECT written, memory FROM {schema}.bank WHERE name = %s", name)
    if not 0 <= written <= _LATEST:
        checked.problems.append(f"the time {written} in the row of bank {name} is out of range")
    with checked.finding(f"what the last home of bank {name} had in memory"):
        _ = memory and memory_read(memory)
    missing = sorted({*range(content.checkpoint + 1, content.sequence + 1)} - {number for number, _ in content.changes})
    if missing:
        checked.problems.append(f"{len(missing)} changes are missing, the first of them {missing[0]}")
    elif content.changes and content.changes[-1][0] > content.sequence:
        last = content.changes[-1][0]
        checked.problems.append(f"the head is at change {content.sequence}, the last stored one is {last}")
    if not checked.problems:
        with checked.finding():
            content.fill(documents)
            checked.documents = sum(len(table.rows) for table in documents.present().values())
        checked.problems += [f"kind {kind}: {wrong}" for kind, wrong in undecodable(documents).items()]
    for snapshot in documents.all(SNAPSHOTS):
        with checked.finding(f"the snapshot {snapshot['id']}"):
            content.image(documents.kinds, snapshot["content"])
    return checked
