"""Consents as their TPP sees them: details, status, giving them back (consents.md)."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.api.service import BankService
from emulator.bank.customers import consents
from tests.api.control_desk import ControlDesk
from tests.api.desk import DeskClient, advance, approve, messages, ok, reject
from tests.known_state import DOMESTIC, EVEN, KARI, PAYMENT

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


@pytest.mark.parametrize("end", ["opened", "a system fails", "given back", "expired by hand"])
def test_a_consent_that_was_not_given_in_time_stays_expired(
    tpp: DeskClient, service: BankService, desk: ControlDesk, asked: dict[str, Any], end: str
) -> None:
    """Also if the customer opens its address then, on another day, a system fails meanwhile, or the TPP deletes it."""
    if end == "expired by hand":
        desk.do("POST", f"/sca/{asked['consentId']}/expire")
    else:
        advance(service, days=2)
    before = ok(tpp.get(f"/v1/consents/{asked['consentId']}"))
    assert before["consentStatus"] == "expired"
    controlled = desk.get("/sca")["sca"]
    assert [sca["status"] for sca in controlled] == ["expired"]
    if end == "opened":
        assert approve(service, asked["_links"]["scaRedirect"]["href"], national_id=KARI)["code"] == "SCA_EXPIRED"
    elif end == "a system fails":
        assert "code=SCA_EXPIRED" in desk.do("POST", f"/sca/{asked['consentId']}/fail")["redirect"]
    elif end == "given back":
        ok(tpp.delete(f"/v1/consents/{asked['consentId']}"), 204)
    assert ok(tpp.get(f"/v1/consents/{asked['consentId']}")) == before
    assert [sca["status"] for sca in desk.get("/sca")["sca"]] == ["expired"]


def test_an_account_that_another_customer_has_got_is_not_in_the_consent(
    tpp: DeskClient, service: BankService, desk: ControlDesk, asked: dict[str, Any]
) -> None:
    """For the TPP, and on the customer's own page, which would show it with the reads of the new owner."""
    give(service, tpp, asked, accounts=[MAIN, "NO6399901000022"])
    shown = ok(tpp.get(f"/v1/consents/{asked['consentId']}"))["access"]["accounts"]
    moved, remaining = desk.get(f"/people/{KARI}")["consents"][0]["accounts"]
    path = f"/v1/sandbox/accounts/{moved}"
    ok(tpp.put(path, json={**ok(tpp.get(path)), "customerNumber": EVEN}))
    assert ok(tpp.get(f"/v1/consents/{asked['consentId']}"))["access"]["accounts"] == shown[1:]
    assert desk.get(f"/people/{KARI}")["consents"][0]["accounts"] == [remaining]


def test_the_customer_and_the_tpp_may_end_it_and_it_is_said_who_did(
    tpp: DeskClient, service: BankService, desk: ControlDesk, asked: dict[str, Any]
) -> None:
    give(service, tpp, asked)
    assert tpp.get("/v1/accounts").status == 200
    ok(tpp.delete(f"/v1/consents/{asked['consentId']}"), 204)
    assert status(tpp, asked) == "terminatedByTpp"
    (message,) = ok(tpp.get("/v1/accounts"), 401)["tppMessages"]
    assert (message["code"], message["text"]) == ("CONSENT_UNKNOWN", "The TPP has deleted the consent.")
    ok(tpp.delete(f"/v1/consents/{asked['consentId']}"), 204)
    second = ok(tpp.post("/v1/consents"), 201)
    give(service, tpp, second)
    desk.do("POST", f"/consents/{second['consentId']}/revoke")
    assert status(tpp, second) == "revokedByPsu"
    (message,) = ok(tpp.get("/v1/accounts"), 401)["tppMessages"]
    assert (message["code"], message["text"]) == ("CONSENT_UNKNOWN", "The customer has revoked the consent.")
    assert [consent["status"] for consent in desk.get("/consents")["consents"]] == ["revoked", "terminated"]


def test_a_consent_given_back_before_the_sca_cannot_be_given_any_more(
    tpp: DeskClient, service: BankService, asked: dict[str, Any]
) -> None:
    ok(tpp.delete(f"/v1/consents/{asked['consentId']}"), 204)
    assert status(tpp, asked) == "rejected"


@pytest.mark.parametrize("method, path", [("GET", ""), ("GET", "/status"), ("DELETE", "")])
def test_with_a_psu_id_it_is_that_customers_consent_or_none(
    tpp: DeskClient, service: BankService, asked: dict[str, Any], method: str, path: str
) -> None:
    give(service, tpp, asked)
    kari, address = tpp.psu_id, f"/v1/consents/{asked['consentId']}{path}"
    tpp.psu_id = "0d7b6a4c-6f25-4e5e-9f0e-3f2a1b7c9d10"
    answer = tpp.request(method, address)
    assert (answer.status, messages(answer)) == (401, [("PSU_CREDENTIALS_INVALID", "PSU-ID")])
    assert "scaRedirect" in answer.json()["_links"]
    even = ok(tpp.post("/v1/consents", headers={"PSU-ID": None}), 201)
    tpp.psu_id = approve(service, even["_links"]["scaRedirect"]["href"], national_id=EVEN)["psu-id"]
    answer = tpp.request(method, address)
    assert (answer.status, messages(answer)) == (404, [("RESOURCE_UNKNOWN", "consentId")])
    tpp.psu_id = kari
    answer = tpp.request(method, address, headers={"PSU-Context": "CORPORATE"})
    assert (answer.status, messages(answer)) == (400, [("HTTP_HEADER_REQUIRED", "PSU-Corporate-ID")])
    assert status(tpp, asked) == "valid"
    assert tpp.request(method, address).status == (204 if method == "DELETE" else 200)


