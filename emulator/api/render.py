"""The form of an answer: refusals (errors.md), JSON, its language and compression, and x-accept-fix (accept-fix.md).

The bank answers in JSON only; texts for customers are in English or Norwegian. It is gzip if the client accepts it and
the answer is not signed: clients decompress before anybody can see the bytes, so the Digest of a signed answer is over
a body that is sent as it is.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson

from emulator.api.headers import Headers
from emulator.api.messages import Request, Response, traceparent, values_of
from emulator.api.operation import Call
from emulator.api.router import split_target
from emulator.bank.errors import STATUS, BankError, Message
from emulator.ca import AuthorityDamaged
from emulator.store import StoreUnwritable

if TYPE_CHECKING:
    from emulator.api.shapes import answers, parts

logger = logging.getLogger(__name__)

JSON = ("Content-Type", "application/json; charset=utf-8")

# Sizes of the caches of rendered entries (about 1 kB each with the document that is the key), of lists, and of caches.
RENDERED_ENTRIES, RENDERED_LISTS, RENDERERS = 4096, 32, 8
TEXT_LIMIT = 512  # characters of `text` and psuMessage
# The answer if the bank itself fails; its log has the details.
_FAILED = BankError("SYSTEM_ERROR", "The bank failed; its log says why.")
_UNUSABLE = BankError(
    "SYSTEM_ERROR", "The bank cannot read or write its files at the moment; its log says why.", status=503
)
_NO_MEMORY = BankError("SYSTEM_ERROR", "The bank has not enough memory for this.", status=503)


def unwritable(cause: Exception) -> BankError:
    """The 503 of a request whose changes could not be stored."""
    return BankError("SYSTEM_ERROR", f"The bank cannot store its documents: {cause}.", status=503)


def message_body(message: Message) -> answers.TppMessage:
    """A TppMessage: category, code, path, text."""
    shown: answers.TppMessage = {"category": message.category, "code": message.code}
    if message.path is not None:
        shown["path"] = message.path
    # A path may contain bytes that are not UTF-8.
    shown["text"] = message.text.encode(errors="backslashreplace").decode()[:TEXT_LIMIT]
    return shown


def with_warnings(body: Any, warnings: Sequence[Message]) -> Any:
    """An answer with the warnings about its request; in a list each item has its own."""
    if isinstance(body, list):
        of_item = [[one for one in warnings if (one.path or "").startswith(f"[{n}]")] for n in range(len(body))]
        return [with_warnings(item, own) if own else item for item, own in zip(body, of_item, strict=True)]
    return {**body, "tppMessages": [message_body(warning) for warning in warnings]}


def encode(body: Any) -> bytes:
    """A JSON value as compact UTF-8."""
    return orjson.dumps(body)


def list_renderer(view: Callable[[Any], Any]) -> Callable[[Sequence[bytes]], orjson.Fragment]:
    """A function that renders a list of documents, given as JSON texts, as `view` shows each of them.

    Entries and lists are cached by these texts, so a document that does not change is rendered once. `view` must depend
    on the document alone. A renderer is to be kept in a cache of RENDERERS.
    """

    @lru_cache(maxsize=RENDERED_ENTRIES)
    def entry(text: bytes) -> bytes:
        return encode(view(orjson.loads(text)))

    @lru_cache(maxsize=RENDERED_LISTS)
    def listed(texts: tuple[bytes, ...]) -> orjson.Fragment:
        return orjson.Fragment(b"[" + b",".join(map(entry, texts)) + b"]")

    return lambda texts: listed(tuple(texts))


def json_response(status: int, body: Any, headers: Sequence[tuple[str, str]] = ()) -> Response:
    """An answer with a JSON body, or with an encoded one; None: no body and no content type."""
    if body is None:
        return Response(status, list(headers), b"")
    return Response(status, [JSON, *headers], body if isinstance(body, bytes) else orjson.dumps(body))


def refusal(
    error: BankError,
    *,
    links: parts.Links | None = None,
    headers: Sequence[tuple[str, str]] = (),
) -> Response:
    """A refusal as `{"tppMessages": [...], "_links": {...}}`."""
    body: answers.Error = {"tppMessages": [message_body(message) for message in error.messages]}
    if links:
        body["_links"] = links
    status = error.status or (400 if error.in_body else STATUS[error.code])
    return json_response(status, body, [*error.headers, *headers])


def failed(request: Request, error: Exception) -> BankError:
    """The refusal that `error` is; any other error is logged: 503 for a failure of files or memory, else 500."""
    if isinstance(error, BankError):
        return error
    line = f"{request.method} {split_target(request.target)[0]}"
    identified = {  # the other lines of the log about the request, and its trace
        "requestId": next(iter(values_of(request.headers, "x-request-id")), None),
        "traceparent": traceparent(request.headers),
    }
    about = {"fields": {name: value for name, value in identified.items() if value is not None}}
    if isinstance(error, OSError | StoreUnwritable):
        logger.error("%s: %s", line, error, extra=about)
        return _UNUSABLE if isinstance(error, OSError) else unwritable(error)
    if isinstance(error, MemoryError) or str(error) == "can't start new thread":
        logger.error("%s: not enough memory", line, extra=about)
        return _NO_MEMORY
    if isinstance(error, AuthorityDamaged):
        logger.error("%s: %s", line, error, extra=about)
        return BankError("SYSTEM_ERROR", f"A certificate or its key cannot be read: {error}.", status=503)
    logger.error("%s failed", line, exc_info=error, extra=about)
    return _FAILED


VARY = ("Vary", "Accept-Encoding, Accept-Language")  # what decides on an answer that there is in two languages

_JSON = ("application/json", "application/*", "*/*")
_LANGUAGES = {"nb": "nb", "no": "nb", "nn": "nb", "en": "en"}
_WEIGHT = re.compile(r"[01](?:\.[0-9]*)?")


def weighted(value: str, *, malformed: float) -> list[tuple[str, float]]:
    """The entries of an Accept-like header, in lower case, with their q values; `malformed` replaces a malformed q."""
    entries = []
    for part in value.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                weight = float(parameter[2:]) if _WEIGHT.fullmatch(parameter, 2) else malformed
        if name:
            entries.append((name, weight))
    return entries


def unacceptable(headers: Headers) -> Message | None:
    """The message (406) for an Accept header that excludes JSON; None if JSON is acceptable.

    The most specific range that matches decides (RFC 9110 12.5.1).
    """
    accept = headers.get("accept")
    if accept is None or accept in ("*/*", "application/json"):
        return None
    weights = dict(weighted(accept, malformed=1.0))
    if next((weights[name] > 0 for name in _JSON if name in weights), not weights):
        return None
    return Message("BAD_REQUEST", "The bank answers in application/json only.", "Accept")


def preferred_language(accept_language: str | None) -> str | None:
    """`nb` or `en` for an Accept-Language value (the first with the highest weight), None if it has neither."""
    best: str | None = None
    best_weight = 0.0
    for name, weight in weighted(accept_language or "", malformed=0.0):
        language = _LANGUAGES.get(name.partition("-")[0])
        if language is not None and weight > best_weight:
            best, best_weight = language, weight
    return best


def content_language(headers: Headers) -> str:
    """`nb` if Norwegian is preferred to English, else `en`."""
    accept = headers.get("accept-language")
    if accept is None:
        return "en"
    return preferred_language(accept) or "en"


def wants_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding value accepts gzip, by name or `*`, with a weight over 0 and not below identity's."""
    weights = dict(weighted(accept_encoding, malformed=0.0))
    gzip = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return gzip > 0 and gzip >= weights.get("identity", 0.0)


