"""Renders answers and refusals as HTTP (errors.md)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson

from emulator.api.messages import Request, Response
from emulator.api.router import split_target
from emulator.api.trace import traceparent
from emulator.bank.errors import STATUS, BankError, Message
from emulator.ca import AuthorityDamaged

if TYPE_CHECKING:
    from emulator.api.shapes import answers, parts

logger = logging.getLogger(__name__)

JSON = ("Content-Type", "application/json; charset=utf-8")

# Sizes of the caches of rendered entries (about 1 kB each with the document that is the key), of lists, and of caches.
RENDERED_ENTRIES, RENDERED_LISTS, RENDERERS = 4096, 32, 8
TEXT_LIMIT = 512  # characters of `text` and psuMessage
UNWRITABLE = BankError(
    "SYSTEM_ERROR", "The bank cannot write its state at the moment; nothing was changed.", status=503
)


# The answer if the bank itself fails; its log has the details.
_FAILED = BankError("SYSTEM_ERROR", "The bank failed; its log says why.")
_UNUSABLE = BankError(
    "SYSTEM_ERROR", "The bank cannot read or write its files at the moment; its log says why.", status=503
)
_NO_MEMORY = BankError("SYSTEM_ERROR", "The bank has not enough memory for this.", status=503)


def status_of(error: BankError) -> int:
    """The HTTP status of a refusal."""
    if error.status is not None:
        return error.status
    return 400 if error.in_body else STATUS[error.code]


def message_body(message: Message) -> answers.TppMessage:
    """A TppMessage: category, code, path, text."""
    shown: answers.TppMessage = {"category": message.category, "code": message.code}
    if message.path is not None:
        shown["path"] = message.path
    # A path may contain bytes that are not UTF-8.
    shown["text"] = message.text.encode(errors="backslashreplace").decode()[:TEXT_LIMIT]
    return shown


def with_warnings(body: Any, warnings: Sequence[Message]) -> Any:
    """An answer of sandbox data with the warnings about its request; in a list each item has its own."""
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
    return json_response(status_of(error), body, headers)


def failed(request: Request, error: Exception) -> BankError:
    """Log `error`, and return the refusal of the request: 503 for a failure of files or memory, else 500."""
    line = f"{request.method} {split_target(request.target)[0]}"
    about = {"fields": {name: value for name, value in _identified(request) if value is not None}}
    if isinstance(error, OSError):
        logger.error("%s: %s", line, error, extra=about)
        return _UNUSABLE
    if isinstance(error, MemoryError) or str(error) == "can't start new thread":
        logger.error("%s: not enough memory", line, extra=about)
        return _NO_MEMORY
    if isinstance(error, AuthorityDamaged):
        logger.error("%s: %s", line, error, extra=about)
        return BankError("SYSTEM_ERROR", f"A certificate or its key cannot be read: {error}.", status=503)
    logger.error("%s failed", line, exc_info=error, extra=about)
    return _FAILED


def _identified(request: Request) -> Iterator[tuple[str, str | None]]:
    """What finds the other lines of the log about a request, and its trace."""
    yield "requestId", next((value for name, value in request.headers if name.lower() == "x-request-id"), None)
    yield "traceparent", traceparent(request.headers)
