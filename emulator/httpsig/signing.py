"""Signing strings, digests and signatures (SPEC 5.2; draft-cavage-http-signatures-10, 2.3; RFC 3230, RFC 5843).

The signing string has one line `name: value` for each header that the signature covers. The Digest,
`SHA-256=<base64>` over the raw bytes, represents the body. TPPs sign requests this way, and the bank its answers.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256, SHA512

from emulator.httpsig.header import render, wrap

REQUEST_TARGET = "(request-target)"

# SPEC 5.2 rule 1: each of these that is in the request must be signed.
CANDIDATES = ("date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri")

# How SPEC 2.1 spells them, for messages to people.
SPELLING = {
    "date": "Date",
    "digest": "Digest",
    "x-request-id": "X-Request-ID",
    "psu-id": "PSU-ID",
    "psu-corporate-id": "PSU-Corporate-ID",
    "tpp-redirect-uri": "TPP-Redirect-URI",
    "signature": "Signature",
    "tpp-signature-certificate": "TPP-Signature-Certificate",
}


def request_target(method: str, target: str) -> str:
    """The value of `(request-target)`: lower-case method, one blank, path and query exactly as sent."""
    return f"{method.lower()} {target}"


def signing_string(lines: Iterable[tuple[str, str]]) -> str:
    """One line `name: value` for each pair, in order, joined by a newline and without one at the end."""
    return "\n".join([f"{name}: {value}" for name, value in lines])


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


ALGORITHMS = {"rsa-sha256": SHA256(), "rsa-sha512": SHA512()}


def signature_of(text: str, key: RSAPrivateKey, algorithm: str = "rsa-sha256") -> str:
    """The base64 signature over a signing string, by RSASSA-PKCS1-v1_5."""
    return b64encode(key.sign(text.encode(), PKCS1v15(), ALGORITHMS[algorithm])).decode()


def header_text(*, key_id: str, algorithm: str, names: Sequence[str], signature: str, ascii_only: bool = True) -> str:
    """The Signature value, wrapped per RFC 2047 when it, or a signed value (`ascii_only` False), is not ASCII."""
    text = render(key_id=key_id, algorithm=algorithm, headers=names, signature=signature)
    return text if ascii_only and text.isascii() else wrap(text)


def signature_header(lines: Sequence[tuple[str, str]], *, key_id: str, key: RSAPrivateKey) -> str:
    """The Signature value over `lines` (lower-case name, value), with rsa-sha256."""
    text = signing_string(lines)
    return header_text(
        key_id=key_id,
        algorithm="rsa-sha256",
        names=[name for name, _ in lines],
        signature=signature_of(text, key),
        ascii_only=text.isascii(),
    )
