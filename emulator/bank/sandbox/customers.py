"""Sandbox data: create, change and delete customers, with their persons (sandbox-data.md#customers)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from emulator.bank.accounts import accounts
from emulator.bank.bank import Bank
from emulator.bank.documents import Customer, Person, SandboxIdentity
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CONSENT, CUSTOMER, ENTRIES_OF, PERSON, PSU, SESSION
from emulator.bank.sandbox import Body, find_customer, identity_of, new_identity, shortening
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.bank.sandbox.agreements import delete_agreement, keep_engagements, organisation_number
from emulator.store import Kind

HOLDERS: tuple[Kind[Any], ...] = tuple(ENTRIES_OF)


def create_customer(bank: Bank, body: Body) -> Customer:
    """A new customer from `{customerNumber, name, type}`; CONFLICT if the number is in use."""
    return _put_customer(bank, new_identity(bank), body)


def replace_customer(bank: Bank, customer_id: str, body: Body) -> Customer:
    """Replace all members of a customer; another number or type makes it another person (assumed)."""
    before = find_customer(bank, customer_id)
    replaced = _put_customer(bank, identity_of(before), body)
    if (before["customerNumber"], before["type"]) != (replaced["customerNumber"], replaced["type"]):
        _forget_person(bank, before["customerNumber"])
        _renumber(bank, customer_id, before["customerNumber"], replaced)
    if replaced["type"] == "corporate":
        _leave_joint_accounts(bank, customer_id)
    for kind in HOLDERS:
        for holder in bank.documents.find(kind, customerId=customer_id):
            holder["usage"] = accounts.usage(replaced)
            if replaced["type"] == "corporate":
                holder.pop("owners", None)
            bank.documents.put(kind, holder)
    return replaced


def _renumber(bank: Bank, customer_id: str, old: str, replaced: Customer) -> None:
    """Replace the old number by the new one in agreements: the organisation number, and the number among the persons.

    The old number is removed from the persons without a replacement unless the customer is a private one that owns the
    agreement or has an engagement in it.
    """
    for agreement in bank.documents.find(AGREEMENT, persons=old):
        engaged = {agreement["owner"], *(engagement["customer"] for engagement in agreement["engagements"])}
        new = [replaced["customerNumber"]] if replaced["type"] == "private" and customer_id in engaged else []
        persons = [number for person in agreement["persons"] for number in (new if person == old else [person])]
        agreement["persons"] = list(dict.fromkeys(persons))
        bank.documents.put(AGREEMENT, agreement)
    for agreement in bank.documents.find(AGREEMENT, owner=customer_id):
        if agreement.get("organisationNumber") == old:
            del agreement["organisationNumber"]
            number = organisation_number(replaced)
            if number is not None:
                agreement["organisationNumber"] = number
            bank.documents.put(AGREEMENT, agreement)


def _put_customer(bank: Bank, identity: SandboxIdentity, body: Body) -> Customer:
    number = body["customerNumber"]
    other = bank.documents.first(CUSTOMER, customerNumber=number)
    if other is not None and other["id"] != identity["id"]:
        raise BankError("CONFLICT", f"The customer {number} already exists.", "customerNumber")
    document: Customer = {
        "id": identity["id"],
        "customerNumber": number,
        "type": "private" if body["type"].lower() == "private" else "corporate",
        "name": body["name"],
    }
    if "created" in identity:
        document["created"] = identity["created"]
    bank.documents.put(CUSTOMER, document)
    person = bank.documents.get(PERSON, number)
    if person is not None and document["type"] == "private":
        bank.documents.put(PERSON, Person(id=number, name=document["name"]))
    return document


def deleting_customer(bank: Bank, customer_id: str) -> Iterator[int]:
    """Delete a customer with its accounts, card accounts, agreements, engagements, consents and sessions.

    In steps, between which the bank may be used; the customer is there until the last one.
    """
    find_customer(bank, customer_id)
    holders = [
        (ENTRIES_OF[kind], holder["id"])
        for kind in HOLDERS
        for holder in bank.documents.find(kind, customerId=customer_id)
    ]
    if (yield from shortening(bank, CUSTOMER, customer_id, holders)):
        _delete(bank, find_customer(bank, customer_id))


def _delete(bank: Bank, customer: Customer) -> None:
    customer_id = customer["id"]
    for kind in HOLDERS:
        own = [holder["id"] for holder in bank.documents.find(kind, customerId=customer_id)]
        sandbox_accounts.delete(bank, kind, own)
    _leave_joint_accounts(bank, customer_id)
    for agreement in bank.documents.find(AGREEMENT, owner=customer_id):
        delete_agreement(bank, agreement["id"])
    number = customer["customerNumber"]
    for agreement in list(bank.documents.all(AGREEMENT)):
        engaged = any(engagement["customer"] == customer_id for engagement in agreement["engagements"])
        if engaged or number in agreement["persons"]:
            agreement["persons"] = [person for person in agreement["persons"] if person != number]
            keep_engagements(bank, agreement, lambda engagement: engagement["customer"] != customer_id)
    _forget_person(bank, number)
    bank.documents.delete(CUSTOMER, customer_id)


def _leave_joint_accounts(bank: Bank, customer_id: str) -> None:
    for account in bank.documents.find(ACCOUNT, owners=customer_id):
        account["owners"] = [owner for owner in account["owners"] if owner != customer_id]
        bank.documents.put(ACCOUNT, account)


def _forget_person(bank: Bank, national_id: str) -> None:
    """Delete the PSU-IDs, sessions, consents and the person document of a person who no longer exists."""
    kinds: tuple[Kind[Any], ...] = (PSU, SESSION, CONSENT)
    for kind in kinds:
        own = [document["id"] for document in bank.documents.find(kind, nationalId=national_id)]
        bank.documents.delete_several(kind, own)
    bank.documents.delete(PERSON, national_id)
