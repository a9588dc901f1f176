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
from cryptography.x509 import Certificate

from emulator.api.headers import Headers
from emulator.api.log import Exchange
from emulator.api.router import split_target
from emulator.api.signature import SignatureRefused, Verified
from emulator.bank.clock import moment, oslo_date
from emulator.conformance.links import END_OF_PAGE, PAGES, Links
from emulator.httpsig.dates import parse_date

MOST_CERTIFICATES = 1000  # whose expiry is cached
_MEMBER = re.compile(r"^(answer|body|header|query|redirect)\.")


class Observation(dict[str, Any]):
    """One observation of the bank: its facts by name, computed on first use; None for a fact that it does not have.

    `event`: `request`, `page`, `sca`, `payment`, `basket`, `consent`, `return`, `customer` or `notification`; `at`:
    bank time in seconds since 1970; `received`: the same in real time; `tpp`: the TPP that it concerns, None if
    unknown; `values`: facts that are known already.
    """

    __slots__ = ("_headers", "at", "event", "exchange", "links", "received", "tpp")

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
        super().__init__(values)
        self.event = event
        self.at = at
        self.received = received
        self.tpp = tpp
        self.exchange = exchange
        self.links = links
        self._headers: Headers | None = None

    def __missing__(self, name: str) -> Any:
        if self.exchange is None:
            return None
        row = FACTS.get(name)
        value = self[name] = row.read(self) if row is not None else _read_member(self, name)
        return value

    @property
    def headers(self) -> Headers:
        """The request's headers by lower-case name."""
        headers = self._headers
        if headers is None:
            headers = self._headers = Headers(_exchange(self).request.headers)
        return headers


class Fact(NamedTuple):
    """A row of the vocabulary: how to read it from an observed request, and a description."""

    read: Callable[[Observation], Any]
    about: str


def _exchange(observed: Observation) -> Exchange:
    if observed.exchange is None:
        raise TypeError("facts are read from requests")
    return observed.exchange


def _header(name: str) -> Callable[[Observation], str | None]:
    return lambda observed: observed.headers.get(name)


def _parameter(name: str) -> Callable[[Observation], str | None]:
    def read(observed: Observation) -> str | None:
        call = _exchange(observed).call
        return None if call is None else call.params.get(name)

    return read


def answer(observed: Observation) -> Any:
    """The JSON value of the answer; None if it is not JSON."""
    if " answer" not in observed:
        response = _exchange(observed).response
        observed[" answer"] = _json(response.body) if response is not None else None
    return observed[" answer"]


def _body(observed: Observation) -> Any:
    if " body" not in observed:
        observed[" body"] = _json(_exchange(observed).request.body)
    return observed[" body"]


def _json(text: bytes) -> Any:
    try:
        return orjson.loads(text) if text else None
    except ValueError:
        return None


