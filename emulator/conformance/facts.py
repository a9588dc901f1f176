"""The facts of an observation that checks can name: one row per fact, computed when a check needs it.

An observation is a request of a TPP with its answer, a browser at an SCA page or sent back to the TPP, or a change (the
new status of a payment, a consent that is given or withdrawn). A fact is a value (string, number, boolean), a tuple of
which any element may match (SEVERAL), or None if the observation has no such fact, which is absent to a condition.
`python -m tests.docs.sections` writes the table of facts in add-check.md.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from emulator.api.headers import Headers
from emulator.api.log import Exchange
from emulator.api.messages import Response
from emulator.api.router import split_target
from emulator.api.signature import SignatureRefused, Verified
from emulator.bank.clock import moment, oslo_date
from emulator.conformance import END_OF_PAGE, PAGES
from emulator.httpsig.signing import parse_date

MOST_KNOWN = 50_000  # addresses, and as many ids, that are kept for a TPP
# Answers are compact (no blanks), and a search for a literal is many times faster than one for optional blanks. The
# prefix of `links: absolute` and of named banks is left out.
_LINKS = re.compile(r'/v1/[^"\\]+')
_IDS_IN_BODIES = re.compile(r'd":"([^"\\]+)"')


class Known:
    """The most recent of the texts that were added: at least half of MOST_KNOWN, if there were so many."""

    __slots__ = ("_older", "_recent")

    def __init__(self) -> None:
        self._recent: set[str] = set()
        self._older: set[str] = set()

    def add(self, texts: Iterable[str]) -> None:
        """Add texts; the older half of them is dropped when there are too many."""
        self._recent.update(texts)
        if len(self._recent) >= MOST_KNOWN // 2:
            self._older, self._recent = self._recent, set()

    def __contains__(self, text: str) -> bool:
        return text in self._recent or text in self._older


class Links:
    """The addresses (with query) and ids in the answers to one TPP."""

    def __init__(self) -> None:
        self.addresses = Known()
        self.ids = Known()

    def add(self, body: bytes) -> None:
        """Add every link to the TPP interface and every id of an answer."""
        text = body.decode("utf-8", "replace")
        self.addresses.add(_LINKS.findall(text))
        self.ids.add(_IDS_IN_BODIES.findall(text))


_MEMBER = re.compile(r"^(header|query)\.")


class Observation(dict[str, Any]):
    """One observation of the bank: its facts by name, each computed when it is first asked for; None if it has none.

    Two are not in the vocabulary of checks: `tpp`, the TPP that it concerns, None if unknown, and `event`, one of
    `check.EVENTS`.

    `at`: bank time in seconds since 1970; `received`: the same in real time; `values`: the facts of an event other than
    a request. Only a request has its `exchange` and the headers `sent`.
    """

    __slots__ = ("at", "exchange", "is_request", "links", "received", "sent")
    exchange: Exchange
    sent: Headers

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
        super().__init__(values, event=event, tpp=tpp)
        self.at = at
        self.received = received
        self.is_request = exchange is not None
        if exchange is not None:
            self.exchange = exchange
            self.sent = Headers(exchange.request.headers)
        self.links = links

    def __missing__(self, name: str) -> Any:
        value = None
        if self.is_request:
            value = FACTS[name].read(self) if name in FACTS else _part(self, name)
        self[name] = value
        return value


class Fact(NamedTuple):
    """A row of the vocabulary: how to read it from an observed request, and a description."""

    read: Callable[[Observation], Any]
    about: str


def _delivered(observed: Observation) -> Response | None:
    """The answer that the TPP got: what was lost it cannot know."""
    return None if _disconnected(observed) is not None else observed.exchange.response


def _answer(observed: Observation) -> Mapping[str, Any]:
    """The members of the answer; none if the TPP did not get it."""
    return observed.exchange.answer() if _delivered(observed) is not None else {}


def _member(value: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _part(observed: Observation, name: str) -> Any:
    """`header.x` or `query.x` of the request; `query`: all of it; None for a fact of other events."""
    place, _, member = name.partition(".")
    if place == "header":
        return observed.sent.get(member.lower())
    if place != "query":
        return None
    if member:
        return observed["query"].get(member)
    return dict(parse_qsl(split_target(observed.exchange.request.target)[1], keep_blank_values=True))


def _signature(observed: Observation) -> str | None:
    """`valid`, `digest` or `date` if only that is wrong, else `wrong`."""
    if isinstance(observed.exchange.signature, Verified):
        return "valid"
    wrong = _wrong_in(observed.exchange.signature)
    return next((name for name in ("digest", "date") if wrong == {name}), "wrong") if wrong else None


def _digest(observed: Observation) -> str | None:
    """`match` or `wrong`; None if none is needed."""
    if type(observed.exchange.signature) is Verified:
        return "match" if "digest" in observed.sent else None
    return "wrong" if "digest" in _wrong_in(observed.exchange.signature) else None


def _wrong_in(signature: object) -> set[str]:
    """The headers at fault in a signature that was refused."""
    messages = signature.messages if isinstance(signature, SignatureRefused) else ()
    return {(entry.path or "").lower() for entry in messages}


def _skew(observed: Observation) -> float | None:
    """Seconds between the Date of the request and real time, whichever is ahead."""
    text = observed.sent.get("date")
    try:
        return None if text is None else abs(parse_date(text)[0] - observed.received)
    except ValueError:
        return None


def _fingerprint(observed: Observation) -> int:
    """Of method, address, body, customer and agreement."""
    request, sent = observed.exchange.request, observed.sent.get
    return hash((request.method, request.target, sent("psu-id"), sent("psu-corporate-id"), request.body))


def _certificate_days(observed: Observation) -> float | None:
    signature = observed.exchange.signature
    if not isinstance(signature, Verified):
        return None
    return (signature.certificate.not_after - observed.received) / 86400


def _address_kind(observed: Observation) -> str | None:
    """`public` (addresses for documentation too) or `private`; None without PSU-IP-Address, or if that is none."""
    try:
        address = ipaddress.ip_address(observed.sent.get("psu-ip-address") or "")
    except ValueError:
        return None
    documentation = any(address in network for network in _DOCUMENTATION if network.version == address.version)
    return "public" if address.is_global or documentation else "private"


# Reserved for documentation: what a test suite uses in place of the address of a real customer.
_DOCUMENTATION = tuple(
    map(ipaddress.ip_network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"))
)


def _payment_status(observed: Observation) -> str | None:
    if observed.exchange.status >= 300:
        return None
    status = _member(_answer(observed), "transactionStatus")
    return status if isinstance(status, str) else None


def _sca(observed: Observation) -> str | None:
    """The last part of the scaRedirect in the answer: the SCA that the request opened."""
    href = _member(_answer(observed), "_links.scaRedirect.href")
    return href.rpartition("/")[2] if isinstance(href, str) else None


def _disconnected(observed: Observation) -> str | None:
    """Whether the connection was closed `before` or `after` the bank acted, instead of an answer."""
    response = observed.exchange.response
    return None if response is None else response.delivery.disconnect


def _linked(observed: Observation) -> bool | None:
    request, links = observed.exchange.request, observed.links
    return None if links is None else request.target[len(request.prefix) :] in links.addresses


_OF_CUSTOMERS = ("psu-id", "x-psu-identity", "tpp-session-id", "psu-ip-address")
_IDS = frozenset({"id", "paymentId", "basketId", "consentId"})


def _known_ids(observed: Observation) -> bool | None:
    """Whether every id in the address came from an answer to this TPP."""
    call = observed.exchange.call
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
    return None if since is None else (oslo_date(moment(observed.exchange.at)) - since).days


def _more_pages(observed: Observation) -> bool | None:
    """Whether the page has a link to a next one; None if the answer is not a page of transactions."""
    response = _delivered(observed)
    if observed.exchange.operation not in PAGES or response is None or observed.exchange.status != 200:
        return None
    return b'"next":{' in response.body[-END_OF_PAGE:]


def _header(name: str, about: str) -> Fact:
    return Fact(lambda observed: observed.sent.get(name), about)


FACTS: dict[str, Fact] = {
    "operation": Fact(lambda observed: observed.exchange.operation, "operationId, as in the OpenAPI document"),
    "target": Fact(lambda observed: observed.exchange.request.target, "address and query as sent"),
    "status": Fact(
        lambda observed: observed.exchange.status if _disconnected(observed) is None else None,
        "the HTTP status of the answer, none if that was lost",
    ),
    "code": Fact(
        lambda observed: tuple(one["code"] for one in observed.exchange.messages()) if _delivered(observed) else (),
        "the error codes of the answer",
    ),
    "rule": Fact(lambda observed: tuple(observed.exchange.rules), "the scripted rules that acted"),
    "answerLost": Fact(
        lambda observed: _disconnected(observed) == "after",
        "whether the connection was closed instead of an answer, after the bank had processed the request",
    ),
    "signature": Fact(_signature, "valid, digest or date if only that is wrong, else wrong"),
    "digest": Fact(_digest, "match or wrong, where the operation needs one"),
    "skew": Fact(_skew, "seconds between Date and real time"),
    "certificateDays": Fact(_certificate_days, "days until the certificate expires"),
    "requestId": _header("x-request-id", "X-Request-ID"),
    "session": _header("tpp-session-id", "TPP-Session-ID"),
    "psu": _header("psu-id", "PSU-ID"),
    "agreement": _header("psu-corporate-id", "PSU-Corporate-ID"),
    "redirectUri": _header("tpp-redirect-uri", "TPP-Redirect-URI"),
    "address": _header("psu-ip-address", "PSU-IP-Address; of a customer's return: that of the request before the SCA"),
    "addressKind": Fact(_address_kind, "public or private"),
    "customer": Fact(
        lambda observed: hash(tuple(map(observed.sent.get, _OF_CUSTOMERS))),
        "equal for requests with the same PSU-ID, X-PSU-IDENTITY, session and address",
    ),
    "attended": Fact(lambda observed: "psu-ip-address" in observed.sent, "whether PSU-IP-Address was sent"),
    "fingerprint": Fact(_fingerprint, "equal for requests that ask the same"),
    "content": Fact(lambda observed: hash(observed.exchange.request.body), "equal for bodies with the same bytes"),
    "payment": Fact(lambda observed: observed.exchange.payment_id, "the payment it is about, or created"),
    "paymentStatus": Fact(_payment_status, "the transactionStatus in the answer"),
    "account": Fact(
        lambda observed: observed.exchange.call and observed.exchange.call.params.get("id"),
        "the account or card in the address",
    ),
    "sca": Fact(_sca, "the SCA of the scaRedirect in the answer"),
    "linked": Fact(_linked, "whether this address was, byte for byte, in an answer"),
    "knownIds": Fact(_known_ids, "whether every id in the address was in an answer"),
    "daysBack": Fact(_days_back, "days from dateFrom to bank time"),
    "morePages": Fact(_more_pages, "whether the page links to a next one"),
}

SEVERAL = ("code", "rule")  # the facts with several values
EVENT_FACTS: dict[str, str] = {
    "link": "of a page: given (as in the answer), altered or unknown",
    "outcome": "of a customer's return: finalised or failed; of a consent: given or revoked",
    "otherIds": "of a consent that is given: whether its accounts have other ids than under the one before",
    "purpose": "of a customer's return: access, payment, basket or cancellation",
    "previous": "of a payment's change: the status before",
    "forged": "of a customer's return: whether it belongs to another flow",
    "present": "of the customer: whether the customer is there",
    "context": "of a customer's return: PRIVATE or CORPORATE",
    "news": "of a notification: whether no answer had the final status of its payment before",
}


def is_fact(name: str) -> bool:
    return name in FACTS or name in EVENT_FACTS or _MEMBER.match(name) is not None
