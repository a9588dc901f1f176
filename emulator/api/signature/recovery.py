"""What a signature itself tells: the hash that was signed, or why none comes out of it.

A signature by PKCS #1 v1.5 gives back the hash that its maker signed. So one operation with the public key settles
whether the certificate's key made it, and every guess at the text costs one hash instead of one verification.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS, PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256, SHA512

Hash = Callable[[bytes], Any]

# DigestInfo before the hash, RFC 8017, 9.2 note 1.
_PREFIXES: Mapping[bytes, tuple[str, Hash]] = {
    bytes.fromhex("3031300d060960864801650304020105000420"): ("SHA-256", hashlib.sha256),
    bytes.fromhex("3051300d060960864801650304020305000440"): ("SHA-512", hashlib.sha512),
    bytes.fromhex("3041300d060960864801650304020205000430"): ("SHA-384", hashlib.sha384),
    bytes.fromhex("302d300d06096086480165030402040500041c"): ("SHA-224", hashlib.sha224),
    bytes.fromhex("3021300906052b0e03021a05000414"): ("SHA-1", hashlib.sha1),
    bytes.fromhex("3020300c06082a864886f70d020505000410"): ("MD5", hashlib.md5),
}


@dataclass(frozen=True, slots=True)
class SignedHash:
    """The hash inside a signature that the certificate's key made; `name` as in `SHA-256`."""

    name: str
    function: Hash
    value: bytes

    def fits(self, text: bytes) -> bool:
        """Whether this is the hash of `text`."""
        return bool(self.function(text).digest() == self.value)


@dataclass(frozen=True, slots=True)
class NoHash:
    """Why no hash can be read from a signature: a stable name and a sentence."""

    id: str
    sentence: str


def recover(key: RSAPublicKey, signature: bytes) -> SignedHash | NoHash:
    """The hash that `signature` covers, or the reason why the certificate's `key` gives none."""
    size = (key.key_size + 7) // 8
    if len(signature) != size:
        return NoHash(
            "signature-length",
            f"The signature has {len(signature)} bytes, one by the certificate's key has {size}: "
            "it is cut off, encoded twice, or made with another key",
        )
    try:
        inside = key.recover_data_from_signature(signature, PKCS1v15(), None)
    except InvalidSignature:
        if _looks_like_pss(key, signature):
            return NoHash("pss-padding", "The signature is padded as RSA-PSS, rsa-sha256 means PKCS #1 v1.5")
        return NoHash(
            "other-key",
            "The signature was made with another key than that of TPP-Signature-Certificate (or was altered)",
        )
    for prefix, (name, function) in _PREFIXES.items():
        if inside.startswith(prefix) and len(inside) == len(prefix) + function(b"").digest_size:
            return SignedHash(name, function, inside[len(prefix) :])
    return NoHash(
        "no-digest-info",
        f"The key was applied to {len(inside)} bytes as they are, without hashing and DigestInfo: "
        "sign with a function for RSA-SHA256 signatures, not with one that encrypts with the private key",
    )


def _looks_like_pss(key: RSAPublicKey, signature: bytes) -> bool:
    """Whether the padded block ends as RSA-PSS does (RFC 8017, 9.1.1); true by chance once in 256."""
    numbers = key.public_numbers()
    return pow(int.from_bytes(signature, "big"), numbers.e, numbers.n) & 0xFF == 0xBC


def is_pss_over(key: RSAPublicKey, signature: bytes, text: bytes) -> bool:
    """Whether `signature` is an RSA-PSS signature over `text`, with SHA-256 or SHA-512."""
    for algorithm in (SHA256(), SHA512()):
        try:
            key.verify(signature, text, PSS(MGF1(algorithm), PSS.AUTO), algorithm)
        except InvalidSignature:
            continue
        return True
    return False
