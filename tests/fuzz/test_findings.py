"""What fuzzing has found stays found: each case was an error of ours once and is a refusal now."""

from __future__ import annotations

import base64

from tests.cases import cases
from tests.fuzz.readers import READERS
from tests.fuzz.seeds import laden_certificate, seeds


def _certificate_of_version(number: int) -> bytes:
    der = bytearray(base64.b64decode(seeds("certificate")[0]))
    at = der.index(b"\xa0\x03\x02\x01\x02") + 4
    der[at] = number
    return base64.b64encode(der)


def _certificate_with(old: bytes, new: bytes) -> bytes:
    """A certificate in which the first `old` is `new`."""
    der = laden_certificate()
    assert len(old) == len(new)
    at = der.index(old)
    return der[:at] + new + der[at + len(old) :]


ISSUER = b"\x06\x03U\x04\x03\x0c\x01A"  # the issuer comes before the subject
MAIL = b"\x81\x05a@b.c"


def _capture_with(old: bytes, new: bytes) -> bytes:
    """A captured request that was signed in a wrong way, in which the first `old` is `new`."""
    return seeds("capture")[1].replace(old, new, 1)


def test_a_finding_is_refused() -> None:
    for reader, data in (
        ("json", b"[1e" + b"1" * 45 + b"]"),  # an exponent out of range
        ("certificate", _certificate_of_version(10)),
        ("certificate", _certificate_with(ISSUER, ISSUER[:5] + b"\x05\x01A")),  # the issuer is no text
        ("certificate", _certificate_with(MAIL, b"\xa5\x05" + b"\x81\x03a@b")),  # a kind of name not supported
        ("capture", b"GET http://[ HTTP/1.1"),  # an address that is none
        ("capture", "POST /a HTTP/1.1\nContent-Length: ²\n\nabc".encode()),  # a length that is a power
        ("capture", _capture_with(b"Digest: ", b"X-\xff: 1\r\nDigest: ")),  # a header name that is no text
        ("capture", b"GET /v1/\xff%41 HTTP/1.1"),  # an address that is no text
    ):
        READERS[reader](data)


@cases("reader", READERS)
def test_the_seeds_and_all_their_beginnings_are_read_or_refused(reader: str) -> None:
    for seed in seeds(reader)[::10] if reader == "scenario" else seeds(reader):
        for end in range(0, len(seed) + 1, max(1, len(seed) // 50)):
            READERS[reader](seed[:end])
