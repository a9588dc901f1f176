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
the other parts are checked (`verified_clients`). The reason for an invalid signature is searched only when one is
invalid (`diagnosis`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from cryptography import x509

from emulator.api.signature import rules
from emulator.api.signature.result import Inspection, SignaturePolicy, SignatureRefused, Terms, Verified
from emulator.api.signature.verified_clients import VerifiedClients

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
    terms = Terms(digest_required, policy, instant, trusted_ca)
    if present is None:
        inspection = collect(method, target, headers, body)
    else:
        verified = None if clients is None else clients.verified(method, target, body, present, *terms)
        if verified is not None:
            return verified
        inspection = Inspection(method, target, headers, body, present, frozenset())
    inspection.outside = urlsplit(base).path
    if inspect(inspection, terms):
        certificate = inspection.certificate
        if certificate is not None and inspection.signing_string is not None:
            if clients is not None:
                clients.remember(inspection, policy, trusted_ca, certificate)
            return Verified(certificate.tpp, certificate, tuple(inspection.notes), inspection.signing_string)
    raise refusal(inspection)


def collect(method: str, target: str, headers: Collection[tuple[str, str]], body: bytes | None) -> Inspection:
    """The inspection of a request, before any rule; `body` is None if it is not known."""
    present: dict[str, str] = {}
    repeated: set[str] = set()
    for name, value in headers:
        lower = name.lower()
        if lower in present:
            repeated.add(lower)
        else:
            present[lower] = value.strip(" \t")
    return Inspection(method, target, headers, body, present, frozenset(repeated))


def inspect(inspection: Inspection, terms: Terms) -> bool:
    """Apply every rule; returns whether the signature is valid and there is no fault."""
    for rule in RULES:
        rule(inspection, terms)
    return inspection.holds and not inspection.faults


def refusal(inspection: Inspection) -> SignatureRefused:
    """The refusal for the faults of `inspect`, with the cause of an invalid signature."""
    from emulator.api.signature import diagnosis  # only a refused request needs it

    cause = diagnosis.find_cause(inspection) if inspection.broken else None
    if cause is not None:
        inspection.refuse("Signature", cause.sentence)
    if not inspection.faults:  # cannot happen unless a rule forgets to add its fault
        inspection.refuse("Signature", "The signature cannot be checked")
    inspection.body = (
        None  # the log keeps the inspection for the description, and of large bodies no more than it shows
    )
    return SignatureRefused(inspection.faults, lambda: diagnosis.describe(inspection, cause))
