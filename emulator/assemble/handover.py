"""What moves with a bank besides its documents when its home ends in order: request log and counters of rules.

It is JSON, compressed, as the next home answers nothing before it has it: a full log has five megabytes, a tenth of
that compressed, with a checksum. After a kill it is lost, as with a state directory, and so is what another version of
this program has left.
"""

from __future__ import annotations

import json
import logging
import zlib
from typing import Any

import orjson

from emulator.api.certificates import AuthenticatedTpp, read_certificate
from emulator.api.headers import Headers
from emulator.api.log import Exchange
from emulator.api.messages import Request, Response
from emulator.api.operation import Call
from emulator.api.router import split_target
from emulator.api.service import BankService
from emulator.api.signature import SignatureRefused, Verified
from emulator.bank.customers.access import Caller
from emulator.bank.errors import BankError, Message
from emulator.scenario.rules import RuleSet

logger = logging.getLogger(__name__)

FORM = 3  # raised when what is left changes
_GZIP = 31  # zlib's window bits for gzip: its CRC sees damage that the sums of zlib's own container miss


def memory_of(service: BankService) -> bytes:
    """What the next home of a bank is to have in memory."""
    rules = service.rules.counters() if isinstance(service.rules, RuleSet) else {}
    requests = [_plain(exchange) for exchange in reversed(list(service.log.newest()))]
    whole = {"form": FORM, "rules": rules, "requests": requests, "following": service.log.following}
    try:
        text = orjson.dumps(whole)
    except TypeError:  # a header contains text that is not UTF-8
        text = json.dumps(whole).encode()
    return zlib.compress(text, level=1, wbits=_GZIP)


def memory_read(memory: bytes) -> Any:
    """The JSON of what a home has left; ValueError if it is damaged."""
    try:
        return json.loads(zlib.decompress(memory, wbits=_GZIP))
    except zlib.error as error:
        raise ValueError(str(error)) from error


def remember(service: BankService, memory: bytes) -> None:
    """Continue with what the last home has left; what cannot be read is left out."""
    try:
        left = memory_read(memory)
        if left.get("form") != FORM:
            raise ValueError("another version of this program has left it")
        if isinstance(service.rules, RuleSet):
            service.rules.count_from(left["rules"])
        service.log.continue_from([_exchange(service, plain) for plain in left["requests"]], left["following"])
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        logger.warning("bank %s: what its last home had in memory cannot be read: %s", service.bank.name, error)


def _plain(exchange: Exchange) -> dict[str, Any]:
    """An exchange as JSON has it; bodies are text with one character per byte."""
    request, response, call, signature = exchange.request, exchange.response, exchange.call, exchange.signature
    body = request.body.decode("latin-1")
    plain: dict[str, Any] = {
        "id": exchange.id,
        "at": exchange.at,
        "request": (request.method, request.target, list(request.headers), body, request.base, request.prefix),
        "rules": list(exchange.rules),
        "seconds": exchange.seconds,
        "cut": exchange.cut_from,
        "created": exchange.created,
    }
    if response is not None:
        plain["response"] = response.status, response.headers, response.body.decode("latin-1")
    if call is not None:
        plain["tpp"] = call.tpp.id, call.tpp.name, sorted(call.tpp.roles)
        if (caller := call.caller) is not None:
            plain["caller"] = caller.national_id, caller.psu_id, caller.context, caller.agreement
    if isinstance(signature, Verified):
        plain["verified"] = list(signature.notes), signature.signing_string
    elif signature is not None:
        plain["refused"] = [(one.code, one.path, one.text) for one in signature.messages], signature.diagnosis()
    return plain


def _exchange(service: BankService, plain: dict[str, Any]) -> Exchange:
    """The exchange that `_plain` has made plain."""
    method, target, headers, body, base, prefix = plain["request"]
    request = Request(method, target, tuple(map(tuple, headers)), body.encode("latin-1"), base, prefix)
    exchange = Exchange(
        plain["id"],
        plain["at"],
        request,
        rules=plain["rules"],
        seconds=plain["seconds"],
        cut_from=plain["cut"] and tuple(plain["cut"]),
        created=plain["created"],
        counted=True,  # by the process that has answered it, if at all
    )
    if "response" in plain:
        status, pairs, body = plain["response"]
        exchange.response = Response(status, list(map(tuple, pairs)), body.encode("latin-1"))
    if "tpp" in plain:
        exchange.call = _call(service, request, plain)
    if "verified" in plain and exchange.call is not None:
        notes, signing_string = plain["verified"]
        certificate = read_certificate(Headers(request.headers).get("tpp-signature-certificate", ""))
        exchange.signature = Verified(exchange.call.tpp, certificate, tuple(notes), signing_string)
    elif "refused" in plain:
        faults, diagnosis = plain["refused"]
        exchange.signature = SignatureRefused(
            [Message(code, text, path) for code, path, text in faults], lambda: diagnosis
        )
    return exchange


def _call(service: BankService, request: Request, plain: dict[str, Any]) -> Call:
    path, query = split_target(request.target)
    try:
        route = service.router.find(request.method, path[len(request.prefix) :])
    except BankError as error:
        raise ValueError(f"target: {error}") from error
    call = Call(service.bank, request, route, route.operation, route.params, Headers(), query, request.base)
    identity, name, roles = plain["tpp"]
    call.tpp = AuthenticatedTpp(identity, name, frozenset(roles))
    if "caller" in plain:
        call.caller = Caller(*plain["caller"])
    return call
