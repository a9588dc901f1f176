"""Persons, the agreements under which they act, and the accounts that they can access.

A private customer is a person (customerNumber is the national identity number); a corporate customer acts through the
persons of its agreements. Each TPP has its own PSU-ID for a person (headers.md#psu-id).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from emulator.bank.bank import Bank
from emulator.bank.documents import Account, Agreement, Card, Customer, Engagement, Person, Psu, Role
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, CUSTOMER, PERSON, PSU

PRIVATE = "PRIVATE"
CORPORATE = "CORPORATE"
ROLES: tuple[Role, ...] = ("VIEW", "REGISTER")


class Owner(NamedTuple):
    """Whose a session or consent is: a person who acts in a context, under an agreement or none, for a TPP."""

    tpp_id: str
    national_id: str
    context: str
    agreement: str | None


def customer(bank: Bank, number: str) -> Customer | None:
    return bank.documents.first(CUSTOMER, customerNumber=number)


def person(bank: Bank, national_id: str) -> Person | None:
    """`{id: national identity number, name}` of a person the bank knows, else None.

    A private customer created through the sandbox interface has no person document: its number identifies the person.
    The number of a company whose own agreement names no persons identifies one too (assumed), since otherwise nobody
    could act under it.
    """
    document = bank.documents.get(PERSON, national_id)
    if document is not None:
        return document
    owner = customer(bank, national_id)
    if owner is None or (owner["type"] != "private" and not agreements_of(bank, national_id)):
        return None
    return {"id": national_id, "name": owner["name"]}


def agreements_of(bank: Bank, national_id: str) -> list[Agreement]:
    """The agreements under which a person may act, the oldest first."""
    agreements = bank.documents.find(AGREEMENT, persons=national_id)
    owner = customer(bank, national_id)
    if owner is not None:
        listed = {agreement["id"] for agreement in agreements}
        for agreement in bank.documents.find(AGREEMENT, owner=owner["id"]):
            if agreement["id"] not in listed and (owner["type"] == "private" or not agreement["persons"]):
                agreements.append(agreement)
    return agreements


def acting_under(bank: Bank, agreement: Agreement) -> list[str]:
    """Who may act under an agreement: the persons that it names, and a private owner."""
    owner = _private(bank.documents.get(CUSTOMER, agreement["owner"]))
    owning = [] if owner is None else [owner["customerNumber"]]
    return list(dict.fromkeys([*agreement.get("persons", ()), *owning]))


def _private(owner: Customer | None) -> Customer | None:
    return owner if owner is not None and owner["type"] == "private" else None


def contexts_of(bank: Bank, national_id: str) -> list[tuple[str, Agreement | None]]:
    """The contexts of a person: private, and corporate under each of the agreements."""
    options: list[tuple[str, Agreement | None]] = []
    if _private(customer(bank, national_id)) is not None:
        options.append((PRIVATE, None))
    options += [(CORPORATE, agreement) for agreement in agreements_of(bank, national_id)]
    return options


def chosen(
    options: list[tuple[str, Agreement | None]], context: str | None, agreement: str | None
) -> tuple[str, str | None]:
    """Context and agreement id of the first of these contexts that matches; None matches any. FORMAT_ERROR if none."""
    for candidate, document in options:
        identity = document["id"] if document is not None else None
        if context in (None, candidate) and (agreement is None or agreement.lower() == identity):
            return candidate, identity
    under = f" under {agreement}" if agreement is not None else ""
    wanted = f"agreement {agreement}" if under and context is None else f"context {context or PRIVATE}{under}"
    possible = [name if document is None else f"{name} under {document['id']}" for name, document in options]
    text = f"The {wanted} is not possible here; possible: {', '.join(possible) or 'nothing'}."
    raise BankError("FORMAT_ERROR", text, "context" if agreement is None else "agreement")


def engagements_for(bank: Bank, agreement: Agreement, role: str, national_id: str) -> list[Engagement]:
    """The engagements of an agreement that give a person `role`.

    An engagement of a private customer applies to that person only; one of a corporate customer to everybody who acts
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
    """Account ids of an agreement; a private owner's own accounts belong to it automatically."""
    engaged = [engagement["accountId"] for engagement in engagements_for(bank, agreement, role, national_id)]
    own = [] if _is_guest(bank, agreement, national_id) else [account["id"] for account in own_in(bank, agreement)]
    return list(dict.fromkeys([*engaged, *own]))


def _is_guest(bank: Bank, agreement: Agreement, national_id: str) -> bool:
    """Whether a person acts under an agreement only through an engagement, with no more rights than it gives."""
    admitting = (e["customer"] for e in agreement["engagements"] if e.get("admits"))
    guests = (bank.documents.get(CUSTOMER, customer_id) for customer_id in admitting)
    return any(guest is not None and guest["customerNumber"] == national_id for guest in guests)


def engagement(identity: str, customer_id: str, account: Account, roles: Iterable[Role] = ROLES) -> Engagement:
    """What a customer may do with an account under an agreement; by default everything."""
    return {
        "id": identity,
        "customer": customer_id,
        "accountId": account["id"],
        "iban": account["iban"],
        "roles": list(dict.fromkeys(roles)),
    }


