"""The request log of one bank: the last 1000 exchanges, complete, with the signature's diagnosis.

An exchange is added before the first gate (`begin`), and the pipeline fills it in as far as the request gets, so that
a request that broke something is in the log too. It is in memory only; where processes share banks, an orderly end
hands it to the next home. Nobody but the pipeline changes an exchange, except `cut`: large bodies beyond
MOST_LARGE_BODIES are shortened, the oldest first. A reset clears the log; the numbers go on, so that an id is never
another request's. National identity numbers are masked when an exchange is shown, not when it is stored, because the
diagnosis and the report on TPPs need the bytes that were signed.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice
from shlex import quote
from typing import Any, TypeVar

import orjson

from emulator.api.messages import Request, Response, traceparent, values_of
from emulator.api.operation import Call
from emulator.api.operations import operation_names
from emulator.api.signature import SignatureRefused, Verified
from emulator.bank.clock import date_time
from emulator.bank.reference import is_national_number

T = TypeVar("T")

MOST_EXCHANGES = 1000
LARGE_BODY = 64 * 1024
MOST_LARGE_BODIES = 32 * 1024 * 1024  # bytes of bodies over LARGE_BODY; older ones are cut to that (assumed)
IDENTITY_HEADER = "x-psu-identity"
_ELEVEN_DIGITS = re.compile(r"(?<![0-9])[0-9]{11}(?![0-9])")


@dataclass(slots=True)
class Exchange:
    """One request and its answer."""

    id: int
    at: str  # stamp of bank time
    request: Request
    call: Call | None = None
    response: Response | None = None
    signature: Verified | SignatureRefused | None = None
    rules: Sequence[str] = ()
    notes: Sequence[str] = ()  # why rules that match did not act
    seconds: float = 0.0
    cut_from: tuple[int, int] | None = None
    created: str | None = None  # the id of a new payment, recorded because a rule may change the answer that names it
    counted: bool = False  # in the metrics

    @property
    def sizes(self) -> tuple[int, int]:
        """The sizes in bytes of both bodies as they were transferred."""
        return self.cut_from or (len(self.request.body), len(self.response.body) if self.response else 0)

    def cut(self) -> None:
        """Cut large bodies to the part that `detail` shows."""
        self.cut_from = self.sizes
        self.request = replace(self.request, body=self.request.body[:LARGE_BODY])
        if self.response is not None:
            self.response = replace(self.response, body=self.response.body[:LARGE_BODY])
        if self.call is not None:
            self.call = copy(self.call)
            self.call.request, self.call.body = self.request, None

    def ending(self, size: int) -> Exchange:
        """A copy with only the last `size` bytes of the answer's body."""
        answer = self.response
        if answer is not None:
            answer = Response(answer.status, answer.headers, answer.body[-size:], answer.delivery)
        # `copy` takes ten times as long, for each page of transactions
        return Exchange(
            self.id,
            self.at,
            self.request,
            self.call,
            answer,
            self.signature,
            self.rules,
            self.notes,
            self.seconds,
            created=self.created,
        )

    @property
    def operation(self) -> str | None:
        """The id of the operation; None for an unknown address."""
        return self.call.operation.id if self.call else None

    @property
    def operations(self) -> tuple[str, ...]:
        """The names of the operation: of the table, and of the OpenAPI document for its payment product."""
        return () if self.call is None else operation_names(self.call.operation.id, self.call.params)

    @property
    def tpp(self) -> str | None:
        """The tppId of the certificate; None if it could not be read."""
        return self.call.tpp.id or None if self.call else None

    def is_of(self, tpp: str) -> bool:
        """Whether `tpp`, a tppId or the name in a certificate, signed the request."""
        return self.tpp is not None and self.call is not None and tpp in (self.call.tpp.id, self.call.tpp.name)

    @property
    def status(self) -> int:
        """The status of the answer; 0 without one."""
        return self.response.status if self.response else 0

    @property
    def request_id(self) -> str | None:
        """The X-Request-ID of the answer, which is the client's unless it sent none."""
        return next(iter(values_of(self.response.headers if self.response else (), "x-request-id")), None)

    @property
    def payment_id(self) -> str | None:
        """The id of the payment that the request concerns: from its path, or from the answer to its creation."""
        if self.call is None:
            return None
        identity = self.call.params.get("paymentId")
        if identity is None and self.operation == "createPayment" and self.status == 201:
            identity = self.created or self.answer().get("paymentId")
        return identity if isinstance(identity, str) else None

    def answer(self) -> dict[str, Any]:
        """The members of the JSON object in the answer; none if it is something else."""
        try:
            body = orjson.loads(self.response.body) if self.response else {}
        except ValueError:
            return {}
        return body if isinstance(body, dict) else {}

    def messages(self) -> list[dict[str, str]]:
        """The messages of a refusal; an answer that a rule has changed may have none."""
        messages = self.answer().get("tppMessages") if self.status >= 400 else None
        return [entry for entry in messages if _is_message(entry)] if isinstance(messages, list) else []

    def summary(self) -> dict[str, Any]:
        """The entry in `GET requests`."""
        shown: dict[str, Any] = {
            "id": str(self.id),
            "at": date_time(self.at),
            "method": self.request.method,
            "target": self.request.target,
            "operation": self.operation,
            "status": self.status,
            "tpp": self.tpp,
            "paymentId": self.payment_id,
            "rules": list(self.rules),
            "notes": list(self.notes),
            "messages": self.messages(),
            "traceparent": traceparent(self.request.headers),
            "milliseconds": self.milliseconds,
        }
        return self.masked({name: value for name, value in shown.items() if value not in (None, [])})

    @property
    def milliseconds(self) -> float:
        """In how many milliseconds the answer was computed."""
        return round(self.seconds * 1000, 2)

    def masked(self, shown: T) -> T:
        """Texts with all identity numbers masked, including the value of the identity header."""
        masked: T = _changed(shown, lambda text: _without_numbers(self._without_identity(text)))
        return masked

    def _without_identity(self, text: str) -> str:
        """`text` with the value of the identity header masked, which refusals and signing strings may repeat."""
        for value in values_of(self.request.headers, IDENTITY_HEADER):
            if len(value) > 5:
                text = text.replace(value, _masked(IDENTITY_HEADER, value))
        return text

    def detail(self) -> dict[str, Any]:
        """The answer to `GET requests/{id}`: the complete exchange.

        Identity numbers are masked, except those of sandbox data in bodies, so that a Digest still matches.
        """
        shown = self.summary()
        shown["request"] = {
            "method": self.request.method,
            "target": self.request.target,
            "headers": [[name, _masked(name, value)] for name, value in self.request.headers],
        }
        if self.response is not None:
            headers = [list(pair) for pair in self.response.headers]
            shown["response"] = {"status": self.response.status, "headers": headers}
        if self.signature is not None:
            shown["signature"] = self.signature.diagnosis()
        shown = self.masked(shown)
        shown["request"]["body"] = self._without_identity(_text(self.request.body, self.sizes[0]))
        if self.response is not None:
            shown_body = self._without_identity(_text(self.response.body, self.sizes[1]))
            shown["response"]["body"] = shown_body if self.status < 400 else _without_numbers(shown_body)
        return shown


