"""Copies a whole service from a state directory or a PostgreSQL to another one.

What is copied: every bank's documents as of its last change, its snapshots, the sandbox CA with all TPPs. What is not:
the request log and the counters of rules, which a directory does not keep either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from emulator.bank.kinds import BANK
from emulator.store import Store, StoreError
from emulator.store.snapshot import snapshot_bytes

Secrets = dict[tuple[str, str], dict[str, bytes]]
"""The CA, the bank's certificate and the TPPs: by kind and name, the content of each file."""


class TargetHoldsBanks(StoreError):
    """The target is not empty; the text names what it contains."""


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
    """Where a service is stored; `open` gives access to it as of one moment. Raises StoreError, OSError."""

    def reading(self) -> Any:
        """A `with` block in which the place is read, as of one moment."""
        ...

    def secrets(self) -> Secrets:
        """The CA and the TPPs."""
        ...

    def banks(self) -> Iterator[StoredBank]:
        """All banks."""
        ...

    def write(self, secrets: Secrets, banks: Iterator[StoredBank], *, replace: bool) -> Copied:
        """Store these in place of the present content; TargetHoldsBanks if there is some and not `replace`."""
        ...


def copy(source: Place, target: Place, *, replace: bool) -> Copied:
    """Copy everything; StoreError (TargetHoldsBanks without `replace`, Missing, StoreLocked), OSError."""
    with source.reading():
        return target.write(source.secrets(), source.banks(), replace=replace)
