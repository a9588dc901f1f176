"""Status notifications from the request that asks for them to the TPP's receiver, over sockets (notifications.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from emulator.client import TppClient
from emulator.testing import BankFactory, Receiver, RunningBank, TestTpp
from tests.known_state import STRAKS

FIRST = "14888520059"
SUPPORT, CONTENT = "ASPSP-Notification-Support", "ASPSP-Notification-Content"


def order(amount: str = "10.00") -> dict[str, Any]:
    return {
        "debtorAccount": {"bban": "99901000014", "currency": "NOK"},
        "creditorAccount": {"bban": "99921000061", "currency": "NOK"},
        "creditorAddress": {"country": "NO"},
        "creditorName": "Sykkelstyret AS",
        "instructedAmount": {"amount": amount, "currency": "NOK"},
    }


@pytest.fixture
def receiver(bank: RunningBank) -> Receiver:
    return bank.receiver()


@pytest.fixture
def tpp(bank: RunningBank, receiver: Receiver) -> TestTpp:
    tpp = bank.tpp().log_in(FIRST)
    tpp.notification_uri = receiver.uri
    return tpp


def pay(tpp: TestTpp, content: str | None = None, **headers: str) -> str:
    preferred = {"TPP-Notification-Content-Preferred": content} if content is not None else {}
    answer = tpp.post(STRAKS, json=order(), headers={**preferred, **headers})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["paymentId"])


def statuses(receiver: Receiver) -> list[str]:
    return [
        body.get("transactionStatus") or body.get("consentStatus") or body["scaStatus"] for body in receiver.bodies()
    ]


def test_each_status_arrives_once_and_in_order(bank, receiver, tpp):
    payment = pay(tpp)
    tpp.approve(payment)
    bank.clock.advance("10s")
    sent = bank.notifications(payment)
    assert receiver.bodies() == [
        {"paymentId": payment, "transactionStatus": status} for status in ("ACTC", "ACSP", "ACSC")
    ]
    assert [one["state"] for one in sent] == ["delivered"] * 3
    assert [one.headers["x-request-id"] for one in receiver.received] == [one["id"] for one in sent]
    assert receiver.received[0].headers["content-type"] == "application/json"


def test_the_trace_of_the_client_goes_on_in_the_log_and_in_notifications(bank, receiver, tpp):
    for given, sent in (
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",) * 2,
        (
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-what-a-later-version-has",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", None),
        ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None),
        ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", None),
        ("00-00000000000000000000000000000000-b7ad6b7169203331-01", None),
        ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", None),
        ("nothing of the kind", None),
        (None, None),
    ):
        receiver.received.clear()
        payment = pay(tpp, **({"traceparent": given} if given else {}))
        (logged, *_) = bank.requests(operation="createPayment")
        tpp.approve(payment)
        bank.clock.advance("10s")
        notified = bank.notifications(payment)
        traces = [one.get("traceparent") for one in (logged, *notified)]
        traces += [one.headers.get("traceparent") for one in receiver.received]
        assert len(traces) > 3, given
        assert set(traces) == {sent}, given


def test_the_answer_says_what_the_bank_will_tell(tpp, receiver):
    answer = tpp.post(STRAKS, json=order())
    assert (answer.headers[SUPPORT], answer.headers[CONTENT]) == ("true", "status=PROCESS")
    answer = tpp.post(STRAKS, json=order(), headers={"TPP-Notification-Content-Preferred": "status=LAST,SCA"})
    assert (answer.headers[SUPPORT], answer.headers[CONTENT]) == ("true", "status=SCA,LAST")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("status=SCA", ["finalised"]),
        ("SCA, PROCESS", ["ACTC", "finalised", "ACSP", "ACSC"]),
        ("status=PROCESS", ["ACTC", "ACSP", "ACSC"]),
        ("LAST", ["ACSC"]),
    ],
)
def test_only_what_was_preferred_is_told(bank, receiver, tpp, content, expected):
    tpp.approve(pay(tpp, content))
    bank.clock.advance("10s")
    bank.notifications()
    assert statuses(receiver) == expected


def test_nothing_is_sent_and_no_header_is_read_while_the_setting_is_off(bank, receiver, tpp):
    bank.settings(notifications=False)
    answer = tpp.post(STRAKS, json=order(), headers={"TPP-Notification-URI": "no address"})
    assert answer.status_code == 201
    assert not [name for name in answer.headers if name.lower().startswith("aspsp-notification")]
    tpp.approve(answer.json()["paymentId"])
    bank.clock.advance("10s")
    assert bank.notifications() == []


def test_what_ended_while_the_setting_was_off_is_not_told_of_later(bank, receiver, tpp):
    given = tpp.post("/v1/consents").json()["consentId"]
    tpp.approve(given)
    asked = tpp.post("/v1/consents", headers={"TPP-Notification-Content-Preferred": "status=SCA,LAST"})
    assert asked.status_code == 201
    bank.settings(notifications=False)
    bank.clock.advance("181d")
    bank.settings(notifications=True)
    pay(tpp, "SCA")
    bank.clock.advance("11m")
    assert [one["body"].get("consentStatus", "the SCA that ends now") for one in bank.notifications()] == [
        "valid",
        "the SCA that ends now",
    ]
    assert len(receiver.bodies()) == 2


def test_nothing_is_said_of_notifications_to_who_does_not_ask(tpp):
    tpp.notification_uri = None
    answer = tpp.post(STRAKS, json=order())
    assert SUPPORT not in answer.headers


def test_a_malformed_address_is_refused_by_name(bank, tpp):
    # Of each kind one; the forms of an address are in test_targets.py.
    for uri in ("no address", "https://0x7f000001/", f"https://tpp.example/{'a' * 2048}"):
        answer = tpp.post(STRAKS, json=order(), headers={"TPP-Notification-URI": uri})
        assert answer.status_code == 400, uri
        (message,) = answer.json()["tppMessages"]
        assert (message["code"], message["path"]) == ("FORMAT_ERROR", "TPP-Notification-URI"), uri
        assert bank.payments() == [], uri


def test_malformed_preferences_are_refused_by_name(tpp):
    for content in ("", "status=", "ALL", "SCA SCA", "SCA,SCA", "sca", "status=SCA,"):
        answer = tpp.post(STRAKS, json=order(), headers={"TPP-Notification-Content-Preferred": content})
        assert answer.status_code == 400, content
        assert answer.json()["tppMessages"][0]["path"] == "TPP-Notification-Content-Preferred", content


def test_an_address_outside_the_certificate_is_not_notified_and_the_answer_says_why(bank, tpp):
    for uri in (
        "https://tpp.example/notifications",
        "https://127.0.0.2/",
        "http://localhost/",
    ):
        answer = tpp.post(STRAKS, json=order(), headers={"TPP-Notification-URI": uri})
        assert (answer.status_code, answer.headers[SUPPORT]) == (201, "false"), uri
        assert CONTENT not in answer.headers, uri
        (message,) = answer.json()["tppMessages"]
        assert (message["category"], message["path"]) == ("WARNING", "TPP-Notification-URI"), uri
        tpp.approve(answer.json()["paymentId"])
        bank.clock.advance("10s")
        assert bank.notifications() == [], uri


def test_a_repeat_has_the_answer_of_the_first_and_asks_for_nothing_more(bank, receiver, tpp):
    headers = {"X-Request-ID": "0a52b9cd-62f5-4d5a-8e76-2f0a8bd7f84c"}
    first, again = (tpp.post(STRAKS, json=order(), headers=headers) for _ in range(2))
    assert again.json() == first.json()
    assert again.headers[SUPPORT] == "true"
    tpp.approve(first.json()["paymentId"])
    bank.clock.advance("10s")
    bank.notifications()
    assert statuses(receiver) == ["ACTC", "ACSP", "ACSC"]


def test_what_is_not_answered_with_2xx_is_sent_again_after_growing_gaps_of_bank_time(bank, receiver, tpp):
    receiver.answer(503, 302, 404)
    payment = pay(tpp, "LAST")
    tpp.delete(f"{STRAKS}/{payment}")
    assert [one["state"] for one in bank.notifications()] == ["waiting"]
    for gap in ("9s", "1s", "59s", "1s", "299s"):
        bank.clock.advance(gap)
        bank.notifications()
    assert statuses(receiver) == ["CANC"] * 3
    bank.clock.advance("1s")
    (sent,) = bank.notifications()
    assert [delivery["status"] for delivery in sent["deliveries"]] == [503, 302, 404, 204]
    assert sent["state"] == "delivered"
    assert len({one.headers["x-request-id"] for one in receiver.received}) == 1


def test_what_is_never_answered_is_given_up(bank, receiver, tpp):
    receiver.answer(*[500] * 20)
    payment = pay(tpp, "LAST")
    tpp.delete(f"{STRAKS}/{payment}")
    for _ in range(12):
        bank.notifications()
        bank.clock.advance("25h")
    (sent,) = bank.notifications()
    assert (sent["state"], len(sent["deliveries"])) == ("failed", 9)


def test_a_later_status_waits_for_the_one_before(bank, receiver, tpp):
    receiver.answer(500)
    payment = pay(tpp)
    tpp.approve(payment)
    bank.notifications()
    bank.clock.advance("8s")  # paid, and the first notification is not repeated yet
    assert [one["state"] for one in bank.notifications()] == ["waiting"] * 3
    assert statuses(receiver) == ["ACTC"]
    bank.clock.advance("2s")
    bank.notifications()
    assert statuses(receiver) == ["ACTC", "ACTC", "ACSP", "ACSC"]


def test_baskets_are_told_of(bank, receiver, tpp):
    tpp.notification_uri = None
    payments = [pay(tpp), pay(tpp)]
    tpp.notification_uri = receiver.uri
    basket = tpp.post("/v1/signing-baskets", json={"paymentIds": payments})
    assert basket.headers[SUPPORT] == "true"
    tpp.approve(basket.json()["basketId"])
    bank.notifications()
    assert receiver.bodies() == [{"basketId": basket.json()["basketId"], "transactionStatus": "ACTC"}]


def test_consents_are_told_of(bank, receiver, tpp):
    consent = tpp.post("/v1/consents")
    assert consent.headers[SUPPORT] == "true"
    identity = consent.json()["consentId"]
    tpp.approve(identity)
    tpp.delete(f"/v1/consents/{identity}")
    bank.notifications()
    assert receiver.bodies() == [
        {"consentId": identity, "consentStatus": status} for status in ("valid", "terminatedByTpp")
    ]


def test_a_declined_consent_and_its_sca_are_told_of(bank, receiver, tpp):
    consent = tpp.post("/v1/consents", headers={"TPP-Notification-Content-Preferred": "status=SCA,LAST"})
    bank.reject(consent.json()["consentId"])
    bank.notifications()
    assert statuses(receiver) == ["failed", "rejected"]


def test_a_consent_that_was_not_given_in_time_is_told_of(bank, receiver, tpp):
    consent = tpp.post("/v1/consents", headers={"TPP-Notification-Content-Preferred": "status=SCA,LAST"})
    bank.clock.advance("10m")
    bank.notifications()
    assert statuses(receiver) == ["failed", "expired"]
    assert "SCA_EXPIRED" in str(tpp.approve(consent.json()["consentId"])), "its page still leads back to the TPP"
    bank.notifications()
    assert len(statuses(receiver)) == 2


@pytest.mark.parametrize("replaced", [False, True])
def test_a_consent_that_expires_is_told_of_once(bank, receiver, tpp, replaced):
    first = tpp.post("/v1/consents").json()["consentId"]
    tpp.approve(first)
    if replaced:
        tpp.approve(tpp.post("/v1/consents", headers={"TPP-Notification-URI": None}).json()["consentId"])
    bank.clock.advance("P180D")
    tpp.notification_uri = None
    tpp.approve(tpp.post("/v1/consents").json()["consentId"])
    bank.notifications()
    assert statuses(receiver) == ["valid", "expired"]


def test_an_authorisation_of_a_payment_that_nobody_completed_is_told_of(bank, receiver, tpp):
    payment = pay(tpp, "status=SCA,PROCESS")
    bank.clock.advance("9m")
    tpp.post(f"{STRAKS}/{payment}/authorisations", headers={"TPP-Notification-Content-Preferred": "status=SCA,PROCESS"})
    bank.clock.advance("10m")
    bank.notifications()
    assert statuses(receiver) == ["failed", "failed"]
    bank.clock.advance("1d")
    bank.notifications()
    assert statuses(receiver) == ["failed", "failed", "RJCT"]


def test_a_withdrawn_and_a_replaced_consent_are_told_of(bank, receiver, tpp):
    first = tpp.post("/v1/consents").json()["consentId"]
    tpp.approve(first)
    second = tpp.post("/v1/consents").json()["consentId"]
    tpp.approve(second)
    bank.customer(FIRST).withdraw(second)
    bank.notifications()
    sent = [(body["consentId"], body["consentStatus"]) for body in receiver.bodies()]
    assert [status for identity, status in sent if identity == first] == ["valid", "expired"]
    assert [status for identity, status in sent if identity == second] == ["valid", "revokedByPsu"]


def test_an_authorisation_of_its_own_is_named(bank, receiver, tpp):
    payment = pay(tpp, "SCA")
    started = tpp.post(f"{STRAKS}/{payment}/authorisations", headers={"TPP-Notification-Content-Preferred": "SCA"})
    assert started.headers[SUPPORT] == "true"
    tpp.approve(started.json()["_links"]["scaRedirect"]["href"])
    bank.notifications()
    identity = started.json()["authorisationId"]
    assert {"paymentId": payment, "authorisationId": identity, "scaStatus": "finalised"} in receiver.bodies()


def test_a_reset_takes_waiting_notifications_along(bank, receiver, tpp):
    receiver.answer(500)
    tpp.delete(f"{STRAKS}/{pay(tpp)}")
    bank.notifications()
    tpp.post("/v1/sandbox/initialize")
    bank.clock.advance("1h")
    assert bank.notifications() == []
    assert len(receiver.received) == 1


def test_events_tell_of_each_step(bank, receiver, tpp):
    seen: list[dict[str, Any]] = []
    bank.call(lambda service: service.bank.watch(lambda event: seen.append(event)))
    payment = pay(tpp, "LAST")
    tpp.delete(f"{STRAKS}/{payment}")
    (sent,) = bank.notifications()
    steps = [event for event in seen if event["type"] == "notification"]
    assert [event["status"] for event in steps] == ["waiting", "sending", "delivered"]
    assert {(event["id"], event["target"], event["tpp"]) for event in steps} == {(sent["id"], payment, tpp.tpp_id)}
    assert all(event["at"] for event in steps)


@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_stored_bank_notifies_and_goes_on_after_a_stop(
    bank_factory: BankFactory, tmp_path: Path, durability: str
) -> None:
    state = tmp_path / "state"
    receiver = bank_factory().receiver()
    first = bank_factory(state=state, durability=durability, settings={"notifications": True})
    receiver.answer(500)
    tpp = first.tpp().log_in(FIRST)
    tpp.notification_uri = receiver.uri
    payment = pay(tpp, "LAST")
    tpp.delete(f"{STRAKS}/{payment}")
    assert [one["state"] for one in first.notifications()] == ["waiting"]
    first.stop()
    again = bank_factory(state=state, durability=durability)
    again.clock.advance("10s")
    assert [one["state"] for one in again.notifications()] == ["delivered"]
    assert statuses(receiver) == ["CANC", "CANC"]


def test_another_bank_of_the_process_notifies_too(bank: RunningBank, receiver: Receiver, tpp: TestTpp) -> None:
    wanted = json.dumps({"settings": {"notifications": True}}).encode()
    creation = Request(f"{bank.url}/_emulator/banks/other", wanted, {"Content-Type": "application/json"}, method="PUT")
    with urlopen(creation) as answer:
        other = json.load(answer)["baseUrl"]
    with TppClient(other, tpp.identity) as client:
        client.notification_uri = receiver.uri
        customer = {"X-PSU-IDENTITY": FIRST, "PSU-Context": "PRIVATE"}
        payment = client.post(STRAKS, json=order(), headers=customer).json()["paymentId"]
        assert client.delete(f"{STRAKS}/{payment}", headers=customer).status_code == 204
    assert bank.notifications() == []
    assert receiver.bodies() == [{"paymentId": payment, "transactionStatus": "CANC"}]
