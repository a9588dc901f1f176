"""Copies a whole service from a state directory or a PostgreSQL to another one, and a directory as such a place.

What is copied: every bank's documents as of its last change, its snapshots, the sandbox CA with all TPPs. What is not:
the request log and the counters of rules, which a directory does not keep either.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from emulator.assemble.folders import Folders, complete, replacement
from emulator.assemble.storage import ENDING, snapshot_files
from emulator.assemble.stored_authority import ANSWERS, CA, CA_FILES, TPP
from emulator.bank.kinds import BANK, KINDS
from emulator.ca.files import ca_file, check_plain, make_private, write_folder, write_private
from emulator.store import Store, StoreError, memory_store
from emulator.store.disk import Disk, shared_lock
from emulator.store.recovery import SNAPSHOT, recover
from emulator.store.snapshot import snapshot_bytes

Secrets = dict[tuple[str, str], dict[str, bytes]]
"""The CA, the bank's certificate and the TPPs: by kind and name, the content of each file."""


class TargetHoldsBanks(StoreError):
    """The target is not empty; the text names what it contains."""


class InUse(StoreError):
    """Processes use the target; the text names it and where one of them is connected from."""


class Missing(StoreError):
    """The source is empty; the text names it."""


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


def stored_bank(name: str, documents: Store, sequence: int, saved: Sequence[tuple[str, datetime, bytes]]) -> StoredBank:
    """The bank with these documents as of change `sequence`; `saved`: its snapshots, the oldest first."""
    origin = BANK.read(documents)
    stream = name if origin is None else origin.get("stream", name)
    return StoredBank(name, sequence, snapshot_bytes(documents.image().tables, sequence), stream, saved)


class Place(Protocol):
    """Where a service is stored. Raises StoreError, OSError."""

    def reading(self) -> AbstractContextManager[None]:
        """A `with` block in which the place is read, as of one moment."""
        ...

    def secrets(self) -> Secrets:
        """The CA and the TPPs."""
        ...

    def banks(self) -> Iterator[StoredBank]:
        """All banks."""
        ...

    def write(self, secrets: Secrets, banks: Iterator[StoredBank], *, replace: bool) -> Copied:
        """Store these in place of the present content; TargetHoldsBanks if there is some and not `replace`, StoreLocked
        or InUse if processes use it.
        """
        ...


def copy(source: Place, target: Place, *, replace: bool) -> Copied:
    """Copy everything; StoreError (TargetHoldsBanks without `replace`, Missing, StoreLocked, InUse), OSError."""
    with source.reading():
        return target.write(source.secrets(), source.banks(), replace=replace)


class Directory:
    """A state directory that no process uses."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._folders = Folders(state / "banks", power=True)

    def __str__(self) -> str:
        return str(self._state)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A `with` block in which no process can write to any bank; StoreLocked."""
        complete(self._state)
        names = self._folders.names()
        if not names:
            raise Missing(f"{self._state} holds no bank")
        check_plain(self._state)
        with ExitStack() as locked:
            for name in sorted(names):
                locked.enter_context(shared_lock(self._folders.of(name)))
            yield

    def secrets(self) -> Secrets:
        """The files of the CA and of the TPPs."""
        if not (self._state / "ca.pem").exists():
            raise Missing(f"{self._state} has no sandbox CA (ca.pem)")
        secrets: Secrets = {(CA, ""): {name: ca_file(self._state, name).read_bytes() for name in CA_FILES}}
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
            yield stored_bank(name, documents, documents.sequence, list(self._snapshots(folder / "snapshots")))

    @staticmethod
    def _snapshots(folder: Path) -> Iterator[tuple[str, datetime, bytes]]:
        for file in sorted(snapshot_files(folder), key=lambda file: file.stat().st_mtime):
            created = datetime.fromtimestamp(file.stat().st_mtime, UTC)
            yield file.name.removesuffix(ENDING), created, file.read_bytes()

    def write(self, secrets: Secrets, banks: Iterator[StoredBank], *, replace: bool) -> Copied:
        """Replace the content of this directory by what is given."""
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
        file = folder / "snapshots" / f"{name}{ENDING}"
        write_private(file, body)
        os.utime(file, (created.timestamp(), created.timestamp()))


def _write_secrets(state: Path, secrets: Secrets) -> None:
    for (kind, name), files in secrets.items():
        if kind == CA:
            for file, content in files.items():
                make_private(ca_file(state, file).parent)
                write_private(ca_file(state, file), content)
        else:
            folder = state / "bank" if kind == ANSWERS else state / "tpps" / name
            write_folder(folder, files, replace=True)


def _content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}
