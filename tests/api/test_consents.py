"""Consents as their TPP sees them: details, status, giving them back (CONTRACT 18)."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.api.service import BankService
from emulator.bank.customers import consents
from emulator.ca import CertificateAuthority
from tests.api.desk import DeskClient, advance, approve, messages, ok, reject
from tests.known_state import KARI

MAIN = "NO8599901000014"


@pytest.fixture
def asked(tpp: DeskClient) -> dict[str, Any]:
    """A consent that the customer has not given yet."""
    answer = tpp.post("/v1/consents")
    assert answer.headers["aspsp-sca-approach"] == "REDIRECT"
    body: dict[str, Any] = ok(answer, 201)
    return body


def status(client: DeskClient, consent: dict[str, Any]) -> str:
    shown: str = ok(client.get(f"/v1/consents/{consent['consentId']}/status"))["consentStatus"]
    assert ok(client.get(f"/v1/consents/{consent['consentId']}"))["consentStatus"] == shown
    return shown


def give(service: BankService, client: DeskClient, consent: dict[str, Any], **more: Any) -> None:
    redirect = approve(service, consent["_links"]["scaRedirect"]["href"], national_id=KARI, **more)
    client.psu_id, client.session_id, client.psu_context = redirect["psu-id"], redirect["tpp-session-id"], "PRIVATE"


def test_a_consent_is_received_valid_and_over_after_180_days(
    tpp: DeskClient, service: BankService, asked: dict[str, Any]
) -> None:
    assert status(tpp, asked) == "received"
    give(service, tpp, asked, accounts=[MAIN])
    assert status(tpp, asked) == "valid"
    shown = ok(tpp.get(f"/v1/consents/{asked['consentId']}"))
    assert [account["iban"] for account in shown["access"]["accounts"]] == [MAIN]
    assert (shown["validUntil"], shown["frequencyPerDay"], shown["recurringIndicator"]) == ("2026-08-29", 4, True)
    assert shown["_links"]["self"]["verbs"] == ["GET", "DELETE"]
    advance(service, days=180)
    assert status(tpp, asked) == "expired"


def test_a_consent_that_was_declined_or_never_given_is_not_received_any_more(
    tpp: DeskClient, service: BankService, asked: dict[str, Any]
) -> None:
    reject(service, asked["_links"]["scaRedirect"]["href"])
    assert status(tpp, asked) == "rejected"
    other = ok(tpp.post("/v1/consents"), 201)
    advance(service, minutes=11)
    assert status(tpp, other) == "expired"


def test_the_customer_and_the_tpp_may_end_it_and_it_is_said_who_did(
    tpp: DeskClient, service: BankService, asked: dict[str, Any]
) -> None:
    give(service, tpp, asked)
    assert tpp.get("/v1/accounts").status == 200
    ok(tpp.delete(f"/v1/consents/{asked['consentId']}"), 204)
    assert status(tpp, asked) == "terminatedByTpp"
    assert messages(tpp.get("/v1/accounts"))[0][0] == "CONSENT_UNKNOWN"
    ok(tpp.delete(f"/v1/consents/{asked['consentId']}"), 204)
    second = ok(tpp.post("/v1/consents"), 201)
    give(service, tpp, second)
    consents.revoke(service.bank, second["consentId"])
    assert status(tpp, second) == "revokedByPsu"


def test_a_consent_given_back_before_the_sca_cannot_be_given_any_more(
    tpp: DeskClient, service: BankService, asked: dict[str, Any]
) -> None:
    ok(tpp.delete(f"/v1/consents/{asked['consentId']}"), 204)
    assert status(tpp, asked) == "rejected"


def test_another_tpp_has_no_such_consent(
    tpp: DeskClient, service: BankService, authority: CertificateAuthority, asked: dict[str, Any]
) -> None:
    give(service, tpp, asked)
    other = DeskClient(service, authority, name="another-tpp")
    for path in ("", "/status"):
        answer = other.get(f"/v1/consents/{asked['consentId']}{path}")
        assert (answer.status, messages(answer)) == (404, [("RESOURCE_UNKNOWN", "consentId")])
    assert other.delete(f"/v1/consents/{asked['consentId']}").status == 404
    assert status(tpp, asked) == "valid"
