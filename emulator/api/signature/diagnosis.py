"""Why a signature does not verify: the cause in a sentence, and both signing strings when they can be told."""

from __future__ import annotations

import itertools
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from emulator.api.signature.difference import first_difference
from emulator.api.signature.evidence import Evidence
from emulator.api.signature.mistakes import GROUPS, any_order
from emulator.api.signature.recipe import Mistake, Recipe
from emulator.api.signature.recovery import NoHash, SignedHash, is_pss_over, recover
from emulator.api.signature.result import clean
from emulator.httpsig.keyid import key_id_for

MOST_GUESSES = 2_000  # hashes, in about 10 ms
MOST_HASHED = 4_000_000  # characters, which bounds the guesses at very long texts
MOST_LINES = 40
MOST_VERIFICATIONS = 50  # where each guess costs one, about 2 ms
_PAIRED = 12  # mistakes of a group that are combined with those of another

Made = tuple[Mistake, ...]
"""The mistakes that lead to a recipe, in the order in which they are made."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the signature does not fit: a stable name, a sentence, and the client's signing string when known."""

    id: str
    sentence: str
    likely: str | None = None
    tried: int = 0
    signed: SignedHash | None = None


def find_cause(found: Evidence) -> Cause | None:
    """The cause of a signature that does not verify; None when there is no signature, key or signing string."""
    certificate, signature = found.certificate, found.signature
    if certificate is None or certificate.key is None or found.signing_string is None or signature is None:
        return None
    found = _encodable(found)
    text = found.signing_string or ""
    recovered = recover(certificate.key, signature)
    if isinstance(recovered, NoHash):
        if recovered.id == "pss-padding":
            return _pss(found, certificate.key, signature, recovered)
        return Cause(recovered.id, recovered.sentence)
    if recovered.fits(text.encode()):
        sentence = f"The signature was made with {recovered.name}, the parameter algorithm means {found.hash_name}"
        return Cause("other-hash", sentence, text, signed=recovered)
    return _search(found, recovered, text)


def _encodable(found: Evidence) -> Evidence:
    """The same without lone surrogates, which no wire carries but a caller may pass."""
    return replace(
        found,
        method=clean(found.method),
        target=clean(found.target),
        headers=[(clean(name), clean(value)) for name, value in found.headers],
        present={clean(name): clean(value) for name, value in found.present.items()},
        names=tuple(clean(name) for name in found.names),
        signing_string=clean(found.signing_string or ""),
    )


