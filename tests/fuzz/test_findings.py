"""What fuzzing has found stays found: each case was an error of ours once and is a refusal now."""

from __future__ import annotations

import base64

import pytest

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


FINDINGS = [
    pytest.param("json", b"[1e" + b"1" * 45 + b"]", id="exponent-out-of-range"),
    pytest.param("certificate", _certificate_of_version(10), id="certificate-version-that-is-none"),
    pytest.param("certificate", _certificate_with(ISSUER, ISSUER[:5] + b"\x05\x01A"), id="issuer-that-is-no-text"),
    pytest.param(
        "certificate", _certificate_with(MAIL, b"\xa5\x05" + b"\x81\x03a@b"), id="name-of-a-kind-not-supported"
    ),
    pytest.param("capture", b"GET http://[ HTTP/1.1", id="address-that-is-none"),
    pytest.param("capture", "POST /a HTTP/1.1\nContent-Length: ²\n\nabc".encode(), id="length-that-is-a-power"),
    pytest.param(
        "capture",
        _capture_with(b"Digest: ", b"X-\xff: 1\r\nDigest: "),
        id="header-name-that-is-no-text",
    ),
    pytest.param("capture", b"GET /v1/\xff%41 HTTP/1.1", id="address-that-is-no-text"),
]


@pytest.mark.parametrize("reader, data", FINDINGS)
def test_a_finding_is_refused(reader: str, data: bytes) -> None:
    READERS[reader](data)


@pytest.mark.parametrize("reader", READERS)
def test_the_seeds_and_all_their_beginnings_are_read_or_refused(reader: str) -> None:
    for seed in seeds(reader):
        for end in range(0, len(seed) + 1, max(1, len(seed) // 50)):
            READERS[reader](seed[:end])
