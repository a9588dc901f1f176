"""Signing a request: computes the headers to send from method, address, headers and body.

`TAMPERINGS` are named ways to sign a request wrongly on purpose; a bank must refuse each of them.
"""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key

from emulator.httpsig.keyid import key_id_for
from emulator.httpsig.sendable import one_line_each
from emulator.httpsig.signing import (
    ALGORITHMS,
    CANDIDATES,
    REQUEST_TARGET,
    digest_value,
    format_date,
    header_text,
    parse_date,
    request_target,
    signature_of,
    signing_string,
)

Pem = str | bytes | Path


def real_now() -> datetime:
    """The time of this machine; not `datetime.now(UTC)`, to which freezegun adds its `tz_offset`."""
    return datetime.fromtimestamp(time.time(), UTC)


class HoldsKey(Protocol):
    """An object with a certificate and its key, such as `emulator.ca.Credentials`."""

    @property
    def certificate(self) -> x509.Certificate: ...
    @property
    def key(self) -> RSAPrivateKey: ...


class Identity:
    """A TPP's certificate and key, and the two texts that are the same in every request.

    `header` is the value of TPP-Signature-Certificate, `key_id` the keyId of the Signature header.
    """

    def __init__(self, certificate: x509.Certificate, key: RSAPrivateKey) -> None:
        self.certificate = certificate
        self.key = key
        self.key_id = key_id_for(certificate)
        self.header = base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()

    @classmethod
    def of(cls, holder: HoldsKey) -> Identity:
        """The identity of `holder`; an Identity is returned as it is."""
        return holder if isinstance(holder, Identity) else cls(holder.certificate, holder.key)

    @classmethod
    def from_pem(cls, certificate: Pem, key: Pem, *, password: str | None = None) -> Identity:
        """From PEM text or the paths of PEM files; raise ValueError for any other content."""
        try:
            private_key = serialization.load_pem_private_key(
                _content("key", key), password.encode() if password else None
            )
        except TypeError as error:  # the password is missing, or the key has none
            raise ValueError(str(error)) from None
        if not isinstance(private_key, RSAPrivateKey):
            raise ValueError("the signing key must be an RSA key")
        x509_certificate = x509.load_pem_x509_certificate(_content("certificate", certificate))
        if x509_certificate.public_key() != private_key.public_key():
            raise ValueError("the key does not belong to the certificate")
        return cls(x509_certificate, private_key)

    @classmethod
    def from_folder(cls, folder: str | Path) -> Identity:
        """From a folder such as `.bank-emulator/tpps/demo` with the files certificate.pem and key.pem."""
        return cls.from_pem(Path(folder) / "certificate.pem", Path(folder) / "key.pem")


def _content(name: str, pem: Pem) -> bytes:
    """The PEM text as bytes, read from a file if `pem` is a path; ValueError naming `name` for another encoding."""
    if isinstance(pem, str):
        pem = pem.encode() if "-----BEGIN" in pem else Path(pem)
    content = pem.read_bytes() if isinstance(pem, Path) else pem
    if b"-----BEGIN" not in content:  # DER, PKCS #12 or UTF-16, for which the library's message is unclear
        raise ValueError(f"the {name} is not PEM text: it has no line -----BEGIN")
    return content


def sign(
    method: str,
    url: str,
    *,
    certificate: Pem,
    key: Pem,
    headers: Mapping[str, str] | None = None,
    body: bytes | str = b"",
) -> dict[str, str]:
    """The headers of a signed request, to send with any HTTP library.

    `certificate` and `key` are PEM text or file paths, `url` an address or a path with its query exactly as it will
    be sent, `body` exactly the bytes that will be sent. Date, X-Request-ID, Digest (with a body) and
    TPP-Signature-Certificate are added unless `headers` has them; a Signature in `headers` is sent unchanged. See
    `signed_headers` for more options.
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
    """As `sign`, with all options; a header whose value is None is neither sent nor signed.

    `digest` True or False sends or omits a Digest (default: with a body); `names` are the header names to sign; `now`
    is the date of the request; `tamper` is a name of TAMPERINGS: the request is signed wrongly on purpose. ValueError
    for an unknown algorithm, an unknown tampering, a header in two spellings or one to sign that is absent, TypeError
    for a header value that is not a str.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"there is no algorithm {algorithm!r}; the algorithms are {', '.join(ALGORITHMS)}")
    signer = Identity.of(identity)
    content = body.encode() if isinstance(body, str) else body
    requested = one_line_each((headers or {}).items())
    sent = {name: value for name, value in requested.items() if value is not None}
    for name, value in sent.items():
        if not isinstance(value, str):  # such as a port as a number, or a uuid.UUID
            raise TypeError(f"the value of the header {name} must be a str, not {value!r}")
    have = {name.lower() for name in requested}
    if "date" not in have:
        sent["Date"] = format_date(now or real_now())
    if "x-request-id" not in have:
        sent["X-Request-ID"] = str(uuid.uuid4())
    if digest is not False and (content or digest) and "digest" not in have:
        sent["Digest"] = digest_value(content)
    if "tpp-signature-certificate" not in have:
        sent["TPP-Signature-Certificate"] = signer.header
    if "signature" in have:
        if tamper is not None:
            raise ValueError("tamper changes the generated signature, but the headers contain a Signature")
        return sent
    target = request_target(method, target_of(url))
    values = {name.lower(): value.strip(" \t") for name, value in sent.items()}
    signed = names if names is not None else [REQUEST_TARGET, *(name for name in CANDIDATES if name in values)]
    absent = [name for name in signed if name not in values and name != REQUEST_TARGET]
    if absent:
        raise ValueError(f"the headers to sign include {', '.join(absent)}, which the request does not have")
    lines = [(name, target if name == REQUEST_TARGET else values[name]) for name in signed]
    unsigned = Unsigned(sent, lines, signer.key_id, signer.key, algorithm)
    if tamper is None:
        return unsigned.signed()
    if tamper not in TAMPERINGS:
        raise ValueError(f"there is no tampering {tamper!r}; the tamperings are {', '.join(TAMPERINGS)}")
    return TAMPERINGS[tamper](unsigned)