AMOUNT_AS_STRING = "amount-as-string"
SWITCHED_AMOUNTS = "cardaccount-switch-originalamount-and-transactionamount"
LONGER_NAMES = "longer-names"
GROUPED_BATCHES = "groupBatchTransactions"
ISO_ACCOUNT_TYPE = "cash-account-type-iso"

# From this Oslo date of bank time on, a fix applies whether it is requested or not.
DEFAULT_FROM: Mapping[str, date] = {
    AMOUNT_AS_STRING: date(2020, 8, 1),
    SWITCHED_AMOUNTS: date(2024, 9, 5),
    LONGER_NAMES: date(2024, 9, 5),
    GROUPED_BATCHES: date(2024, 9, 5),
    ISO_ACCOUNT_TYPE: date(2024, 9, 5),
}


Fixes = frozenset[str]
"""The names of the fixes that apply to the answer to one request."""

_ALL_NAMES = frozenset(DEFAULT_FROM)
# Bank time is in UTC: when a day begins in UTC, it has begun in Oslo.
_ALL_FROM = max(DEFAULT_FROM.values()).isoformat()
AMOUNTS_ARE_TEXT_FROM = DEFAULT_FROM[AMOUNT_AS_STRING].isoformat()


def fixes(call: Call) -> Fixes:
    """The fixes that apply because of x-accept-fix or the date; unknown names are ignored."""
    clock = call.bank.clock
    if clock.stamp() >= _ALL_FROM:
        return _ALL_NAMES
    return _applied(call.headers.get("x-accept-fix") or "", clock.today())


@lru_cache(maxsize=64)
def _applied(header: str, today: date) -> Fixes:
    requested = {name.strip() for name in header.split(",")}
    return frozenset(name for name, since in DEFAULT_FROM.items() if name in requested or today >= since)


def amounts(body: Any, fix: Fixes) -> Any:
    """The answer with its amounts in the requested form: text, or numbers without amount-as-string."""
    return body if AMOUNT_AS_STRING in fix else _with_numbers(body)


def _with_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _number(part) if name == "amount" else _with_numbers(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_with_numbers(part) for part in value]
    return value


def _number(amount: Any) -> Any:
    return float(amount) if isinstance(amount, str) else _with_numbers(amount)
