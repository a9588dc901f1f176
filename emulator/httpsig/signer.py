"""Making a Signature header with an RSA key (SPEC 5.2): for TPPs, and for the bank's own answers."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256, SHA512

from emulator.httpsig.header import render
from emulator.httpsig.message import signing_string
from emulator.httpsig.wrapping import wrap

HASHES = {"rsa-sha256": SHA256(), "rsa-sha512": SHA512()}


def signature_of(text: str, key: RSAPrivateKey, algorithm: str = "rsa-sha256") -> str:
    """The base64 signature over a signing string, by RSASSA-PKCS1-v1_5."""
    return base64.b64encode(key.sign(text.encode(), PKCS1v15(), HASHES[algorithm])).decode()


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
