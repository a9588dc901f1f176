"""Payments through the pipeline: answers, links and statuses (payments.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emulator.api.description import examples
from emulator.assemble.registry import BankRegistry
from emulator.bank.kinds import BASKET
from emulator.bank.payment import baskets
from emulator.ca import CertificateAuthority
from tests.api.control_desk import ControlDesk
from tests.api.desk import BASE, NOW, DeskClient, advance, approve, messages, reject
from tests.known_state import BULK, CROSS_BORDER, DOMESTIC, EVEN, KARI, PERIODIC, SEPA, STRAKS
from tests.unit.payments.world import bulk, domestic, sepa

STANDING: dict[str, Any] = {"frequency": "Monthly", "startDate": "2026-03-10"}
BODIES = {
    **{
        "/v1/{}/{}".format(*examples.product_of(title)): body
        for title, body in examples.bodies(NOW.date())["createPayment"].items()
    },
    STRAKS: domestic(),
    DOMESTIC: domestic(),
    SEPA: sepa(debtorAccount={"iban": "NO8599901000014", "currency": "NOK"}),
    CROSS_BORDER: sepa(debtorAccount={"iban": "NO8599901000014", "currency": "NOK"}),
    PERIODIC: domestic(**STANDING),
    BULK: bulk("1.00", "2.00"),
}


def created(client: DeskClient, path: str, body: dict[str, Any], **options: Any) -> dict[str, Any]:
    answer = client.post(path, json=body, **options)
    assert answer.status == 201, answer.json()
    content: dict[str, Any] = answer.json()
    return content


def in_status(client: DeskClient, path: str, payment_id: str) -> str:
    return str(client.get(f"{path}/{payment_id}/status").json()["transactionStatus"])


def authorised(client: DeskClient, path: str, body: dict[str, Any]) -> str:
    payment_id = str(created(client, path, body)["paymentId"])
    assert "psu-id" in approve(client.service, payment_id)
    return payment_id


def own(path: str, payment_id: str, *verbs: str) -> dict[str, Any]:
    return {"href": f"{path}/{payment_id}", "verbs": list(verbs)}


# creation


def test_a_created_payment_answers_with_its_id_status_and_links(kari: DeskClient) -> None:
    for path in BODIES:
        answer = kari.post(path, json=BODIES[path])
        body = answer.json()
        payment_id, links = body["paymentId"], body["_links"]
        assert (answer.status, body["transactionStatus"]) == (201, "RCVD"), path
        redirect = links.pop("scaRedirect")
        assert redirect["verbs"] == ["GET"], path
        assert redirect["href"].startswith(f"{BASE}/sca/"), path
        assert links == {
            "self": own(path, payment_id, "GET", "DELETE"),
            "status": {"href": f"{path}/{payment_id}/status", "verbs": ["GET"]},
            "startAuthorisation": {"href": f"{path}/{payment_id}/authorisations", "verbs": ["POST"]},
        }, path
        assert answer.headers["Location"] == f"{path}/{payment_id}", path


def test_the_body_is_read_in_the_charset_that_its_type_names(kari: DeskClient) -> None:
    for content_type, name in (
        (None, "Frå"),
        ("application/json", "Frå"),
        ("application/json;charset=UTF-8", "Frå"),
        ('Application/JSON; charset="utf-8"', "Frå"),
        ("application/json; charset=iso-8859-1", "FrÃ¥"),
    ):
        body = json.dumps({**BODIES[SEPA], "creditorName": "Frå"}, ensure_ascii=False).encode()
        answer = kari.post(SEPA, body=body, headers={"Content-Type": content_type})
        assert answer.status == 201, answer.text
        assert kari.get(f"{SEPA}/{answer.json()['paymentId']}").json()["creditorName"] == name, content_type


@pytest.mark.inside
def test_location_keeps_the_path_of_the_public_address(kari: DeskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.api.desk.BASE", "https://bank.example/psd2")
    answer = kari.post(SEPA, json=BODIES[SEPA])
    assert answer.headers["Location"] == f"/psd2{SEPA}/{answer.json()['paymentId']}"
    assert answer.json()["_links"]["self"]["href"] == f"{SEPA}/{answer.json()['paymentId']}"


def test_location_leads_back_to_the_bank_that_was_asked(
    registry: BankRegistry, authority: CertificateAuthority
) -> None:
    """A relative Location without the prefix would be resolved to the default bank."""
    registry.make("other")
    other = registry.find("other")
    assert other is not None
    other.bank.change_settings({"links": "relative"})
    client = DeskClient(other, authority, prefix="/banks/other").log_in(KARI)
    path, body = SEPA, BODIES[SEPA]
    answer = client.post(path, json=body)
    assert answer.headers["Location"] == f"/banks/other{path}/{answer.json()['paymentId']}"
    assert client.get(answer.json()["_links"]["self"]["href"]).status == 200
    basket = client.post("/v1/signing-baskets", json={"paymentIds": [answer.json()["paymentId"]]})
    assert basket.headers["Location"] == f"/banks/other/v1/signing-baskets/{basket.json()['basketId']}"
    for consents in ("consents", "bank-offered-consents"):
        consent = client.post(f"/v1/{consents}")
        assert consent.headers["Location"] == f"/banks/other/v1/consents/{consent.json()['consentId']}"
    other.bank.change_settings({"links": "absolute"})
    again = client.post(path, json=body)
    assert again.headers["Location"] == again.json()["_links"]["self"]["href"]


def test_the_answer_tells_fee_and_warnings(kari: DeskClient) -> None:
    abroad = created(kari, SEPA, {**BODIES[SEPA], "colour": "blue"})
    assert abroad["transactionFees"] == {"amount": "25.00", "currency": "NOK"}
    assert abroad["transactionFeeIndicator"] is True
    assert [(message["category"], message["path"]) for message in abroad["tppMessages"]] == [("WARNING", "colour")]
    free = created(kari, STRAKS, domestic())
    assert {"transactionFees", "transactionFeeIndicator", "tppMessages", "psuMessage"}.isdisjoint(free)
    structured = created(kari, STRAKS, domestic(remittanceInformationStructured={"reference": "18"}))
    (message,) = structured["tppMessages"]
    assert (message["category"], message["path"]) == ("WARNING", "remittanceInformationStructured")


def test_the_name_check_stands_in_the_answer_the_details_and_on_the_customers_page(kari: DeskClient) -> None:
    to_even = domestic(to="99901100019", creditorName="Even Exempel")
    plain = created(kari, STRAKS, to_even)
    assert set(plain) == {"paymentId", "transactionStatus", "_links"}
    kari.service.bank.change_settings({"payee_check": "warn"})
    close = {"partyNameMatch": "CMTC", "matchedName": "Even Eksempel"}
    answer = kari.post(STRAKS, json=to_even)
    assert (answer.status, answer.json()["payeeVerification"]) == (201, close)
    assert messages(answer) == [("PAYMENT_FAILED", "creditorName")]
    payment_id = answer.json()["paymentId"]
    assert kari.get(f"{STRAKS}/{payment_id}").json()["payeeVerification"] == close
    assert "payeeVerification" not in kari.get(f"{STRAKS}/{payment_id}/status").json()
    basket = kari.post("/v1/signing-baskets", json={"paymentIds": [plain["paymentId"], payment_id]}).json()
    bank = kari.service.bank
    shown = [one.get("payee") for one in baskets.summary(bank, bank.find(BASKET, basket["basketId"]))]
    assert shown == [None, "CMTC"]
    assert "payeeVerification" not in kari.get(f"{STRAKS}/{plain['paymentId']}").json()


def test_a_logical_duplicate_is_409_when_it_is_not_allowed(kari: DeskClient) -> None:
    created(kari, STRAKS, domestic())
    created(kari, STRAKS, domestic())
    answer = kari.post(f"{STRAKS}?allowLogicalDuplicate=false", json=domestic())
    assert (answer.status, messages(answer)) == (409, [("CONFLICT", "allowLogicalDuplicate")])
    created(kari, f"{STRAKS}?allowLogicalDuplicate=true", domestic())
    assert kari.post(f"{STRAKS}?allowLogicalDuplicate=perhaps", json=domestic()).status == 400


# status and details


def test_the_debtor_of_a_payment_stays_the_same_when_the_account_has_another_owner_or_none(kari: DeskClient) -> None:
    path = f"{DOMESTIC}/{created(kari, DOMESTIC, domestic())['paymentId']}"
    account = f"/v1/sandbox/accounts/{kari.get('/v1/accounts').json()['accounts'][0]['resourceId']}"
    changed = {**kari.get(account).json(), "customerNumber": EVEN}
    for answer in (kari.put(account, json=changed), kari.delete(account)):
        assert answer.status in (200, 204)
        assert kari.get(path).json()["debtorName"] == "Kari Kladd"


def test_links_go_as_the_payment_goes_on(kari: DeskClient) -> None:
    payment_id = created(kari, STRAKS, domestic())["paymentId"]
    path = f"{STRAKS}/{payment_id}/status"
    assert set(kari.get(path).json()["_links"]) == {"self", "status", "startAuthorisation", "scaRedirect"}
    approve(kari.service, payment_id)
    status = {"href": path, "verbs": ["GET"]}
    assert kari.get(path).json() == {
        "paymentId": payment_id,
        "transactionStatus": "ACTC",
        "fundsAvailable": True,
        "_links": {"self": own(STRAKS, payment_id, "GET", "DELETE"), "status": status},
    }
    advance(kari.service, seconds=3)
    assert kari.get(path).json() == {
        "paymentId": payment_id,
        "transactionStatus": "ACSC",
        "fundsAvailable": True,
        "_links": {"self": own(STRAKS, payment_id, "GET"), "status": status},
    }


def test_the_known_issue_hides_a_domestic_payment_until_it_is_approved(kari: DeskClient) -> None:
    kari.service.bank.change_settings({"known_issues": True})
    payment_id = created(kari, DOMESTIC, domestic())["paymentId"]
    for path in (f"{DOMESTIC}/{payment_id}", f"{DOMESTIC}/{payment_id}/status"):
        answer = kari.get(path)
        assert (answer.status, messages(answer)) == (404, [("RESOURCE_UNKNOWN", "paymentId")])
    approve(kari.service, payment_id)
    assert in_status(kari, DOMESTIC, payment_id) == "ACTC"
    straks_id = created(kari, STRAKS, domestic())["paymentId"]
    assert in_status(kari, STRAKS, straks_id) == "RCVD"


def test_a_rejected_payment_says_why(kari: DeskClient) -> None:
    payment_id = created(kari, STRAKS, domestic())["paymentId"]
    redirect = reject(kari.service, payment_id)
    assert (redirect["status"], redirect["code"]) == ("401", "SCA_INVALID")
    body = kari.get(f"{STRAKS}/{payment_id}/status").json()
    assert (body["transactionStatus"], bool(body["psuMessage"])) == ("RJCT", True)


@pytest.mark.parametrize(
    ("language", "message"), [("nb-NO", "Du avviste betalingen."), ("en", "The payment was declined.")]
)
def test_the_text_for_the_customer_is_in_the_language_of_the_answer(
    kari: DeskClient, language: str, message: str
) -> None:
    payment_id = created(kari, STRAKS, domestic())["paymentId"]
    reject(kari.service, payment_id)
    for path in (f"{STRAKS}/{payment_id}", f"{STRAKS}/{payment_id}/status"):
        answer = kari.get(path, headers={"Accept-Language": language})
        assert (answer.headers["Content-Language"], answer.json()["psuMessage"]) == (language[:2], message)


# whose payment


def test_a_payment_needs_no_live_session_but_always_its_own_sca(kari: DeskClient) -> None:
    advance(kari.service, hours=2)
    first, second = (created(kari, STRAKS, domestic()) for _ in range(2))
    assert first["_links"]["scaRedirect"] != second["_links"]["scaRedirect"]
    approve(kari.service, first["_links"]["scaRedirect"]["href"])
    assert in_status(kari, STRAKS, first["paymentId"]) == "ACTC"
    assert in_status(kari, STRAKS, second["paymentId"]) == "RCVD"


# authorisations and DELETE


def test_an_explicit_authorisation_tells_its_sca_status(kari: DeskClient) -> None:
    payment_id = created(kari, STRAKS, domestic())["paymentId"]
    answer = kari.post(f"{STRAKS}/{payment_id}/authorisations")
    body = answer.json()
    address = f"{STRAKS}/{payment_id}/authorisations/{body['authorisationId']}"
    assert (answer.status, body["scaStatus"]) == (201, "started")
    assert body["_links"]["scaStatus"] == {"href": address, "verbs": ["GET"]}
    assert kari.get(address).json() == {"scaStatus": "started"}
    approve(kari.service, body["_links"]["scaRedirect"]["href"])
    assert kari.get(address).json() == {"scaStatus": "finalised"}
    assert in_status(kari, STRAKS, payment_id) == "ACTC"
    again = kari.post(f"{STRAKS}/{payment_id}/authorisations")
    assert (again.status, messages(again)) == (409, [("CONFLICT", None)])
    unknown = kari.get(f"{STRAKS}/{payment_id}/authorisations/x")
    assert (unknown.status, messages(unknown)) == (404, [("RESOURCE_UNKNOWN", "authorisationId")])


def test_an_authorisation_that_was_declined_or_is_too_old_has_failed(kari: DeskClient) -> None:
    payment_id = created(kari, STRAKS, domestic())["paymentId"]
    late = kari.post(f"{STRAKS}/{payment_id}/authorisations").json()
    advance(kari.service, minutes=11)
    declined = kari.post(f"{STRAKS}/{payment_id}/authorisations").json()
    reject(kari.service, declined["_links"]["scaRedirect"]["href"])
    for started in (late, declined):
        address = f"{STRAKS}/{payment_id}/authorisations/{started['authorisationId']}"
        assert kari.get(address).json() == {"scaStatus": "failed"}


@pytest.mark.parametrize("later", ["opened", "a system fails", "deleted", "a day", "in a basket"])
def test_an_sca_that_is_over_keeps_its_status_and_its_end(kari: DeskClient, desk: ControlDesk, later: str) -> None:
    """Whatever happens afterwards to the payment that it was for: it ended when its time was over."""
    payment = created(kari, DOMESTIC, domestic())
    link = payment["_links"]["scaRedirect"]["href"]
    advance(kari.service, minutes=15)
    before = desk.get(f"/sca/{link.rpartition('/')[2]}")
    assert (before["status"], before["ended"]) == ("expired", before["expires"])
    if later == "opened":
        assert approve(kari.service, link, national_id=KARI)["code"] == "SCA_EXPIRED"
    elif later == "a system fails":
        desk.do("POST", f"/sca/{payment['paymentId']}/fail")
    elif later == "deleted":
        assert kari.delete(f"{DOMESTIC}/{payment['paymentId']}").status == 204
    elif later == "a day":
        advance(kari.service, days=1)
        assert in_status(kari, DOMESTIC, payment["paymentId"]) == "RJCT"
    else:
        basket = created(kari, "/v1/signing-baskets", {"paymentIds": [payment["paymentId"]]})
        assert "psu-id" in approve(kari.service, basket["basketId"])
    after = desk.get(f"/sca/{link.rpartition('/')[2]}")
    after.pop("redirect", None)
    assert after == before


@pytest.mark.parametrize("over", ["another person", "too late", "a system fails"])
def test_a_link_to_an_sca_is_there_while_it_can_be_used(kari: DeskClient, desk: ControlDesk, over: str) -> None:
    """Of a payment and of a basket, in details and status; startAuthorisation stays."""
    signable = [created(kari, STRAKS, domestic())]
    signable.append(created(kari, "/v1/signing-baskets", {"paymentIds": [signable[0]["paymentId"]]}))
    addresses = [one["_links"][name]["href"] for one in signable for name in ("self", "status")]
    if over == "too late":
        advance(kari.service, minutes=10)  # who follows the link now is sent back with SCA_EXPIRED
    assert all("scaRedirect" in kari.get(address).json()["_links"] for address in addresses)
    for one in signable:
        if over == "a system fails":
            desk.do("POST", f"/sca/{one.get('basketId') or one['paymentId']}/fail")
        else:
            redirect = approve(kari.service, one["_links"]["scaRedirect"]["href"], national_id=EVEN)
            assert redirect["code"] == ("SCA_EXPIRED" if over == "too late" else "PSU_CREDENTIALS_INVALID")
    for address in addresses:
        body = kari.get(address).json()
        assert (body["transactionStatus"], set(body["_links"])) == ("RCVD", {"self", "status", "startAuthorisation"})
    for one in signable:
        link = kari.post(one["_links"]["startAuthorisation"]["href"]).json()["_links"]["scaRedirect"]
        assert kari.get(one["_links"]["status"]["href"]).json()["_links"]["scaRedirect"] == link


def test_an_earlier_sca_that_fails_leaves_the_link_to_the_later_one(kari: DeskClient) -> None:
    payment = created(kari, STRAKS, domestic())
    status = payment["_links"]["status"]["href"]
    link = kari.post(payment["_links"]["startAuthorisation"]["href"]).json()["_links"]["scaRedirect"]
    approve(kari.service, payment["_links"]["scaRedirect"]["href"], national_id=EVEN)
    assert kari.get(status).json()["_links"]["scaRedirect"] == link


def test_delete_cancels_at_once_what_is_not_authorised(kari: DeskClient) -> None:
    payment_id = created(kari, STRAKS, domestic())["paymentId"]
    answer = kari.delete(f"{STRAKS}/{payment_id}")
    assert (answer.status, answer.body) == (204, b"")
    assert in_status(kari, STRAKS, payment_id) == "CANC"
    again = kari.delete(f"{STRAKS}/{payment_id}")
    assert (again.status, messages(again)) == (409, [("CONFLICT", None)])


def test_delete_of_an_authorised_payment_leads_to_the_sca_that_cancels_it(kari: DeskClient) -> None:
    payment_id = authorised(kari, DOMESTIC, domestic(requestedExecutionDate="2026-03-09"))
    answer = kari.delete(f"{DOMESTIC}/{payment_id}")
    address = f"{DOMESTIC}/{payment_id}/cancellation-authorisations"
    assert answer.status == 202
    assert answer.json()["_links"]["startAuthorisation"] == {"href": address, "verbs": ["POST"]}
    started = kari.post(address).json()
    own_address = f"{address}/{started['authorisationId']}"
    assert kari.get(own_address).json() == {"scaStatus": "started"}
    assert kari.get(f"{DOMESTIC}/{payment_id}/authorisations/{started['authorisationId']}").status == 404
    approve(kari.service, started["_links"]["scaRedirect"]["href"])
    assert kari.get(own_address).json() == {"scaStatus": "finalised"}
    assert in_status(kari, DOMESTIC, payment_id) == "CANC"


def test_a_bulk_of_which_some_is_paid_offers_no_delete(kari: DeskClient) -> None:
    """It can no longer be cancelled."""
    payment_id = authorised(kari, BULK, bulk("1.00", "99999999.00"))
    advance(kari.service, seconds=1)
    details = kari.get(f"{BULK}/{payment_id}").json()
    assert (details["transactionStatus"], details["_links"]["self"]["verbs"]) == ("ACSP", ["GET"])
    assert kari.delete(f"{BULK}/{payment_id}").status == 409


# who asks


@pytest.mark.parametrize(("method", "below"), [("GET", ""), ("GET", "/status"), ("DELETE", "")])
def test_the_identity_number_stands_in_for_the_psu_id_of_a_customer_who_declined(
    tpp: DeskClient, method: str, below: str
) -> None:
    """After a declined first SCA the TPP has no PSU-ID to ask with."""
    identity = {"PSU-ID": None, "X-PSU-IDENTITY": KARI}
    payment_id = created(tpp, STRAKS, domestic(), headers=identity)["paymentId"]
    reject(tpp.service, payment_id)
    answer = tpp.request(method, f"{STRAKS}/{payment_id}{below}", headers=identity)
    assert answer.status == (409 if method == "DELETE" else 200)
    assert method == "DELETE" or answer.json()["transactionStatus"] == "RJCT"


def test_the_identity_number_stands_in_on_baskets_too(tpp: DeskClient) -> None:
    identity = {"PSU-ID": None, "X-PSU-IDENTITY": KARI}
    paid = [created(tpp, DOMESTIC, domestic(), headers=identity)["paymentId"]]
    basket = tpp.post("/v1/signing-baskets", json={"paymentIds": paid}, headers=identity)
    assert basket.status == 201, basket.json()
    path = f"/v1/signing-baskets/{basket.json()['basketId']}"
    assert tpp.get(f"{path}/status", headers=identity).status == 200
    assert tpp.post(f"{path}/authorisations", headers=identity).status == 201
    assert tpp.delete(path, headers=identity).status == 204


@pytest.mark.parametrize("path", [STRAKS, "/v1/accounts"])
def test_an_identity_number_that_contradicts_the_psu_id_is_refused(kari: DeskClient, path: str) -> None:
    headers = {"X-PSU-IDENTITY": EVEN}
    answer = kari.get(path, headers=headers) if path != STRAKS else kari.post(path, json=domestic(), headers=headers)
    assert (answer.status, messages(answer)) == (401, [("PSU_CREDENTIALS_INVALID", "X-PSU-IDENTITY")])
    assert kari.get("/v1/accounts", headers={"X-PSU-IDENTITY": KARI}).status == 200
