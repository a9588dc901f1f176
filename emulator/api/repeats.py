"""Creations repeated under one X-Request-ID get the stored answer (CONTRACT 3.4)."""

from __future__ import annotations

import hashlib
from datetime import timedelta

from orjson import Fragment

from emulator.api.messages import Request
from emulator.api.operation import Reply
from emulator.api.render import Encoded, encode
from emulator.bank.bank import Bank
from emulator.bank.clock import later
from emulator.bank.errors import BankError

WINDOW = timedelta(hours=24)
SWEEP = 16  # creations from one look for old ones to the next


class Repeats:
    """The remembered creations of one request: look first, remember a 201 afterwards."""

    def __init__(self, bank: Bank, tpp_id: str, request_id: str, request: Request, psu: tuple[str, str]) -> None:
        self._bank = bank
        self._id = f"{tpp_id}|{request_id}"
        asked = "\0".join((request.method, request.target, *psu, "")).encode("utf-8", "surrogateescape")
        self._print = hashlib.blake2b(asked + request.body, digest_size=16).hexdigest()

    def stored(self) -> Reply | None:
        """The earlier 201, or None; CONFLICT when the id was used for another request."""
        known = self._bank.documents.get("repeat", self._id)
        if known is None:
            return None
        if known["created"] <= later(self._bank.clock.stamp(), -WINDOW):
            # what takes its place comes last
            self._bank.documents.delete("repeat", self._id)
            return None
        if known["print"] != self._print:
            text = "This X-Request-ID was used for another request within the last 24 hours."
            raise BankError("CONFLICT", text, "X-Request-ID")
        headers = tuple((name, value) for name, value in known["headers"])
        # what it reads, the encoder writes again byte for byte
        return Reply(201, Encoded(encode(known["body"])), headers)

    def remember(self, reply: Reply) -> Reply:
        """Keep a 201 for 24 hours of bank time, and let go of what is older; the answer as it is kept."""
        documents = self._bank.documents
        now = self._bank.clock.stamp()
        if documents.count("repeat") % SWEEP == 0:
            # Two for one: the collection shrinks as it is written, without a long sweep on any request.
            over = later(now, -WINDOW)
            if any(oldest["created"] <= over for oldest in documents.range("repeat", "created", limit=1)):
                for old in documents.range("repeat", "created", limit=2 * SWEEP):
                    if old["created"] <= over:
                        documents.delete("repeat", old["id"])
        body = encode(reply.body)
        document = {
            "id": self._id,
            "created": now,
            "print": self._print,
            "headers": reply.headers,
            "body": Fragment(body),
        }
        documents.put("repeat", document)
        return Reply(201, Encoded(body), reply.headers)
