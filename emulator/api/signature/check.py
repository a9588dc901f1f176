"""The signature gate in the order of CONTRACT 3.1; every fault is collected, so that one answer names them all."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import rsa

from emulator.api.certificates import CertificateUnreadable, read_certificate
from emulator.api.signature import verified_clients
from emulator.api.signature.bound import check_date, check_digest
from emulator.api.signature.evidence import Evidence
from emulator.api.signature.parameters import read_parameters
from emulator.api.signature.result import (
    LONGEST_TEXT,
    Fault,
    SignaturePolicy,
    SignatureRefused,
    Verified,
    clean,
    fault,
)
from emulator.httpsig.keyid import key_id_for
from emulator.httpsig.message import CANDIDATES, REQUEST_TARGET, SPELLING, signing_string

DEMANDED = ("signature", "tpp-signature-certificate", "date")
_CERTIFICATE = "TPP-Signature-Certificate"
_ALONE = frozenset({"signature", "tpp-signature-certificate", "date", "digest"})
# Where other profiles of signatures over HTTP put the same thing.
_ELSEWHERE = {"signature": "Authorization", "date": "X-Date", "digest": "Content-Digest"}


def check(
    method: str,
    target: str,
    headers: Collection[tuple[str, str]],
    body: bytes,
    digest_required: bool,
    policy: SignaturePolicy,
    instant: float,
    trusted_ca: x509.Certificate | None,
    present: dict[str, str] | None = None,
    base: str = "",
) -> Verified:
    """Whose request this is; raise SignatureRefused with every fault found (SPEC 5.2, CONTRACT 3.1).

    `target` is path and query exactly as sent, `headers` the raw list, `instant` the real time: dates of
    requests and certificates are compared with it. `trusted_ca` is the sandbox CA, needed for trust `sandbox-ca`.
    `present`: the headers by lower-case name without outer blanks, from a caller that has them and found none twice.
    `base`: the bank's public address. What a proxy has taken off in front of `target` may be signed with it.
    """
    if present is None:
        found = collect(method, target, headers, body)
    else:
        verified = verified_clients.verified(
            method,
            target,
            body,
            present,
            digest_required,
            policy,
            instant,
            trusted_ca,
        )
        if verified is not None:
            return verified
        found = Evidence(method, target, headers, body, present, frozenset())
    found.outside = urlsplit(base).path
    if inspect(found, digest_required=digest_required, policy=policy, instant=instant, trusted_ca=trusted_ca):
        certificate = found.certificate
        if certificate is not None and found.signing_string is not None:
            verified_clients.remember(found, policy, trusted_ca, certificate)
            return Verified(certificate.tpp, certificate.certificate, tuple(found.notes), found.signing_string)
    raise refusal(found)


def inspect(
    found: Evidence,
    *,
    digest_required: bool,
    policy: SignaturePolicy,
    instant: float,
    trusted_ca: x509.Certificate | None,
) -> bool:
    """Apply every rule to what `collect` gathered; whether the signature holds and nothing is wrong."""
    _check_present(found, digest_required=digest_required)
    _check_certificate(found, instant, policy, trusted_ca)
    read_parameters(found, policy)
    _check_key_id(found, policy)
    _check_coverage(found)
    check_digest(found)
    check_date(found, instant, policy.date_skew)
    return _holds(found) and not found.faults


def refusal(found: Evidence) -> SignatureRefused:
    """What `inspect` found wrong, with the cause of a signature that does not fit."""
    from emulator.api.signature import diagnosis  # only a refused request needs it

    cause = diagnosis.find_cause(found) if found.broken else None
    if cause is not None:
        found.faults.append(fault("Signature", cause.sentence))
    if not found.faults:  # only a rule that forgot to say what it found leaves none
        found.faults.append(fault("Signature", "The signature cannot be checked"))
    found.body = None  # the log keeps the evidence for the description, and of large bodies no more than it shows
    return SignatureRefused(found.faults, lambda: diagnosis.describe(found, cause))


def collect(method: str, target: str, headers: Collection[tuple[str, str]], body: bytes | None) -> Evidence:
    """The request as the rules look at it; `body` None when it is not known."""
    present: dict[str, str] = {}
    repeated: set[str] | None = None
    for name, value in headers:
        lower = name.lower()
        if lower not in present:
            present[lower] = value.strip(" \t")
        elif repeated is None:
            repeated = {lower}
        else:
            repeated.add(lower)
    return Evidence(method, target, headers, body, present, frozenset(repeated) if repeated else frozenset())


def _check_present(found: Evidence, *, digest_required: bool) -> None:
    present = found.present
    for name in DEMANDED:
        if not present.get(name):
            found.faults.append(_missing(found, name))
    if digest_required and not present.get("digest"):
        found.faults.append(_missing(found, "digest", ": SHA-256=<base64 of the SHA-256 hash of the body>"))
    for name in sorted(found.repeated & _ALONE):
        found.faults.append(fault(SPELLING[name], f"The header {SPELLING[name]} is there more than once"))


def _missing(found: Evidence, name: str, form: str = "") -> Fault:
    other = _ELSEWHERE.get(name, "")
    hint = f"; {other} is not read in its place" if other.lower() in found.present else ""
    return fault(SPELLING[name], f"The header {SPELLING[name]} is required{form}{hint}", code="HTTP_HEADER_REQUIRED")


def _check_certificate(
    found: Evidence, instant: float, policy: SignaturePolicy, trusted_ca: x509.Certificate | None
) -> None:
    text = found.present.get("tpp-signature-certificate")
    if not text:
        return
    try:
        certificate = found.certificate = read_certificate(text)
    except CertificateUnreadable as error:
        found.faults.append(fault(_CERTIFICATE, f"The certificate cannot be used: {error}"))
        return
    if certificate.notes:
        found.notes.extend(certificate.notes)
    if certificate.key_fault is not None:
        found.faults.append(fault(_CERTIFICATE, f"The certificate cannot be used: {certificate.key_fault}"))
    if instant > certificate.not_after:
        ended = f"{certificate.certificate.not_valid_after_utc:%Y-%m-%d %H:%M:%S} UTC"
        found.faults.append(fault(_CERTIFICATE, f"The certificate has expired: it was valid until {ended}"))
    elif instant < certificate.not_before:
        begins = f"{certificate.certificate.not_valid_before_utc:%Y-%m-%d %H:%M:%S} UTC"
        found.faults.append(fault(_CERTIFICATE, f"The certificate is not valid yet: it is valid from {begins}"))
    if policy.trust == "sandbox-ca" and (trusted_ca is None or not certificate.issued_by(trusted_ca)):
        found.faults.append(fault(_CERTIFICATE, _strange_issuer(certificate.certificate.issuer, trusted_ca)))


def _strange_issuer(issuer: x509.Name, trusted_ca: x509.Certificate | None) -> str:
    if trusted_ca is not None and issuer == trusted_ca.subject:
        return (
            "The certificate names the sandbox CA as its issuer, but was signed by another key "
            "(by the CA of another state directory?)"
        )
    return f"The certificate is not issued by the sandbox CA but by {issuer.rfc4514_string()}"


def _check_key_id(found: Evidence, policy: SignaturePolicy) -> None:
    certificate, header = found.certificate, found.header
    if certificate is None or header is None or header.key_id is None:
        return
    verdict = certificate.key_id(header.key_id, lenient=policy.lenient)
    if verdict.notes:
        found.notes.extend(verdict.notes)
    if verdict.fault is None:
        return
    expected = key_id_for(certificate.certificate)
    text = f"The KeyID is not matching the certificate: {verdict.fault}; expected {expected}"
    if len(text) > LONGEST_TEXT:  # the expected keyId, which ends the text, matters more than the reason
        text = f"The KeyID is not matching {expected}"[:LONGEST_TEXT]
    found.faults.append(Fault("BAD_REQUEST", "Signature", clean(text)))


def _check_coverage(found: Evidence) -> None:
    """Every candidate that is there is listed, everything listed is there once; builds the signing string."""
    if found.header is None or not found.names:
        return
    present, names = found.present, found.names
    unlisted = [name for name in CANDIDATES if name in present and name not in names]
    if unlisted:
        text = f"The request carries {', '.join(unlisted)}, which the headers parameter does not list"
        if found.header.headers is None:
            text += " (without a headers parameter only date is signed)"
        found.faults.append(fault("Signature", text))
    lines = found.lines(found.target)
    if found.repeated:
        for name in names:
            if name in found.repeated and name not in _ALONE:
                path = SPELLING.get(name, name)
                found.faults.append(fault(path, f"The signed header {path} is there more than once"))
    if len(lines) == len(names):
        found.signing_string = signing_string(lines)
        return
    # date is reported as a missing header already
    absent = [name for name in dict.fromkeys(names) if name[0] != "(" and name not in present and name != "date"]
    told = {entry.path.lower() for entry in found.faults}
    for name in absent:
        if name not in told:
            hint = f": the pseudo header is {REQUEST_TARGET}" if "request-target" in name else ""
            text = f"The headers parameter lists {name}, but the request has no such header{hint}"
            found.faults.append(fault("Signature", text))


def _holds(found: Evidence) -> bool:
    """Whether the signature is the certificate's over the bank's signing string; False too when that is unknown."""
    certificate, text, signature = found.certificate, found.signing_string, found.signature
    if certificate is None or certificate.key is None or text is None or signature is None or not found.hash_name:
        return False
    if verifies(certificate.key, signature, text.encode("utf-8", "surrogatepass"), found.hash_name):
        return True
    for other, encoded, note in _other_readings(found, text):
        if verifies(certificate.key, signature, encoded, found.hash_name):
            found.signing_string = other
            found.notes.append(note)
            return True
    found.broken = True
    return False


def _other_readings(found: Evidence, text: str) -> Iterator[tuple[str, bytes, str]]:
    """What else may have been signed: a signing string, its bytes and what the log notes of it."""
    if not text.isascii():
        with suppress(UnicodeEncodeError):
            yield text, text.encode("latin-1"), "Signature: made over ISO-8859-1 bytes"
    if found.outside:
        whole = signing_string(found.lines(found.outside + found.target))
        note = f"Signature: made over the public address, with {found.outside} before the path"
        yield whole, whole.encode("utf-8", "surrogatepass"), note


def verifies(key: rsa.RSAPublicKey, signature: bytes, message: bytes, hash_name: str) -> bool:
    """Whether `signature` is that of `key` over `message`, by RSASSA-PKCS1-v1_5 with SHA-256 or SHA-512."""
    try:
        key.verify(signature, message, verified_clients.PADDING, verified_clients.HASHES[hash_name])
    except InvalidSignature:
        return False
    return True
