"""Content negotiation: JSON only, in English or Norwegian, gzip if the client accepts it and the answer is not signed.

Clients decompress before anybody can see the bytes, so the Digest of a signed answer is over a body that is sent as it
is.
"""

from __future__ import annotations

import re
import zlib

from emulator.api.headers import Headers
from emulator.api.messages import Response
from emulator.bank.errors import Message

VARY = ("Vary", "Accept-Encoding, Accept-Language")  # what decides on an answer that there is in two languages

_JSON = ("application/json", "application/*", "*/*")
_LANGUAGES = {"nb": "nb", "no": "nb", "nn": "nb", "en": "en"}
_GZIP = 31  # zlib's window bits for the gzip container
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


def gzip_packer() -> zlib._Compress:
    """What compresses a body, in one piece or several."""
    return zlib.compressobj(level=1, wbits=_GZIP)


def content_coded(response: Response, accept_encoding: str | None) -> Response:
    """A compressed copy of the answer if the client accepts gzip, else the answer itself.

    The caller has set Vary to include Accept-Encoding.
    """
    if not accept_encoding or not response.body or not wants_gzip(accept_encoding):
        return response
    if any(name.lower() in ("content-encoding", "digest") for name, _ in response.headers):
        return response
    packer = gzip_packer()
    body = packer.compress(response.body) + packer.flush()
    return Response(response.status, [*response.headers, ("Content-Encoding", "gzip")], body, response.delivery)
