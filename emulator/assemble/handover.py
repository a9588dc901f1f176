"""What moves with a bank besides its documents when its home ends in order: request log and counters of rules.

It is JSON, compressed, as the next home answers nothing before it has it: a full log has five megabytes, a tenth of
that compressed. After a kill it is lost, as with a state directory.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NotRequired

import orjson
from typing_extensions import TypedDict

from emulator.api.certificates import read_certificate
from emulator.api.headers import Headers
from emulator.api.log import Exchange
from emulator.api.messages import Request, Response
from emulator.api.operation import Call, Operation, Route
from emulator.api.router import Router, split_target
from emulator.api.service import BankService
from emulator.api.signature import Fault, SignatureRefused, Verified
from emulator.bank.bank import Bank
from emulator.bank.clock import date_time
from emulator.bank.customers.access import Caller
from emulator.bank.errors import BankError, Code
from emulator.bank.request import AuthenticatedTpp
from emulator.scenario.rules import RuleSet

if TYPE_CHECKING:
    from pydantic import TypeAdapter

logger = logging.getLogger(__name__)


def memory_of(service: BankService) -> bytes:
    """What the next home of a bank is to have in memory."""
    rules = service.rules.counters() if isinstance(service.rules, RuleSet) else {}
    requests = [(exchange.id, as_json(exchange).decode()) for exchange in reversed(list(service.log.newest()))]
    whole = {"rules": rules, "requests": requests, "following": service.log.following}
    return zlib.compress(orjson.dumps(whole), level=1)


def memory_read(memory: bytes) -> Any:
    """The JSON of what a home has left; ValueError."""
    try:
        # an earlier version did not compress it
        return orjson.loads(memory if memory.startswith(b"{") else zlib.decompress(memory))
    except zlib.error as error:
        raise ValueError(str(error)) from error


def remember(service: BankService, memory: bytes) -> None:
    """Continue with what the last home has left; what cannot be read of it is left out."""
    try:
        left = memory_read(memory)
        if isinstance(service.rules, RuleSet):
            service.rules.count_from(left.get("rules", {}))
        read = reader(service.bank, service.router)
        service.log.continue_from(
            [read(number, body.encode()) for number, body in left.get("requests", ())], left.get("following", 1)
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        logger.warning("bank %s: what its last home had in memory cannot be read: %s", service.bank.name, error)


class _ExchangeJson(TypedDict):
    """The JSON of an exchange."""

    at: str
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: str
    base: str
    prefix: str
    rules: list[str]
    seconds: float
    response: NotRequired[tuple[int, list[tuple[str, str]], str]]
    call: NotRequired[tuple[str, str, list[str]]]
    caller: NotRequired[tuple[str, str | None, str, str | None]]
    verified: NotRequired[tuple[list[str], str]]
    refused: NotRequired[tuple[list[tuple[Code, str, str]], dict[str, Any]]]
    cut: NotRequired[tuple[int, int]]
    created: NotRequired[str]


@cache
def _exchange_type() -> TypeAdapter[_ExchangeJson]:
    from pydantic import TypeAdapter

    return TypeAdapter(_ExchangeJson)


def as_json(exchange: Exchange) -> bytes:
    """An exchange as JSON; bodies are text with one character per byte."""
    request, response, call, signature = exchange.request, exchange.response, exchange.call, exchange.signature
    shown: dict[str, Any] = {
        "at": exchange.at,
        "method": request.method,
        "target": request.target,
        "headers": list(request.headers),
        "body": request.body.decode("latin-1"),
        "base": request.base,
        "prefix": request.prefix,
        "rules": list(exchange.rules),
        "seconds": exchange.seconds,
    }
    if response is not None:
        shown["response"] = [response.status, response.headers, response.body.decode("latin-1")]
    if call is not None:
        shown["call"] = [call.tpp.id, call.tpp.name, sorted(call.tpp.roles)]
        if call.caller is not None:
            caller = call.caller
            shown["caller"] = [caller.national_id, caller.psu_id, caller.context, caller.agreement]
    if isinstance(signature, Verified):
        shown["verified"] = [list(signature.notes), signature.signing_string]
    elif signature is not None:
        shown["refused"] = [list(map(list, signature.messages)), signature.diagnosis()]
    if exchange.cut_from is not None:
        shown["cut"] = exchange.cut_from
    if exchange.created is not None:
        shown["created"] = exchange.created
    try:
        return orjson.dumps(shown)
    except TypeError:  # a header contains text that is not UTF-8
        return json.dumps(shown, ensure_ascii=False).encode(errors="replace")


def stored_exchange(body: bytes) -> _ExchangeJson:
    """The result of `as_json`, decoded; ValueError if it is damaged."""
    from pydantic import ValidationError

    try:
        decoded = _exchange_type().validate_python(orjson.loads(body))
        date_time(decoded["at"])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except OverflowError as error:
        raise ValueError(f"at: {error}") from error
    return decoded


def reader(bank: Bank, router: Router[Operation, Route]) -> Callable[[int, bytes], Exchange]:
    """A function that makes an exchange from a number and the result of `as_json`; ValueError if that is damaged."""

    def read(number: int, body: bytes) -> Exchange:
        content = stored_exchange(body)
        request = Request(
            content["method"],
            content["target"],
            tuple(content["headers"]),
            content["body"].encode("latin-1"),
            content["base"],
            content["prefix"],
        )
        exchange = Exchange(number, content["at"], request, rules=content["rules"], seconds=content["seconds"])
        exchange.counted = True  # by the process that has answered it, if at all
        if "response" in content:
            status, pairs, text = content["response"]
            exchange.response = Response(status, pairs, text.encode("latin-1"))
        if "call" in content:
            exchange.call = _call(bank, router, request, content)
        if "verified" in content and exchange.call is not None:
            notes, signing_string = content["verified"]
            sent = next((value for name, value in request.headers if name.lower() == "tpp-signature-certificate"), "")
            certificate = read_certificate(sent)
            exchange.signature = Verified(exchange.call.tpp, certificate, tuple(notes), signing_string)
        elif "refused" in content:
            (first, *others), diagnosis = content["refused"]
            faults = [Fault(*fault) for fault in (first, *others)]
            exchange.signature = SignatureRefused(faults, lambda: diagnosis)
        exchange.cut_from = content.get("cut")
        exchange.created = content.get("created")
        return exchange

    return read


def _call(bank: Bank, router: Router[Operation, Route], request: Request, content: _ExchangeJson) -> Call:
    path, query = split_target(request.target)
    try:
        route = router.find(request.method, path[len(request.prefix) :])
    except BankError as error:
        raise ValueError(f"target: {error}") from error
    identity, name, roles = content["call"]
    call = Call(bank, request, route, route.operation, route.params, Headers(), query, request.base)
    call.tpp = AuthenticatedTpp(identity, name, frozenset(roles))
    if "caller" in content:
        call.caller = Caller(*content["caller"])
    return call