def _is_message(value: Any) -> bool:
    """Whether a JSON value is a TppMessage, whose text is optional."""
    return isinstance(value, dict) and isinstance(value.get("code"), str) and isinstance(value.get("text", ""), str)


def _masked(name: str, value: str) -> str:
    if name.lower() != IDENTITY_HEADER:
        return value
    return value[:-5] + "*****" if len(value) > 5 else "*****"


def _without_numbers(text: str) -> str:
    """`text` with every Norwegian identity number in it masked."""
    return _ELEVEN_DIGITS.sub(lambda it: f"{it[0][:6]}*****" if is_national_number(it[0]) else it[0], text)


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _changed(inner, change) for name, inner in value.items()}
    return [_changed(inner, change) for inner in value] if isinstance(value, list) else value


def _text(body: bytes, size: int) -> str:
    text = body[:LARGE_BODY].decode("utf-8", "replace")
    return text if size <= LARGE_BODY else f"{text} ... ({size} bytes in all)"


class RequestLog:
    """A ring of the last exchanges."""

    def __init__(self) -> None:
        self._ring: deque[Exchange] = deque(maxlen=MOST_EXCHANGES)
        self._large: deque[tuple[Exchange, int]] = deque()  # with the size that is included in `_large_bytes`
        self._large_bytes = 0
        self._next = 1

    def begin(self, at: str, request: Request) -> Exchange:
        """Add a request; the pipeline fills in the rest of the exchange."""
        exchange = Exchange(self._next, at, request)
        self._next += 1
        self._ring.append(exchange)
        return exchange

    def weigh(self, latest: Exchange) -> None:
        """Register an exchange with bodies over LARGE_BODY; cut the oldest of these if they exceed MOST_LARGE_BODIES.

        Otherwise 1000 exchanges of a mebibyte each would fill the memory of a small machine.
        """
        size = sum(latest.sizes)
        self._large.append((latest, size))
        self._large_bytes += size
        while self._large_bytes > MOST_LARGE_BODIES:
            oldest, size = self._large.popleft()
            self._large_bytes -= size
            oldest.cut()

    def newest(self) -> Iterator[Exchange]:
        """All exchanges that are stored, newest first."""
        return reversed(self._ring)

    def entries(
        self,
        *,
        operation: str | None = None,
        status: int | None = None,
        tpp: str | None = None,
        payment_id: str | None = None,
        limit: int = 100,
    ) -> list[Exchange]:
        """Exchanges that fit all filters, newest first."""
        fitting = (
            exchange
            for exchange in self.newest()
            if (operation is None or operation in exchange.operations)
            if (status is None or exchange.status == status)
            if (tpp is None or exchange.is_of(tpp))
            if (payment_id is None or exchange.payment_id == payment_id)
        )
        return list(islice(fitting, limit))

    def get(self, exchange_id: str) -> Exchange | None:
        if not (exchange_id.isascii() and exchange_id.isdigit()) or len(exchange_id) > 18 or not self._ring:
            return None
        at = int(exchange_id) - self._ring[0].id
        return self._ring[at] if 0 <= at < len(self._ring) else None

    @property
    def following(self) -> int:
        """The number of the next exchange."""
        return self._next

    def continue_from(self, exchanges: Iterable[Exchange], following: int) -> None:
        """Begin with these exchanges, oldest first and numbered without a gap; the next one is number `following`."""
        self._ring.extend(exchanges)
        self._next = following

    def clear(self) -> Callable[[], None]:
        """Delete all exchanges; the numbering continues. The result takes that back, unless they were cleared since."""
        ring, large, size, following = self._ring, self._large, self._large_bytes, self._next
        self._ring, self._large, self._large_bytes = deque(maxlen=MOST_EXCHANGES), deque(), 0

        def undo() -> None:
            if len(self._ring) == self._next - following:  # all since then
                ring.extend(self._ring)
                large.extend(self._large)
                self._ring, self._large, self._large_bytes = ring, large, size + self._large_bytes

        return undo


# curl writes these itself; writing them twice would change the request.
_OF_CURL = frozenset({"host", "content-length", "connection", "accept-encoding", "transfer-encoding", "expect"})


def curl_words(method: str, address: str, headers: Iterable[Iterable[str]], body: str) -> Iterator[str]:
    """The parts of a curl command that sends this request; `address` is a word of a shell, quoted where it must be."""
    # -g and --path-as-is: the address is used unchanged, including {id}, [1] and /../;
    # --data-raw: a body that begins with @ is not read as a file name
    yield f"curl -g --path-as-is -X {quote(method)} {address}"
    for name, value in headers:
        if name.lower() not in _OF_CURL:
            # `Name;` is how curl sends a header without a value.
            yield f"-H {quote(f'{name}: {value}' if value else f'{name};')}"
    if body:
        yield f"--data-raw {quote(body)}"
