"""The request log of a bank that several processes share: each stores its exchanges and reads those of the others.

An exchange gets its number when its turn begins or is stored, so that a request that is sent after the answer to
another one has a higher number, whichever processes answer them. Until it is stored it may have a provisional number,
a negative one, which nobody sees.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NotRequired

import orjson
from typing_extensions import TypedDict

from emulator.api.certificates import read_certificate
from emulator.api.headers import Headers
from emulator.api.log import MOST_EXCHANGES, Exchange, RequestLog
from emulator.api.messages import Request, Response
from emulator.api.operation import Call, Operation, Route
from emulator.api.router import Router, split_target
from emulator.api.signature import Fault, SignatureRefused, Verified
from emulator.bank.bank import Bank
from emulator.bank.clock import date_time, real_seconds
from emulator.bank.customers.access import Caller
from emulator.bank.errors import BankError, Code
from emulator.bank.tpp import AuthenticatedTpp
from emulator.store import Documents

if TYPE_CHECKING:
    from pydantic import TypeAdapter

logger = logging.getLogger(__name__)

FetchedExchange = tuple[int, bytes | None]
"""The number of a stored exchange and its JSON; None if this process has the exchange already."""


class SharedRequestLog(RequestLog):
    """The exchanges of all processes, as far as this one has read them.

    `draw` returns the number of the next exchange, or None outside a turn: such an exchange waits for the next turn.
    `demand` is called before the exchanges are read: see NotFetched. `read` raises ValueError for a stored exchange
    that is damaged; it is left out.
    """

    announces = False  # exchanges are published once they are stored

    def __init__(
        self,
        documents: Documents,
        draw: Callable[[], int | None],
        read: Callable[[int, bytes], Exchange],
        demand: Callable[[], None],
    ) -> None:
        super().__init__()
        self._documents = documents
        self._draw = draw
        self._read = read
        self._demand = demand
        self._new: list[Exchange] = []  # of this turn
        self._before: list[Exchange] | None = None  # the exchanges before this turn has cleared them
        self.waiting: list[Exchange] = []
        self._waited: list[Exchange] = []  # of this turn
        self._damaged: set[int] = set()  # numbers of stored exchanges

    def begin(self, at: str, request: Request) -> Exchange:
        """Add a request; the pipeline fills in the rest of the exchange."""
        number = self._draw()
        exchange = Exchange(number or 0, at, request, sequence=self._documents.sequence)
        if number is None:
            self.waiting.append(exchange)
        else:
            self._enter(exchange)
        return exchange

    def _enter(self, exchange: Exchange) -> None:
        self._new.append(exchange)
        self._ring.append(exchange)

    def newest(self) -> Iterator[Exchange]:
        """All exchanges that are stored, newest first."""
        if not self.cleared or any(exchange.id < 0 for exchange in self._new):
            self._demand()
        return super().newest()

    def get(self, exchange_id: str) -> Exchange | None:
        """The exchange with this id, or None if it is not stored."""
        return next((exchange for exchange in self.newest() if str(exchange.id) == exchange_id), None)

    def clear(self) -> None:
        """Delete all exchanges."""
        if self._before is None:
            self._before = list(self._without(self._new, self._ring))
        self._new.clear()
        super().clear()

    # Turns

    def number_waiting(self) -> None:
        """Number and add the exchanges that have waited for a turn."""
        waiting, self.waiting = self.waiting, []
        for exchange in waiting:
            number = self._draw()
            if number is None:
                self.waiting.append(exchange)
            else:
                exchange.id = number
                self._waited.append(exchange)
                self._enter(exchange)

    @property
    def cleared(self) -> bool:
        """Whether this turn has deleted all earlier exchanges."""
        return self._before is not None

    def rows(self) -> list[tuple[int, bytes]]:
        """The exchanges of this turn, to be stored."""
        now = real_seconds()
        for exchange in self._new:
            exchange.received = now
        return [(exchange.id, as_json(exchange)) for exchange in self._new]

    def confirm(self, numbers: Iterator[int] | None) -> list[Exchange]:
        """The exchanges of this turn are stored under the next of these numbers, in the order of `rows`; returns them.

        None: the numbers are not known, and the exchanges are forgotten, to be read as those of others are.
        """
        new, self._new, self._before, self._waited = self._new, [], None, []
        if numbers is None:
            self._ring = self._without(new, self._ring)
            return []
        for exchange in new:
            exchange.id = next(numbers)
        return new

    def undo(self) -> None:
        """Undo the changes of this turn."""
        self._ring = self._without(self._new, self._ring if self._before is None else self._before)
        self.waiting, self._waited = self._waited + self.waiting, []
        self._new, self._before = [], None

    @staticmethod
    def _without(left_out: Iterable[Exchange], exchanges: Iterable[Exchange]) -> deque[Exchange]:
        these = set(map(id, left_out))
        return deque((exchange for exchange in exchanges if id(exchange) not in these), maxlen=MOST_EXCHANGES)

    def _older(self, exchanges: Iterable[Exchange]) -> list[Exchange]:
        """Those that are not of this turn."""
        new = set(map(id, self._new))
        return [exchange for exchange in exchanges if id(exchange) not in new]

    def known(self) -> list[int]:
        """The numbers of the exchanges that need not be read again."""
        return [*self._damaged, *(exchange.id for exchange in self._ring)]

    def merge(self, rows: Iterable[FetchedExchange]) -> list[Exchange]:
        """Replace all exchanges by the stored ones; returns those that are new here, oldest first."""
        here = {exchange.id: exchange for exchange in self._ring}
        stored, damaged = {}, set()
        for number, body in rows:
            exchange = here.get(number)
            if exchange is None:
                exchange = None if body is None else self._intact(number, body)
            if exchange is None:
                damaged.add(number)
            else:
                stored[number] = exchange
        self._damaged = damaged
        self._ring = deque((stored[number] for number in sorted(stored)), maxlen=MOST_EXCHANGES)
        return [exchange for exchange in self._ring if exchange.id not in here]

    def _intact(self, number: int, body: bytes) -> Exchange | None:
        """A stored exchange; None if it is damaged, which is logged."""
        try:
            return self._read(number, body)
        except ValueError as error:
            logger.warning("the exchange %s of the request log is damaged and is left out: %s", number, error)
            return None


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
    sequence: NotRequired[int]
    received: NotRequired[float]
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
        "sequence": exchange.sequence,
        "received": exchange.received,
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
        if "response" in content:
            status, pairs, text = content["response"]
            exchange.response = Response(status, pairs, text.encode("latin-1"))
        if "call" in content:
            exchange.call = _call(bank, router, request, content)
        if "verified" in content and exchange.call is not None:
            notes, signing_string = content["verified"]
            sent = next((value for name, value in request.headers if name.lower() == "tpp-signature-certificate"), "")
            certificate = read_certificate(sent).certificate
            exchange.signature = Verified(exchange.call.tpp, certificate, tuple(notes), signing_string)
        elif "refused" in content:
            (first, *others), diagnosis = content["refused"]
            faults = [Fault(*fault) for fault in (first, *others)]
            exchange.signature = SignatureRefused(faults, lambda: diagnosis)
        exchange.cut_from = content.get("cut")
        exchange.created = content.get("created")
        exchange.sequence, exchange.received = content.get("sequence", 0), content.get("received", 0.0)
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
