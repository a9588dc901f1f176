"""Sandbox data: customers as a TPP makes, changes and removes them, with the persons that they are (CONTRACT 8)."""

from __future__ import annotations

from emulator.bank.accounts import accounts
from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, CONSENT, CUSTOMER, PERSON, PSU, SESSION
from emulator.bank.sandbox.data import (
    Body,
    delete_account,
    delete_agreement,
    delete_card,
    find_customer,
    keep_engagements,
    kept,
    new,
    organisation_number,
)
from emulator.store import Document


def create_customer(bank: Bank, body: Body) -> Document:
    """A new customer from `{customerNumber, name, type}`; CONFLICT when the number is taken."""
    return _put_customer(bank, new(bank), body)


def replace_customer(bank: Bank, customer_id: str, body: Body) -> Document:
    """The customer with all its members replaced; of another number or type it is another person (assumed)."""
    known = find_customer(bank, customer_id)
    replaced = _put_customer(bank, kept(known), body)
    if any(known[name] != replaced[name] for name in ("customerNumber", "type")):
        _forget_person(bank, known["customerNumber"])
        _renumber(bank, customer_id, known["customerNumber"], replaced)
    for kind in (ACCOUNT, CARD):
        for held in bank.documents.find(kind, customerId=customer_id):
            bank.documents.put(kind, {**held, "usage": accounts.usage(replaced)})
    return replaced


def _renumber(bank: Bank, customer_id: str, old: str, replaced: Document) -> None:
    """In agreements the new number stands for the old, which nobody has now.

    Among the persons it does where the customer is a private one, and acts by itself.
    """
    for agreement in bank.documents.find(AGREEMENT, persons=old):
        engaged = {agreement["owner"], *(engagement["customer"] for engagement in agreement["engagements"])}
        instead = [replaced["customerNumber"]] if replaced["type"] == "private" and customer_id in engaged else []
        persons = [new for person in agreement["persons"] for new in (instead if person == old else [person])]
        bank.documents.put(AGREEMENT, {**agreement, "persons": list(dict.fromkeys(persons))})
    for agreement in bank.documents.find(AGREEMENT, owner=customer_id):
        if agreement.get("organisationNumber") == old:
            del agreement["organisationNumber"]
            bank.documents.put(AGREEMENT, {**agreement, **organisation_number(replaced)})


def _put_customer(bank: Bank, identity: Document, body: Body) -> Document:
    number = body["customerNumber"]
    known = bank.documents.first(CUSTOMER, customerNumber=number)
    if known is not None and known["id"] != identity["id"]:
        raise BankError("CONFLICT", f"There is a customer {number} already.", "customerNumber")
    document = {
        **identity,
        "customerNumber": number,
        "type": str(body["type"]).lower(),
        "name": body["name"],
    }
    bank.documents.put(CUSTOMER, document)
    person = bank.documents.get(PERSON, number)
    if person is not None and document["type"] == "private":
        bank.documents.put(PERSON, {**person, "name": document["name"]})
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
    """What the bank and its TPPs know of a person who is no longer there."""
    for kind in (PSU, SESSION, CONSENT):
        for document in bank.documents.find(kind, nationalId=national_id):
            bank.documents.delete(kind, document["id"])
    bank.documents.delete(PERSON, national_id)
