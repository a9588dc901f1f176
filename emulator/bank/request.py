"""What the domain knows of the request that it serves: its TPP, and the effects of scripted rules on it."""

from __future__ import annotations

from collections.abc import Sequence
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


NOBODY = AuthenticatedTpp("", "", frozenset())
"""The TPP of a request whose signature is not checked yet."""


@dataclass(frozen=True, slots=True)
class Script:
    """Effects that act inside the domain; by default there are none.

    `sca`: how the customer's authentication will end (`reject`, `expire`, `fail`, `abandon`); `sca_delay`: the delay
    of each of its pages in seconds; `progress`: the statuses that a payment goes through, each with the seconds before
    it; `fee`: a fee in the debtor account's currency; `permission_removed`: payments from that account are not
    allowed; `quota_exhausted`: the unattended calls are used up; `notification`: the fate of the notifications that
    the request subscribes to (`late`, `twice`, `reordered`, `dropped`, `forged`), with the seconds of `late`.
    """

    sca: str | None = None
    sca_delay: float = 0.0
    progress: Sequence[tuple[str, float]] = ()
    fee: str | None = None
    permission_removed: bool = False
    quota_exhausted: bool = False
    notification: tuple[str, float] | None = None


UNSCRIPTED = Script()
