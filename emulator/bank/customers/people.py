"""Persons, the agreements under which they act, and the accounts they reach.

A private customer is its own person (customerNumber is the national identity number); a corporate customer acts
through the persons of its agreements. A TPP knows a person only by a PSU-ID of its own (CONTRACT 4).
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from emulator.bank.bank import Bank
from emulator.bank.documents import Account, Agreement, Card, Customer, Engagement, Person, Psu
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, CUSTOMER, PERSON, PSU, HolderKind

PRIVATE = "PRIVATE"
CORPORATE = "CORPORATE"


def customer(bank: Bank, number: str) -> Customer | None:
    """The customer with this customerNumber."""
    return bank.documents.first(CUSTOMER, customerNumber=number)


def person(bank: Bank, national_id: str) -> Person | None:
    """`{id: national identity number, name}` of a person the bank knows, else None.

    A private customer created through the sandbox interface has no person document: its number identifies the person.
    So does a firm's number (assumed) in an agreement of its own that names nobody: else nobody could act under it.
    """
    known = bank.documents.get(PERSON, national_id)
    if known is not None:
        return known
    owner = customer(bank, national_id)
    if owner is None or (owner["type"] != "private" and not agreements_of(bank, national_id)):
        return None
    return {"id": national_id, "name": owner["name"]}


def agreements_of(bank: Bank, national_id: str) -> list[Agreement]:
    """The agreements under which a person may act, the oldest first."""
    agreements = bank.documents.find(AGREEMENT, persons=national_id)
    owner = customer(bank, national_id)
    if owner is not None:
        known = {agreement["id"] for agreement in agreements}
        for agreement in bank.documents.find(AGREEMENT, owner=owner["id"]):
            if agreement["id"] not in known and (owner["type"] == "private" or not agreement["persons"]):
                agreements.append(agreement)
    return agreements


def acting_under(bank: Bank, agreement: Agreement) -> list[str]:
    """Who may act under an agreement: the persons that it names, and a private owner."""
    owner = _private(bank.documents.get(CUSTOMER, agreement["owner"]))
    owning = [] if owner is None else [owner["customerNumber"]]
    return list(dict.fromkeys([*agreement.get("persons", ()), *owning]))


def _private(owner: Customer | None) -> Customer | None:
    """The customer if it is a private one."""
    return owner if owner is not None and owner["type"] == "private" else None


def contexts_of(bank: Bank, national_id: str) -> list[tuple[str, Agreement | None]]:
    """The contexts of a person: private, and corporate under each of the agreements."""
    options: list[tuple[str, Agreement | None]] = []
    if _private(customer(bank, national_id)) is not None:
        options.append((PRIVATE, None))
    options += [(CORPORATE, agreement) for agreement in agreements_of(bank, national_id)]
    return options


def first_fitting(
    options: list[tuple[str, Agreement | None]], context: str | None, agreement: str | None
) -> tuple[str, str | None] | None:
    """Context and agreement id of the first of `contexts_of` that matches; None matches any."""
    for candidate, document in options:
        identity = document["id"] if document is not None else None
        if context in (None, candidate) and agreement in (None, identity):
            return candidate, identity
    return None


def engagements_for(bank: Bank, agreement: Agreement, role: str, national_id: str) -> list[Engagement]:
    """The engagements of an agreement that give a person `role`.

    An engagement of a private customer is that person's own; one of a corporate customer is everybody's who acts
    under the agreement.
    """
    engagements = []
    for engagement in agreement["engagements"]:
        if role in engagement["roles"]:
            engaged = bank.documents.get(CUSTOMER, engagement["customer"])
            if engaged is None or engaged["type"] != "private" or engaged["customerNumber"] == national_id:
                engagements.append(engagement)
    return engagements


def _under_agreement(bank: Bank, agreement: Agreement, role: str, national_id: str) -> list[str]:
    """Account ids of an agreement; a private owner's own accounts belong to it automatically (CONTRACT 8)."""
    engaged = [engagement["accountId"] for engagement in engagements_for(bank, agreement, role, national_id)]
    own = [] if _is_guest(bank, agreement, national_id) else [account["id"] for account in own_in(bank, agreement)]
    return list(dict.fromkeys([*engaged, *own]))


def _is_guest(bank: Bank, agreement: Agreement, national_id: str) -> bool:
    """Whether a person acts under an agreement only because of an engagement, as far as engagements allow."""
    admitting = (e["customer"] for e in agreement["engagements"] if e.get("admits"))
    guests = (bank.documents.get(CUSTOMER, customer_id) for customer_id in admitting)
    return any(guest is not None and guest["customerNumber"] == national_id for guest in guests)


def admit(agreement: Agreement, engagement: Engagement, customer: Customer) -> None:
    """A private customer in a new engagement becomes one of those who may act under the agreement, as a guest."""
    number = customer["customerNumber"]
    if customer["type"] == "private" and number not in agreement["persons"]:
        agreement["persons"].append(number)
        engagement["admits"] = True


def own_in(bank: Bank, agreement: Agreement) -> list[Account]:
    """The accounts that belong to an agreement automatically: a private owner's own, without engaged ones."""
    owner = _private(bank.documents.get(CUSTOMER, agreement["owner"]))
    if owner is None:
        return []
    engaged = {e["accountId"] for e in agreement["engagements"] if e["customer"] == owner["id"]}
    return [a for a in bank.documents.find(ACCOUNT, customerId=owner["id"]) if a["id"] not in engaged]


