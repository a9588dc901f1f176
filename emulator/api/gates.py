"""The last two gates of a request, within its transaction: who its customer is, and whether it was made before.

`admit` is the gate "PSU and access" with its quotas; where it refuses because SCA must come first, `open_access` opens
that SCA (consents.md).

`once` gives a creation that is repeated with the same X-Request-ID the stored answer
(requests.md#repeating-a-request). Only a 201 is remembered, in the transaction that creates the resource: an answer
that was lost on its way is there for the repeat, and one whose change was undone is not. After a refusal the id is
free.

    the id was used                 answer
    never, or over 24 hours ago     the handler's
    for the very same request       the stored 201, byte for byte; nothing is created
    for another request             409 CONFLICT

A repeat passes the gates before this one again: its signature, customer and access must still be valid.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any, cast

from orjson import Fragment

from emulator.api.headers import SANDBOX, Headers, with_one_spelling
from emulator.api.notification_headers import SENT_URI, subscribe
from emulator.api.operation import AISP, Access, Call, Reply
from emulator.api.render import AMOUNTS_ARE_TEXT_FROM, amounts, encode, fixes, with_warnings
from emulator.bank.authentication import authorisations
from emulator.bank.bank import Bank
from emulator.bank.clock import later
from emulator.bank.customers import access, people
from emulator.bank.documents import Approach, Repeat, ScaTarget
from emulator.bank.errors import BankError
from emulator.bank.ids import prefix
from emulator.bank.kinds import AGREEMENT, REPEAT
from emulator.store import Documents

_OPEN, _PSU, _SESSION = Access.OPEN, Access.PSU, Access.SESSION  # faster than attribute access for each request
_IDENTIFYING = ("psu-id", "x-psu-identity", "tpp-session-id", "psu-context", "psu-corporate-id")


def claim(headers: Headers, tpp_id: str) -> access.Claim:
    """A request's statements about its customer, from its headers."""
    header = headers.get
    return access.Claim(
        tpp_id=tpp_id,
        psu_id=header("psu-id"),
        identity=header("x-psu-identity"),
        session_id=header("tpp-session-id"),
        context=header("psu-context"),
        agreement=header("psu-corporate-id"),
        attended=header("psu-ip-address") is not None,
    )


def admit(call: Call) -> access.Caller | None:
    """The customer of a request, as far as its operation needs one; ScaNeeded if SCA must come first."""
    operation = call.operation
    needed = operation.access
    if needed is _PSU:
        return _payer(call)
    if needed is _OPEN:
        return None
    claimed = claim(call.headers, call.tpp.id)
    if needed is _SESSION:
        return access.session_holder(call.bank, claimed)
    resource = call.params.get("id")
    caller = access.account_reader(
        call.bank, claimed, resource=resource, kind=operation.resource, quota=operation.quota
    )
    exhausted = call.script.quota_exhausted
    if operation.quota and caller.held is not None and (exhausted or not claimed.attended):
        access.count_unattended(call.bank, claimed, caller.held["id"], operation.quota, exhausted=exhausted)
    return caller


def _payer(call: Call) -> access.Caller | None:
    """The customer of a payment or basket; cached by the request's headers until a document changes."""
    key = (call.tpp.id, *map(call.headers.get, _IDENTIFYING))
    cached: dict[Any, access.Caller | None] = call.bank.payers.values()
    if key in cached:
        return cached[key]
    cached[key] = caller = access.payer(call.bank, claim(call.headers, call.tpp.id))
    return caller


def likely_context(call: Call, tpp_id: str) -> str | None:
    """The context of a request, as far as it is known before or after the gates (see `access`)."""
    sent = call.request.headers  # the request log has no parsed headers
    claimed = claim(Headers(with_one_spelling(sent) or sent), tpp_id)
    return access.likely_context(call.bank, claimed, of_session=call.operation.access is _SESSION)


def open_access(call: Call, *, purpose: str | None = None, target: str | None = None) -> str:
    """Open the SCA of a request whose customer must authenticate first, and return its token.

    The SCA of an account operation results in a consent, that of other operations only in a session.
    """
    header = call.headers.get
    if header("tpp-redirect-uri") is None:
        raise BankError(
            "HTTP_HEADER_REQUIRED",
            "The customer must authenticate first; the browser then returns to this address.",
            "TPP-Redirect-URI",
        )
    members = cast(ScaTarget, {**approach_of(call)})
    psu_id, agreement, context = header("psu-id"), header("psu-corporate-id"), header("psu-context")
    psu = people.psu_of(call.bank, call.tpp.id, psu_id) if psu_id else None
    if psu is not None:
        members["presumed"] = psu["nationalId"]
    if agreement is not None and call.bank.documents.exists(AGREEMENT, agreement):
        members["agreement"] = agreement
    if context:
        members["context"] = context
    if target is not None:
        members["target"] = target
    if purpose is None:
        reads_accounts = call.operation.roles == AISP and "AISP" in call.tpp.roles
        purpose = "access" if reads_accounts else "user"
    return authorisations.open_sca(call.bank, call.tpp.id, purpose, members)


def approach_of(call: Call) -> Approach:
    """The approach to the customer's SCA that the request's headers ask for."""
    header = call.headers.get
    members = {
        "tppName": header("tpp-brand-logging-information") or call.tpp.name,
        "app": header("tpp-redirect-preferred") == "false",
        "method": authorisations.offered_method(header("x-psu-authmethod-preferred")),
        "language": header("psu-accept-language"),
        "outcome": call.script.sca,
        "delay": call.script.sca_delay,
        "sessionId": header("tpp-session-id"),
        "identityHint": header("x-psu-identity"),
    }
    stated = {member: value for member, value in members.items() if value}
    return cast(Approach, {"redirectUri": header("tpp-redirect-uri") or "", **stated})


WINDOW = timedelta(hours=24)
SWEEP = 16  # creations between two searches for expired ones


def once(call: Call) -> Reply[Any]:
    """The stored answer for a repeat, else the answer of the operation's handler, stored if it is a 201."""
    request_id = call.headers.get("x-request-id")
    if request_id is None:
        return handled(call)
    identity = prefix(call.tpp.id) + request_id
    fingerprint = _fingerprint(call)
    if call.bank.documents.exists(REPEAT, identity):
        stored = _stored(call.bank, identity, fingerprint)
        if stored is not None:
            return stored
    reply = handled(call)
    if reply.status == 201:
        _remember(call.bank, identity, fingerprint, reply)
    return reply


def handled(call: Call) -> Reply[Any]:
    """The answer of the operation's handler; a 201 subscribes the TPP to notifications, if the request asks for it.

    Its amounts are text or numbers as x-accept-fix says, except in sandbox data.
    """
    operation = call.operation
    reply = operation.handler(call)
    if call.bank.clock.stamp() < AMOUNTS_ARE_TEXT_FROM and operation.column != SANDBOX:
        reply.body = amounts(reply.body, fixes(call))
    if operation.notifies and SENT_URI in call.headers and call.bank.settings.notifications and reply.status == 201:
        subscribe(call, reply, *operation.notifies)
    if call.warnings:
        reply.body = with_warnings(reply.body, call.warnings)
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
