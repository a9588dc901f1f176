"""A creation that is repeated with the same X-Request-ID gets the stored answer (requests.md#repeating-a-request).

Only a 201 is remembered, in the transaction that creates the resource: an answer that was lost on its way is there for
the repeat, and one whose change was undone is not. After a refusal the id is free.

    the id was used                 answer
    never, or over 24 hours ago     the handler's
    for the very same request       the stored 201, byte for byte; nothing is created
    for another request             409 CONFLICT

A repeat passes the gates before this one again: its signature, customer and access must still be valid.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

from orjson import Fragment

from emulator.api.operation import Call, Reply
from emulator.api.render import encode
from emulator.bank.bank import Bank
from emulator.bank.clock import later
from emulator.bank.documents import Repeat
from emulator.bank.errors import BankError
from emulator.bank.kinds import REPEAT
from emulator.bank.tpp import prefix
from emulator.store import Documents

WINDOW = timedelta(hours=24)
SWEEP = 16  # creations between two searches for expired ones


def once(call: Call) -> Reply[Any]:
    """The stored answer for a repeat, else the answer of the operation's handler, stored if it is a 201."""
    request_id = call.headers.get("x-request-id")
    if request_id is None:
        return call.operation.handler(call)
    identity = prefix(call.tpp.id) + request_id
    fingerprint = _fingerprint(call)
    if call.bank.documents.exists(REPEAT, identity):
        stored = _stored(call.bank, identity, fingerprint)
        if stored is not None:
            return stored
    reply = call.operation.handler(call)
    if reply.status == 201:
        _remember(call.bank, identity, fingerprint, reply)
    return reply


def _stored(bank: Bank, identity: str, fingerprint: str) -> Reply[Any] | None:
    """The earlier 201, or None if it has expired; CONFLICT if the id was used for another request."""
    stored = bank.documents.get(REPEAT, identity)
    if stored is None:
        return None
    if stored["created"] <= later(bank.clock.stamp(), -WINDOW):
        # Deleted first, so that its replacement becomes the newest document.
        bank.documents.delete(REPEAT, identity)
        return None
    if stored["print"] != fingerprint:
        text = "This X-Request-ID was used for another request within the last 24 hours."
        raise BankError("CONFLICT", text, "X-Request-ID")
    headers = tuple((name, value) for name, value in stored["headers"])
    # Decoding and encoding preserve every byte of the body.
    return Reply(201, encode(stored["body"]), headers)


def _remember(bank: Bank, identity: str, fingerprint: str, reply: Reply[Any]) -> None:
    """Store a 201 for 24 hours of bank time, and delete expired ones; the answer is sent as it is stored."""
    documents = bank.documents
    now = bank.clock.stamp()
    if documents.count(REPEAT) % SWEEP == 0:
        _sweep(documents, later(now, -WINDOW))
    reply.body = body = encode(reply.body)
    headers = list(reply.headers)
    documents.put(REPEAT, Repeat(id=identity, created=now, print=fingerprint, headers=headers, body=Fragment(body)))


def _sweep(documents: Documents, over: str) -> None:
    """Delete up to two expired documents per creation, so that their number shrinks without one long sweep."""
    if any(oldest["created"] <= over for oldest in documents.range(REPEAT, "created", limit=1)):
        for old in documents.range(REPEAT, "created", limit=2 * SWEEP):
            if old["created"] <= over:
                documents.delete(REPEAT, old["id"])


def _fingerprint(call: Call) -> str:
    """A hash of what distinguishes requests: method, address, customer and body.

    X-PSU-IDENTITY counts if there is no PSU-ID.
    """
    request, header = call.request, call.headers.get
    customer = header("psu-id", "") or header("x-psu-identity", "")
    agreement = header("psu-corporate-id", "")
    head = f"{request.method}\0{request.target}\0{customer}\0{agreement}\0".encode("utf-8", "surrogateescape")
    return hashlib.blake2b(head + request.body, digest_size=16).hexdigest()