def accounts_of(bank: Bank, national_id: str, context: str, agreement: str | None) -> list[Account]:
    """The accounts a person may see in a context (agreement None in CORPORATE: under any agreement)."""
    if context == PRIVATE:
        owner = _private(customer(bank, national_id))
        return [] if owner is None else bank.documents.find(ACCOUNT, customerId=owner["id"])
    accounts: dict[str, Account] = {}
    for candidate in agreements_of(bank, national_id):
        if agreement is None or candidate["id"] == agreement:
            for account_id in _under_agreement(bank, candidate, "VIEW", national_id):
                account = bank.documents.get(ACCOUNT, account_id)
                if account is not None:
                    accounts[account_id] = account
    return list(accounts.values())


def cards_of(bank: Bank, national_id: str, context: str) -> list[Card]:
    """The card accounts of a private customer; agreements hold none."""
    owner = _private(customer(bank, national_id))
    if context != PRIVATE or owner is None:
        return []
    return bank.documents.find(CARD, customerId=owner["id"])


def reaches(
    bank: Bank,
    national_id: str,
    context: str,
    agreement: str | None,
    resource_id: str,
    *,
    kind: HolderKind = ACCOUNT,
) -> bool:
    """Whether an account (or card account) is among those of `accounts_of` (or `cards_of`)."""
    documents = bank.documents
    resource = documents.get(ACCOUNT, resource_id) if kind is ACCOUNT else documents.get(CARD, resource_id)
    if resource is None:
        return False
    if context == PRIVATE:
        owner = _private(customer(bank, national_id))
        return owner is not None and bool(resource["customerId"] == owner["id"])
    return kind is ACCOUNT and any(
        resource_id in _under_agreement(bank, candidate, "VIEW", national_id)
        for candidate in agreements_of(bank, national_id)
        if agreement in (None, candidate["id"])
    )


def owns(bank: Bank, national_id: str, resource_id: str, *, kind: HolderKind = ACCOUNT) -> bool:
    """Whether an account (or card account) is the person's in any context, which decides about 404 (CONTRACT 3)."""
    return any(reaches(bank, national_id, context, None, resource_id, kind=kind) for context in (PRIVATE, CORPORATE))


def may_pay_from(bank: Bank, national_id: str, context: str, agreement: str | None, account: Account) -> bool:
    """Whether a person may pay from `account`: privately its own, else REGISTER and VIEW in the agreement."""
    if context == PRIVATE:
        owner = bank.documents.get(CUSTOMER, account["customerId"])  # called for every payment: one call less
        return owner is not None and owner["type"] == "private" and bool(owner["customerNumber"] == national_id)
    for candidate in agreements_of(bank, national_id):
        if agreement is None or candidate["id"] == agreement:
            may_register = account["id"] in _under_agreement(bank, candidate, "REGISTER", national_id)
            if may_register and account["id"] in _under_agreement(bank, candidate, "VIEW", national_id):
                return True
    return False


def psu_for(bank: Bank, tpp_id: str, national_id: str) -> Psu:
    """The PSU of a person at a TPP: one UUID per TPP and person, created at the first SCA (CONTRACT 4)."""
    key = f"{tpp_id}|{national_id}"
    known = bank.documents.first(PSU, key=key)
    if known is None:
        known = {
            "id": bank.ids.uuid(),
            "tpp": tpp_id,
            "nationalId": national_id,
            "key": key,
            "created": bank.clock.stamp(),
        }
        bank.documents.put(PSU, known)
    return known


def psu_of(bank: Bank, tpp_id: str, psu_id: str) -> Psu | None:
    """The PSU behind a PSU-ID, or None when the id is not this TPP's."""
    known = bank.documents.get(PSU, psu_id.lower())
    return known if known is not None and known["tpp"] == tpp_id else None


def names(bank: Bank) -> dict[str, str]:
    """The names of all persons of the bank by national identity number: those who act for firms, then the customers.

    Of the firms those whose number stands for a person.
    """
    numbers = {document["id"]: document["name"] for document in bank.documents.all(PERSON)}
    for owner in bank.documents.all(CUSTOMER):
        number = owner["customerNumber"]
        if number not in numbers and (owner["type"] == "private" or agreements_of(bank, number)):
            numbers[number] = owner["name"]
    return numbers


def listing(bank: Bank, most: int) -> list[dict[str, Any]]:
    """The persons of the bank with accounts and agreements, newest first, for tests and tools (CONTRACT 13)."""
    people = []
    for national_id, name in islice(reversed(names(bank).items()), most):
        held = {a["id"]: a for context in (PRIVATE, CORPORATE) for a in accounts_of(bank, national_id, context, None)}
        people.append(
            {
                "nationalId": national_id,
                "name": name,
                "accounts": [{k: a[k] for k in ("id", "iban", "bban", "currency", "name")} for a in held.values()],
                "agreements": [
                    {"psuCorporateId": a["id"], "name": a["name"], "organisationNumber": a.get("organisationNumber")}
                    for a in agreements_of(bank, national_id)
                ],
            }
        )
    return people
