"""The third-party provider of a request: its identity and roles (signature.md#who-the-tpp-is)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AuthenticatedTpp:
    """A TPP as its certificate identifies it.

    `id` is the organizationIdentifier, else the subject's RFC 2253 name; `name` is for people;
    `roles` contains `PISP`, `AISP`, both or none (signature.md#roles).
    """

    id: str
    name: str
    roles: frozenset[str]


def prefix(tpp_id: str) -> str:
    """The prefix of a TPP's keys, escaped so that no prefix is the beginning of another."""
    return tpp_id.replace("%", "%25").replace("|", "%7C") + "|"


NOBODY = AuthenticatedTpp("", "", frozenset())
"""The TPP of a request whose signature is not checked yet."""
