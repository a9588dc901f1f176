"""Authorisations: the SCAs of a payment or basket that its TPP asked for, each with an id to read its scaStatus by.

CONTRACT 6, 7 and 13. The SCA that a creation opens by itself has no such id.
"""

from __future__ import annotations

from emulator.bank.authentication import approach, sca
from emulator.bank.bank import Bank
from emulator.bank.documents import Approach, Authorisation, Basket, Payment
from emulator.bank.errors import BankError
from emulator.bank.kinds import AUTHORISATION, SCA

# Of a payment or basket; the oldest that was not finalised is evicted.
MOST_KEPT = 50


def start(bank: Bank, how: Approach, target: Payment | Basket, purpose: str, *, signer: str | None) -> tuple[str, str]:
    """Open an SCA of a payment or basket document: (authorisation id, token); `signer` as for `approach.open_for`."""
    token = approach.open_for(bank, how, target, purpose, signer=signer)
    documents = bank.documents
    if documents.count(AUTHORISATION, target=target["id"]) >= MOST_KEPT:
        _drop_oldest(bank, target["id"])
    identity = bank.ids.new()
    cancels = purpose == "cancellation"
    documents.put(AUTHORISATION, Authorisation(id=identity, target=target["id"], sca=token, cancels=cancels))
    return identity, token


def _drop_oldest(bank: Bank, target_id: str) -> None:
    """Let go of the oldest authorisation that was not finalised."""
    for authorisation in bank.documents.find(AUTHORISATION, target=target_id):
        opened = sca.get(bank, authorisation["sca"])
        if opened is None or opened["status"] != "finalised":
            bank.documents.delete(AUTHORISATION, authorisation["id"])
            bank.documents.delete(SCA, authorisation["sca"])
            return


def forget(bank: Bank, target_id: str) -> None:
    """End what was opened for a basket that is deleted, and drop its authorisations with it."""
    sca.release(bank, target_id)
    for authorisation in bank.documents.find(AUTHORISATION, target=target_id):
        bank.documents.delete(AUTHORISATION, authorisation["id"])


def listing(bank: Bank, target_id: str, *, cancels: bool = False) -> list[str]:
    """The ids of a payment's or basket's authorisations, or of those of its cancellation, oldest first."""
    return [one["id"] for one in bank.documents.find(AUTHORISATION, target=target_id) if one["cancels"] == cancels]


def status(bank: Bank, target_id: str, authorisation_id: str, *, cancels: bool = False) -> str:
    """scaStatus of an authorisation: started, finalised or failed (CONTRACT 13); RESOURCE_UNKNOWN."""
    known = bank.documents.get(AUTHORISATION, authorisation_id)
    if known is None or known["target"] != target_id or known["cancels"] != cancels:
        raise BankError("RESOURCE_UNKNOWN", "There is no such authorisation.", "authorisationId")
    opened = sca.get(bank, known["sca"])
    if opened is None or (sca.is_open(opened) and sca.is_late(bank, opened)):
        return "failed"
    return str(opened["status"])
