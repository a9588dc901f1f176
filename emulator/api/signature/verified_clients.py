"""What a client repeats in each request, judged once: certificate, keyId, algorithm and the names it lists.

A request that differs from an accepted one in nothing but the values of its headers needs a look at those values
alone: date, digest and the signature itself. Whatever is unusual goes the long way of `check.inspect`, which knows
every rule and says what is wrong; nothing is refused here.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256, SHA512

from emulator.api.certificates import TppCertificate
from emulator.api.signature.result import Evidence, SignaturePolicy, Verified
from emulator.httpsig.dates import usual_date
from emulator.httpsig.signing import CANDIDATES, REQUEST_TARGET

PADDING = PKCS1v15()
HASHES: dict[str, SHA256 | SHA512] = {"SHA-256": SHA256(), "SHA-512": SHA512()}

_LAST_PARAMETER = 'signature="'
_REMEMBERED = 256


@dataclass(slots=True)
class _Client:
    """What is settled about requests with one certificate and one beginning of the Signature header.

    The signing string is `before`, the request target and `after`, in which each header's value has its place, by
    name; without the request target it is all in `before` (`after` None). `unlisted` are the headers that would have
    to be signed and are not, were they sent. `sent` is the certificate's text.
    """

    policy: SignaturePolicy
    trusted_ca: x509.Certificate | None
    sent: str
    certificate: TppCertificate
    key: rsa.RSAPublicKey
    hash: SHA256 | SHA512
    before: str
    after: str | None
    unlisted: tuple[str, ...]


# By the beginning of the Signature header and the end of the certificate's text, where its own signature stands: to
# compare two texts of 2 kB takes a tenth of what a hash of one takes.
_clients: dict[tuple[str, str], _Client] = {}
_END = slice(-64, None)


def remember(
    evidence: Evidence, policy: SignaturePolicy, trusted_ca: x509.Certificate | None, certificate: TppCertificate
) -> None:
    """Learn from a request whose signature holds, when everything in it had its usual form."""
    beginning, mark, end = evidence.present["signature"].rpartition(_LAST_PARAMETER)
    # Only where what stands behind the mark is the signature, and nothing else, does another one change nothing else.
    ends_with_signature = evidence.header is not None and end == f'{evidence.header.signature}"'
    if not mark or not ends_with_signature or evidence.notes or certificate.key is None:
        return
    if len(_clients) >= _REMEMBERED:
        _clients.clear()
    sent = evidence.present["tpp-signature-certificate"]
    _clients[beginning, sent[_END]] = _Client(
        policy,
        trusted_ca,
        sent,
        certificate,
        certificate.key,
        HASHES[evidence.hash_name],
        *_template(evidence.names),
        tuple(name for name in CANDIDATES if name not in evidence.names),
    )


def _template(names: Sequence[str]) -> tuple[str, str | None]:
    lines = [f"{name.replace('%', '%%')}: %({name})s" for name in names]
    if REQUEST_TARGET not in names:
        return "\n".join(lines), None
    at = names.index(REQUEST_TARGET)
    return "".join(f"{line}\n" for line in lines[:at]), "".join(f"\n{line}" for line in lines[at + 1 :])


def verified(
    method: str,
    target: str,
    body: bytes,
    present: dict[str, str],
    digest_required: bool,
    policy: SignaturePolicy,
    instant: float,
    trusted_ca: x509.Certificate | None,
) -> Verified | None:
    """The verdict on a verified_clients client's request where nothing is unusual in it; None: go the long way.

    `present`: the headers by lower-case name, none of which was sent twice; `instant`: seconds since 1970.
    """
    get: Callable[..., Any] = present.get
    beginning, _, end = get("signature", "").rpartition(_LAST_PARAMETER)
    sent = get("tpp-signature-certificate", "")
    client = _clients.get((beginning, sent[_END]))
    if (
        client is None
        or client.sent != sent
        or client.policy is not policy
        or client.trusted_ca is not trusted_ca
        or not present.keys().isdisjoint(client.unlisted)
    ):
        return None
    digest = get("digest")
    if digest is None:
        if digest_required:
            return None
    elif digest != f"SHA-256={b2a_base64(sha256(body).digest(), newline=False).decode()}":
        return None
    certificate = client.certificate
    try:
        seconds = usual_date(present["date"])
        if (
            seconds is None
            or abs(seconds - int(instant)) > policy.date_skew
            or not certificate.not_before <= instant <= certificate.not_after
            or end[-1:] != '"'
        ):
            return None
        text = client.before % present
        if client.after is not None:
            text += f"{REQUEST_TARGET}: {method.lower()} {target}{client.after % present}"
        client.key.verify(a2b_base64(end[:-1], strict_mode=True), text.encode(), PADDING, client.hash)
    except (KeyError, ValueError, InvalidSignature):
        return None
    return Verified(certificate.tpp, certificate.certificate, (), text)
