"""The gates of the pipeline (requests.md#order-of-checks): the first that fails answers, and reports all it found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from emulator.api.messages import Request
from emulator.api.service import BankService
from emulator.bank.bank import Bank
from emulator.bank.kinds import CONSENT
from emulator.ca import CertificateAuthority
from emulator.client.clients import Prepared, Tpp
from tests.api.control_desk import ControlDesk
from tests.api.desk import BASE, DeskClient, approve, messages, ok
from tests.known_state import DOMESTIC, EVEN, KARI, SEPA, SIRI
from tests.known_state import PAYMENT as DOMESTIC_BODY

UNKNOWN = "00000000-0000-0000-0000-000000000001"
BODY = {
    "instructedAmount": {"amount": "12.50", "currency": "EUR"},
    "creditorName": "Librairie Exemple",
    "creditorAccount": {"iban": "FR8199999000010123456789A00", "currency": "EUR"},
    "debtorAccount": {"iban": "NO8599901000014", "currency": "NOK"},
}


def documents(bank: Bank) -> dict[str, Any]:
    return bank.documents.dump()


def test_an_unsigned_request_to_nowhere_is_not_found_before_it_is_unsigned(tpp: DeskClient) -> None:
    answer = tpp.get("/v1/nowhere", headers={"Signature": None})
    assert (answer.status, messages(answer)) == (404, [("NOT_FOUND", None)])


def test_a_wrong_method_names_the_right_ones(tpp: DeskClient) -> None:
    answer = tpp.request("PATCH", "/v1/accounts")
    allowed = "GET, HEAD, OPTIONS"
    assert (answer.status, messages(answer), answer.headers["allow"]) == (405, [("BAD_REQUEST", None)], allowed)


def test_head_is_answered_and_logged_as_get_is(tpp: DeskClient, service: BankService) -> None:
    get, head = tpp.get("/v1/accounts"), tpp.request("HEAD", "/v1/accounts")
    assert (get.status, head.status) == (401, 401)
    assert next(service.log.newest()).operation == "getAccounts"
    assert tpp.request("HEAD", "/v1/consents").status == 405


def test_options_names_the_methods_of_an_address_to_anybody(service: BankService) -> None:
    answer = service.handle(Request("OPTIONS", "/v1/consents", base=BASE))
    assert (answer.status, answer.body) == (204, b"")
    assert ("Allow", "OPTIONS, POST") in answer.headers
    assert service.handle(Request("OPTIONS", "/v1/nowhere", base=BASE)).status == 404


def test_the_signature_comes_before_the_headers(tpp: DeskClient) -> None:
    answer = tpp.get("/v1/accounts", headers={"Signature": None, "x-accept-fix": None})
    assert (answer.status, messages(answer)) == (400, [("HTTP_HEADER_REQUIRED", "Signature")])


def test_the_role_comes_before_the_headers(service: BankService, authority: CertificateAuthority) -> None:
    authority.find("only-pisp") or authority.issue("only-pisp", roles=["PISP"])
    pisp = DeskClient(service, authority, name="only-pisp")
    answer = pisp.get("/v1/accounts", headers={"x-accept-fix": None})
    assert (answer.status, messages(answer)) == (403, [("FORBIDDEN", None)])


def test_all_missing_headers_are_reported_at_once(tpp: DeskClient) -> None:
    answer = tpp.post(SEPA, json=BODY, headers={"x-accept-fix": None, "TPP-Session-ID": None, "PSU-IP-Address": "no"})
    assert answer.status == 400
    assert messages(answer) == [
        ("HTTP_HEADER_REQUIRED", "x-accept-fix"),
        ("HTTP_HEADER_REQUIRED", "TPP-Session-ID"),
        ("HTTP_HEADER_REQUIRED", "PSU-ID"),
        ("FORMAT_ERROR", "PSU-IP-Address"),
    ]


def test_the_query_comes_before_the_body(tpp: DeskClient) -> None:
    tpp.log_in(KARI)
    answer = tpp.post(f"{SEPA}?allowLogicalDuplicate=maybe", json={})
    assert messages(answer) == [("FORMAT_ERROR", "allowLogicalDuplicate")]


def test_the_body_comes_before_the_customer(tpp: DeskClient) -> None:
    tpp.psu_id = "00000000-0000-4000-8000-000000000000"
    assert messages(tpp.post(SEPA, json={}))[0][0] == "FORMAT_ERROR"
    answer = tpp.post(SEPA, json=BODY)
    assert (answer.status, messages(answer)) == (401, [("PSU_CREDENTIALS_INVALID", "PSU-ID")])
    assert answer.sca_redirect is not None


def test_answers_are_compact_json_in_utf_8(tpp: DeskClient) -> None:
    answer = tpp.log_in(KARI).get("/v1/accounts")
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert b'": ' not in answer.body
    assert b'", "' not in answer.body


def test_an_accept_that_excludes_json_is_refused_among_the_headers(tpp: DeskClient) -> None:
    html = {"Accept": "text/html"}
    answer = tpp.get("/v1/accounts", headers=html)
    assert (answer.status, messages(answer)) == (406, [("BAD_REQUEST", "Accept")])
    assert tpp.get("/v1/nowhere", headers=html).status == 404
    unsigned = tpp.get("/v1/accounts", headers={**html, "Signature": None})
    assert messages(unsigned) == [("HTTP_HEADER_REQUIRED", "Signature")]
    malformed = tpp.get("/v1/accounts", headers={**html, "PSU-IP-Port": "x"})
    assert (malformed.status, messages(malformed)) == (
        400,
        [("FORMAT_ERROR", "PSU-IP-Port"), ("BAD_REQUEST", "Accept")],
    )


def test_a_repeat_for_another_person_is_another_request(tpp: DeskClient) -> None:
    tpp.psu_id = None
    first = tpp.post(SEPA, json=BODY, headers={"X-Request-ID": "again", "X-PSU-IDENTITY": KARI})
    again = tpp.post(SEPA, json=BODY, headers={"X-Request-ID": "again", "X-PSU-IDENTITY": KARI})
    assert (first.status, again.body) == (201, first.body)
    other = tpp.post(SEPA, json=BODY, headers={"X-Request-ID": "again", "X-PSU-IDENTITY": EVEN})
    assert (other.status, messages(other)) == (409, [("CONFLICT", "X-Request-ID")])


class Capitals(DeskClient):
    """A TPP whose system writes UUIDs in capitals, as iOS and SQL Server do."""

    def prepare(self, method: str, path: str, **options: Any) -> Prepared:
        ids = {"X-Request-ID": str(uuid4()), "PSU-ID": self.psu_id, "PSU-Corporate-ID": self.psu_corporate_id}
        headers = {**ids, **(options.pop("headers", None) or {})}
        capitals = {name: headers[name].upper() if name in ids and headers[name] else headers[name] for name in headers}
        return super().prepare(method, path, headers=capitals, **options)


def test_ids_in_capitals_are_the_same_ids(
    service: BankService, authority: CertificateAuthority, desk: ControlDesk
) -> None:
    """For access, repeats, rules, counts, the request log and the report; the answer has the id as it was sent."""
    tpp = Capitals(service, authority)
    redirect = approve(service, ok(tpp.post("/v1/consents"), 201)["_links"]["scaRedirect"]["href"], national_id=SIRI)
    tpp.psu_id, tpp.session_id = redirect["psu-id"], redirect["tpp-session-id"]
    tpp.psu_corporate_id, tpp.psu_context = redirect["psu-corporate-id"], redirect["context"]
    stated: list[dict[str, Any]] = [
        {"psu": tpp.psu_id.upper()},
        {"psu": {"in": [tpp.psu_id.upper()]}},
        {"psu": f"{tpp.psu_id.upper()[:9]}*"},
        {"psu": tpp.psu_id},
        {"headers": {"PSU-Corporate-ID": tpp.psu_corporate_id.upper()}},
    ]
    for when in stated:
        for unsigned in (True, False):
            rule = {"name": "ids", "when": when, "unsigned": unsigned, "then": {"delay": "0s"}}
            desk.do("POST", "/rules", rule)
            ok(tpp.get("/v1/accounts"))
            assert desk.get("/rules")["counts"][0]["matched"] == 1, rule
            desk.do("DELETE", "/rules")
        assert desk.do("POST", "/requests/count", {"match": when})["count"] > 0
    account = ok(tpp.get("/v1/accounts"))["accounts"][0]
    ok(tpp.get(f"/v1/accounts/{account['resourceId']}/balances"))
    body = {**DOMESTIC_BODY, "debtorAccount": {"bban": account["bban"], "currency": "NOK"}}
    again = str(uuid4())
    paid = tpp.post(DOMESTIC, json=body, headers={"X-Request-ID": again})
    assert (paid.status, paid.headers["x-request-id"]) == (201, again.upper())
    lower = DeskClient(service, authority)
    lower.use_session(
        {
            "psuId": tpp.psu_id,
            "tppSessionId": tpp.session_id,
            "psuCorporateId": tpp.psu_corporate_id,
            "context": "CORPORATE",
        }
    )
    repeated = lower.post(DOMESTIC, json=body, headers={"X-Request-ID": again})
    assert (repeated.body, repeated.headers["x-request-id"]) == (paid.body, again)
    newest = next(service.log.newest()).detail()
    assert dict(newest["request"]["headers"])["PSU-ID"] == tpp.psu_id
    verdicts = {row["check"]: row["verdict"] for row in desk.get("/conformance")["checks"]}
    assert (verdicts["takes-psu-id-and-session"], verdicts["keeps-the-corporate-id"]) == ("pass", "pass")


@pytest.mark.parametrize("path", ["/v1/consents", "/v1/bank-offered-consents"])
def test_a_consent_asked_for_with_a_psu_id_of_nobody_is_refused_and_its_redirect_still_gives_one(
    tpp: DeskClient, service: BankService, path: str
) -> None:
    tpp.psu_id = "5f0f3b0e-8a53-4c2f-9d0e-6a1f7c2b9e41"
    refused = tpp.post(path)
    assert (refused.status, messages(refused)) == (401, [("PSU_CREDENTIALS_INVALID", "PSU-ID")])
    redirect = approve(service, refused.json()["_links"]["scaRedirect"]["href"], national_id=KARI)
    tpp.psu_id, tpp.session_id = redirect["psu-id"], redirect["tpp-session-id"]
    assert tpp.get("/v1/accounts").status == 200


def test_who_asks_for_a_consent_names_context_and_agreement_as_who_reads_accounts(tpp: DeskClient) -> None:
    """A corporate user without PSU-Corporate-ID, and with an agreement that is not this customer's."""
    for headers, status, message in (
        ({"PSU-Corporate-ID": None}, 400, ("HTTP_HEADER_REQUIRED", "PSU-Corporate-ID")),
        ({"PSU-Corporate-ID": None, "PSU-Context": None}, 400, ("HTTP_HEADER_REQUIRED", "PSU-Corporate-ID")),
        ({"PSU-Context": "PRIVATE"}, 400, ("FORMAT_ERROR", "PSU-Corporate-ID")),
        (
            {"PSU-Corporate-ID": UNKNOWN},
            401,
            ("PSU_CREDENTIALS_INVALID", "PSU-Corporate-ID"),
        ),
    ):
        for path in ("/v1/consents", "/v1/bank-offered-consents"):
            tpp.log_in(SIRI)
            refused, read = tpp.post(path, headers=headers), tpp.get("/v1/accounts", headers=headers)
            assert (refused.status, messages(refused)) == (read.status, messages(read)) == (status, [message]), headers
            assert (refused.sca_redirect is not None) == (read.sca_redirect is not None) == (status == 401), headers
            assert tpp.post(path).status == 201, headers
            if headers.get("PSU-Context") != "PRIVATE":
                assert tpp.post(path, headers={**headers, "PSU-ID": None}).status == 201, headers


