"""The signature gate: identifies the TPP of a request and verifies its signature (signature.md).

A TPP signs a *signing string*, one line per header that its Signature header lists:

    (request-target): post /v1/payments/sepa-credit-transfers
    date: Mon, 02 Mar 2026 08:00:00 GMT
    digest: SHA-256=...
    x-request-id: 1b4e28ba-2fa1-41d2-883f-0016d3cca427

The line of the request target covers method, path and query; Digest covers the body; Date the time. The bank builds
the same string from the request that it received, with the headers in the order that the Signature header lists, and
verifies the signature with the key of TPP-Signature-Certificate. So four parts are read (certificate, parameters of
the Signature header, Digest, Date), and two must be consistent with them: keyId must match the certificate, and the
list must include every candidate header of the request.

`RULES` below has one rule for each of these, in this order. A rule reads what earlier rules have stored
in the `Inspection`, stores its own results, and adds a fault for each problem. No rule stops the others, so that one
answer reports all faults; a rule that lacks its input adds nothing, because an earlier rule has reported that.

Two shortcuts save time. A client whose last request was accepted is recognised by the parts that it repeats, and only
the other parts are checked (`VerifiedClients`). The reason for an invalid signature is searched only when one is
invalid (`diagnosis`).
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256, SHA512

from emulator.api.certificates import AuthenticatedTpp, TppCertificate
from emulator.api.signature import rules
from emulator.api.signature.rules import Inspection, Terms
from emulator.bank.errors import Message
from emulator.bank.settings import Settings
from emulator.httpsig.signing import CANDIDATES, REQUEST_TARGET, parse_date

Rule = Callable[[Inspection, Terms], None]

# Faults are reported in this order, so it is part of the interface.
RULES: tuple[Rule, ...] = (
    rules.check_present,  # all required headers are present, once
    rules.check_certificate,  # TPP-Signature-Certificate: readable, a key that may sign, valid now, trusted
    rules.check_parameters,  # Signature: unwrapped, parsed, keyId, algorithm, headers and signature usable
    rules.check_key_id,  # keyId matches the certificate
    rules.check_coverage,  # the list includes the sent headers; builds the signing string
    rules.check_digest,  # Digest matches the body
    rules.check_date,  # Date is within the allowed skew
    rules.check_signature,  # the signature over the signing string is valid
)


@dataclass(slots=True)
class Verified:
    """A request with a valid signature. `notes`: what was accepted although it is not the documented form."""

    tpp: AuthenticatedTpp
    certificate: TppCertificate
    notes: tuple[str, ...]
    signing_string: str

    def diagnosis(self) -> dict[str, Any]:
        """Its TPP and signing string, as a JSON object."""
        return {
            "valid": True,
            "tpp": self.tpp.id,
            "roles": sorted(self.tpp.roles),
            "signingString": self.signing_string,
            "notes": list(self.notes),
        }


class SignatureRefused(Exception):
    """The gate refuses the request: `messages` has every fault, the most specific one first.

    `diagnosis` computes the details for the request log, a JSON object (see `diagnosis.py`), at its first call: the
    signing string, what was tried and the cause.
    """

    def __init__(self, messages: Sequence[Message], detail: Callable[[], dict[str, Any]]) -> None:
        super().__init__(messages[0].text)
        self.messages = tuple(messages)
        self.diagnosis = cache(detail)


def check(
    method: str,
    target: str,
    headers: Collection[tuple[str, str]],
    body: bytes,
    *,
    digest_required: bool,
    settings: Settings,
    instant: float,
    trusted_ca: x509.Certificate | None,
    present: dict[str, str] | None = None,
    clients: VerifiedClients | None = None,
    base: str = "",
) -> Verified:
    """Verify the signature of a request; raise SignatureRefused with every fault.

    `target` is path and query exactly as sent, `headers` the raw list, `instant` the real time, with which the dates of
    request and certificate are compared. `trusted_ca` is the sandbox CA, needed for trust `sandbox-ca`. `present`: the
    headers by lower-case name, stripped of blanks, if the caller has parsed them and none was repeated; then `clients`
    saves time with those that it knows. `base`: the bank's public address; a client may sign the path with the part of
    it that a proxy removes from `target`.
    """
    terms = Terms(digest_required, settings, instant, trusted_ca)
    if clients is not None and present is not None:
        known = clients.verified(method, target, body, present, terms)
        if known is not None:
            return known
    inspection = collect(method, target, headers, body, present)
    inspection.outside = urlsplit(base).path
    verified = verdict(inspection, terms)
    if clients is not None:
        clients.remember(inspection, terms, verified.certificate)
    return verified


def collect(
    method: str,
    target: str,
    headers: Collection[tuple[str, str]],
    body: bytes | None,
    present: dict[str, str] | None = None,
) -> Inspection:
    """The inspection of a request, before any rule; `body` is None if it is not known, `present` as in `check`."""
    repeated: set[str] = set()
    if not "".join(map("".join, headers)).isascii():
        headers, present = [(_encodable(name), _encodable(value)) for name, value in headers], None
    if present is None:
        present = {}
        for name, value in headers:
            lower = name.lower()
            if lower in present:
                repeated.add(lower)
            else:
                present[lower] = value.strip(" \t")
    return Inspection(_encodable(method), _encodable(target), headers, body, present, frozenset(repeated))


def _encodable(text: str) -> str:
    """`text` without lone surrogates, which HTTP cannot carry but a capture or a caller may have."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def inspect(inspection: Inspection, terms: Terms) -> bool:
    """Apply every rule; returns whether the signature is valid and there is no fault."""
    for rule in RULES:
        rule(inspection, terms)
    return bool(inspection.valid) and not inspection.faults


