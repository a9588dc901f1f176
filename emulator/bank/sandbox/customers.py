"""Sandbox data: customers with their persons, and their agreements, which give rights on accounts (sandbox-data.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, cast

from emulator.bank.accounts import accounts
from emulator.bank.bank import Bank
from emulator.bank.customers import people
from emulator.bank.documents import Agreement, Customer, Engagement, Person, SandboxIdentity
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CONSENT, CUSTOMER, ENTRIES_OF, PERSON, PSU, SESSION
from emulator.bank.money import too_fine
from emulator.bank.sandbox import (
    Body,
    customer_named,
    decimal,
    identity_of,
    keep_engagements,
    new_identity,
    shortening,
)
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.store import Kind

LIMITS: tuple[Literal["registerLimit", "approvalLimit"], ...] = ("registerLimit", "approvalLimit")
HOLDERS: tuple[Kind[Any], ...] = tuple(ENTRIES_OF)
_GIVEN: tuple[Kind[Any], ...] = (SESSION, CONSENT)


def create_customer(bank: Bank, body: Body) -> Customer:
    """A new customer from `{customerNumber, name, type}`; CONFLICT if the number is in use."""
    return _put_customer(bank, new_identity(bank), body)


def replace_customer(bank: Bank, customer_id: str, body: Body) -> Customer:
    """Replace all members of a customer; another number or type makes it another person (assumed)."""
    before = bank.find(CUSTOMER, customer_id)
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
            number = _organisation_number(replaced)
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
    document.update(cast(Customer, identity))
    bank.documents.put(CUSTOMER, document)
    person = bank.documents.get(PERSON, number)
    if person is not None and document["type"] == "private":
        bank.documents.put(PERSON, Person(id=number, name=document["name"]))
    return document


def deleting_customer(bank: Bank, customer_id: str) -> Iterator[int]:
    """Delete a customer with its accounts, card accounts, agreements, engagements, consents and sessions.

    In steps, between which the bank may be used; the customer is there until the last one.
    """
    bank.find(CUSTOMER, customer_id)
    holders = [
        (ENTRIES_OF[kind], holder["id"])
        for kind in HOLDERS
        for holder in bank.documents.find(kind, customerId=customer_id)
    ]
    if (yield from shortening(bank, CUSTOMER, customer_id, holders)):
        _delete(bank, bank.find(CUSTOMER, customer_id))


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
    for kind in (PSU, *_GIVEN):
        own = [document["id"] for document in bank.documents.find(kind, nationalId=national_id)]
        bank.documents.delete_several(kind, own)
    bank.documents.delete(PERSON, national_id)


# Agreements


def create_agreement(bank: Bank, body: Body) -> Agreement:
    """A new agreement from `{owner, name, engagements?, signatures?}`.

    RESOURCE_UNKNOWN (400) for unknown customers and accounts.
    """
    owner = customer_named(bank, body["owner"], "owner")
    document: Agreement = {
        "id": bank.ids.uuid(),  # psuCorporateId is a UUID whatever `--ids` says
        "created": bank.clock.stamp(),
        "owner": owner["id"],
        "name": body["name"],
        "signatures": body.get("signatures", 1),
        "persons": [owner["customerNumber"]] if owner["type"] == "private" else [],
        "engagements": [],
        "accounts": [],
    }
    number = _organisation_number(owner)
    if number is not None:
        document["organisationNumber"] = number
    for index, engagement in enumerate(body.get("engagements") or ()):
        _engage(bank, document, engagement, f"engagements[{index}].")
    bank.documents.put(AGREEMENT, document)
    return document


def add_engagement(bank: Bank, agreement_id: str, body: Body) -> Engagement:
    agreement = bank.find(AGREEMENT, agreement_id)
    engagement = _engage(bank, agreement, body, "")
    bank.documents.put(AGREEMENT, agreement)
    return engagement


def _engage(bank: Bank, agreement: Agreement, body: Body, prefix: str) -> Engagement:
    customer = customer_named(bank, body["customer"], f"{prefix}customer")
    iban = body["account"]["iban"]
    account = bank.documents.first(ACCOUNT, iban=iban)
    if account is None:
        text = f"There is no account {iban}."
        raise BankError("RESOURCE_UNKNOWN", text, f"{prefix}account.iban", in_body=True)
    limits = {name: body[name] for name in LIMITS if body.get(name) is not None}
    for name, limit in limits.items():
        if (wrong := too_fine(decimal(limit), account["currency"])) is not None:
            raise BankError("FORMAT_ERROR", wrong, f"{prefix}{name}")
    engagement = people.engagement(bank.ids.new(), customer["id"], account, body["roles"])
    engagement.update(cast(Engagement, limits))
    people.engage(agreement, engagement, customer)
    return engagement


def delete_agreement(bank: Bank, agreement_id: str) -> None:
    """Remove an agreement, and the consents and sessions under it."""
    bank.documents.delete(AGREEMENT, bank.find(AGREEMENT, agreement_id)["id"])
    for kind in _GIVEN:
        under = [document["id"] for document in bank.documents.all(kind) if document["agreement"] == agreement_id]
        bank.documents.delete_several(kind, under)


def _organisation_number(owner: Customer) -> str | None:
    """The `organisationNumber` of a customer's agreements; None if its number has another form."""
    number = owner.get("organisationNumber") or owner["customerNumber"]
    return number if len(number) == 9 else None


def engagements(bank: Bank, agreement: Agreement) -> list[Engagement]:
    """The engagements of an agreement, with those of a private owner's own accounts, which are automatic (`joined`).

    Automatic engagements are not stored; their ids are the ids of their accounts.
    """
    own = [people.engagement(account["id"], agreement["owner"], account) for account in people.own_in(bank, agreement)]
    for engagement in own:
        engagement["joined"] = True
    return [*agreement["engagements"], *own]


def find_engagement(bank: Bank, agreement_id: str, engagement_id: str) -> Engagement:
    """One engagement of an agreement; BankError RESOURCE_UNKNOWN."""
    for engagement in engagements(bank, bank.find(AGREEMENT, agreement_id)):
        if engagement["id"] == engagement_id:
            return engagement
    raise BankError("RESOURCE_UNKNOWN", f"The agreement has no engagement {engagement_id}.", "engagementId")


def delete_engagement(bank: Bank, agreement_id: str, engagement_id: str) -> None:
    """Remove an engagement from an agreement.

    CONFLICT for an automatic one: a private customer's own account in its own agreement.
    """
    agreement = bank.find(AGREEMENT, agreement_id)
    if find_engagement(bank, agreement_id, engagement_id).get("joined"):
        raise BankError("CONFLICT", "A private customer's accounts belong to its own agreement automatically.")
    keep_engagements(bank, agreement, lambda stored: stored["id"] != engagement_id)
