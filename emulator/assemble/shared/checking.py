"""Checks what a PostgreSQL stores of a service (`state check --store`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from emulator.assemble.shared.authority import CA, check_secret
from emulator.assemble.shared.open_bank import counters_of, fill, image_of
from emulator.assemble.shared.shared_store import SharedStore
from emulator.bank.kinds import KINDS
from emulator.store import StoreError, memory_store
from emulator.store.check import disagreement
from emulator.store.postgres import SERVICE, Content, StoredDataDamaged
from emulator.store.snapshot import image_from_bytes


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
    checked.problems += _damage(counters_of, SERVICE, counts)
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
    if not checked.problems:
        _check_documents(checked, content)
    for saved, _, body in stored.snapshots(name):
        try:
            image_from_bytes(body, KINDS, file=Path(saved))
        except StoreError as error:
            checked.problems.append(f"the snapshot {saved} cannot be read: {error}")
    for number, body in stored.query("SELECT id, body FROM {schema}.exchange WHERE bank = %s ORDER BY id", name):
        try:
            orjson.loads(body)
        except ValueError:
            checked.problems.append(f"the exchange {number} of the request log cannot be read")
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
