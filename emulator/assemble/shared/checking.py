"""Checks what a PostgreSQL stores of a service (`state check --store`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import orjson

from emulator.assemble.shared.authority import CA, TPP
from emulator.assemble.shared.copying import CA_FILES
from emulator.assemble.shared.open_bank import fill, image_of
from emulator.assemble.shared.shared_store import SharedStore
from emulator.bank.kinds import KINDS
from emulator.store import StoreDamaged, StoreError, memory_store
from emulator.store.check import disagreement
from emulator.store.postgres import SERVICE, Content
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
    with stored.open("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"):
        return [_check_service(stored), *(_check_bank(stored, name) for name in stored.names())]


def _check_service(stored: SharedStore) -> Checked:
    checked = Checked("the service", 0)
    rows = stored.query("SELECT sequence FROM {schema}.bank WHERE name = ''").fetchall()
    if len(rows) != 1:
        checked.problems.append("its row in bank is missing")
        return checked
    checked.sequence = rows[0][0]
    _check_positions(stored, checked, SERVICE, checked.sequence, checked.sequence)
    try:
        secrets = stored.secrets()
    except ValueError as error:
        checked.problems.append(f"a secret cannot be read: {error}")
        return checked
    missing = [file for file in CA_FILES if file not in secrets.get((CA, ""), {})]
    if missing and stored.names():
        checked.problems.append(f"the sandbox CA is not whole: {', '.join(missing)}")
    for (kind, name), files in secrets.items():
        if kind == TPP and not {"certificate.pem", "key.pem"} <= files.keys():
            checked.problems.append(f"the TPP {name} has no certificate or key")
    return checked


def _check_bank(stored: SharedStore, name: str) -> Checked:
    content = stored.content(name)
    head = content.head
    checked = Checked(name, head.position.sequence)
    if head.checkpoint and content.snapshot is None:
        checked.problems.append(f"the checkpoint at change {head.checkpoint} is missing")
    _check_positions(stored, checked, name, head.checkpoint, head.position.sequence)
    last = head.tail[-1] if head.tail else None
    if last is not None and last.sequence == head.position.sequence and last.turn != head.position.turn:
        checked.problems.append("the head names another turn than its last change")
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
    try:
        fill(documents, content, image_of(content))
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
