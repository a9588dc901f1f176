"""What TPP-Signature-Certificate holds in the place of a certificate: the forms that clients send, by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from cryptography import exceptions, x509
from cryptography.hazmat.primitives.serialization import load_der_public_key

_BASE64 = re.compile(r"[A-Za-z0-9+/]++={0,2}")
_HEXADECIMAL = re.compile(r"(?:[0-9A-Fa-f]{2}:?)++")
_SEQUENCE = 0x30
# How the content of the outermost SEQUENCE begins: PKCS #8 and #1, SEC 1, PKCS #12, PKCS #7.
_BEGINNINGS = {
    bytes.fromhex("020100"): "a private key, which belongs in no request",
    bytes.fromhex("020101"): "a private key, which belongs in no request",
    bytes.fromhex("020103"): "a PKCS #12 keystore",
    bytes.fromhex("06092a864886f70d0107"): "a PKCS #7 bundle",
}
_LOADERS: tuple[tuple[str, Callable[[bytes], Any]], ...] = (
    ("a public key", load_der_public_key),
    ("a certificate request", x509.load_der_x509_csr),
)


def is_hexadecimal(text: str) -> bool:
    """Whether `text`, which may pass for base64, is bytes in hexadecimal, with or without colons."""
    return _HEXADECIMAL.fullmatch(text) is not None


def why_no_base64(text: str) -> str:
    """What a text without blanks is that is not base64, as a sentence."""
    if "%2B" in text or "%2F" in text or "%0A" in text or "%3D" in text:
        return "it is URL-encoded; send the base64 as it is"
    if text.startswith("=?"):
        return "it is wrapped as RFC 2047 has it, which Signature alone may be; send the base64 as it is"
    if _BASE64.fullmatch(text.replace("-", "+").replace("_", "/")):
        return "it is URL-safe base64; send the base64 alphabet with + and /"
    if text.startswith("b'"):
        return "it is Python's text of bytes, decode() makes it base64"
    if "\\n" in text:
        return "its line ends are written as a backslash and an n; send line ends, or none"
    return "it is not base64"


def why_no_certificate(der: bytes) -> str:
    """What bytes are that cannot be read as an X.509 certificate, as a sentence."""
    if der.startswith(b"-----BEGIN"):
        return "it is base64 over PEM text; send the base64 of the DER (the lines inside the PEM)"
    start, end = _content(der)
    if not start:
        return "its base64 holds no DER"
    for beginning, name in _BEGINNINGS.items():
        if der.startswith(beginning, start):
            return f"it is {name}, not a certificate"
    if len(der) < end:
        return f"it is cut off: its base64 holds {len(der)} bytes, the certificate has {end}"
    if len(der) > end:
        return f"further bytes follow the certificate ({len(der) - end}, another one?); send the TPP's alone"
    for name, load in _LOADERS:
        if _loads(load, der):
            return f"it is {name}, not a certificate"
    return "it holds no readable X.509 certificate"


def _content(der: bytes) -> tuple[int, int]:
    """Where the content of the outermost SEQUENCE begins and ends, by its own length; zeros where there is none."""
    if len(der) < 2 or der[0] != _SEQUENCE:
        return 0, 0
    length, start = der[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[2:start], "big")
    return start, start + length


def _loads(load: Callable[[bytes], Any], der: bytes) -> bool:
    try:
        load(der)
    except (ValueError, TypeError, exceptions.UnsupportedAlgorithm):
        return False
    return True