def test_context_and_agreement_at_odds_are_told_with_the_other_headers(tpp: DeskClient) -> None:
    for path in ("/v1/accounts/x/balances", "/v1/accounts?withBalance=x", "/v1/consents"):
        for context, agreement, code in (
            ("CORPORATE", None, "HTTP_HEADER_REQUIRED"),
            ("PRIVATE", UNKNOWN, "FORMAT_ERROR"),
        ):
            tpp.log_in(SIRI)
            acting = {"PSU-Context": context, "PSU-Corporate-ID": agreement}
            method = "POST" if path == "/v1/consents" else "GET"
            refused = tpp.request(method, path, headers={**acting, "x-accept-fix": None})
            missing = [("HTTP_HEADER_REQUIRED", "x-accept-fix"), (code, "PSU-Corporate-ID")]
            assert (refused.status, messages(refused)) == (400, missing), (path, context)


def test_the_agreements_are_listed_in_any_context(tpp: DeskClient) -> None:
    tpp.log_in(SIRI)
    for acting in ({"PSU-Context": "CORPORATE", "PSU-Corporate-ID": None}, {"PSU-Context": "PRIVATE"}):
        assert tpp.get("/v1/agreements", headers=acting).status == 200


@pytest.mark.parametrize("path", ["/v1/consents", "/v1/bank-offered-consents"])
def test_a_consent_is_asked_for_under_an_agreement_of_the_customers_own(
    service: BankService, tpp: DeskClient, path: str
) -> None:
    """Known from the private context, the customer chooses one of its agreements."""
    tpp.log_in(EVEN, context="PRIVATE")
    [agreement] = tpp.get("/v1/agreements").json()["agreements"]
    chosen = {"PSU-Corporate-ID": agreement["psuCorporateId"], "PSU-Context": "CORPORATE"}
    answer = tpp.post(path, headers=chosen)
    assert (answer.status, answer.sca_redirect is not None) == (201, True)
    assert approve(service, answer.json()["consentId"])["psu-corporate-id"] == agreement["psuCorporateId"]
    assert tpp.get("/v1/accounts", headers=chosen).status == 200