def test_a_consent_that_was_asked_for_one_customer_is_not_another_ones(tpp: DeskClient, service: BankService) -> None:
    first = ok(tpp.post("/v1/consents"), 201)
    give(service, tpp, first)
    kari, second = tpp.psu_id, ok(tpp.post("/v1/consents"), 201)
    even = ok(tpp.post("/v1/consents", headers={"PSU-ID": None}), 201)
    tpp.psu_id = approve(service, even["_links"]["scaRedirect"]["href"], national_id=EVEN)["psu-id"]
    assert messages(tpp.get(f"/v1/consents/{second['consentId']}/status")) == [("RESOURCE_UNKNOWN", "consentId")]
    assert tpp.delete(f"/v1/consents/{second['consentId']}").status == 404
    tpp.psu_id = kari
    assert status(tpp, second) == "received"


def test_what_has_ended_does_not_change_any_more(
    kari: DeskClient, service: BankService, desk: ControlDesk, asked: dict[str, Any]
) -> None:
    """Consents that were replaced, given back, declined, never given or are too old; payments, baskets, SCAs."""
    replaced, unopened, declined = asked, ok(kari.post("/v1/consents"), 201), ok(kari.post("/v1/consents"), 201)
    give(service, kari, replaced)
    given_back, withdrawn = ok(kari.post("/v1/consents"), 201), ok(kari.post("/v1/consents"), 201)
    give(service, kari, withdrawn)
    ok(kari.get("/v1/accounts"))
    desk.do("POST", f"/consents/{withdrawn['consentId']}/revoke")
    give(service, kari, given_back)
    ok(kari.delete(f"/v1/consents/{given_back['consentId']}"), 204)
    reject(service, declined["_links"]["scaRedirect"]["href"])
    booked, unsigned, no = (ok(kari.post(DOMESTIC, json=PAYMENT), 201) for _ in range(3))
    approve(service, booked["_links"]["scaRedirect"]["href"], national_id=KARI)
    reject(service, no["_links"]["scaRedirect"]["href"])
    basket = ok(kari.post("/v1/signing-baskets", json={"paymentIds": [unsigned["paymentId"]]}), 201)
    started = ok(kari.post(f"{DOMESTIC}/{unsigned['paymentId']}/authorisations"), 201)
    advance(service, days=2)

    def shown() -> dict[str, Any]:
        ended = [replaced, unopened, declined, given_back, withdrawn]
        paths = [f"/v1/consents/{one['consentId']}" for one in ended]
        for one in (booked, unsigned, no):
            paths += [f"{DOMESTIC}/{one['paymentId']}", f"{DOMESTIC}/{one['paymentId']}/status"]
        paths += [f"/v1/signing-baskets/{basket['basketId']}", started["_links"]["scaStatus"]["href"]]
        controlled = {path: desk.get(path) for path in ("/consents", "/payments", "/sca")}
        return {path: ok(kari.get(path)) for path in paths} | controlled

    first = shown()
    states = [first[f"/v1/consents/{one['consentId']}"]["consentStatus"] for one in (replaced, declined, withdrawn)]
    assert states == ["expired", "rejected", "revokedByPsu"]
    for days in (1, 200):
        advance(service, days=days)
        assert shown() == first
    for one in (replaced, given_back, withdrawn):
        desk.do("POST", f"/consents/{one['consentId']}/revoke")
        ok(kari.delete(f"/v1/consents/{one['consentId']}"), 204)
    assert shown() == first


def test_the_last_use_is_stored_with_the_answer_and_a_refused_request_changes_nothing(
    kari: DeskClient, service: BankService, desk: ControlDesk
) -> None:
    account = ok(kari.get("/v1/accounts"))["accounts"][0]["resourceId"]
    advance(service, days=1)
    kari.log_in(KARI)

    def refused(status: int, path: str, **headers: str) -> None:
        before = desk.get("/state")
        assert kari.get(path, headers=headers).status == status
        assert desk.get("/state") == before, f"{status} {path}"

    refused(404, "/v1/accounts/0e0e0e0e-0000-4000-8000-000000000000")
    refused(404, f"/v1/accounts/{account}/transactions/0e0e0e0e-0000-4000-8000-000000000000")
    refused(400, f"/v1/accounts/{account}/transactions?limit=0")
    ok(kari.get("/v1/accounts"))
    assert [one.get("lastUse") for one in desk.get("/state")["consent"]] == ["2026-03-02", "2026-03-03"]
    for _ in range(4):
        ok(kari.get(f"/v1/accounts/{account}/balances", headers={"PSU-IP-Address": None}))
    advance(service, minutes=1)
    before = desk.get("/state")
    assert kari.get(f"/v1/accounts/{account}/balances", headers={"PSU-IP-Address": None}).status == 429
    assert desk.get("/state") == before


def test_a_revoked_consent_stays_revoked_while_it_is_stored_and_is_unknown_then(
    kari: DeskClient, service: BankService, desk: ControlDesk, asked: dict[str, Any]
) -> None:
    give(service, kari, asked)
    desk.do("POST", f"/consents/{asked['consentId']}/revoke")
    for _ in range(consents.ENDED_KEPT):
        kari.log_in(KARI)
        assert status(kari, asked) == "revokedByPsu"
    kari.log_in(KARI)
    answer = kari.get(f"/v1/consents/{asked['consentId']}")
    assert (answer.status, messages(answer)) == (404, [("RESOURCE_UNKNOWN", "consentId")])