def target_of(url: str) -> str:
    """Path and query of `url` as in the request line, without a fragment."""
    if url.startswith("/"):
        return url.partition("#")[0]
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


Headers = dict[str, str]
Lines = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A request before it is signed: the headers to send and the lines to sign.

    A tampering sets `listed` and `claimed` to make the Signature header name other headers or another algorithm than
    were used, and `finish` to change the signature itself.
    """

    headers: Headers
    lines: Lines
    key_id: str
    key: RSAPrivateKey
    algorithm: str
    listed: tuple[str, ...] | None = None
    claimed: str | None = None
    finish: Callable[[str], str] | None = None

    def signed(self) -> Headers:
        """The headers with their Signature."""
        text = signing_string(self.lines)
        signature = signature_of(text, self.key, self.algorithm)
        header = header_text(
            key_id=self.key_id,
            algorithm=self.claimed or self.algorithm,
            names=self.listed or [name for name, _ in self.lines],
            signature=self.finish(signature) if self.finish else signature,
            ascii_only=text.isascii(),
        )
        return {**self.headers, "Signature": header}

    def over(self, lines: Lines) -> Unsigned:
        """The same request with a signature over `lines`, whose header lists what it should have covered."""
        return replace(self, lines=lines, listed=tuple(name for name, _ in self.lines))


@cache
def _other_key() -> RSAPrivateKey:
    return generate_private_key(public_exponent=65537, key_size=2048)


def _bit_flipped(signature: str) -> str:
    raw = bytearray(base64.b64decode(signature))
    raw[-1] ^= 1
    return base64.b64encode(raw).decode()


def _without_query(lines: Lines) -> Lines:
    return [(name, value.partition("?")[0] if name == REQUEST_TARGET else value) for name, value in lines]


def _later(date: str, seconds: int) -> str:
    return format_date(datetime.fromtimestamp(parse_date(date)[0] + seconds, UTC))


def _changed(headers: Headers, name: str, change: Callable[[str], str]) -> Headers:
    return {key: change(value) if key.lower() == name else value for key, value in headers.items()}


def _old(unsigned: Unsigned) -> Headers:
    hour = -3600
    lines = [(name, _later(value, hour) if name == "date" else value) for name, value in unsigned.lines]
    headers = _changed(unsigned.headers, "date", lambda value: _later(value, hour))
    return replace(unsigned, headers=headers, lines=lines).signed()


def _serial(unsigned: Unsigned, change: Callable[[str], str]) -> Headers:
    serial, comma, issuer = unsigned.key_id.partition(",")
    return replace(unsigned, key_id=f"SN={change(serial[3:])}{comma}{issuer}").signed()


def _without(unsigned: Unsigned, name: str) -> Headers:
    return {key: value for key, value in unsigned.signed().items() if key.lower() != name}


TAMPERINGS: Mapping[str, Callable[[Unsigned], Headers]] = {
    "no-signature": lambda unsigned: _without(unsigned, "signature"),
    "no-certificate": lambda unsigned: _without(unsigned, "tpp-signature-certificate"),
    "no-date": lambda unsigned: _without(unsigned, "date"),
    "no-digest": lambda unsigned: _without(unsigned, "digest"),
    "unlisted": lambda unsigned: replace(
        unsigned, lines=[line for line in unsigned.lines if line[0] != "x-request-id"]
    ).signed(),
    "leading-word": lambda unsigned: _changed(unsigned.signed(), "signature", lambda value: f"Signature {value}"),
    "algorithm": lambda unsigned: replace(unsigned, claimed="hs2019").signed(),
    "other-serial": lambda unsigned: _serial(unsigned, lambda serial: f"{int(serial, 16) + 1:X}"),
    "lower-case-serial": lambda unsigned: _serial(unsigned, str.lower),
    "other-key": lambda unsigned: replace(unsigned, key=_other_key()).signed(),
    "bit-flipped": lambda unsigned: replace(unsigned, finish=_bit_flipped).signed(),
    "old-date": _old,
    "other-date": lambda unsigned: _changed(unsigned.signed(), "date", lambda value: _later(value, 1)),
    "other-body": lambda unsigned: _changed(unsigned.signed(), "digest", lambda _: digest_value(b"another body")),
    "reordered": lambda unsigned: unsigned.over(unsigned.lines[::-1]).signed(),
    "without-query": lambda unsigned: unsigned.over(_without_query(unsigned.lines)).signed(),
}
