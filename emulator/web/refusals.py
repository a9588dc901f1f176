"""What the wire refuses, before a request reaches the core, in the error form of CONTRACT 3.3."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from aiohttp.http import HttpProcessingError
from aiohttp.http_exceptions import InvalidURLError

from emulator.api.headers import Headers
from emulator.api.messages import HeaderPairs, Response
from emulator.api.pipeline import finish
from emulator.web.limits import MAX_FIELD_BYTES, MAX_HEAD_BYTES, MAX_TARGET_BYTES

_FIRST_LINE_ENDS = re.compile(rb" HTTP/[0-9.]+\r\n")
JSON_TYPE = "application/json; charset=utf-8"


def wire_refusal(status: int, text: str) -> Response:
    """An error answer that needs no request: BAD_REQUEST, or SYSTEM_ERROR from 500 on."""
    code = "SYSTEM_ERROR" if status >= 500 else "BAD_REQUEST"
    entry = {"category": "ERROR", "code": code, "text": text}
    body = json.dumps({"tppMessages": [entry]}, separators=(",", ":"), ensure_ascii=False).encode()
    return Response(status, [("Content-Type", JSON_TYPE)], body)


def too_large(limit: int) -> Response:
    """413 for a body over `limit` bytes (CONTRACT 3.2)."""
    return wire_refusal(413, f"The body is larger than {limit} bytes.")


def too_slow(seconds: float) -> Response:
    """408 for a body that did not arrive in time (CONTRACT 13)."""
    return wire_refusal(408, f"The body did not arrive within {seconds:g} seconds.")


def headers_too_large(what: str) -> Response:
    """431; `what` names the limit that was passed."""
    return wire_refusal(431, f"The headers are too large: {what}.")


def parser_refusal(error: HttpProcessingError, message: str) -> Response:
    """The answer to what aiohttp's parser raised: 414, 431 or 400 with the parser's own reason."""
    response = _of_parser(error, message)
    finish(response, Headers(cast(HeaderPairs, error.headers or ())))
    return response


def head_without_end(begun: bytes | bytearray) -> Response:
    """431 to a head that is too large before it has come whole; `begun`: what has come of it."""
    response = headers_too_large(f"together over {MAX_HEAD_BYTES} bytes")
    finish(response, Headers(sent_id(begun)))
    return response


def sent_id(data: bytes | bytearray) -> Any:
    """The X-Request-ID in the first head of `data`, which may not be whole, as `headers` of the parser's error.

    What stands in front of its first line is the end of a body.
    """
    first = _FIRST_LINE_ENDS.search(data)
    head, whole, _ = data[first.start() if first else 0 :].partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    fields = [line.partition(b":") for line in (lines[1:] if whole else lines[1:-1])]
    return [(name.decode(), value.decode("latin-1")) for name, _, value in fields if name.lower() == b"x-request-id"]


def _of_parser(error: HttpProcessingError, message: str) -> Response:
    """The parser raises one error for a long target and for a long field; the limit it names tells them apart."""
    limit = error.args[1] if len(error.args) > 1 else None
    if limit == MAX_TARGET_BYTES:
        return wire_refusal(414, f"The request target is longer than {MAX_TARGET_BYTES} bytes.")
    if limit == MAX_FIELD_BYTES:
        return headers_too_large(f"one is longer than {MAX_FIELD_BYTES} bytes")
    bare = isinstance(error, InvalidURLError) and "\n" not in message  # the target, and no reason before it
    said = "its target cannot be read" if bare else reason(message)
    return wire_refusal(400, f"This is not an HTTP/1.1 request: {said}.")


def reason(message: str) -> str:
    """The parser's reason without its picture of the bytes, which are not ours to repeat.

    Its messages look like `Bad status line:` or `Invalid header token:`, then the bytes on lines of their own.
    """
    lines = [line.strip() for line in message.split("\n\n", 1)[0].splitlines() if line.strip()]
    said = " ".join(lines)[:200].rstrip(":. ")
    return said or "it cannot be read"
