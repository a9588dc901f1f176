"""The facts of an observation that checks can name: one row per fact, computed when a check needs it.

An observation is a request of a TPP with its answer, a browser at an SCA page, or a change (an SCA that ended, the new
status of a payment, a consent that is given or withdrawn). A fact is a value (string, number, boolean), a tuple of
which any element may match, or None if the observation has no such fact; only `absent: true` matches None.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import orjson

from emulator.api.headers import Headers
from emulator.api.log import Exchange
from emulator.api.messages import Fields, HeaderPairs
from emulator.api.router import split_target
from emulator.api.signature import SignatureRefused, Verified
from emulator.bank.clock import moment, oslo_date
from emulator.conformance.links import END_OF_PAGE, PAGES, Links
from emulator.httpsig.dates import parse_date

_NO_HEADERS = Fields((), (), ())
_MEMBER = re.compile(r"^(answer|body|header|query|redirect)\.")


class Observation:
    """One observation of the bank: its facts by name; None for a fact that it does not have.

    `event`: `request`, `page`, `sca`, `payment`, `basket`, `consent`, `return`, `customer` or `notification`; `at`:
    bank time in seconds since 1970; `received`: the same in real time; `tpp`: the TPP that it concerns, None if
    unknown; `values`: the facts of an event other than a request; `sent`: the headers of a request, each name once;
    `known`: results of `_once`.
    """

    __slots__ = ("at", "event", "exchange", "known", "links", "received", "sent", "tpp", "values")

    def __init__(
        self,
        event: str,
        *,
        at: float,
        received: float,
        tpp: str | None,
        values: Mapping[str, Any] = MappingProxyType({}),
        exchange: Exchange | None = None,
        links: Links | None = None,
    ) -> None:
        self.event = event
        self.at = at
        self.received = received
        self.tpp = tpp
        self.values = values
        self.exchange = exchange
        self.links = links
        self.sent = _NO_HEADERS if exchange is None else _each_once(exchange.request.headers)
        self.known: dict[Read, Any] = {}

    def __getitem__(self, name: str) -> Any:
        return reading(name, self)(self)

    def header(self, lower: str) -> str | None:
        """The value of a header, by its name in lower case."""
        sent = self.sent
        return sent.values[sent.lower.index(lower)] if lower in sent.lower else None


Read = Callable[[Observation], Any]


def _each_once(headers: HeaderPairs) -> Fields:
    sent = headers if isinstance(headers, Fields) else Fields.of(headers)
    if len(set(sent.lower)) == len(sent.lower):
        return sent
    combined = Headers(sent)
    names = tuple(combined)
    return Fields(names, names, tuple(combined.values()))


def _once(read: Read) -> Read:
    """A function whose result is stored, as several facts or checks need it."""

    def known(observed: Observation) -> Any:
        if read not in observed.known:
            observed.known[read] = read(observed)
        return observed.known[read]

    return known


class Fact(NamedTuple):
    """A row of the vocabulary: how to read it from an observed request, and a description.

    `header`: the name, in lower case, of the header that has the value. `parameter`: that of the part of the address.
    """

    read: Read
    about: str
    header: str | None = None
    parameter: str | None = None


def _exchange(observed: Observation) -> Exchange:
    if observed.exchange is None:
        raise TypeError("facts are read from requests")
    return observed.exchange


def _header(name: str, about: str) -> Fact:
    return Fact(lambda observed: observed.header(name), about, header=name)


def _parameter(name: str, about: str) -> Fact:
    def read(observed: Observation) -> str | None:
        call = _exchange(observed).call
        return None if call is None else call.params.get(name)

    return Fact(read, about, parameter=name)


def _json(text: bytes) -> Any:
    try:
        return orjson.loads(text) if text else None
    except ValueError:
        return None


@_once
def _answer(observed: Observation) -> Any:
    """The JSON value of the answer; None if it is not JSON."""
    response = _exchange(observed).response
    return _json(response.body) if response is not None else None


@_once
def _query(observed: Observation) -> Mapping[str, str]:
    query = split_target(_exchange(observed).request.target)[1]
    return dict(parse_qsl(query, keep_blank_values=True)) if query else {}


def _member(value: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


@lru_cache(maxsize=256)
def _member_fact(name: str) -> Fact:
    """`answer.x`, `body.x`, `header.x`, `query.x`: a member of the request or of its answer."""
    place, _, path = name.partition(".")
    if place == "answer":
        return Fact(lambda observed: _member(_answer(observed), path), "")
    if place == "body":
        return Fact(lambda observed: _member(_json(_exchange(observed).request.body), path), "")
    if place == "header":
        return _header(path.lower(), "")
    if place == "query":
        return Fact(lambda observed: _query(observed).get(path), "")
    return Fact(lambda _: None, "")


def _codes(observed: Observation) -> tuple[str, ...]:
    if _exchange(observed).status < 400:
        return ()
    messages = _member(_answer(observed), "tppMessages")
    if not isinstance(messages, list):  # a scripted answer may have any form
        return ()
    return tuple(entry["code"] for entry in messages if isinstance(entry, dict) and isinstance(entry.get("code"), str))


def _signature(observed: Observation) -> str | None:
    """`valid`, `missing`, `unlisted` (a header that must be signed is not), `digest`, `date` or `wrong`."""
    exchange = _exchange(observed)
    if isinstance(exchange.signature, Verified):
        return "valid"
    if not isinstance(exchange.signature, SignatureRefused):
        return None
    sent = observed.sent.lower
    if "signature" not in sent:
        return "missing"
    paths = {entry.path.lower() for entry in exchange.signature.messages}
    if paths <= {"digest"}:
        return "digest"
    if paths <= {"date"}:
        return "date"
    listed = re.search(r'headers="([^"]*)"', observed.header("signature") or "")
    if listed is not None:
        names = listed[1].lower().split()
        if any(name in sent and name not in names for name in SIGNED):
            return "unlisted"
    return "wrong"


SIGNED = ("date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri")


def _digest(observed: Observation) -> str | None:
    """`match`, `mismatch` or `missing` (though the operation takes a body); None if none is needed."""
    exchange = _exchange(observed)
    if type(exchange.signature) is Verified:
        return "match" if "digest" in observed.sent.lower else None
    if not isinstance(exchange.signature, SignatureRefused):
        return None
    faults = [entry for entry in exchange.signature.messages if entry.path.lower() == "digest"]
    if not faults:
        return None
    return "missing" if "digest" not in observed.sent.lower else "mismatch"


@_once
def _skew(observed: Observation) -> float | None:
    """Seconds between the Date of the request and real time, whichever is ahead."""
    text = observed.header("date")
    try:
        return None if text is None else abs(parse_date(text)[0] - observed.received)
    except ValueError:
        return None


def _fingerprint(observed: Observation) -> int:
    """Equal for requests with the same method, address, body, customer and agreement."""
    request, sent = _exchange(observed).request, observed.header
    return hash((request.method, request.target, sent("psu-id"), sent("psu-corporate-id"), request.body))


def _customer(observed: Observation) -> int:
    """Equal for requests that name the same customer in the same way."""
    return hash(tuple(map(observed.header, ("psu-id", "x-psu-identity", "tpp-session-id", "psu-ip-address"))))


def _content(observed: Observation) -> str:
    """Equal for bodies with the same bytes."""
    return blake2b(_exchange(observed).request.body, digest_size=12).hexdigest()


def _certificate_days(observed: Observation) -> float | None:
    signature = _exchange(observed).signature
    if not isinstance(signature, Verified):
        return None
    return (signature.certificate.not_after - observed.received) / 86400


def _address_kind(observed: Observation) -> str | None:
    """`public` (addresses for documentation too) or `private`; None without PSU-IP-Address."""
    text = observed.header("psu-ip-address")
    return None if text is None else _kind_of(text)


@lru_cache(maxsize=1024)
def _kind_of(text: str) -> str | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    documentation = any(address in network for network in _DOCUMENTATION if network.version == address.version)
    return "public" if address.is_global or documentation else "private"


# Reserved for documentation: what a test suite uses in place of the address of a real customer.
_DOCUMENTATION = tuple(
    map(ipaddress.ip_network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"))
)


def _payment_status(observed: Observation) -> str | None:
    if _exchange(observed).status >= 300:
        return None
    status = _member(_answer(observed), "transactionStatus")
    return status if isinstance(status, str) else None


def _sca(observed: Observation) -> str | None:
    """The last part of the scaRedirect in the answer: the SCA that the request opened."""
    href = _member(_answer(observed), "_links.scaRedirect.href")
    return href.rpartition("/")[2] if isinstance(href, str) else None


def _lost(observed: Observation) -> bool:
    response = _exchange(observed).response
    return response is not None and response.delivery.disconnect is not None


def _answer_lost(observed: Observation) -> bool:
    response = _exchange(observed).response
    return response is not None and response.delivery.disconnect == "after"


def _linked(observed: Observation) -> bool | None:
    """Whether the address with its query was, byte for byte, in an answer."""
    if observed.links is None:
        return None
    request = _exchange(observed).request
    return request.target[len(request.prefix) :] in observed.links.addresses


_IDS = frozenset({"id", "paymentId", "basketId", "consentId"})


def _known_ids(observed: Observation) -> bool | None:
    """Whether every id in the address came from an answer to this TPP."""
    call = _exchange(observed).call
    if call is None or observed.links is None:
        return None
    # Not those of transactions, of which a page has hundreds: they are not kept.
    ids = [value for name, value in call.params.items() if name in _IDS]
    return all(value in observed.links.ids for value in ids) if ids else None


def _days_back(observed: Observation) -> int | None:
    asked = observed["query.dateFrom"]
    try:
        since = date.fromisoformat(asked) if isinstance(asked, str) else None
    except ValueError:
        return None
    return None if since is None else (oslo_date(moment(_exchange(observed).at)) - since).days


def _more_pages(observed: Observation) -> bool | None:
    """Whether the page has a link to a next one; None if the answer is not a page of transactions."""
    exchange = _exchange(observed)
    if exchange.operation not in PAGES or exchange.response is None or exchange.status != 200:
        return None
    return b'"next":{' in exchange.response.body[-END_OF_PAGE:]


def _retry_after(observed: Observation) -> float | None:
    response = _exchange(observed).response
    for name, value in response.headers if response is not None else ():
        if name.lower() == "retry-after" and value.isascii() and value.isdigit():
            return float(value)
    return None


FACTS: dict[str, Fact] = {
    "operation": Fact(lambda observed: _exchange(observed).operation, "operationId, as in the OpenAPI document"),
    "service": _parameter("payment-service", "payments, bulk-payments or periodic-payments"),
    "product": _parameter("payment-product", "the payment product"),
    "method": Fact(lambda observed: _exchange(observed).request.method, "the HTTP method"),
    "target": Fact(lambda observed: _exchange(observed).request.target, "address and query as sent"),
    "status": Fact(lambda observed: _exchange(observed).status, "the HTTP status of the answer"),
    "code": Fact(_codes, "the error codes of the answer"),
    "rule": Fact(lambda observed: tuple(_exchange(observed).rules), "the scripted rules that acted"),
    "lost": Fact(_lost, "whether the connection was closed instead of an answer"),
    "answerLost": Fact(_answer_lost, "whether it was closed after the bank had processed the request"),
    "signature": Fact(_signature, "valid, missing, unlisted, digest, date or wrong"),
    "digest": Fact(_digest, "match, mismatch or missing, where the operation needs one"),
    "skew": Fact(_skew, "seconds between Date and real time"),
    "certificateDays": Fact(_certificate_days, "days until the certificate expires"),
    "requestId": _header("x-request-id", "X-Request-ID"),
    "session": _header("tpp-session-id", "TPP-Session-ID"),
    "psu": _header("psu-id", "PSU-ID"),
    "agreement": _header("psu-corporate-id", "PSU-Corporate-ID"),
    "redirectUri": _header("tpp-redirect-uri", "TPP-Redirect-URI"),
    "address": _header("psu-ip-address", "PSU-IP-Address; of a customer's return: that of the request before the SCA"),
    "addressKind": Fact(_address_kind, "public or private"),
    "customer": Fact(_customer, "equal for requests with the same PSU-ID, X-PSU-IDENTITY, session and address"),
    "attended": Fact(lambda observed: "psu-ip-address" in observed.sent.lower, "whether PSU-IP-Address was sent"),
    "fingerprint": Fact(_fingerprint, "equal for requests that ask the same"),
    "content": Fact(_content, "equal for bodies with the same bytes"),
    "payment": Fact(lambda observed: _exchange(observed).payment_id, "the payment it is about, or created"),
    "paymentStatus": Fact(_payment_status, "the transactionStatus in the answer"),
    "account": _parameter("id", "the account or card in the address"),
    "basket": _parameter("basketId", "the signing basket in the address"),
    "consent": _parameter("consentId", "the consent in the address"),
    "sca": Fact(_sca, "the SCA of the scaRedirect in the answer"),
    "linked": Fact(_linked, "whether this address was, byte for byte, in an answer"),
    "knownIds": Fact(_known_ids, "whether every id in the address was in an answer"),
    "daysBack": Fact(_days_back, "days from dateFrom to bank time"),
    "morePages": Fact(_more_pages, "whether the page links to a next one"),
    "retryAfter": Fact(_retry_after, "seconds of Retry-After"),
}

_HEADERS = frozenset(fact.header for fact in FACTS.values() if fact.header is not None) | {"digest"}
"""The headers whose presence decides on a fact."""

EVENT_FACTS: dict[str, str] = {
    "link": "of a page: given (as in the answer), altered or unknown",
    "outcome": "of an SCA that ended: finalised, failed or expired; of a consent: given or revoked",
    "otherIds": "of a consent that is given: whether its accounts have other ids than under the one before",
    "purpose": "of an SCA: access, payment, basket or cancellation",
    "previous": "of a payment's change: the status before",
    "forged": "of a customer's return: whether it belongs to another flow",
    "present": "of the customer: whether the customer is there",
    "context": "of a customer's return: PRIVATE or CORPORATE",
    "news": "of a notification: whether no answer had the final status of its payment before",
}


STATIC = (
    "operation",
    "status",
    "lost",
    "answerLost",
    "signature",
    "digest",
    "attended",
    "rule",
    "code",
    "paymentStatus",
)
"""Facts with few values: they are tested once for all observations with the same values of them."""


def is_static(name: str, observed: Observation) -> bool:
    """Whether a fact is the same for all observations with the `static_key` of this one."""
    if observed.exchange is None or name not in STATIC:
        return False
    return name != "paymentStatus" or _about_a_payment(observed.exchange)


def _about_a_payment(exchange: Exchange) -> bool:
    return exchange.call is not None and "paymentId" in exchange.call.params


def static_key(observed: Observation) -> tuple[Any, ...]:
    """The static facts of a request, and which headers of FACTS it has; for another event its name."""
    exchange = observed.exchange
    if exchange is None:
        return (observed.event,)
    call, response = exchange.call, exchange.response
    status = response.status if response is not None else 0
    return (
        call.operation.id if call is not None else None,
        status,
        response.delivery.disconnect if response is not None else None,
        None if type(exchange.signature) is Verified else (_signature(observed), _digest(observed)),
        _HEADERS.intersection(observed.sent.lower),
        tuple(exchange.rules),
        _codes(observed) if status >= 400 else (),
        _payment_status(observed) if _about_a_payment(exchange) else None,
        observed.tpp is None,
    )


def is_present(name: str, observed: Observation) -> bool | None:
    """Whether all observations with the `static_key` of this one have a fact, or none has it; None: some may."""
    exchange = observed.exchange
    if exchange is None:
        return None
    fact = FACTS.get(name) or _member_fact(name)
    params = exchange.call.params if exchange.call is not None else {}
    if fact.header in _HEADERS:
        return fact.header in observed.sent.lower
    if fact.parameter is not None:
        return fact.parameter in params
    if name == "certificateDays":
        return isinstance(exchange.signature, Verified)
    if name == "knownIds" and observed.links is not None:
        return not _IDS.isdisjoint(params)
    return None


def reading(name: str, like: Observation) -> Read:
    """The function that reads a fact from all observations with the `static_key` of this one."""
    if like.exchange is None:
        return lambda observed: observed.values.get(name)
    fact = FACTS.get(name) or _member_fact(name)
    header = fact.header
    if header is None or header not in _HEADERS:
        return fact.read
    if header not in like.sent.lower:
        return _nothing
    return lambda observed: observed.sent.values[observed.sent.lower.index(header)]


def _nothing(_: Observation) -> None:
    """The value of a fact that an observation does not have."""


def is_fact(name: str) -> bool:
    """Whether there is a fact of this name."""
    return name in FACTS or name in EVENT_FACTS or _MEMBER.match(name) is not None
