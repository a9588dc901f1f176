"""Why a Digest does not fit: the other bytes that clients hash, and the other ways they write the hash."""

from __future__ import annotations


def explain_digest(name: str, value: str, body: bytes) -> str:
    """A sentence on why `value` is not the `name` hash of `body`."""
    return f"The Digest {name} does not fit the body of {len(body)} bytes that arrived"
