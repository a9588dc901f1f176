"""The signing string: what a signature covers and how it is spelt (SPEC 5.2, rules 1 and 2; draft 10, 2.3)."""

from __future__ import annotations

from collections.abc import Iterable

REQUEST_TARGET = "(request-target)"

# SPEC 5.2 rule 1: those of these that a request carries must be signed.
CANDIDATES = ("date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri")

# How SPEC 2.1 spells them, for messages to people.
SPELLING = {
    "date": "Date",
    "digest": "Digest",
    "x-request-id": "X-Request-ID",
    "psu-id": "PSU-ID",
    "psu-corporate-id": "PSU-Corporate-ID",
    "tpp-redirect-uri": "TPP-Redirect-URI",
    "signature": "Signature",
    "tpp-signature-certificate": "TPP-Signature-Certificate",
}


def request_target(method: str, target: str) -> str:
    """The value of `(request-target)`: lower-case method, one blank, path and query exactly as sent."""
    return f"{method.lower()} {target}"


def signing_string(lines: Iterable[tuple[str, str]]) -> str:
    """One line `name: value` for each pair, in order, joined by a newline and without one at the end."""
    return "\n".join([f"{name}: {value}" for name, value in lines])
