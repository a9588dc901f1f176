"""Sandbox data: agreements and their engagements, the rights of customers on accounts (sandbox-data.md#agreements)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

from emulator.bank.bank import Bank
from emulator.bank.customers import people
from emulator.bank.documents import Agreement, Customer, Engagement
from emulator.bank.errors import BankError
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CONSENT, SESSION
from emulator.bank.money import too_fine
from emulator.bank.sandbox import Body, customer_named, decimal, find_customer

LIMITS: tuple[Literal["registerLimit", "approvalLimit"], ...] = ("registerLimit", "approvalLimit")


def find_agreement(bank: Bank, agreement_id: str) -> Agreement:
    """The agreement with this id; BankError RESOURCE_UNKNOWN."""
    return bank.find(AGREEMENT, agreement_id, "agreementId")


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
    number = organisation_number(owner)
    if number is not None:
        document["organisationNumber"] = number
    for index, engagement in enumerate(body.get("engagements") or ()):
        _engage(bank, document, engagement, f"engagements[{index}].")
    bank.documents.put(AGREEMENT, document)
    return document


def add_engagement(bank: Bank, agreement_id: str, body: Body) -> Engagement:
    agreement = find_agreement(bank, agreement_id)
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
    bank.documents.delete(AGREEMENT, find_agreement(bank, agreement_id)["id"])
    for consent in bank.documents.all(CONSENT):
        if consent["agreement"] == agreement_id:
            bank.documents.delete(CONSENT, consent["id"])
    for session in bank.documents.all(SESSION):
        if session["agreement"] == agreement_id:
            bank.documents.delete(SESSION, session["id"])


def keep_engagements(bank: Bank, agreement: Agreement, keep: Callable[[Engagement], bool]) -> None:
    """Remove all engagements of an agreement except those that `keep` accepts, and store it.

    A person who may act only because of an engagement is removed with the last such engagement.
    """
    admitting = [engagement["customer"] for engagement in agreement["engagements"] if engagement.get("admits")]
    agreement["engagements"] = [engagement for engagement in agreement["engagements"] if keep(engagement)]
    for guest in admitting:
        another = next((one for one in agreement["engagements"] if one["customer"] == guest), None)
        if another is not None:
            another["admits"] = True
        else:
            number = find_customer(bank, guest)["customerNumber"]
            agreement["persons"] = [person for person in agreement["persons"] if person != number]
    agreement["accounts"] = list(dict.fromkeys(e["accountId"] for e in agreement["engagements"]))
    bank.documents.put(AGREEMENT, agreement)


def organisation_number(owner: Customer) -> str | None:
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
    for engagement in engagements(bank, find_agreement(bank, agreement_id)):
        if engagement["id"] == engagement_id:
            return engagement
    raise BankError("RESOURCE_UNKNOWN", f"The agreement has no engagement {engagement_id}.", "engagementId")


def delete_engagement(bank: Bank, agreement_id: str, engagement_id: str) -> None:
    """Remove an engagement from an agreement.

    CONFLICT for an automatic one: a private customer's own account in its own agreement.
    """
    agreement = find_agreement(bank, agreement_id)
    if find_engagement(bank, agreement_id, engagement_id).get("joined"):
        raise BankError("CONFLICT", "A private customer's accounts belong to its own agreement automatically.")
    keep_engagements(bank, agreement, lambda stored: stored["id"] != engagement_id)
