"""How a request wants its customer to be approached, and the authorisations opened for payments and baskets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Required, TypedDict, cast

from emulator.bank import sca
from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from emulator.store import Document

# Of a payment or basket; the oldest that was not finalised is let go of.
AUTHORISATIONS_KEPT = 50


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
    earlier = bank.documents.find("sca", target=target["id"], newest_first=True, limit=1)
    if not earlier:
        return None
    approach = {member: earlier[0][member] for member in _KEPT if member in earlier[0]}
    if able:
        approach["presumed"] = able[0]
    return open_for(bank, cast(Approach, approach), target, earlier[0]["purpose"], signer=None)


def keep(bank: Bank, target: Document, token: str, *, cancels: bool = False) -> str:
    """Remember an explicit authorisation and return its id, by which its scaStatus is read."""
    documents = bank.documents
    if documents.count("authorisation", target=target["id"]) >= AUTHORISATIONS_KEPT:
        _drop_oldest(bank, target["id"])
    authorisation = {"id": bank.ids.new(), "target": target["id"], "sca": token, "cancels": cancels}
    documents.put("authorisation", authorisation)
    return str(authorisation["id"])


def _drop_oldest(bank: Bank, target_id: str) -> None:
    """Let go of the oldest authorisation that was not finalised."""
    for authorisation in bank.documents.find("authorisation", target=target_id):
        opened = sca.get(bank, authorisation["sca"])
        if opened is None or opened["status"] != "finalised":
            bank.documents.delete("authorisation", authorisation["id"])
            bank.documents.delete("sca", authorisation["sca"])
            return


def forget(bank: Bank, target_id: str) -> None:
    """End what was opened for a basket that is deleted, and drop its authorisations with it."""
    sca.release(bank, target_id)
    for authorisation in bank.documents.find("authorisation", target=target_id):
        bank.documents.delete("authorisation", authorisation["id"])


def status(bank: Bank, target_id: str, authorisation_id: str, *, cancels: bool = False) -> str:
    """scaStatus of an authorisation: started, finalised or failed (CONTRACT 13); RESOURCE_UNKNOWN."""
    known = bank.documents.get("authorisation", authorisation_id)
    if known is None or known["target"] != target_id or known["cancels"] != cancels:
        raise BankError("RESOURCE_UNKNOWN", "There is no such authorisation.", "authorisationId")
    opened = sca.get(bank, known["sca"])
    if opened is None or (sca.is_open(opened) and sca.is_late(bank, opened)):
        return "failed"
    return str(opened["status"])
