"""How an SCA is opened: for a request whose customer must authenticate first, and for payments and baskets.

That of a payment or basket is opened by its creation, or by a TPP that requests an authorisation.
An authorisation has an id by which its scaStatus is read (sca.md#authorisations); the SCA of a creation has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from emulator.bank.authentication import sca
from emulator.bank.bank import Bank
from emulator.bank.clock import later
from emulator.bank.documents import Approach, Authorisation, Basket, Payment, Sca, ScaTarget
from emulator.bank.errors import BankError
from emulator.bank.kinds import AUTHORISATION, SCA

# The most authorisations of one payment or basket; the oldest that was not finalised is evicted.
MOST_KEPT = 50


def offered_method(preferred: str | None) -> str | None:
    """The bank's method for a preferred one, or None; the name of a provider means the sandbox's method."""
    if preferred is None or preferred in sca.METHODS:
        return preferred
    if preferred.endswith("_MOBILE"):
        return "SANDBOX_MOBILE"
    return "SANDBOXID" if preferred.endswith("ID") else None


def open_sca(bank: Bank, tpp_id: str, purpose: str, known: ScaTarget) -> str:
    """Open an SCA and return its token.

    `purpose`: access, consent, user, payment, basket or cancellation; `known`: further members of its document:
    `redirectUri` and the rest of an `Approach`, and where they apply `target` (the id of what is approved),
    `nationalId` (the only person who may complete it), `context` and `agreement`.
    """
    document: Sca = {
        "id": bank.ids.token(),
        "tpp": tpp_id,
        "tppName": tpp_id,
        "purpose": purpose,
        "app": False,
        "status": "started",
        "created": bank.clock.stamp(),
    }
    document.update(cast(Sca, known))
    if "target" in document and bank.settings.notifications:
        document["due"] = later(document["created"], sca.LIFETIME)
    if purpose in sca.PASSING:
        document["passing"] = "yes"
        bank.make_room(SCA, sca.PASSING_KEPT, passing="yes")
    bank.documents.put(SCA, document)
    return str(document["id"])


def start(bank: Bank, how: Approach, target: Payment | Basket, purpose: str, *, signer: str | None) -> tuple[str, str]:
    """Open an SCA of a payment or basket document: (authorisation id, token); `signer` as for `open_for`."""
    token = open_for(bank, how, target, purpose, signer=signer)
    documents = bank.documents
    if documents.count(AUTHORISATION, target=target["id"]) >= MOST_KEPT:
        _drop_oldest(bank, target["id"])
    identity = bank.ids.new()
    cancels = purpose == "cancellation"
    documents.put(AUTHORISATION, Authorisation(id=identity, target=target["id"], sca=token, cancels=cancels))
    return identity, token


def _drop_oldest(bank: Bank, target_id: str) -> None:
    """Evict the oldest authorisation that was not finalised."""
    for authorisation in bank.documents.find(AUTHORISATION, target=target_id):
        opened = sca.get(bank, authorisation["sca"])
        if opened is None or opened["status"] != "finalised":
            bank.documents.delete(AUTHORISATION, authorisation["id"])
            bank.documents.delete(SCA, authorisation["sca"])
            return


def forget(bank: Bank, target_id: str) -> None:
    """End the SCAs of a deleted basket, and delete its authorisations."""
    sca.release(bank, target_id)
    for authorisation in bank.documents.find(AUTHORISATION, target=target_id):
        bank.documents.delete(AUTHORISATION, authorisation["id"])


def listing(bank: Bank, target_id: str, *, cancels: bool = False) -> list[str]:
    """The ids of a payment's or basket's authorisations, or of those of its cancellation, oldest first."""
    return [one["id"] for one in bank.documents.find(AUTHORISATION, target=target_id) if one["cancels"] == cancels]


def status(
    bank: Bank, target_id: str, authorisation_id: str, *, cancels: bool = False
) -> Literal["started", "finalised", "failed"]:
    """scaStatus of an authorisation; RESOURCE_UNKNOWN if this payment or basket has none of that id."""
    authorisation = bank.documents.get(AUTHORISATION, authorisation_id)
    if authorisation is None or authorisation["target"] != target_id or authorisation["cancels"] != cancels:
        raise BankError("RESOURCE_UNKNOWN", "There is no such authorisation.", "authorisationId")
    opened = sca.get(bank, authorisation["sca"])
    if opened is None or (sca.is_open(opened) and sca.is_late(bank, opened)):
        return "failed"
    return opened["status"]


# The members that a further SCA of the same target copies from the last one.
_COPIED = ("redirectUri", "tppName", "app", "sessionId", "method", "language")


def open_for(bank: Bank, approach: Approach, target: Payment | Basket, purpose: str, *, signer: str | None) -> str:
    """Open the SCA of a payment or basket document and return its token; `signer`: the only one who may complete it."""
    known: ScaTarget = {"target": target["id"], "context": target["context"]}
    known.update(cast(ScaTarget, approach))
    if signer is not None:
        known["nationalId"] = signer
    if target["agreement"] is not None:
        known["agreement"] = target["agreement"]
    return open_sca(bank, target["tpp"], purpose, known)


def again(bank: Bank, target: Payment | Basket, *, able: Sequence[str]) -> str | None:
    """Open a further SCA like the last one of `target`, for a second signature by one of the persons in `able`.

    Returns its token, or None if the target has had no SCA.
    """
    earlier = bank.documents.find(SCA, target=target["id"], newest_first=True, limit=1)
    if not earlier:
        return None
    approach = cast(Approach, {name: value for name, value in earlier[0].items() if name in _COPIED})
    if able:
        approach["presumed"] = able[0]
    return open_for(bank, approach, target, earlier[0]["purpose"], signer=None)