@pytest.mark.parametrize("path", ["/v1/consents", "/v1/bank-offered-consents"])
def test_a_consent_is_given_in_the_sca_that_its_answer_links_to(
    service: BankService, tpp: DeskClient, path: str
) -> None:
    answer = tpp.post(path, json={"access": {}}, headers={"X-Request-ID": "consent"}, digest=False)
    assert answer.status == 201
    assert answer.sca_redirect is not None
    assert tpp.post(path, json={"access": {}}, headers={"X-Request-ID": "consent"}, digest=False).body == answer.body
    redirect = approve(service, answer.json()["consentId"], national_id=KARI, accounts=["NO8599901000014"])
    assert service.bank.documents.exists(CONSENT, answer.json()["consentId"])
    tpp.psu_id, tpp.session_id = redirect["psu-id"], redirect["tpp-session-id"]
    accounts = tpp.get("/v1/accounts").json()["accounts"]
    assert [account["iban"] for account in accounts] == ["NO8599901000014"]
    assert tpp.get("/v1/card-accounts").json()["cardAccounts"] == []


@pytest.mark.parametrize("path", ["/v1/user", "/v1/users"])
def test_a_pisp_learns_who_the_psu_is_through_sca(
    service: BankService, authority: CertificateAuthority, path: str
) -> None:
    authority.find("only-pisp") or authority.issue("only-pisp", roles=["PISP"])
    pisp = DeskClient(service, authority, name="only-pisp")
    first = pisp.get(path)
    assert first.status == 401
    redirect = approve(service, first.sca_redirect or "", national_id=EVEN, context="PRIVATE")
    pisp.psu_id, pisp.session_id = redirect["psu-id"], redirect["tpp-session-id"]
    answer = pisp.get(path)
    assert answer.status == 200
    assert answer.json()["psuId"] == redirect["psu-id"]
    assert service.bank.documents.count(CONSENT) == 0


