"""A state directory with very many payments in it, copied from what one real payment left in the documents."""

from __future__ import annotations

import json
import uuid
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from emulator.bank.kinds import KINDS
from emulator.store import Documents, open_store
from tests.bench.customers import Customer
from tests.bench.harness import bank

ByKind = dict[str, list[dict[str, Any]]]

BY_NAME = {kind.name: kind for kind in KINDS}

COUNT = 100_000
AT_ONCE = 1000  # payments in one change of the store


def filled(count: int) -> Path:
    """A state directory with `count` payments, created once for this run; copy it before you change it."""
    return Path(_filled(count).name)


@cache
def _filled(count: int) -> TemporaryDirectory[str]:
    folder = TemporaryDirectory()
    fill(Path(folder.name), count)
    return folder


def fill(state: Path, count: int) -> None:
    """Put `count` payments, with all that belongs to each, into the default bank of `state`."""
    with bank(state) as server:
        customer = Customer(server.port, state)
        before = _documents(customer.control("GET", "state"))
        customer.a_payment()
        after = _documents(customer.control("GET", "state"))
    new = {
        kind: [document for document in documents if document not in before.get(kind, []) and kind != "meta"]
        for kind, documents in after.items()
    }
    own = {document["id"] for documents in new.values() for document in documents}
    pattern = json.dumps({kind: documents for kind, documents in new.items() if documents})
    store = open_store(state / "banks" / "default", KINDS)
    try:
        for begin in range(1, count, AT_ONCE):
            with store.transaction():
                for _ in range(begin, min(begin + AT_ONCE, count)):
                    _put_another(store, pattern, own)
    finally:
        store.close()


def _put_another(store: Documents, pattern: str, own: set[str]) -> None:
    """The documents of `pattern` once more, under ids of their own."""
    for identity in own:
        pattern = pattern.replace(identity, _another(identity))
    for kind, documents in json.loads(pattern).items():
        for document in documents:
            store.put(BY_NAME[kind], document)


def _documents(state: dict[str, Any]) -> ByKind:
    """The documents by kind out of `GET state`."""
    documents = state.get("documents", state)
    return {kind: listed for kind, listed in documents.items() if isinstance(listed, list)}


def _another(identity: str) -> str:
    other = uuid.uuid4()
    return str(other) if len(identity) == 36 else other.hex.ljust(len(identity), "x")[: len(identity)]
