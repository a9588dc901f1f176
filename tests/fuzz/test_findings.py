"""What fuzzing has found stays found: each case was an error of ours once and is a refusal now."""

from __future__ import annotations

import base64

import pytest

from tests.fuzz.readers import READERS
from tests.fuzz.seeds import seeds


def _certificate_of_version(number: int) -> bytes:
    der = bytearray(base64.b64decode(seeds("certificate")[0]))
    at = der.index(b"\xa0\x03\x02\x01\x02") + 4
    der[at] = number
    return base64.b64encode(der)


FINDINGS = [
    pytest.param("json", b"[1e" + b"1" * 45 + b"]", id="exponent-out-of-range"),
    pytest.param("certificate", _certificate_of_version(10), id="certificate-version-that-is-none"),
    pytest.param("capture", b"GET http://[ HTTP/1.1", id="address-that-is-none"),
    pytest.param("capture", "POST /a HTTP/1.1\nContent-Length: ²\n\nabc".encode(), id="length-that-is-a-power"),
]


@pytest.mark.parametrize("reader, data", FINDINGS)
def test_a_finding_is_refused(reader: str, data: bytes) -> None:
    READERS[reader](data)


@pytest.mark.parametrize("reader", READERS)
def test_the_seeds_and_all_their_beginnings_are_read_or_refused(reader: str) -> None:
    for seed in seeds(reader):
        for end in range(0, len(seed) + 1, max(1, len(seed) // 50)):
            READERS[reader](seed[:end])