def test_the_user_is_told_in_full_once_its_psu_id_is_known_and_an_identity_number_is_none(tpp: DeskClient) -> None:
    tpp.log_in(SIRI)
    acting = {"psuCorporateId": tpp.psu_corporate_id, "context": "CORPORATE"}
    assert tpp.get("/v1/user").json() == {"psuId": tpp.psu_id, "name": "Siri Skisse", **acting}
    unknown = tpp.get("/v1/user", headers={"PSU-ID": None, "X-PSU-IDENTITY": SIRI})
    assert (unknown.status, messages(unknown)) == (401, [("SCA_NOT_FOUND", "PSU-ID")])


def test_an_agreement_of_a_firm_without_a_number_has_an_empty_one(tpp: DeskClient) -> None:
    assert tpp.post("/v1/sandbox/agreements", json={"owner": KARI, "name": "Nettbank"}).status == 201
    tpp.log_in(KARI, context="PRIVATE")
    [agreement] = tpp.get("/v1/agreements").json()["agreements"]
    assert (agreement["name"], agreement["organisationNumber"]) == ("Nettbank", "")


def test_choosing_another_agreement_starts_a_consent_flow_for_it(service: BankService, tpp: DeskClient) -> None:
    tpp.log_in(EVEN, context="PRIVATE")
    [agreement] = tpp.get("/v1/agreements").json()["agreements"]
    chosen = {"PSU-Corporate-ID": agreement["psuCorporateId"], "PSU-Context": "CORPORATE"}
    answer = tpp.get("/v1/accounts", headers=chosen)
    assert (answer.status, messages(answer)) == (401, [("PSU_CREDENTIALS_INVALID", "PSU-Corporate-ID")])
    redirect = approve(service, answer.sca_redirect or "", national_id=EVEN)
    assert redirect["psu-corporate-id"] == agreement["psuCorporateId"]
    assert tpp.get("/v1/accounts", headers=chosen).status == 200
    assert tpp.get("/v1/accounts", headers={"PSU-Context": "PRIVATE"}).status == 200


