"""The headers of every answer: what was coded, signed and may be kept (requests.md#answers)."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Iterator

import pytest

from emulator.api.description.openapi import published
from emulator.api.service import BankService
from emulator.bank.notification_targets import Host
from emulator.client.clients import TppResponse
from emulator.web.wire import encoded
from tests.api.desk import DeskClient, approve, ok
from tests.api.test_payments import BODIES
from tests.known_state import DOMESTIC


def test_a_signed_answer_is_sent_as_its_digest_says_compressed_by_nobody(
    kari: DeskClient, service: BankService
) -> None:
    service.bank.change_settings({"sign_responses": True})
    kari.get("/v1/accounts")
    logged = next(service.log.newest()).response
    assert logged is not None
    sent = encoded(logged, "gzip")
    assert b'"accounts"' in sent.body
    digest = base64.b64encode(hashlib.sha256(sent.body).digest()).decode()
    assert dict(sent.headers)["Digest"] == f"SHA-256={digest}"
    service.bank.change_settings({"sign_responses": False})
    kari.get("/v1/accounts")
    logged = next(service.log.newest()).response
    assert logged is not None
    assert gzip.decompress(encoded(logged, "gzip").body) == logged.body


@pytest.mark.parametrize("path", ["/v1/accounts", "/v1/nowhere"])
def test_an_answer_is_not_to_be_kept_and_says_what_decided_on_it(kari: DeskClient, path: str) -> None:
    for headers in ({}, {"Accept-Encoding": "gzip", "Accept-Language": "nb"}):
        answer = kari.get(path, headers=headers)
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["vary"] == "Accept-Encoding, Accept-Language"


def test_an_answer_to_a_request_without_an_id_carries_one_of_the_banks(kari: DeskClient) -> None:
    ids = [kari.get("/v1/accounts", headers={"X-Request-ID": None}).headers["x-request-id"] for _ in range(3)]
    assert len(set(ids)) == 3
    assert all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", one) for one in ids)
    assert kari.get("/v1/accounts", headers={"X-Request-ID": "mine"}).headers["x-request-id"] == "mine"


def test_lists_of_transactions_lead_back_to_their_account(kari: DeskClient) -> None:
    for family in ("accounts", "card-accounts"):
        [own, *_] = next(iter(ok(kari.get(f"/v1/{family}")).values()))
        listed = ok(kari.get(own["_links"]["transactions"]["href"]))
        shelves = listed["transactions" if family == "accounts" else "cardTransactions"]
        assert shelves["_links"]["account"] == own["_links"]["self"]
        if family == "card-accounts":
            assert all(len(entry["cardTransactionId"]) <= 35 for entry in shelves["booked"])


def opened(kari: DeskClient) -> Iterator[tuple[str, TppResponse]]:
    """The 201 of every operation that opens something, by its operationId."""
    domestic = "NorwegianDomesticCreditTransfers"
    yield f"createPayment{domestic}", kari.post(DOMESTIC, json=BODIES[DOMESTIC])
    path = kari.post(DOMESTIC, json=BODIES[DOMESTIC]).headers["location"]
    yield f"startAuthorisation{domestic}", kari.post(f"{path}/authorisations")
    approve(kari.service, path.rpartition("/")[2])
    kari.delete(path)
    yield f"startCancellationAuthorisation{domestic}", kari.post(f"{path}/cancellation-authorisations")
    ids = [kari.post(DOMESTIC, json=BODIES[DOMESTIC]).json()["paymentId"] for _ in range(2)]
    basket = kari.post("/v1/signing-baskets", json={"paymentIds": ids})
    yield "createSigningBasket", basket
    yield "startSigningBasketAuthorisation", kari.post(f"{basket.headers['location']}/authorisations")
    yield "createConsent", kari.post("/v1/consents")
    yield "createBankOfferedConsent", kari.post("/v1/bank-offered-consents")


def test_the_headers_of_an_answer_are_in_the_document(kari: DeskClient, service: BankService) -> None:
    document = published()
    described = {
        operation["operationId"]: {name.lower() for name in operation["responses"].get("201", {}).get("headers", ())}
        for path in document["paths"].values()
        for operation in path.values()
    }
    service.bank.change_settings({"notifications": True})
    service.bank.notify_hosts = (Host("tpp.example"),)
    kari.notification_uri = "https://tpp.example/notifications"
    for name, answer in opened(kari):
        assert answer.status == 201, (name, answer.body)
        sent = {
            header for header in map(str.lower, answer.headers) if header.startswith(("aspsp-", "location", "x-re"))
        }
        assert sent == described[name], name