def _member(value: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _read_member(observed: Observation, name: str) -> Any:
    """`answer.x`, `body.x`, `header.x`, `query.x`: a member of the request or of its answer."""
    place, _, path = name.partition(".")
    if place == "answer":
        return _member(answer(observed), path)
    if place == "body":
        return _member(_body(observed), path)
    if place == "header":
        return observed.headers.get(path.lower())
    if place == "query":
        query = split_target(_exchange(observed).request.target)[1]
        return dict(parse_qsl(query, keep_blank_values=True)).get(path)
    return None


def _codes(observed: Observation) -> tuple[str, ...]:
    if _exchange(observed).status < 400:
        return ()
    messages = _member(answer(observed), "tppMessages")
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
    sent = observed.headers
    if "signature" not in sent:
        return "missing"
    paths = {entry.path.lower() for entry in exchange.signature.messages}
    if paths <= {"digest"}:
        return "digest"
    if paths <= {"date"}:
        return "date"
    listed = re.search(r'headers="([^"]*)"', sent["signature"])
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
        return "match" if "digest" in observed.headers else None
    if not isinstance(exchange.signature, SignatureRefused):
        return None
    faults = [entry for entry in exchange.signature.messages if entry.path.lower() == "digest"]
    if not faults:
        return None
    return "missing" if "digest" not in observed.headers else "mismatch"


def _skew(observed: Observation) -> float | None:
    """Seconds between the Date of the request and real time, whichever is ahead."""
    text = observed.headers.get("date")
    try:
        return None if text is None else abs(parse_date(text)[0] - observed.received)
    except ValueError:
        return None


def _fingerprint(observed: Observation) -> int:
    """Equal for requests with the same method, address, body, customer and agreement."""
    request, sent = _exchange(observed).request, observed.headers
    return hash((request.method, request.target, sent.get("psu-id"), sent.get("psu-corporate-id"), request.body))


def _content(observed: Observation) -> str:
    """Equal for bodies with the same bytes."""
    return blake2b(_exchange(observed).request.body, digest_size=12).hexdigest()


def _certificate_days(observed: Observation) -> float | None:
    signature = _exchange(observed).signature
    if not isinstance(signature, Verified):
        return None
    return (_expires(signature.certificate) - observed.received) / 86400


_EXPIRIES: dict[int, tuple[Certificate, float]] = {}  # by the id of the object, as reading a certificate is slow


def _expires(certificate: Certificate) -> float:
    known = _EXPIRIES.get(id(certificate))
    if known is None or known[0] is not certificate:
        if len(_EXPIRIES) >= MOST_CERTIFICATES:
            _EXPIRIES.clear()
        known = _EXPIRIES[id(certificate)] = certificate, certificate.not_valid_after_utc.timestamp()
    return known[1]


def _address_kind(observed: Observation) -> str | None:
    """`public` (addresses for documentation too) or `private`; None without PSU-IP-Address."""
    text = observed.headers.get("psu-ip-address")
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
    status = _member(answer(observed), "transactionStatus")
    return status if isinstance(status, str) else None


def _sca(observed: Observation) -> str | None:
    """The last part of the scaRedirect in the answer: the SCA that the request opened."""
    href = _member(answer(observed), "_links.scaRedirect.href")
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


def _known_ids(observed: Observation) -> bool | None:
    """Whether every id in the address came from an answer to this TPP."""
    call = _exchange(observed).call
    if call is None or observed.links is None:
        return None
    # Not those of transactions, of which a page has hundreds: they are not kept.
    ids = [value for name, value in call.params.items() if name in ("id", "paymentId", "basketId", "consentId")]
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
    "service": Fact(_parameter("payment-service"), "payments, bulk-payments or periodic-payments"),
    "product": Fact(_parameter("payment-product"), "the payment product"),
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
    "requestId": Fact(_header("x-request-id"), "X-Request-ID"),
    "session": Fact(_header("tpp-session-id"), "TPP-Session-ID"),
    "psu": Fact(_header("psu-id"), "PSU-ID"),
    "agreement": Fact(_header("psu-corporate-id"), "PSU-Corporate-ID"),
    "redirectUri": Fact(_header("tpp-redirect-uri"), "TPP-Redirect-URI"),
    "address": Fact(_header("psu-ip-address"), "PSU-IP-Address"),
    "addressKind": Fact(_address_kind, "public or private"),
    "attended": Fact(lambda observed: "psu-ip-address" in observed.headers, "whether PSU-IP-Address was sent"),
    "fingerprint": Fact(_fingerprint, "equal for requests that ask the same"),
    "content": Fact(_content, "equal for bodies with the same bytes"),
    "payment": Fact(lambda observed: _exchange(observed).payment_id, "the payment it is about, or created"),
    "paymentStatus": Fact(_payment_status, "the transactionStatus in the answer"),
    "account": Fact(_parameter("id"), "the account or card in the address"),
    "basket": Fact(_parameter("basketId"), "the signing basket in the address"),
    "consent": Fact(_parameter("consentId"), "the consent in the address"),
    "sca": Fact(_sca, "the SCA of the scaRedirect in the answer"),
    "linked": Fact(_linked, "whether this address was, byte for byte, in an answer"),
    "knownIds": Fact(_known_ids, "whether every id in the address was in an answer"),
    "daysBack": Fact(_days_back, "days from dateFrom to bank time"),
    "morePages": Fact(_more_pages, "whether the page links to a next one"),
    "retryAfter": Fact(_retry_after, "seconds of Retry-After"),
}

EVENT_FACTS: dict[str, str] = {
    "link": "of a page: given (as in the answer), altered or unknown",
    "outcome": "of an SCA that ended: finalised, failed or expired; of a consent: given or revoked",
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
    """The static facts of a request; for another event its name."""
    exchange = observed.exchange
    if exchange is None:
        return (observed.event,)
    call, response, verdict = exchange.call, exchange.response, exchange.signature
    status = response.status if response is not None else 0
    return (
        call.operation.id if call is not None else None,
        status,
        response.delivery.disconnect if response is not None else None,
        None if type(verdict) is Verified else _signature(observed),
        _digest(observed),
        "psu-ip-address" in observed.headers,
        tuple(exchange.rules),
        observed["code"] if status >= 400 else (),
        observed["paymentStatus"] if _about_a_payment(exchange) else None,
        observed.tpp is None,
    )


def is_fact(name: str) -> bool:
    """Whether there is a fact of this name."""
    return name in FACTS or name in EVENT_FACTS or _MEMBER.match(name) is not None
