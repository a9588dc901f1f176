"""How a request wants its customer to be approached, and the SCA that is opened so for a payment or basket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Required, TypedDict, cast

from emulator.bank.authentication import sca
from emulator.bank.bank import Bank
from emulator.bank.kinds import SCA
from emulator.store import Document


class Approach(TypedDict, total=False):
    """What the headers of the request say of the SCA to come (SPEC 2.1, 5.3), as its document has it.

    What was not said is left out. `app`: shown as if made in the bank's app; `identityHint`: preselected; `presumed`:
    whom the bank expects without being told; `outcome`: what a scripted rule makes of it (`Script.sca`).
    """

    redirectUri: Required[str]
    tppName: str
    app: bool
    sessionId: str
    identityHint: str
    presumed: str
    method: str
    language: str
    outcome: str


# Of an SCA, what one opened later for the same thing has in common with it.
_KEPT = ("redirectUri", "tppName", "app", "sessionId", "method", "language")


def open_for(bank: Bank, approach: Approach, target: Document, purpose: str, *, signer: str | None) -> str:
    """Open the SCA of a payment or basket document and return its token; `signer`: the only one who may complete it."""
    known: dict[str, Any] = {"target": target["id"], "context": target["context"], **approach}
    if signer is not None:
        known["nationalId"] = signer
    if target["agreement"] is not None:
        known["agreement"] = target["agreement"]
    return sca.open_sca(bank, target["tpp"], purpose, known)


def again(bank: Bank, target: Document, *, able: Sequence[str]) -> str | None:
    """Open a further SCA like the last one of `target`, for the second signature of one who is `able` to give it.

    None when there was none.
    """
    earlier = bank.documents.find(SCA, target=target["id"], newest_first=True, limit=1)
    if not earlier:
        return None
    approach = {member: earlier[0][member] for member in _KEPT if member in earlier[0]}
    if able:
        approach["presumed"] = able[0]
    return open_for(bank, cast(Approach, approach), target, earlier[0]["purpose"], signer=None)
