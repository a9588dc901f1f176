"""Sandbox data: customers as a TPP creates, changes and deletes them, with their persons (CONTRACT 8)."""

from __future__ import annotations

from emulator.bank.accounts import accounts
from emulator.bank.bank import Bank
from emulator.bank.documents import Customer, Identity, Person
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, CONSENT, CUSTOMER, PERSON, PSU, SESSION
from emulator.bank.sandbox.data import (
    Body,
    delete_account,
    delete_agreement,
    delete_card,
    find_customer,
    identity_of,
    keep_engagements,
    new_identity,
    organisation_number,
)


def create_customer(bank: Bank, body: Body) -> Customer:
    """A new customer from `{customerNumber, name, type}`; CONFLICT when the number is taken."""
    return _put_customer(bank, new_identity(bank), body)


def replace_customer(bank: Bank, customer_id: str, body: Body) -> Customer:
    """The customer with all its members replaced; with another number or type it is another person (assumed)."""
    known = find_customer(bank, customer_id)
    replaced = _put_customer(bank, identity_of(known), body)
    if (known["customerNumber"], known["type"]) != (replaced["customerNumber"], replaced["type"]):
        _forget_person(bank, known["customerNumber"])
        _renumber(bank, customer_id, known["customerNumber"], replaced)
    for account in bank.documents.find(ACCOUNT, customerId=customer_id):
        account["usage"] = accounts.usage(replaced)
        bank.documents.put(ACCOUNT, account)
    for card in bank.documents.find(CARD, customerId=customer_id):
        card["usage"] = accounts.usage(replaced)
        bank.documents.put(CARD, card)
    return replaced


def _renumber(bank: Bank, customer_id: str, old: str, replaced: Customer) -> None:
    """Replace the old number, which nobody has now, by the new one in agreements.

    Also among their persons, if the customer is a private one that acts by itself.
    """
    for agreement in bank.documents.find(AGREEMENT, persons=old):
        engaged = {agreement["owner"], *(engagement["customer"] for engagement in agreement["engagements"])}
        instead = [replaced["customerNumber"]] if replaced["type"] == "private" and customer_id in engaged else []
        persons = [new for person in agreement["persons"] for new in (instead if person == old else [person])]
        agreement["persons"] = list(dict.fromkeys(persons))
        bank.documents.put(AGREEMENT, agreement)
    for agreement in bank.documents.find(AGREEMENT, owner=customer_id):
        if agreement.get("organisationNumber") == old:
            del agreement["organisationNumber"]
            number = organisation_number(replaced)
            if number is not None:
                agreement["organisationNumber"] = number
            bank.documents.put(AGREEMENT, agreement)


def _put_customer(bank: Bank, identity: Identity, body: Body) -> Customer:
    number = body["customerNumber"]
    known = bank.documents.first(CUSTOMER, customerNumber=number)
    if known is not None and known["id"] != identity["id"]:
        raise BankError("CONFLICT", f"There is a customer {number} already.", "customerNumber")
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


def delete_customer(bank: Bank, customer_id: str) -> None:
    """Remove a customer with its accounts, card accounts, agreements, engagements, consents and sessions."""
    customer = find_customer(bank, customer_id)
    for account in bank.documents.find(ACCOUNT, customerId=customer_id):
        delete_account(bank, account["id"])
    for card in bank.documents.find(CARD, customerId=customer_id):
        delete_card(bank, card["id"])
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


def _forget_person(bank: Bank, national_id: str) -> None:
    """Delete what the bank and its TPPs know of a person who no longer exists."""
    for psu in bank.documents.find(PSU, nationalId=national_id):
        bank.documents.delete(PSU, psu["id"])
    for session in bank.documents.find(SESSION, nationalId=national_id):
        bank.documents.delete(SESSION, session["id"])
    for consent in bank.documents.find(CONSENT, nationalId=national_id):
        bank.documents.delete(CONSENT, consent["id"])
    bank.documents.delete(PERSON, national_id)
