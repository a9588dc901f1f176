"""The third-party provider of a request: its identity and roles (SPEC 1, 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class AuthenticatedTpp:
    """A TPP as its certificate identifies it.

    `id` is the organizationIdentifier, else the subject's RFC 2253 name (CONTRACT 13); `name` is for people;
    `roles` contains `PISP`, `AISP`, both or none (CONTRACT 3.1).
    """

    id: str
    name: str
    roles: frozenset[str]


@lru_cache(maxsize=64)
def prefix(tpp_id: str) -> str:
    """The prefix of a TPP's keys, escaped so that no prefix is the beginning of another."""
    return tpp_id.replace("%", "%25").replace("|", "%7C") + "|"


NOBODY = AuthenticatedTpp("", "", frozenset())
"""The TPP of a request whose signature is not checked yet."""
