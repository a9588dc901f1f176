"""Content coding: gzip when the client asks for it (CONTRACT 13), over the finished answer.

A Digest in the answer is over the body before its coding (assumed).
"""

from __future__ import annotations

import zlib

from emulator.api.messages import Response
from emulator.api.negotiation import weighted

_GZIP = 31  # zlib's window bits for the gzip container


def wants_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding value asks for gzip: named with a weight over 0, or by `*`.

    Identity is kept where it is weighed higher than gzip.
    """
    weights = dict(weighted(accept_encoding, malformed=0.0))
    gzip = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return gzip > 0 and gzip >= weights.get("identity", 0.0)


def encoded(response: Response, accept_encoding: str | None) -> Response:
    """The answer as it goes out: compressed, and saying so, where the client asked for gzip.

    The one given stays as it is: the request log has it too, and shows what was said.
    """
    if not accept_encoding or not response.body or not wants_gzip(accept_encoding):
        return response
    if any(name.lower() == "content-encoding" for name, _ in response.headers):
        return response
    packer = zlib.compressobj(level=1, wbits=_GZIP)
    body = packer.compress(response.body) + packer.flush()
    headers = [*response.headers, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
    return Response(response.status, headers, body, response.delivery)
