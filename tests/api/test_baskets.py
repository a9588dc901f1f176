"""Signing baskets through the pipeline (baskets.md)."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.bank.kinds import AGREEMENT, PAYMENT
from tests.api.desk import BASE, DeskClient, advance, approve, messages
from tests.api.test_payments import BODIES, authorised, created, in_status
from tests.known_state import BULK, DOMESTIC, KARI, PERIODIC, SIRI, STRAKS
from tests.unit.payments.world import domestic

BASKETS = "/v1/signing-baskets"


def payments(client: DeskClient, count: int = 2) -> list[str]:
    return [created(client, (STRAKS, DOMESTIC)[n % 2], BODIES[STRAKS])["paymentId"] for n in range(count)]


def basket(client: DeskClient, ids: list[str]) -> dict[str, Any]:
    return created(client, BASKETS, {"paymentIds": ids})


def test_a_basket_answers_with_its_id_status_and_links(kari: DeskClient) -> None:
    ids = payments(kari)
    answer = kari.post(BASKETS, json={"paymentIds": ids})
    body = answer.json()
    path = f"{BASKETS}/{body['basketId']}"
    redirect = body["_links"].pop("scaRedirect")
    assert (answer.status, set(body)) == (201, {"basketId", "transactionStatus", "_links"})
    assert redirect["href"].startswith(f"{BASE}/sca/")
    assert body["transactionStatus"] == "RCVD"
    assert body["_links"] == {
        "self": {"href": path, "verbs": ["GET", "DELETE"]},
        "status": {"href": f"{path}/status", "verbs": ["GET"]},
        "startAuthorisation": {"href": f"{path}/authorisations", "verbs": ["POST"]},
    }
    details = kari.get(path).json()
    links = {**body["_links"], "scaRedirect": redirect}
    assert details == {"payments": ids, "transactionStatus": "RCVD", "_links": links}
    assert kari.get(f"{path}/status").json() == {"transactionStatus": "RCVD", "_links": links}


def test_one_approval_signs_all_and_the_links_go(kari: DeskClient) -> None:
    ids = payments(kari)
    new_basket = basket(kari, ids)
    path = f"{BASKETS}/{new_basket['basketId']}"
    redirect = approve(kari.service, new_basket["_links"]["scaRedirect"]["href"])
    assert set(redirect) == {"psu-id", "tpp-session-id", "context"}
    body = kari.get(path).json()
    assert body["transactionStatus"] == "ACTC"
    assert body["_links"] == {
        "self": {"href": path, "verbs": ["GET"]},
        "status": {"href": f"{path}/status", "verbs": ["GET"]},
    }
    advance(kari.service, seconds=3)
    assert [in_status(kari, STRAKS, ids[0]), in_status(kari, DOMESTIC, ids[1])] == ["ACSC", "ACSC"]


@pytest.mark.parametrize(
    ("context", "debtor", "who"), [("CORPORATE", "99911000012", SIRI), ("PRIVATE", "99901000014", KARI)]
)
def test_a_basket_of_a_customer_who_is_not_known_yet_acts_in_the_context_of_its_payments(
    tpp: DeskClient, context: str, debtor: str, who: str
) -> None:
    tpp.service.bank.change_settings({"profile": "lenient"})
    tpp.psu_context = context
    body = domestic(debtorAccount={"bban": debtor, "currency": "NOK"})
    payment_id = created(tpp, STRAKS, body)["paymentId"]
    basket_id = basket(tpp, [payment_id])["basketId"]
    assert approve(tpp.service, basket_id, national_id=who)["context"] == context
    assert in_status(tpp, STRAKS, payment_id) == "ACTC"


def test_a_customer_who_is_not_known_yet_acts_under_the_agreement_of_the_request(tpp: DeskClient) -> None:
    bank = tpp.service.bank
    bank.change_settings({"profile": "lenient"})
    one, other = bank.documents.find(AGREEMENT, persons=SIRI)[0], "5a3c9f10-0000-4000-8000-00000000000b"
    bank.documents.put(AGREEMENT, {**one, "id": other})
    tpp.psu_corporate_id = other
    body = domestic(debtorAccount={"bban": "99911000012", "currency": "NOK"})
    payment_id = created(tpp, STRAKS, body)["paymentId"]
    for target in (payment_id, basket(tpp, [created(tpp, STRAKS, body)["paymentId"]])["basketId"]):
        redirect = approve(tpp.service, target, national_id=SIRI)
        assert (redirect["context"], redirect["psu-corporate-id"]) == ("CORPORATE", other)
    assert in_status(tpp, STRAKS, payment_id) == "ACTC"
    assert (bank.documents.get(PAYMENT, payment_id) or {})["agreement"] == other


def test_a_basket_that_names_no_agreement_is_of_the_one_that_its_payments_act_under(tpp: DeskClient) -> None:
    tpp.service.bank.change_settings({"profile": "lenient"})
    tpp.psu_context = "CORPORATE"
    siri = {"X-PSU-IDENTITY": SIRI}
    body = domestic(debtorAccount={"bban": "99911000012", "currency": "NOK"})
    payment_id = tpp.post(STRAKS, json=body, headers=siri).json()["paymentId"]
    answer = tpp.post(BASKETS, json={"paymentIds": [payment_id]}, headers=siri)
    assert answer.status == 201, answer.body
    redirect = approve(tpp.service, answer.json()["basketId"])
    payment = tpp.service.bank.documents.get(PAYMENT, payment_id) or {}
    assert (payment["status"], redirect["psu-corporate-id"]) == ("ACTC", payment["agreement"])


def test_what_cannot_be_in_a_basket_is_refused_and_nothing_changes(kari: DeskClient) -> None:
    (mine,) = payments(kari, 1)
    bulk_id, standing = (created(kari, path, BODIES[path])["paymentId"] for path in (BULK, PERIODIC))
    signed = authorised(kari, STRAKS, BODIES[STRAKS])
    taken = payments(kari, 1)
    basket(kari, taken)
    before = kari.service.bank.documents.dump()
    for ids, status, code in (
        ([mine, bulk_id], 400, "REFERENCE_MIX_INVALID"),
        ([standing, mine], 400, "REFERENCE_MIX_INVALID"),
        ([mine, "0e0b4b6a-8f1c-4a9e-9d53-0f3c2b1a0e01"], 400, "RESOURCE_UNKNOWN"),
        ([mine, signed], 409, "CONFLICT"),
        ([mine, *taken], 409, "CONFLICT"),
    ):
        answer = kari.post(BASKETS, json={"paymentIds": ids})
        at = next(place for place, one in enumerate(ids) if one != mine)
        assert (answer.status, messages(answer)) == (status, [(code, f"paymentIds[{at}]")])
    assert kari.service.bank.documents.dump() == before


def test_delete_dissolves_a_basket_that_is_not_authorised(kari: DeskClient) -> None:
    ids = payments(kari)
    new_basket = basket(kari, ids)
    path = f"{BASKETS}/{new_basket['basketId']}"
    assert kari.delete(path).status == 204
    gone = kari.get(path)
    assert (gone.status, messages(gone)) == (404, [("RESOURCE_UNKNOWN", "basketId")])
    again = basket(kari, ids)
    approve(kari.service, again["basketId"])
    late = kari.delete(f"{BASKETS}/{again['basketId']}")
    assert (late.status, messages(late)) == (409, [("CONFLICT", None)])


def test_an_explicit_authorisation_of_a_basket(kari: DeskClient) -> None:
    new_basket = basket(kari, payments(kari))
    path = f"{BASKETS}/{new_basket['basketId']}/authorisations"
    started = kari.post(path)
    body = started.json()
    address = f"{path}/{body['authorisationId']}"
    assert (started.status, body["scaStatus"]) == (201, "started")
    assert body["_links"]["scaStatus"] == {"href": address, "verbs": ["GET"]}
    approve(kari.service, body["_links"]["scaRedirect"]["href"])
    assert kari.get(address).json() == {"scaStatus": "finalised"}
    again = kari.post(path)
    assert (again.status, messages(again)) == (409, [("CONFLICT", None)])
