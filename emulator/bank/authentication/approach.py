"""How a request wants its customer to be approached, and the SCA that is opened so for a payment or basket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from emulator.bank.authentication import sca
from emulator.bank.bank import Bank
from emulator.bank.documents import Approach, Basket, Payment, ScaTarget
from emulator.bank.kinds import SCA

# Of an SCA, what one opened later for the same thing has in common with it.
_KEPT: tuple[Literal["redirectUri", "tppName", "app", "sessionId", "method", "language"], ...] = (
    "redirectUri",
    "tppName",
    "app",
    "sessionId",
    "method",
    "language",
)


def open_for(bank: Bank, approach: Approach, target: Payment | Basket, purpose: str, *, signer: str | None) -> str:
    """Open the SCA of a payment or basket document and return its token; `signer`: the only one who may complete it."""
    known: ScaTarget = {"target": target["id"], "context": target["context"]}
    known.update(cast(ScaTarget, approach))
    if signer is not None:
        known["nationalId"] = signer
    if target["agreement"] is not None:
        known["agreement"] = target["agreement"]
    return sca.open_sca(bank, target["tpp"], purpose, known)


def again(bank: Bank, target: Payment | Basket, *, able: Sequence[str]) -> str | None:
    """Open a further SCA like the last one of `target`, for the second signature of one who is `able` to give it.

    None when there was none.
    """
    earlier = bank.documents.find(SCA, target=target["id"], newest_first=True, limit=1)
    if not earlier:
        return None
    approach: Approach = {}
    for member in _KEPT:
        if member in earlier[0]:
            approach[member] = earlier[0][member]
    if able:
        approach["presumed"] = able[0]
    return open_for(bank, approach, target, earlier[0]["purpose"], signer=None)
