"""What the customer is asked to approve, as the last SCA page shows it."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import islice
from typing import Any

from emulator.bank.authentication import sca, sca_contexts
from emulator.bank.bank import Bank
from emulator.bank.customers import people
from emulator.bank.kinds import CUSTOMER, PERSON
from emulator.bank.payment import baskets, payment_views
from emulator.store import Document
from emulator.web.pages.texts import KINDS_IN_NORWEGIAN
from emulator.web.pages.wording import NORWEGIAN, day

Line = dict[str, Any]
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def accounts_to_share(bank: Bank, document: Document) -> list[dict[str, str]]:
    """The accounts and cards of the identified person in its context: `{id, name, number, currency, kind}`."""
    context, agreement = sca_contexts.acting_as(bank, document)
    person = document["person"]
    shown = [
        {
            "id": account["id"],
            "name": account["name"],
            "number": account["bban"],
            "currency": account["currency"],
            "kind": "account",
        }
        for account in people.accounts_of(bank, person, context, agreement)
    ]
    shown += [
        {
            "id": card["id"],
            "name": card.get("name") or card.get("product") or "",
            "number": card.get("maskedPan") or "",
            "currency": card["currency"],
            "kind": "card",
        }
        for card in people.cards_of(bank, person, context)
    ]
    return shown


def lines(bank: Bank, document: Document) -> list[Line]:
    """The payments behind an SCA, one line each (dynamic linking, SPEC 5.3.9): members of `payment_views.summary`."""
    if document["purpose"] in ("payment", "cancellation"):
        return payment_views.summary(bank, document["target"])
    if document["purpose"] == "basket":
        return baskets.summary(bank, document["target"])
    return []


def kind_in(language: str, kind: str) -> str:
    """What kind of payment a line is, in the language of the page; the bank writes English, and dates as ISO does."""
    if language == NORWEGIAN:
        for english, norwegian in KINDS_IN_NORWEGIAN:
            kind = kind.replace(english, norwegian)
    return _DATE.sub(lambda found: day(found[0], language), kind)


def totals(payments: list[Line]) -> list[tuple[str, str]]:
    """The sum of several payments as (amount, currency), one for each currency; none for a single payment."""
    if len(payments) < 2:
        return []
    sums: dict[str, Decimal] = {}
    for line in payments:
        sums[line["currency"]] = sums.get(line["currency"], Decimal(0)) + Decimal(line["amount"])
    return [(str(amount), currency) for currency, amount in sums.items()]


def known_people(bank: Bank, document: Document, *, most: int = 8, scanned: int = 200) -> list[dict[str, Any]]:
    """Whom the sandbox strip offers: the person of the request first, then others who could go on.

    At most `most` of the first `scanned` customers and persons, so that a bank with many shows its page as fast.
    """
    expected = sca.expected(document)
    candidates = [] if expected is None else [expected]
    for kind, member in ((CUSTOMER, "customerNumber"), (PERSON, "id")):
        candidates += [found[member] for found in islice(bank.documents.all(kind), scanned)]
    shown: list[dict[str, Any]] = []
    for national_id in dict.fromkeys(candidates):
        known = people.person(bank, national_id)
        options = sca_contexts.options(bank, {**document, "person": national_id}) if known else []
        if known is None or not options:
            continue
        shown.append(
            {
                "nationalId": national_id,
                "name": known["name"],
                "companies": [agreement["name"] for _, agreement in options if agreement is not None],
                "private": any(agreement is None for _, agreement in options),
                "expected": national_id == expected,
            }
        )
        if len(shown) == most:
            break
    return shown