def verdict(inspection: Inspection, terms: Terms) -> Verified:
    """The result of `inspect`; raises SignatureRefused with its faults, and the cause of an invalid signature."""
    valid, certificate = inspect(inspection, terms), inspection.certificate
    if valid and certificate is not None and inspection.signing_string is not None:
        return Verified(certificate.tpp, certificate, tuple(inspection.notes), inspection.signing_string)
    from emulator.api.signature import diagnosis  # only a refused request needs it

    cause = diagnosis.find_cause(inspection) if inspection.valid is False else None
    if cause is not None:
        inspection.refuse("Signature", cause.sentence)
    # The log keeps the inspection for the description, and of large bodies no more than it shows.
    inspection.body = None
    raise SignatureRefused(inspection.faults, lambda: diagnosis.describe(inspection, cause))


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

    settings: Settings
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

    A request that differs from an accepted one only in the values of its headers needs a check of those values only:
    date, digest and the signature itself. Any other request is left to `inspect`, which applies every rule and reports
    the faults; nothing is refused here.

    By the beginning of the Signature header and the end of the certificate's text, which contains the certificate's own
    signature: comparing two texts of 2 kB takes a tenth of the time of hashing one.
    """

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], _Client] = {}

    def remember(self, inspection: Inspection, terms: Terms, certificate: TppCertificate) -> None:
        """Cache the client of a request with a valid signature, if everything in it has its documented form."""
        beginning, mark, end = inspection.present["signature"].rpartition(_LAST_PARAMETER)
        # The header must end with the signature, so that only the signature differs in the next request.
        ends_with_signature = inspection.header is not None and end == f'{inspection.header.signature}"'
        if not mark or not ends_with_signature or inspection.repeated or inspection.notes or certificate.key is None:
            return
        if len(self._clients) >= _REMEMBERED:
            self._clients.clear()
        sent = inspection.present["tpp-signature-certificate"]
        self._clients[beginning, sent[_END]] = _Client(
            terms.settings,
            terms.trusted_ca,
            sent,
            certificate,
            certificate.key,
            rules.SIGNATURE_HASHES[inspection.hash_name],
            *_template(inspection.names),
            tuple(name for name in CANDIDATES if name not in inspection.names),
        )

    def verified(self, method: str, target: str, body: bytes, present: dict[str, str], terms: Terms) -> Verified | None:
        """The result for a request of a cached client, or None if all rules must be applied.

        `present`: the headers by lower-case name, none of which was sent twice.
        """
        digest_required, settings, instant, trusted_ca = terms
        get: Callable[..., Any] = present.get
        beginning, _, end = get("signature", "").rpartition(_LAST_PARAMETER)
        sent = get("tpp-signature-certificate", "")
        client = self._clients.get((beginning, sent[_END]))
        if (
            client is None
            or client.sent != sent
            or client.settings is not settings
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
            seconds, note = parse_date(present["date"])
            if (
                note is not None
                or abs(seconds - int(instant)) > settings.date_skew
                or not certificate.not_before <= instant <= certificate.not_after
                or end[-1:] != '"'
            ):
                return None
            text = client.before % present
            if client.after is not None:
                text += f"{REQUEST_TARGET}: {method.lower()} {target}{client.after % present}"
            client.key.verify(a2b_base64(end[:-1], strict_mode=True), text.encode(), rules.PADDING, client.hash)
        except (KeyError, ValueError, InvalidSignature):
            return None
        return Verified(certificate.tpp, certificate, (), text)
