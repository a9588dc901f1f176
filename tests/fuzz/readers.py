"""Each reader of foreign input as a function of bytes: it returns, or refuses in its own words; else a finding."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache

from cryptography import x509

from emulator.api.certificates import CertificateUnreadable, read_certificate
from emulator.api.headers import Headers
from emulator.api.json_body import check_strings, read_json
from emulator.api.signature.explain import CaptureUnreadable, as_text, explain
from emulator.assemble import authority_for
from emulator.bank.errors import BankError
from emulator.ca.qcstatements import StatementsUnreadable, psd2_roles
from emulator.httpsig import keyid, signing
from emulator.httpsig.keyid import compare_key_id, key_id_for
from emulator.scenario import loader
from emulator.scenario.loader import ScenarioRefused

NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)


@cache
def _issued() -> x509.Certificate:
    return authority_for(None).certificate


def signature(data: bytes) -> None:
    """The Signature header, its RFC 2047 wrapping, a keyId and the names in it, Date and Digest."""
    text = data.decode("latin-1")
    for read, refusal in (
        (signing.parse, signing.HeaderUnreadable),
        (signing.unwrap, signing.HeaderUnreadable),
        (keyid.read_name, keyid.NameUnreadable),
        (signing.parse_date, signing.DateUnreadable),
    ):
        with suppress(refusal):
            read(text)
    signing.parse_digest(text)
    for key_id in (text, f"SN={_issued().serial_number:X},CA={text}"):
        compare_key_id(key_id, _issued(), lenient=True)


def certificate(data: bytes) -> None:
    """TPP-Signature-Certificate, as text and as the DER inside, and the roles in its extension."""
    for text in (data.decode("latin-1"), b64encode(data).decode()):
        with suppress(CertificateUnreadable):
            certificate = read_certificate(text).certificate
            compare_key_id(key_id_for(certificate), certificate)
    with suppress(StatementsUnreadable):
        psd2_roles(data)


def capture(data: bytes) -> None:
    """A captured request, and with it the whole gate for signatures and the search for what is wrong."""
    with suppress(CaptureUnreadable):
        as_text(explain(data.decode("utf-8", "surrogateescape"), now=NOW))


def json(data: bytes) -> None:
    """A request body."""
    with suppress(BankError):
        check_strings(read_json(data, Headers((("Content-Type", "application/json"),))))


def scenario(data: bytes) -> None:
    """A scenario file."""
    with suppress(ScenarioRefused):
        loader.from_text(data.decode("utf-8", "replace"), "made-up")


READERS: dict[str, Callable[[bytes], None]] = {
    "signature": signature,
    "certificate": certificate,
    "capture": capture,
    "json": json,
    "scenario": scenario,
}
