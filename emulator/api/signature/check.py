"""The signature gate: whose request is this, and does its signature hold (SPEC 5.2, CONTRACT 3.1)?

A TPP signs a *signing string*, one line per header that its Signature header lists:

    (request-target): post /v1/payments/sepa-credit-transfers
    date: Mon, 02 Mar 2026 08:00:00 GMT
    digest: SHA-256=...
    x-request-id: 1b4e28ba-2fa1-41d2-883f-0016d3cca427

The line of the request target binds method, path and query; Digest binds the body; Date the moment. The bank builds
the same string from what arrived, in the order that the Signature header lists, and verifies the signature over it
with the key of TPP-Signature-Certificate. So four things are read (certificate, parameters of the Signature header,
Digest, Date), and two must agree with them: keyId must name that certificate, and the list must cover every candidate
header that the request carries.

`RULES` below is that, in the order of CONTRACT 3.1. Each rule reads what the ones before it left in the `Evidence`,
adds what it learned, and adds a fault for each thing that is wrong. No rule stops the others, so that one answer names
every fault; a rule whose material is missing says nothing, because the rule that should have left it has said so.

Two ways spare work. A client whose last request was accepted is recognised by what it sends alike each time, and only
the rest is looked at (`verified_clients`). And why a signature does not verify is found out only when it does not
(`diagnosis`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from cryptography import x509

from emulator.api.signature import rules, verified_clients
from emulator.api.signature.result import Evidence, SignaturePolicy, SignatureRefused, Terms, Verified

Rule = Callable[[Evidence, Terms], None]

# Faults are answered in this order, so it is part of the interface.
RULES: tuple[Rule, ...] = (
    rules.check_present,  # all that is demanded was sent, once
    rules.check_certificate,  # TPP-Signature-Certificate: readable, a key that may sign, valid now, trusted
    rules.check_parameters,  # Signature: unwrapped, parsed, keyId, algorithm, headers and signature usable
    rules.check_key_id,  # keyId names that certificate
    rules.check_coverage,  # the list covers what was sent; leaves the signing string
    rules.check_digest,  # Digest is that of the body
    rules.check_date,  # Date is now
    rules.check_signature,  # the signature is the key's over the signing string
)


def check(
    method: str,
    target: str,
    headers: Collection[tuple[str, str]],
    body: bytes,
    *,
    digest_required: bool,
    policy: SignaturePolicy,
    instant: float,
    trusted_ca: x509.Certificate | None,
    present: dict[str, str] | None = None,
    base: str = "",
) -> Verified:
    """Whose request this is; raise SignatureRefused with every fault (SPEC 5.2, CONTRACT 3.1).

    `target` is path and query exactly as sent, `headers` the raw list, `instant` the real time: dates of
    requests and certificates are compared with it. `trusted_ca` is the sandbox CA, needed for trust `sandbox-ca`.
    `present`: the headers by lower-case name without outer blanks, from a caller that has read them and saw none twice.
    `base`: the bank's public address. What a proxy has taken off in front of `target` may be signed with it.
    """
    terms = Terms(digest_required, policy, instant, trusted_ca)
    if present is None:
        evidence = collect(method, target, headers, body)
    else:
        verified = verified_clients.verified(method, target, body, present, *terms)
        if verified is not None:
            return verified
        evidence = Evidence(method, target, headers, body, present, frozenset())
    evidence.outside = urlsplit(base).path
    if inspect(evidence, terms):
        certificate = evidence.certificate
        if certificate is not None and evidence.signing_string is not None:
            verified_clients.remember(evidence, policy, trusted_ca, certificate)
            return Verified(certificate.tpp, certificate.certificate, tuple(evidence.notes), evidence.signing_string)
    raise refusal(evidence)


def collect(method: str, target: str, headers: Collection[tuple[str, str]], body: bytes | None) -> Evidence:
    """The request as the rules look at it; `body` None when it is not known."""
    present: dict[str, str] = {}
    repeated: set[str] = set()
    for name, value in headers:
        lower = name.lower()
        if lower in present:
            repeated.add(lower)
        else:
            present[lower] = value.strip(" \t")
    return Evidence(method, target, headers, body, present, frozenset(repeated))


def inspect(evidence: Evidence, terms: Terms) -> bool:
    """Apply every rule; whether the signature holds and nothing is wrong."""
    for rule in RULES:
        rule(evidence, terms)
    return evidence.holds and not evidence.faults


def refusal(evidence: Evidence) -> SignatureRefused:
    """The faults that `inspect` left, with the cause of a signature that does not fit."""
    from emulator.api.signature import diagnosis  # only a refused request needs it

    cause = diagnosis.find_cause(evidence) if evidence.broken else None
    if cause is not None:
        evidence.refuse("Signature", cause.sentence)
    if not evidence.faults:  # only a rule that forgot to add its fault leaves none
        evidence.refuse("Signature", "The signature cannot be checked")
    evidence.body = None  # the log keeps the evidence for the description, and of large bodies no more than it shows
    return SignatureRefused(evidence.faults, lambda: diagnosis.describe(evidence, cause))
