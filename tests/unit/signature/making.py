"""Signed requests for tests, put together by hand so that every part can be wrong."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

from emulator.api.signature import SignatureRefused, Verified, VerifiedClients, check
from emulator.bank.settings import Settings
from emulator.ca import Credentials
from emulator.httpsig.keyid import key_id_for
from emulator.httpsig.signing import CANDIDATES, digest_value, format_date, request_target, signing_string

NOW = datetime(2026, 3, 2, 8, 0, 0, tzinfo=UTC)
BODY = b'{"instructedAmount":{"amount":"100.00","currency":"NOK"},"creditorName":"Kari"}'
TARGET = "/v1/payments/sepa-credit-transfers?allowLogicalDuplicate=false"
STANDING = (
    ("Host", "127.0.0.1:8080"),
    ("Date", format_date(NOW)),
    ("X-Request-ID", "1b4e28ba-2fa1-41d2-883f-0016d3cca427"),
    ("PSU-ID", "0f8fad5b-d9cb-469f-a165-70867728950e"),
    ("TPP-Redirect-URI", "https://tpp.example/callback?a=b%20c"),
    ("x-accept-fix", "amount-as-string"),
)

USUAL = Settings()  # one, as a bank has one: the clients that it knows are those of one settings
CLIENTS = VerifiedClients()

Lines = list[tuple[str, str]]


class Fault(NamedTuple):
    """A message of the gate without its category, which is always ERROR."""

    code: str
    path: str
    text: str


@dataclass(frozen=True)
class Making:
    """A request in the making; each test replaces what it is about. `text` makes the signing string of the lines."""

    credentials: Credentials
    method: str = "POST"
    target: str = TARGET
    headers: tuple[tuple[str, str], ...] = STANDING
    body: bytes = BODY
    digest: str | None = "right"
    names: Sequence[str] | None = None
    listed: str | None = "names"
    key_id: str | None = "right"
    algorithm: str | None = "rsa-sha256"
    certificate: str | None = "right"
    text: Callable[[Lines], str | bytes] = signing_string
    sign: Callable[[Any, bytes], bytes] = field(default=lambda key, data: key.sign(data, PKCS1v15(), hashes.SHA256()))
    encode: Callable[[bytes], str] = field(default=lambda raw: base64.b64encode(raw).decode())
    finish: Callable[[str], str] = field(default=lambda header: header)
    wanted: bool = True
    settings: Settings = USUAL
    now: datetime = NOW
    trusted_ca: x509.Certificate | None = None

    def but(self, **changes: Any) -> Making:
        return replace(self, **changes)

    def with_key(self, key: Any) -> Making:
        self.credentials._key = key
        return self

    def with_header(self, name: str, value: str | None) -> Making:
        others = tuple(pair for pair in self.headers if pair[0].lower() != name.lower())
        return replace(self, headers=others if value is None else (*others, (name, value)))

    def sent(self) -> list[tuple[str, str]]:
        headers = list(self.headers)
        if self.digest is not None and (self.body or self.digest != "right"):
            headers.append(("Digest", digest_value(self.body) if self.digest == "right" else self.digest))
        values = {name.lower(): value for name, value in headers}
        names = self.names
        if names is None:
            names = ["(request-target)", *(name for name in CANDIDATES if name in values)]
        values["(request-target)"] = request_target(self.method, self.target)
        text = self.text([(name, values[name]) for name in names if name in values])
        data = text.encode() if isinstance(text, str) else text
        parts = {
            "keyId": key_id_for(self.credentials.certificate) if self.key_id == "right" else self.key_id,
            "algorithm": self.algorithm,
            "headers": " ".join(names) if self.listed == "names" else self.listed,
            "signature": self.encode(self.sign(self.credentials.key, data)),
        }
        header = ",".join(f'{name}="{value}"' for name, value in parts.items() if value is not None)
        if self.certificate is not None:
            right = self.certificate == "right"
            certificate = self.credentials.certificate_header if right else self.certificate
            headers.append(("TPP-Signature-Certificate", certificate))
        return [*headers, ("Signature", self.finish(header))]

    def check(self, headers: Sequence[tuple[str, str]] | None = None) -> Verified:
        return same_verdict(
            self.method,
            self.target,
            self.sent() if headers is None else headers,
            self.body,
            digest_required=self.wanted,
            settings=self.settings,
            instant=self.now.timestamp(),
            trusted_ca=self.trusted_ca,
        )

    def refused(self, headers: Sequence[tuple[str, str]] | None = None) -> SignatureRefused:
        try:
            verified = self.check(headers)
        except SignatureRefused as error:
            return error
        raise AssertionError(f"accepted with notes {verified.notes}")

    def faults(self, headers: Sequence[tuple[str, str]] | None = None) -> list[Fault]:
        return [Fault(one.code, one.path or "", one.text) for one in self.refused(headers).messages]


def same_verdict(method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes, **more: Any) -> Verified:
    """The gate's verdict, after making sure that it is the same for a client it has accepted before and after."""
    present = {name.lower(): value.strip(" \t") for name, value in headers}
    if len(present) == len(headers):
        first = _verdict(method, target, headers, body, **more)
        assert _verdict(method, target, headers, body, present=present, clients=CLIENTS, **more) == first
        assert _verdict(method, target, headers, body, present=present, clients=CLIENTS, **more) == first
    return check(method, target, headers, body, **more)


def _verdict(*args: Any, **more: Any) -> Any:
    try:
        verified = check(*args, **more)
    except SignatureRefused as refused:
        return refused.messages
    # the certificate itself: what was read of it may have been read twice
    return verified.tpp, verified.certificate.certificate, verified.notes, verified.signing_string


def encoded_word(text: str, *, charset: str = "utf-8", encoding: str = "B") -> str:
    """`text` as one encoded word of RFC 2047, in either charset and encoding that the bank reads."""
    raw = text.encode(charset)
    if encoding == "B":
        return f"=?{charset}?B?{base64.b64encode(raw).decode()}?="
    quoted = "".join(chr(byte) if chr(byte).isalnum() and byte < 128 else f"={byte:02X}" for byte in raw)
    return f"=?{charset}?Q?{quoted}?="


__all__ = ["BODY", "NOW", "STANDING", "TARGET", "Making", "encoded_word", "same_verdict"]