def _search(found: Evidence, signed: SignedHash, text: str) -> Cause:
    also = "" if signed.name == found.hash_name else f", and with {signed.name} in place of {found.hash_name}"
    for name, phrase, other in _other_things(found, signed, text):
        if signed.fits(other):
            return Cause(name, f"The signature was made over {phrase}{also}", signed=signed)
    tried = 0
    most = min(MOST_GUESSES, MOST_HASHED // (len(text) + 1)) if len(found.names) <= MOST_LINES else 0
    for made, recipe in itertools.islice(guesses_at(found), most):
        tried += 1
        if signed.fits(recipe.encoded()):
            likely = recipe.text()
            name = "+".join([mistake.id for mistake in made])
            return Cause(name, _sentence(made, text, likely) + also, likely, tried, signed)
    sentence = (
        "The signature was made with the certificate's key, but over another text than the bank's signing string; "
        f"none of the usual mistakes explains it ({tried} tried){also}"
    )
    return Cause("other-text", sentence, None, tried, signed)


def _sentence(made: Made, text: str, likely: str) -> str:
    place = first_difference(text, likely)
    where = f" (first difference in line {place['line']}, column {place['column']})" if place else ""
    return f"The signature was made over a signing string {_phrase(made)}{where}"


def _phrase(made: Made) -> str:
    return ", and ".join([mistake.phrase for mistake in made])


def _other_things(found: Evidence, signed: SignedHash, text: str) -> Iterator[tuple[str, str, bytes]]:
    """What is signed in the place of a signing string: a stable name, a phrase and the bytes."""
    once = signed.function(text.encode())
    for phrase, form in (
        ("the hash", once.digest()),
        ("the hexadecimal hash", once.hexdigest().encode()),
        ("the base64 of the hash", b64encode(once.digest())),
    ):
        yield "hashed-twice", f"{phrase} of the signing string: sign the string itself, signing hashes it", form
    yield "nothing-signed", "no bytes at all", b""
    digest = found.present.get("digest", "")
    yield "body-signed", "the body: sign the signing string, in which the Digest stands for the body", found.body or b""
    yield "digest-signed", "the value of Digest: sign the signing string, of which it is one line", digest.encode()


def _pss(found: Evidence, key: RSAPublicKey, signature: bytes, reason: NoHash) -> Cause:
    """RSA-PSS hides the hash, so each guess is a verification of its own."""
    right: tuple[Made, Recipe] = (), _own(found)
    guesses = itertools.chain([right], guesses_at(found))
    for tried, (made, recipe) in enumerate(itertools.islice(guesses, MOST_VERIFICATIONS)):
        if is_pss_over(key, signature, recipe.encoded()):
            also = f"; and it was made over a signing string {_phrase(made)}" if made else ""
            return Cause(reason.id, reason.sentence + also, recipe.text(), tried)
    sentence = "The signature was made with another key than that of TPP-Signature-Certificate, or padded as RSA-PSS"
    return Cause("other-key", f"{sentence}; rsa-sha256 means PKCS #1 v1.5", None, MOST_VERIFICATIONS)


def _own(found: Evidence) -> Recipe:
    return Recipe(tuple(found.lines(found.target)))


def guesses_at(found: Evidence) -> Iterator[tuple[Made, Recipe]]:
    """Each usual mistake alone, then any order of the lines, then two mistakes of different groups together.

    Each with the recipe that it leads to from the bank's own.
    """
    own = _own(found)
    groups = [list(group(found)) for group in GROUPS.values()]
    # A text that ends in a newline rather than a last value that does: the layout comes first.
    for mistake in itertools.chain(*reversed(groups), any_order(found)):
        yield (mistake,), mistake.apply(own)
    likeliest = [_likeliest(group) for group in groups]
    for first, second in sorted(itertools.combinations(range(len(groups)), 2), key=lambda pair: -pair[1]):
        for one in likeliest[first]:
            half = one.apply(own)
            for other in likeliest[second]:
                yield (one, other), other.apply(half)


def _likeliest(group: list[Mistake]) -> list[Mistake]:
    """The first mistake of each name; the groups are written with the likelier ones first."""
    return list({mistake.id: mistake for mistake in reversed(group)}.values())[::-1][:_PAIRED]


def describe(found: Evidence, cause: Cause | None) -> dict[str, Any]:
    """The diagnosis for the request log, a JSON object; members that say nothing are left out."""
    shown: dict[str, Any] = {
        "cause": found.faults[0].text,
        "messages": [fault._asdict() for fault in found.faults],
        "signingString": found.signing_string,
        "notes": found.notes,
        "keyId": _key_id(found),
        "certificate": _certificate(found),
    }
    if found.header is not None:
        shown |= {"algorithm": found.header.algorithm, "headers": list(found.names)}
    if cause is not None:
        shown |= _of_cause(found, cause)
    return {name: value for name, value in shown.items() if value not in (None, [], {})}


def _of_cause(found: Evidence, cause: Cause) -> dict[str, Any]:
    shown: dict[str, Any] = {"mistake": cause.id, "signatureCause": cause.sentence, "tried": cause.tried}
    text = found.signing_string or ""
    if cause.likely is not None:
        shown["likelySent"] = cause.likely
        shown["firstDifference"] = first_difference(text, cause.likely)
    if cause.signed is not None:
        own = cause.signed.function(clean(text).encode()).hexdigest()
        shown["hash"] = {"algorithm": cause.signed.name, "signed": cause.signed.value.hex(), "signingString": own}
    return shown


def _key_id(found: Evidence) -> dict[str, Any]:
    if found.header is None or found.header.key_id is None:
        return {}
    shown: dict[str, Any] = {"sent": found.header.key_id}
    if found.certificate is not None:
        expected = shown["expected"] = key_id_for(found.certificate.certificate)
        shown["firstDifference"] = first_difference(expected, found.header.key_id)
    return {name: value for name, value in shown.items() if value is not None}


def _certificate(found: Evidence) -> dict[str, Any]:
    if found.certificate is None:
        return {}
    certificate = found.certificate.certificate
    return {
        "subject": certificate.subject.rfc4514_string(),
        "issuer": certificate.issuer.rfc4514_string(),
        "serialNumber": f"{certificate.serial_number:X}",
        "validFrom": certificate.not_valid_before_utc.isoformat(),
        "validUntil": certificate.not_valid_after_utc.isoformat(),
        "tpp": found.certificate.tpp.id,
        "roles": sorted(found.certificate.tpp.roles),
    }
