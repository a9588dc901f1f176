"""A shortcut for clients whose last request was accepted: certificate, keyId, algorithm and listed names are cached.

A request that differs from an accepted one only in the values of its headers needs a check of those values only: date,
digest and the signature itself. Any other request is left to `check.inspect`, which applies every rule and reports the
faults; nothing is refused here.
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
from emulator.api.signature.result import Inspection, SignaturePolicy, Verified
from emulator.httpsig.dates import usual_date
from emulator.httpsig.signing import CANDIDATES, REQUEST_TARGET

PADDING = PKCS1v15()
HASHES: dict[str, SHA256 | SHA512] = {"SHA-256": SHA256(), "SHA-512": SHA512()}

_LAST_PARAMETER = 'signature="'
_REMEMBERED = 256
_END = slice(-64, None)


@dataclass(slots=True)
class _Client:
    """The constant facts of requests with the same certificate and the same beginning of the Signature header.

    `before` and `after` are templates with the headers' values by name; the signing string is `before`, the request
    target and `after` (None, if the request target is not signed). `unlisted` are candidate headers that are not
    signed, so that a request must not have them. `sent` is the certificate's text.
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


def _template(names: Sequence[str]) -> tuple[str, str | None]:
    lines = [f"{name.replace('%', '%%')}: %({name})s" for name in names]
    if REQUEST_TARGET not in names:
        return "\n".join(lines), None
    at = names.index(REQUEST_TARGET)
    return "".join(f"{line}\n" for line in lines[:at]), "".join(f"\n{line}" for line in lines[at + 1 :])


class VerifiedClients:
    """The clients of one bank whose last request was accepted, the newest few hundred.

    By the beginning of the Signature header and the end of the certificate's text, which contains the certificate's own
    signature: comparing two texts of 2 kB takes a tenth of the time of hashing one.
    """

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], _Client] = {}

    def remember(
        self,
        inspection: Inspection,
        policy: SignaturePolicy,
        trusted_ca: x509.Certificate | None,
        certificate: TppCertificate,
    ) -> None:
        """Cache the client of a request with a valid signature, if everything in it has its documented form."""
        beginning, mark, end = inspection.present["signature"].rpartition(_LAST_PARAMETER)
        # The header must end with the signature, so that only the signature differs in the next request.
        ends_with_signature = inspection.header is not None and end == f'{inspection.header.signature}"'
        if not mark or not ends_with_signature or inspection.notes or certificate.key is None:
            return
        if len(self._clients) >= _REMEMBERED:
            self._clients.clear()
        sent = inspection.present["tpp-signature-certificate"]
        self._clients[beginning, sent[_END]] = _Client(
            policy,
            trusted_ca,
            sent,
            certificate,
            certificate.key,
            HASHES[inspection.hash_name],
            *_template(inspection.names),
            tuple(name for name in CANDIDATES if name not in inspection.names),
        )

    def verified(
        self,
        method: str,
        target: str,
        body: bytes,
        present: dict[str, str],
        digest_required: bool,
        policy: SignaturePolicy,
        instant: float,
        trusted_ca: x509.Certificate | None,
    ) -> Verified | None:
        """The result for a request of a cached client, or None if all rules must be applied.

        `present`: the headers by lower-case name, none of which was sent twice; `instant`: seconds since 1970.
        """
        get: Callable[..., Any] = present.get
        beginning, _, end = get("signature", "").rpartition(_LAST_PARAMETER)
        sent = get("tpp-signature-certificate", "")
        client = self._clients.get((beginning, sent[_END]))
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
        return Verified(certificate.tpp, certificate, (), text)
