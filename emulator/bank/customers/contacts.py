"""The contact address that a TPP leaves with the bank (SPEC 1, CONTRACT 8)."""

from __future__ import annotations

from emulator.bank.bank import Bank
from emulator.bank.documents import Contact
from emulator.bank.errors import BankError
from emulator.bank.kinds import CONTACT


def find(bank: Bank, tpp_id: str) -> str:
    """The e-mail address that the TPP registered; BankError RESOURCE_UNKNOWN when there is none."""
    contact = bank.documents.get(CONTACT, tpp_id)
    if contact is None:
        raise BankError("RESOURCE_UNKNOWN", "No contact information has been registered.")
    return str(contact["email"])


def register(bank: Bank, tpp_id: str, email: str) -> str:
    """Register (or replace) the TPP's e-mail address."""
    bank.documents.put(CONTACT, Contact(id=tpp_id, email=email))
    return email
