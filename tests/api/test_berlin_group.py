"""Berlin Group clients: every answer fits the published models, but for the differences that the manual lists.

The models are in `tests.api.berlin_group`: 1.3.9 and 1.3.12, the neighbours of 1.3.11.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from emulator import manual
from emulator.api.description.openapi import published
from emulator.api.headers import MATRIX
from emulator.api.notification_headers import FORMATS as NOTIFICATION_HEADERS
from tests.api.berlin_group import HEADERS, OBJECTS, VERSIONS, Version, schemas
from tests.api.desk import DeskClient, approve, ok
from tests.api.test_payments import BODIES
from tests.known_state import BULK, DOMESTIC, PERIODIC, SEPA
from tests.unit.payments.world import domestic, sepa

PAGE = "reference/berlin-group"
# What a client does not read as it is: how it differs, and the member. In both versions, then in one of them.
BOTH = {
    ("misfit", "currencyExchange"),
    *(("unknown", member) for member in ("street", "postalCode", "city", "maskedPan")),
    *(("unknown", member) for member in ("verbs", "relatedAccount", "entryStatuses", "executions")),
    *(("unknown", member) for member in ("paymentId", "_links", "debtorName")),
    *(("unknown", member) for member in ("transactionFees", "transactionFeeIndicator")),
}
ONE = {
    "1.3.9": {("misfit", "remittanceInformationStructured"), ("misfit", "remittanceInformationStructuredArray")},
    "1.3.12": {("unknown", "transactionsDetails"), ("missing", "transactionDetails")},
}


def accounts(kari: DeskClient) -> Iterator[tuple[str, Any]]:
    wide = "bookingStatus=both&dateFrom=2025-12-01&limit=500"
    listed = ok(kari.get("/v1/accounts?withBalance=true"))
    yield "accounts", listed
    for account in listed["accounts"]:
        at = f"/v1/accounts/{account['resourceId']}"
        yield "oneAccount", ok(kari.get(at))
        yield "balances", ok(kari.get(f"{at}/balances"))
        transactions = ok(kari.get(f"{at}/transactions?{wide}"))
        yield "transactions", transactions
        for booking in transactions["transactions"]["booked"]:
            details = ok(kari.get(f"{at}/transactions/{booking['transactionId']}"))
            yield "transactionDetails", details
            yield "transaction", details["transactionsDetails"]


def cards(kari: DeskClient) -> Iterator[tuple[str, Any]]:
    wide = "bookingStatus=both&dateFrom=2025-12-01&limit=500"
    fixes = {"x-accept-fix": "amount-as-string,card-transaction-amounts,cash-account-type-iso"}
    listed = ok(kari.get("/v1/card-accounts"))
    yield "cardAccounts", listed
    for card in listed["cardAccounts"]:
        at = f"/v1/card-accounts/{card['resourceId']}"
        yield "oneCardAccount", ok(kari.get(at))
        yield "cardBalances", ok(kari.get(f"{at}/balances"))
        yield "cardTransactions", ok(kari.get(f"{at}/transactions?{wide}", headers=fixes))


ADDRESS = {"street": "Gata", "buildingNumber": "1", "postalCode": "0001", "city": "Oslo", "country": "NO"}
KID = {"reference": "1234567897"}
INITIATIONS = (
    ("payment", SEPA, sepa(debtorAccount={"iban": "NO8599901000014", "currency": "NOK"})),
    ("payment", DOMESTIC, domestic(creditorAddress=ADDRESS)),
    ("payment", DOMESTIC, domestic(remittanceInformationStructured=KID, remittanceInformationStructuredArray=[KID])),
    ("periodicPayment", PERIODIC, BODIES[PERIODIC]),
    ("bulkPayment", BULK, BODIES[BULK]),
)


def payments(kari: DeskClient) -> Iterator[tuple[str, Any]]:
    for kind, path, body in INITIATIONS:
        created = ok(kari.post(path, json=body), 201)
        yield "paymentCreated", created
        at = f"{path}/{created['paymentId']}"
        started = ok(kari.post(f"{at}/authorisations"), 201)
        yield "authorisationStarted", started
        yield kind, ok(kari.get(at))
        approve(kari.service, created["paymentId"])
        yield "paymentStatusAnswer", ok(kari.get(f"{at}/status"))
        yield kind, ok(kari.get(at))
        yield "authorisations", ok(kari.get(f"{at}/authorisations"))
        yield "authorisation", ok(kari.get(f"{at}/authorisations/{started['authorisationId']}"))
    yield "cancelled", ok(kari.delete(at), 202)


def baskets(kari: DeskClient) -> Iterator[tuple[str, Any]]:
    ids = [ok(kari.post(DOMESTIC, json=BODIES[DOMESTIC]), 201)["paymentId"] for _ in range(2)]
    created = ok(kari.post("/v1/signing-baskets", json={"paymentIds": ids}), 201)
    yield "basketCreated", created
    at = f"/v1/signing-baskets/{created['basketId']}"
    yield "basket", ok(kari.get(at))
    yield "basketStatusAnswer", ok(kari.get(f"{at}/status"))


def consents(kari: DeskClient) -> Iterator[tuple[str, Any]]:
    created = ok(kari.post("/v1/consents"), 201)
    yield "consentCreated", created
    at = f"/v1/consents/{created['consentId']}"
    yield "consentStatusAnswer", ok(kari.get(f"{at}/status"))
    approve(kari.service, created["_links"]["scaRedirect"]["href"])
    yield "consent", ok(kari.get(at))


def refusals(kari: DeskClient) -> Iterator[tuple[str, Any]]:
    yield "refusal", kari.get("/v1/accounts/no-such").json()
    yield "refusal", kari.post(SEPA, json={}).json()


@pytest.fixture
def read(kari: DeskClient) -> list[tuple[str, Any]]:
    """What a client reads on whole journeys: the kind of object, and the answer."""
    journeys = (accounts, cards, payments, baskets, consents, refusals)
    return [one for journey in journeys for one in journey(kari)]


@pytest.mark.parametrize("name", VERSIONS)
def test_every_answer_fits_but_for_the_listed_differences(read: list[tuple[str, Any]], name: str) -> None:
    version = Version(name)
    seen = {difference for kind, answer in read for difference in version.differences(kind, answer)}
    assert seen == BOTH | ONE[name]


def test_every_object_that_has_a_place_in_an_answer_was_read(read: list[tuple[str, Any]]) -> None:
    assert {kind for kind, _ in read} >= {"accounts", "cardAccounts", "payment", "basket", "consent", "refusal"}


# Objects of this bank's own document, and what they are in the framework.
SAME = {
    "Account": ["account"],
    "Balance": ["balance"],
    "DetailedTransaction": ["transaction"],
    "EntryDetail": ["entry"],
    "CurrencyExchange": ["rate"],
    "CardAccount": ["cardAccount"],
    "CardTransaction": ["cardTransaction"],
    "Address": ["address"],
    "AcceptorAddress": ["address"],
    "PaymentCreated": ["paymentCreated"],
    "PaymentStatus": ["paymentStatusAnswer"],
    "PaymentDetails": ["payment", "periodicPayment", "bulkPayment"],
    "Authorisation": ["authorisationStarted"],
    "ScaStatus": ["authorisation"],
    "BasketCreated": ["basketCreated"],
    "BasketDetails": ["basket"],
    "Consent": ["consentCreated"],
    "ConsentDetails": ["consent"],
    "AccountAccess": ["access"],
    "TppMessage": ["message"],
    "Link": ["link"],
}


def further() -> set[str]:
    """The members of this bank's document that the framework's objects do not have."""
    theirs, ours = schemas(OBJECTS), published()["components"]["schemas"]
    return {
        member
        for name, kinds in SAME.items()
        for member in ours[name]["properties"]
        if not any(member in theirs[kind]["properties"] for kind in kinds)
    }


READ = {name.lower() for name in (*MATRIX, *NOTIFICATION_HEADERS)}


def test_the_manual_names_each_header_that_the_bank_ignores() -> None:
    for name in [name for name in HEADERS.split() if name.lower() not in READ]:
        assert f"`{name}`" in manual.pages()[PAGE].text, name


def test_the_manual_names_each_difference() -> None:
    differences = further() | {member for _, member in BOTH.union(*ONE.values())}
    assert {member for member in differences if not re.search(rf"`{member}`", manual.pages()[PAGE].text)} == set()
