"""The Digest header: `SHA-256=<base64>` over the raw bytes of a body (RFC 3230, RFC 5843; CONTRACT 3.1)."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from typing import Any

HASHES: dict[str, Any] = {"SHA-256": hashlib.sha256, "SHA-512": hashlib.sha512}


def digest_value(body: bytes, algorithm: str = "SHA-256") -> str:
    """The header value for `body`, e.g. `SHA-256=47DEQpj8...`; `algorithm` is a name of HASHES."""
    return f"{algorithm}={b64encode(HASHES[algorithm](body).digest()).decode()}"


def parse_digest(text: str) -> list[tuple[str, str]]:
    """Pairs of upper-case algorithm name and encoded value; a part without `=` has the name ``""``."""
    pairs = []
    for part in text.split(","):
        name, equals, value = part.strip(" \t").partition("=")
        if equals:
            pairs.append((name.strip(" \t").upper(), value.strip(" \t")))
        elif name:
            pairs.append(("", name))
    return pairs
