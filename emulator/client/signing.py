"""Signing a request as SPEC 5.2 asks: from method, address, headers and body to the headers to send."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import urlsplit

from emulator.client.identity import HoldsKey, Identity, Pem
from emulator.client.tampering import Draft, tampered
from emulator.httpsig.dates import format_date
from emulator.httpsig.signing import ALGORITHMS, CANDIDATES, REQUEST_TARGET, digest_value, request_target


def sign(
    method: str,
    url: str,
    *,
    certificate: Pem,
    key: Pem,
    headers: Mapping[str, str] | None = None,
    body: bytes | str = b"",
) -> dict[str, str]:
    """The headers to send with a request, signed; for any HTTP library.

    `certificate` and `key` are PEM text or file paths, `url` an address or a path with its query exactly as it will
    be sent, `body` exactly the bytes that will be sent. Date, X-Request-ID, Digest (with a body) and
    TPP-Signature-Certificate are added unless `headers` has them; a Signature that it has stays as it is. See
    `signed_headers` for more control.
    """
    return signed_headers(method, url, Identity.from_pem(certificate, key), headers=headers, body=body)


def signed_headers(
    method: str,
    url: str,
    identity: HoldsKey,
    *,
    headers: Mapping[str, str | None] | None = None,
    body: bytes | str = b"",
    digest: bool | None = None,
    names: Sequence[str] | None = None,
    algorithm: str = "rsa-sha256",
    now: datetime | None = None,
    tamper: str | None = None,
) -> dict[str, str]:
    """As `sign`, with what may be chosen; a header that is None is left out, and not signed.

    `digest` True or False demands or forbids a Digest (default: with a body); `names` are the header names to sign
    (default: the request target and the candidates of SPEC 5.2 that are there); `now` dates the request; `tamper`
    is a name of TAMPERINGS and spoils it on purpose. ValueError for an algorithm or a name that cannot be signed with,
    TypeError for a header that is no text.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"there is no algorithm {algorithm!r}; there are {', '.join(ALGORITHMS)}")
    signer = Identity.of(identity)
    content = body.encode() if isinstance(body, str) else body
    given = headers or {}
    sent = {name: value for name, value in given.items() if value is not None}
    for name, value in sent.items():
        if not isinstance(value, str):  # a port as a number, a UUID as Python makes it
            raise TypeError(f"the value of the header {name} must be a str, not {value!r}")
    have = {name.lower() for name in given}
    if "date" not in have:
        sent["Date"] = format_date(now or datetime.now(UTC))
    if "x-request-id" not in have:
        sent["X-Request-ID"] = str(uuid.uuid4())
    if digest is not False and (content or digest) and "digest" not in have:
        sent["Digest"] = digest_value(content)
    if "tpp-signature-certificate" not in have:
        sent["TPP-Signature-Certificate"] = signer.header
    if "signature" in have:
        if tamper is not None:
            raise ValueError("tamper changes the signature that is made, and a Signature was given")
        return sent
    target = request_target(method, target_of(url))
    values = {name.lower(): value.strip(" \t") for name, value in sent.items()}
    signed = names if names is not None else [REQUEST_TARGET, *(name for name in CANDIDATES if name in values)]
    absent = [name for name in signed if name not in values and name != REQUEST_TARGET]
    if absent:
        raise ValueError(f"a request without the headers {', '.join(absent)} cannot have them signed")
    lines = [(name, target if name == REQUEST_TARGET else values[name]) for name in signed]
    draft = Draft(sent, lines, signer.key_id, signer.key, algorithm)
    return tampered(draft, tamper) if tamper is not None else draft.signed()


def target_of(url: str) -> str:
    """Path and query of `url` as they go into the request line; a path is returned as it is."""
    if url.startswith("/"):
        return url.partition("#")[0]
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
