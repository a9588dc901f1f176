"""A state directory with very many payments in it, made by copying what one real payment left in the documents."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from emulator.bank.kinds import KINDS
from emulator.store import open_store
from tests.bench.customers import Customer
from tests.bench.harness import bank

Documents = dict[str, list[dict[str, Any]]]


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
        for _ in range(count - 1):
            copy = pattern
            for identity in own:
                copy = copy.replace(identity, _another(identity))
            with store.transaction():
                for kind, documents in json.loads(copy).items():
                    for document in documents:
                        store.put(kind, document)
    finally:
        store.close()


def _documents(state: dict[str, Any]) -> Documents:
    """The documents by kind out of `GET state`."""
    found = state.get("documents", state)
    return {kind: documents for kind, documents in found.items() if isinstance(documents, list)}


def _another(identity: str) -> str:
    made = uuid.uuid4()
    return str(made) if len(identity) == 36 else made.hex.ljust(len(identity), "x")[: len(identity)]
