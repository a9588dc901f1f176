"""Explains an invalid signature: the cause in a sentence, and both signing strings if they are known.

A PKCS #1 v1.5 signature reveals the hash that was signed. So one operation with the public key determines whether the
certificate's key made it (`recover`), and every guess at the text costs one hash instead of one verification.
The common mistakes (`mistakes`) are then tried, one at a time and in pairs, until one of them results in that hash.
"""

from __future__ import annotations

import hashlib
import itertools
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS, PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import MD5, SHA1, SHA224, SHA256, SHA384, SHA512, HashAlgorithm

from emulator.api.signature.mistakes import Mistake, Recipe, guesses
from emulator.api.signature.rules import Inspection
from emulator.httpsig.keyid import key_id_for

Hash = Callable[[bytes], Any]

_HASHES: tuple[HashAlgorithm, ...] = (SHA256(), SHA512(), SHA384(), SHA224(), SHA1(), MD5())

MOST_GUESSES = 2_000  # hashes, in about 10 ms
MOST_HASHED = 4_000_000  # characters, which limits the guesses for very long texts
MOST_LINES = 40
MOST_VERIFICATIONS = 50  # for RSA-PSS, where each guess is a verification; about 2 ms


@dataclass(frozen=True, slots=True)
class SignedHash:
    """The hash inside a signature by the certificate's key; `name` as in `SHA-256`."""

    name: str
    function: Hash
    value: bytes

    def fits(self, text: bytes) -> bool:
        return bool(self.function(text).digest() == self.value)


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the signature is invalid: a stable name, a sentence, and the client's signing string if known."""

    id: str
    sentence: str
    likely: str | None = None
    tried: int = 0
    signed: SignedHash | None = None


def find_cause(inspection: Inspection) -> Cause | None:
    """The cause of an invalid signature; None without a signature, key or signing string."""
    certificate, signature = inspection.certificate, inspection.signature
    if certificate is None or certificate.key is None or inspection.signing_string is None or signature is None:
        return None
    text, key = inspection.signing_string, certificate.key
    signed = recover(key, signature)
    if isinstance(signed, SignedHash):
        return _of_hash(inspection, signed, text)
    if signed.id != "pss-padding":
        return signed
    guess, tried = _search(inspection, lambda data: is_pss_over(key, signature, data), MOST_VERIFICATIONS)
    if guess is None:
        sentence = (
            "The signature was made with another key than that of TPP-Signature-Certificate, or has RSA-PSS padding"
        )
        return Cause("other-key", f"{sentence}; rsa-sha256 means PKCS #1 v1.5", None, tried)
    mistakes, recipe = guess
    also = f"; and it was made over a signing string {_phrase(mistakes)}" if mistakes else ""
    return replace(signed, sentence=signed.sentence + also, likely=recipe.text(), tried=tried)


def recover(key: RSAPublicKey, signature: bytes) -> SignedHash | Cause:
    """The hash in `signature`, or why the certificate's `key` does not reveal one."""
    size = (key.key_size + 7) // 8
    if len(signature) != size:
        return Cause(
            "signature-length",
            f"The signature has {len(signature)} bytes, one by the certificate's key has {size}: "
            "it is truncated, encoded twice, or made with another key",
        )
    for algorithm in _HASHES:
        with suppress(InvalidSignature, UnsupportedAlgorithm):
            value = key.recover_data_from_signature(signature, PKCS1v15(), algorithm)
            name = algorithm.name.upper().replace("SHA", "SHA-")
            return SignedHash(name, getattr(hashlib, algorithm.name), value)
    try:
        inside = key.recover_data_from_signature(signature, PKCS1v15(), None)
    except InvalidSignature:
        # A block of RSA-PSS ends in BC (RFC 8017, 9.1.1); that of another key by chance, once in 256 times.
        numbers = key.public_numbers()
        if pow(int.from_bytes(signature, "big"), numbers.e, numbers.n) & 0xFF == 0xBC:
            return Cause("pss-padding", "The signature has RSA-PSS padding; rsa-sha256 means PKCS #1 v1.5")
        return Cause(
            "other-key",
            "The signature was made with another key than that of TPP-Signature-Certificate (or was altered)",
        )
    return Cause(
        "no-digest-info",
        f"The key was applied to {len(inside)} bytes as they are, without hashing and DigestInfo: "
        "sign with a function for RSA-SHA256 signatures, not with one that encrypts with the private key",
    )


def is_pss_over(key: RSAPublicKey, signature: bytes, text: bytes) -> bool:
    """Whether `signature` is an RSA-PSS signature over `text`, with SHA-256 or SHA-512."""
    for algorithm in (SHA256(), SHA512()):
        with suppress(InvalidSignature):
            key.verify(signature, text, PSS(MGF1(algorithm), PSS.AUTO), algorithm)
            return True
    return False


