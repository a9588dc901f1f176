"""Each reader of foreign input as a function of bytes: it returns, or refuses in its own words; else a finding."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from emulator.api.certificates import CertificateUnreadable, read_certificate
from emulator.api.headers import Headers
from emulator.api.json_body import check_strings, read_json
from emulator.bank.errors import BankError
from emulator.httpsig import dates, digest, header, names, wrapping
from emulator.scenario import loader
from emulator.scenario.mistakes import ScenarioRefused


def signature(data: bytes) -> None:
    """The Signature header, its RFC 2047 wrapping, names in a keyId, Date and Digest."""
    text = data.decode("latin-1")
    for read, refusal in (
        (header.parse, header.HeaderUnreadable),
        (wrapping.unwrap, wrapping.WrappingUnreadable),
        (names.read_name, names.NameUnreadable),
        (dates.parse_date, dates.DateUnreadable),
    ):
        with suppress(refusal):
            read(text)
    digest.parse_digest(text)


def certificate(data: bytes) -> None:
    """TPP-Signature-Certificate."""
    with suppress(CertificateUnreadable):
        read_certificate(data.decode("latin-1"))


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
    "json": json,
    "scenario": scenario,
}