def engage(agreement: Agreement, engagement: Engagement, customer: Customer) -> None:
    """Add an engagement of `customer` to an agreement, under which a private one then acts as a guest."""
    agreement["engagements"].append(engagement)
    if engagement["accountId"] not in agreement["accounts"]:
        agreement["accounts"].append(engagement["accountId"])
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


def accounts_owned(bank: Bank, customer_id: str) -> list[Account]:
    """A customer's own accounts, then those that it has jointly with another."""
    find = bank.documents.find
    return [*find(ACCOUNT, customerId=customer_id), *find(ACCOUNT, owners=customer_id)]


def accounts_of(bank: Bank, national_id: str, context: str, agreement: str | None) -> list[Account]:
    """The accounts a person may see in a context (agreement None in CORPORATE: under any agreement)."""
    if context == PRIVATE:
        owner = _private(customer(bank, national_id))
        return [] if owner is None else accounts_owned(bank, owner["id"])
    accounts: dict[str, Account] = {}
    for candidate in agreements_of(bank, national_id):
        if agreement is None or candidate["id"] == agreement:
            for account_id in _under_agreement(bank, candidate, "VIEW", national_id):
                account = bank.documents.get(ACCOUNT, account_id)
                if account is not None:
                    accounts[account_id] = account
    return list(accounts.values())


def cards_of(bank: Bank, national_id: str, context: str) -> list[Card]:
    """The card accounts of a private customer; agreements have none."""
    owner = _private(customer(bank, national_id))
    if context != PRIVATE or owner is None:
        return []
    return bank.documents.find(CARD, customerId=owner["id"])


def reaches(bank: Bank, national_id: str, context: str, agreement: str | None, resource: Mapping[str, Any]) -> bool:
    """Whether an account or card account is among those of `accounts_of` or `cards_of`."""
    if context == PRIVATE:  # without looking at the others, at each read of one
        owner = _private(customer(bank, national_id))
        return owner is not None and owner["id"] in (resource["customerId"], *resource.get("owners", ()))
    return any(
        resource["id"] in _under_agreement(bank, candidate, "VIEW", national_id)
        for candidate in agreements_of(bank, national_id)
        if agreement in (None, candidate["id"])
    )


def reached_in(bank: Bank, national_id: str, resource: Mapping[str, Any]) -> str | None:
    """The first context in which a person can access an account or card account; None if in none, and it is 404."""
    if reaches(bank, national_id, PRIVATE, None, resource):
        return PRIVATE
    return CORPORATE if reaches(bank, national_id, CORPORATE, None, resource) else None


def may_pay_from(bank: Bank, national_id: str, context: str, agreement: str | None, account: Account) -> bool:
    """Whether a person may pay from `account`: privately its own, else REGISTER and VIEW in the agreement."""
    if context == PRIVATE:
        for name in (account["customerId"], *account.get("owners", ())):
            owner = bank.documents.get(CUSTOMER, name)  # not `_private`: this runs for every payment
            if owner is not None and owner["type"] == "private" and owner["customerNumber"] == national_id:
                return True
        return False
    for candidate in agreements_of(bank, national_id):
        if agreement is None or candidate["id"] == agreement:
            may_register = account["id"] in _under_agreement(bank, candidate, "REGISTER", national_id)
            if may_register and account["id"] in _under_agreement(bank, candidate, "VIEW", national_id):
                return True
    return False


def psu_for(bank: Bank, tpp_id: str, national_id: str) -> Psu:
    """The PSU of a person at a TPP: one UUID per TPP and person, created at the first SCA."""
    key = f"{tpp_id}|{national_id}"
    psu = bank.documents.first(PSU, key=key)
    if psu is None:
        psu = {
            "id": bank.ids.uuid(),
            "tpp": tpp_id,
            "nationalId": national_id,
            "key": key,
            "created": bank.clock.stamp(),
        }
        bank.documents.put(PSU, psu)
    return psu


def psu_of(bank: Bank, tpp_id: str, psu_id: str) -> Psu | None:
    """The PSU with a PSU-ID, or None if the id does not belong to this TPP."""
    psu = bank.documents.get(PSU, psu_id)
    return psu if psu is not None and psu["tpp"] == tpp_id else None


def names(bank: Bank) -> dict[str, str]:
    """The names of all persons by national identity number: those who act for companies, then customers.

    Companies are included if their number identifies a person (see `person`).
    """
    numbers = {document["id"]: document["name"] for document in bank.documents.all(PERSON)}
    for owner in bank.documents.all(CUSTOMER):
        number = owner["customerNumber"]
        if number not in numbers and (owner["type"] == "private" or agreements_of(bank, number)):
            numbers[number] = owner["name"]
    return numbers


def listing(bank: Bank, most: int) -> list[dict[str, Any]]:
    """The persons of the bank with accounts and agreements, newest first, for tests and tools."""
    people = []
    for national_id, name in islice(reversed(names(bank).items()), most):
        accounts = {
            a["id"]: a for context in (PRIVATE, CORPORATE) for a in accounts_of(bank, national_id, context, None)
        }
        people.append(
            {
                "nationalId": national_id,
                "name": name,
                "accounts": [{k: a[k] for k in ("id", "iban", "bban", "currency", "name")} for a in accounts.values()],
                "agreements": [
                    {"psuCorporateId": a["id"], "name": a["name"], "organisationNumber": a.get("organisationNumber")}
                    for a in agreements_of(bank, national_id)
                ],
            }
        )
    return people