@pytest.mark.parametrize("request_id", ["blå", "a\tb", None])
def test_an_x_request_id_that_cannot_be_returned_is_replaced_by_one_of_the_banks(
    service: BankService, tpp: DeskClient, request_id: str | None
) -> None:
    service.bank.change_settings({"sign_responses": True})
    answer = tpp.get("/v1/sandbox/customers", headers={"X-Request-ID": request_id})
    assert (answer.status, answer.headers["x-request-id"] == request_id) == (400, False)
    assert 'headers="digest x-request-id date"' in answer.headers["signature"]


def test_the_prefix_of_production_clients_is_served_and_signed_as_sent(
    service: BankService, authority: CertificateAuthority, kari: DeskClient
) -> None:
    client = DeskClient(service, authority, prefix="/api-sandbox")
    client.psu_id, client.session_id = kari.psu_id, kari.session_id
    assert client.get("/v1/accounts").status == 200


@pytest.mark.inside
def test_a_request_through_a_proxy_is_signed_over_the_public_address(
    service: BankService, authority: CertificateAuthority
) -> None:
    """The proxy takes off the path that --public-url has in front of /v1."""
    public = "https://bank.example/psd2"
    sent = Tpp(public, DeskClient(service, authority).identity).prepare("GET", "/v1/sandbox/customers")
    arrived = Request("GET", sent.target.removeprefix("/psd2"), tuple(sent.headers.items()), base=public)
    assert service.handle(arrived).status == 200
    assert service.handle(replace(arrived, base="https://bank.example")).status == 400


def test_a_near_miss_of_an_address_gets_a_hint(tpp: DeskClient) -> None:
    for path, meant in (
        ("//v1/accounts", "/v1/accounts"),
        ("/v1//accounts", "/v1/accounts"),
        ("/v1/accounts/", "/v1/accounts"),
        ("/v1/account", "/v1/accounts"),
        ("/v1/Accounts", "/v1/accounts"),
        ("/accounts", "/v1/accounts"),
        ("/v1/v1/accounts", "/v1/accounts"),
        ("/http://127.0.0.1:8080/v1/accounts", "/v1/accounts"),
        ("/v1/accounts/7/transaction", "/v1/accounts/7/transactions"),
        ("/v1/payment/sepa-credit-transfers", "/v1/payments/sepa-credit-transfers"),
        ("/v1/signing-baskets/", "/v1/signing-baskets"),
        ("/v1/nowhere/at/all", None),
        ("/" + "v1/" * 90 + "accounts", None),
        ("/v1/accounts/%ff%00", None),
        ("/v1/account/%f", None),
    ):
        answer = tpp.get(path)
        [message] = answer.json()["tppMessages"]
        assert (answer.status, message["code"]) == (404, "NOT_FOUND"), path
        assert message["text"].partition("; did you mean ")[2] == (f"{meant}?" if meant else ""), path
        assert message["text"].endswith("the result must be UTF-8.") == ("%" in path), path


def test_an_unknown_product_is_404_whatever_the_method(tpp: DeskClient) -> None:
    for method in ("GET", "HEAD", "DELETE", "POST"):
        answer = tpp.request(method, "/v1/payments/sepa-credit-transfer")
        assert answer.status == 404, method
        if method != "HEAD":  # has no body over a connection
            assert messages(answer) == [("PRODUCT_UNKNOWN", "payment-product")], method
            assert "did you mean sepa-credit-transfers?" in answer.json()["tppMessages"][0]["text"], method
        if method != "POST":
            assert tpp.request(method, "/v1/payments/sepa-credit-transfers").status == 405, method