def _of_hash(inspection: Inspection, signed: SignedHash, text: str) -> Cause:
    also = "" if signed.name == inspection.hash_name else f", and with {signed.name} instead of {inspection.hash_name}"
    for name, phrase, other in _other_things(inspection, signed, text):
        if signed.fits(other):
            return Cause(name, f"The signature was made over {phrase}{also}", signed=signed)
    most = min(MOST_GUESSES, MOST_HASHED // (len(text) + 1)) if len(inspection.names) <= MOST_LINES else 0
    guess, tried = _search(inspection, signed.fits, most)
    if guess is None:
        sentence = (
            "The signature was made with the certificate's key, but over another text than the bank's signing string; "
            f"none of the common mistakes explains it ({tried} tried){also}"
        )
        return Cause("other-text", sentence, None, tried, signed)
    mistakes, recipe = guess
    likely = recipe.text()
    if not mistakes:
        sentence = f"The signature was made with {signed.name}; the parameter algorithm means {inspection.hash_name}"
        return Cause("other-hash", sentence, text, signed=signed)
    place = first_difference(text, likely)
    where = f" (first difference in line {place['line']}, column {place['column']})" if place else ""
    sentence = f"The signature was made over a signing string {_phrase(mistakes)}{where}{also}"
    return Cause("+".join([mistake.id for mistake in mistakes]), sentence, likely, tried, signed)


def _other_things(inspection: Inspection, signed: SignedHash, text: str) -> Iterator[tuple[str, str, bytes]]:
    """Other things that are signed instead of the signing string: a stable name, a phrase and the bytes."""
    once = signed.function(text.encode())
    for phrase, form in (
        ("the hash", once.digest()),
        ("the hexadecimal hash", once.hexdigest().encode()),
        ("the base64 of the hash", b64encode(once.digest())),
    ):
        yield "hashed-twice", f"{phrase} of the signing string: sign the string itself, which signing hashes", form
    yield "nothing-signed", "no bytes at all", b""
    body, digest = inspection.body or b"", inspection.present.get("digest", "")
    yield "body-signed", "the body: sign the signing string, in which the Digest represents the body", body
    yield "digest-signed", "the value of Digest: sign the signing string, of which it is one line", digest.encode()


def _search(
    inspection: Inspection, fits: Callable[[bytes], bool], most: int
) -> tuple[tuple[tuple[Mistake, ...], Recipe] | None, int]:
    """The first guess whose bytes were signed, and how many were tried beside the right signing string."""
    tried = 0
    for tried, (mistakes, recipe) in enumerate(itertools.islice(guesses(inspection), most + 1)):
        if fits(recipe.encoded()):
            return (mistakes, recipe), tried
    return None, tried


def _phrase(mistakes: Sequence[Mistake]) -> str:
    return ", and ".join([mistake.phrase for mistake in mistakes])


def describe(inspection: Inspection, cause: Cause | None) -> dict[str, Any]:
    """The diagnosis for the request log, a JSON object without empty members."""
    shown: dict[str, Any] = {
        "valid": False,
        "cause": inspection.faults[0].text,
        "messages": [{"code": one.code, "path": one.path, "text": one.text} for one in inspection.faults],
        "signingString": inspection.signing_string,
        "notes": inspection.notes,
        "keyId": _key_id(inspection),
        "certificate": _certificate(inspection),
    }
    if inspection.header is not None:
        shown |= {"algorithm": inspection.header.algorithm, "headers": list(inspection.names)}
    if cause is not None:
        shown |= _of_cause(inspection, cause)
    return {name: value for name, value in shown.items() if value not in (None, [], {})}


def _of_cause(inspection: Inspection, cause: Cause) -> dict[str, Any]:
    shown: dict[str, Any] = {"mistake": cause.id, "signatureCause": cause.sentence, "tried": cause.tried}
    text = inspection.signing_string or ""
    if cause.likely is not None:
        shown["likelySent"] = cause.likely
        shown["firstDifference"] = first_difference(text, cause.likely)
    if cause.signed is not None:
        own = cause.signed.function(text.encode()).hexdigest()
        shown["hash"] = {"algorithm": cause.signed.name, "signed": cause.signed.value.hex(), "signingString": own}
    return shown


def _key_id(inspection: Inspection) -> dict[str, Any]:
    if inspection.header is None or inspection.header.key_id is None:
        return {}
    shown: dict[str, Any] = {"sent": inspection.header.key_id}
    if inspection.certificate is not None:
        expected = shown["expected"] = key_id_for(inspection.certificate.certificate)
        shown["firstDifference"] = first_difference(expected, inspection.header.key_id)
    return {name: value for name, value in shown.items() if value is not None}


def _certificate(inspection: Inspection) -> dict[str, Any]:
    if inspection.certificate is None:
        return {}
    certificate = inspection.certificate.certificate
    return {
        "subject": certificate.subject.rfc4514_string(),
        "issuer": certificate.issuer.rfc4514_string(),
        "serialNumber": f"{certificate.serial_number:X}",
        "validFrom": certificate.not_valid_before_utc.isoformat(),
        "validUntil": certificate.not_valid_after_utc.isoformat(),
        "tpp": inspection.certificate.tpp.id,
        "roles": sorted(inspection.certificate.tpp.roles),
    }


def first_difference(expected: str, sent: str) -> dict[str, Any] | None:
    """Line and column (from 1) of the first difference with both lines, as a JSON object; None if they are equal.

    Only a newline ends a line: a carriage return is part of it. A line that one side does not have is None.
    """
    if expected == sent:
        return None
    ours, theirs = expected.split("\n"), sent.split("\n")
    for number, (here, there) in enumerate(zip_longest(ours, theirs), 1):
        if here != there:
            return {"line": number, "column": _column(here or "", there or ""), "expected": here, "sent": there}
    return None


def _column(here: str, there: str) -> int:
    pairs = zip(here, there, strict=False)
    return next((at for at, (one, other) in enumerate(pairs, 1) if one != other), min(len(here), len(there)) + 1)
