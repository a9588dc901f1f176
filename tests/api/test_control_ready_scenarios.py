"""Every ready scenario, applied with its defaults, does what its name says to a TPP and a customer of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from emulator.api.messages import Request
from emulator.bank import notifications
from emulator.bank.clock import stamp
from emulator.bank.notification_targets import Host
from emulator.ca import CertificateAuthority
from emulator.scenario import loader
from emulator.scenario.loader import Scenario
from tests.api.control_desk import ControlDesk
from tests.api.desk import BASE, DeskClient, advance, approve
from tests.known_state import DOMESTIC, EVEN, KARI, STRAKS
from tests.postgres.remote import RemoteService, inside

FIRM = "21909220006"


class Traffic:
    """A shop of one's own with a customer who has been there before the scenario was applied."""

    def __init__(self, desk: ControlDesk, authority: CertificateAuthority) -> None:
        self.desk = desk
        self.service = desk.service
        self.shop_authority = authority
        self.shop = DeskClient(desk.service, authority, name="another shop").log_in(EVEN)
        self.firm = DeskClient(desk.service, authority, name="another shop").log_in(FIRM, context="CORPORATE")

    def pay(
        self,
        path: str = DOMESTIC,
        *,
        amount: str = "12.50",
        tpp: DeskClient | None = None,
        headers: Any = None,
        **more: Any,
    ) -> Any:
        body = {
            "instructedAmount": {"amount": amount, "currency": "NOK"},
            "creditorName": "ACME Widgets",
            "creditorAccount": {"bban": "99921000061", "currency": "NOK"},
            "creditorAddress": {"country": "NO"},
            "debtorAccount": {"bban": "99901100019", "currency": "NOK"},
            **more,
        }
        return (tpp or self.shop).post(path, json=body, headers=headers)

    def approved(self, path: str = DOMESTIC, **more: Any) -> str:
        """The address of a payment that the customer has approved."""
        payment = self.pay(path, **more).json()["paymentId"]
        approve(self.service, payment)
        return f"{path}/{payment}"

    def status(self, payment: str, tpp: DeskClient | None = None) -> str:
        status: str = (tpp or self.shop).get(f"{payment}/status").json()["transactionStatus"]
        return status

    def account(self) -> str:
        consents = self.desk.get("/consents")["consents"]
        return str(next(one["accounts"][0] for one in consents if one["nationalId"] == EVEN))

    def balances(self, account: str, **headers: Any) -> tuple[int, str | None]:
        answer = self.shop.get(f"/v1/accounts/{account}/balances", headers=headers)
        return answer.status, _code(answer)

    def wait(self, **by: float) -> None:
        advance(self.service, **by)

    def delivery(self, path: str) -> Any:
        """How an answer is delivered: its delay, whether the connection closes."""
        if isinstance(self.service, RemoteService):
            inside("the delivery of an answer")
        prepared = self.shop.prepare("GET", path)
        request = Request(prepared.method, prepared.target, tuple(prepared.headers.items()), prepared.body, BASE)
        return self.service.handle(request).delivery


def _code(answer: Any) -> str | None:
    return str(answer.json()["tppMessages"][0]["code"]) if answer.status >= 400 else None


@pytest.fixture
def traffic(desk: ControlDesk, authority: CertificateAuthority) -> Traffic:
    return Traffic(desk, authority)


def _basket_one_fails(t: Traffic, _: str) -> None:
    payments = [t.pay().json()["paymentId"] for _ in range(2)]
    basket = t.shop.post("/v1/signing-baskets", json={"paymentIds": payments}).json()["basketId"]
    approve(t.service, basket)
    t.wait(seconds=10)
    assert [t.status(f"{DOMESTIC}/{payment}") for payment in payments] == ["ACSC", "RJCT"]


def _bank_down(t: Traffic, _: str) -> None:
    assert (t.pay().status, t.shop.get("/v1/accounts").status) == (503, 503)
    t.wait(minutes=10)
    assert t.pay().status == 201


def _cancelled_by_bank(t: Traffic, _: str) -> None:
    payment = t.approved()
    t.wait(minutes=61)
    assert t.status(payment) == "CANC"


def _refused_read(code: str) -> Callable[[Traffic, str], None]:
    def check(t: Traffic, account: str) -> None:
        assert t.balances(account) == (401, code)

    return check


def _session_over(t: Traffic, _: str) -> None:
    answer = t.shop.get("/v1/accounts")
    assert (answer.status, _code(answer)) == (401, "SCA_EXPIRED")


def _expired_certificate(t: Traffic, _: str) -> None:
    answer = t.shop.get("/v1/accounts")
    assert answer.status == 400
    assert answer.json()["tppMessages"][0]["path"] == "TPP-Signature-Certificate"


def _tampered_request(t: Traffic, _: str) -> None:
    answers = [t.shop.get("/v1/accounts") for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 400]
    assert answers[1].json()["tppMessages"][0]["path"] == "Signature"


def _fees(t: Traffic, _: str) -> None:
    assert t.pay().json()["transactionFees"] == {"amount": "35.00", "currency": "NOK"}


def _insufficient_funds(t: Traffic, _: str) -> None:
    payment = t.approved(STRAKS)
    t.wait(seconds=10)
    status = t.shop.get(f"{payment}/status").json()
    assert (status["transactionStatus"], status["fundsAvailable"]) == ("ACCP", False)


def _never_enough_money(t: Traffic, _: str) -> None:
    payment = t.approved()
    t.wait(days=5)
    assert t.status(payment) == "RJCT"


def _kid(t: Traffic, _: str) -> None:
    assert _code(t.pay()) == "KID_MISSING"
    wrong = t.pay(remittanceInformationStructuredArray=[{"reference": "120014783"}])
    assert _code(wrong) == "KID_INVALID"
    assert t.pay(remittanceInformationStructuredArray=[{"reference": "120014782"}]).status == 201


def _late_booking(t: Traffic, _: str) -> None:
    payment = t.approved()
    t.wait(days=4)
    assert t.status(payment) == "PDNG"
    t.wait(days=2)
    assert t.status(payment) == "ACSC"


def _lost_answer(t: Traffic, _: str) -> None:
    t.pay()
    (exchange,) = t.desk.get("/requests?operation=createPayment")["requests"]
    assert exchange["rules"] == ["the first answer gets lost"]
    assert len(t.desk.get("/payments")["payments"]) == 1


def _lost_request(t: Traffic, _: str) -> None:
    assert t.pay().status == 0
    assert t.desk.get("/payments")["payments"] == []
    assert t.pay().status == 201


def _malformed(t: Traffic, _: str) -> None:
    payment = f"{DOMESTIC}/{t.pay().json()['paymentId']}"
    broken = 0
    for _ in range(5):
        answer = t.shop.get(f"{payment}/status")
        try:
            value = json.loads(answer.body)
        except ValueError:
            value = None
        broken += not isinstance(value, dict) or value.get("transactionStatus") != "RCVD"
    assert broken == 5
    assert t.status(payment) == "RCVD"


def _moved_by_cut_off(t: Traffic, _: str) -> None:
    payment = t.approved()
    assert t.status(payment) == "ACWC"
    t.wait(days=1, seconds=5)
    assert t.status(payment) == "ACSC"


def _pending_for_days(t: Traffic, _: str) -> None:
    payment = t.approved()
    t.wait(days=2)
    assert t.status(payment) == "PDNG"
    t.wait(days=2)
    assert t.status(payment) == "ACSC"


def _permission_removed(t: Traffic, account: str) -> None:
    assert (t.pay().status, t.balances(account)[0]) == (403, 200)


def _quota(t: Traffic, account: str) -> None:
    assert t.balances(account, **{"PSU-IP-Address": None}) == (429, "ACCESS_EXCEEDED")


def _sca_abandoned(t: Traffic, _: str) -> None:
    payment = t.pay().json()["paymentId"]
    assert approve(t.service, payment) == {}
    t.wait(hours=25)
    assert t.status(f"{DOMESTIC}/{payment}") == "RJCT"


def _sca(code: str, status: str) -> Callable[[Traffic, str], None]:
    def check(t: Traffic, _: str) -> None:
        payment = t.pay().json()["paymentId"]
        assert approve(t.service, payment)["code"] == code
        assert t.status(f"{DOMESTIC}/{payment}") == status

    return check


def _payee_check(t: Traffic, _: str) -> None:
    account = {"bban": "99901000014", "currency": "NOK"}
    for name, match in (("Kari Kladd", "MTCH"), ("ACME Widgets", "NMTC")):
        payment = t.pay(STRAKS, creditorName=name, creditorAccount=account).json()
        assert payment["payeeVerification"] == {"partyNameMatch": match}


def _slow_bank(t: Traffic, _: str) -> None:
    delays = [t.delivery("/v1/accounts").delay for _ in range(3)]
    assert delays[:2] == [0, 0]
    assert 1 <= delays[2] <= 2


def _two_signatures(t: Traffic, _: str) -> None:
    payment = t.pay(tpp=t.firm, debtorAccount={"bban": "99911000012", "currency": "NOK"}).json()["paymentId"]
    approve(t.service, payment)
    assert t.status(f"{DOMESTIC}/{payment}", t.firm) == "PATC"


def _items(t: Traffic, account: str, shelf: str) -> list[dict[str, Any]]:
    """What the shop sees of the reservation at the petrol station, which is booked at 06:00 of the next day."""
    path = f"/v1/accounts/{account}/transactions?bookingStatus={shelf}"
    shown = t.shop.get(path, headers={"PSU-IP-Address": None}).json()["transactions"][shelf]
    return [
        entry for entry in shown if entry["creditorName"] == "Pumpa Drivstoff" and entry["valueDate"] == "2026-03-03"
    ]


def _new_id(t: Traffic, account: str) -> None:
    before = _items(t, account, "pending")
    t.wait(days=1)
    after = _items(t, account, "booked")
    assert (len(before), len(after)) == (1, 1)
    assert before[0]["transactionId"] != after[0]["transactionId"]


def _amended(t: Traffic, account: str) -> None:
    assert _items(t, account, "pending")[0]["transactionAmount"]["amount"] == "-706.20"
    t.wait(days=1)
    assert _items(t, account, "booked")[0]["transactionAmount"]["amount"] == "-642.00"


def _next_month(t: Traffic, account: str) -> None:
    t.wait(days=1)
    assert _items(t, account, "booked")[0]["bookingDate"] == "2026-04-01"


def _late_item(t: Traffic, account: str) -> None:
    t.wait(days=1)
    assert _items(t, account, "booked") == []
    t.wait(days=3)
    assert [item["bookingDate"] for item in _items(t, account, "booked")] == ["2026-03-03"]


def _shown_twice(t: Traffic, account: str) -> None:
    t.wait(days=1)
    assert len({item["transactionId"] for item in _items(t, account, "booked")}) == 2
    t.wait(days=1)
    assert len(_items(t, account, "booked")) == 1


def _renumbered(t: Traffic, account: str) -> None:
    t.wait(days=1)
    before = _items(t, account, "booked")
    t.wait(days=1)
    after = _items(t, account, "booked")
    assert (len(before), len(after)) == (1, 1)
    assert before[0]["transactionId"] != after[0]["transactionId"]


def _vanishes(t: Traffic, account: str) -> None:
    assert len(_items(t, account, "pending")) == 1
    t.wait(hours=4)
    assert _items(t, account, "pending") == []
    t.wait(days=1)
    assert len(_items(t, account, "booked")) == 1


def _without_id(t: Traffic, account: str) -> None:
    t.wait(days=1)
    assert [item.get("transactionId") for item in _items(t, account, "booked")] == [None]


def _ids_renewed(t: Traffic, account: str) -> None:
    assert t.balances(account) == (200, None), "a consent that there is keeps its ids"
    by_iban = [_resources(t.shop.log_in(EVEN)) for _ in range(2)]
    assert by_iban[0].keys() == by_iban[1].keys()
    assert not {account, *by_iban[0].values()} & set(by_iban[1].values())
    assert t.balances(account) == (404, "RESOURCE_UNKNOWN")
    assert {t.balances(name)[0] for name in by_iban[1].values()} == {200}


def _resources(shop: DeskClient) -> dict[str, str]:
    return {one["iban"]: one["resourceId"] for one in shop.get("/v1/accounts").json()["accounts"]}


def _blocked(t: Traffic, account: str) -> None:
    assert {one["status"] for one in t.shop.get("/v1/accounts").json()["accounts"]} == {"blocked"}
    assert (t.pay().status, t.balances(account)[0]) == (403, 200)


def _joint(t: Traffic, account: str) -> None:
    other = DeskClient(t.service, t.shop_authority, name="another shop").log_in(KARI)
    assert account in _resources(other).values()
    assert t.pay(tpp=other).status == 201
    firm = t.pay(tpp=other, debtorAccount={"bban": "99911000012", "currency": "NOK"})
    assert firm.status == 403


def _account_type(expected: str) -> Callable[[Traffic, str], None]:
    def check(t: Traffic, _: str) -> None:
        t.shop.log_in(EVEN)  # these two start again at the date that they are about
        accounts = t.shop.get("/v1/accounts", headers={"x-accept-fix": "amount-as-string"}).json()["accounts"]
        assert accounts[0]["cashAccountType"] == expected

    return check


def _told(traffic: Traffic) -> list[tuple[str, list[Any], bool]]:
    """Status, deliveries and forgery of what a shop is told of a payment that is paid, as it came."""
    bank = traffic.service.bank
    bank.notify_hosts = (Host("tpp.example"),)
    uri = {"TPP-Notification-URI": "https://tpp.example/notifications"}
    answer = traffic.pay(STRAKS, headers=uri)
    assert answer.headers["ASPSP-Notification-Support"] == "true"
    notifications.deliver(bank)
    approve(traffic.service, answer.json()["paymentId"])
    notifications.deliver(bank)
    advance(traffic.service, seconds=10)
    notifications.deliver(bank)
    deliveries = sorted(notifications.listing(bank), key=lambda one: (not one["forged"], one["place"]))
    return [(one["body"]["transactionStatus"], one["deliveries"], one["forged"]) for one in deliveries]


def _notifications_late(traffic: Traffic, _: str) -> None:
    assert [(status, len(attempts)) for status, attempts, _ in _told(traffic)] == [
        ("ACTC", 0),
        ("ACSP", 0),
        ("ACSC", 0),
    ]
    advance(traffic.service, hours=1)
    notifications.deliver(traffic.service.bank)
    assert {one["state"] for one in notifications.listing(traffic.service.bank)} == {"delivered"}


def _notifications_twice(traffic: Traffic, _: str) -> None:
    assert [(status, len(attempts)) for status, attempts, _ in _told(traffic)] == [
        ("ACTC", 2),
        ("ACSP", 2),
        ("ACSC", 2),
    ]


def _notifications_reordered(traffic: Traffic, _: str) -> None:
    assert [(status, len(attempts)) for status, attempts, _ in _told(traffic)] == [
        ("ACSP", 1),
        ("ACTC", 1),
        ("ACSC", 0),
    ]


def _notifications_dropped(traffic: Traffic, _: str) -> None:
    assert [(status, len(attempts)) for status, attempts, _ in _told(traffic)] == [
        ("ACTC", 0),
        ("ACSP", 0),
        ("ACSC", 0),
    ]
    assert {one["state"] for one in notifications.listing(traffic.service.bank)} == {"dropped"}


def _notifications_forged(traffic: Traffic, _: str) -> None:
    status, attempts, forged = _told(traffic)[0]
    assert (status, len(attempts), forged) == ("ACSC", 1, True)


PROMISES: dict[str, Callable[[Traffic, str], None]] = {
    "accept-fix-after": _account_type("CACC"),
    "accept-fix-before": _account_type("Current"),
    "account-blocked": _blocked,
    "account-ids-renewed": _ids_renewed,
    "amended-when-booked": _amended,
    "bank-down": _bank_down,
    "basket-one-fails": _basket_one_fails,
    "booked-under-another-id": _new_id,
    "booked-without-id": _without_id,
    "booking-date-next-month": _next_month,
    "cancelled-by-bank": _cancelled_by_bank,
    "consent-expired": _refused_read("CONSENT_EXPIRED"),
    "consent-revoked": _refused_read("CONSENT_UNKNOWN"),
    "expired-certificate": _expired_certificate,
    "fees-and-exchange": _fees,
    "insufficient-funds": _insufficient_funds,
    "joint-account": _joint,
    "kid-missing-or-invalid": _kid,
    "late-booking": _late_booking,
    "late-item": _late_item,
    "lost-answer": _lost_answer,
    "lost-request": _lost_request,
    "malformed-answers": _malformed,
    "moved-by-cut-off": _moved_by_cut_off,
    "never-enough-money": _never_enough_money,
    "notifications-dropped": _notifications_dropped,
    "notifications-forged": _notifications_forged,
    "notifications-late": _notifications_late,
    "notifications-reordered": _notifications_reordered,
    "notifications-twice": _notifications_twice,
    "payee-check": _payee_check,
    "pending-for-days": _pending_for_days,
    "pending-vanishes": _vanishes,
    "permission-removed": _permission_removed,
    "quota-exhausted": _quota,
    "quota-used-up": _quota,
    "renumbered-day": _renumbered,
    "sca-abandoned": _sca_abandoned,
    "sca-declined": _sca("SCA_INVALID", "RJCT"),
    "sca-expired": _sca("SCA_EXPIRED", "RCVD"),
    "sca-server-error": _sca("SYSTEM_ERROR", "RCVD"),
    "session-over": _session_over,
    "shown-twice": _shown_twice,
    "slow-bank": _slow_bank,
    "tampered-request": _tampered_request,
    "two-signatures": _two_signatures,
}
READY = {name: loader.named(name) for name in loader.library()}
RESETS = ("accept-fix-after", "accept-fix-before")  # a day that is past comes back only with the state of a fixture


def test_every_ready_scenario_promises_something_or_can_only_be_played() -> None:
    assert {name for name, scenario in READY.items() if scenario.play_only} == set(READY) - set(PROMISES)
    assert {name for name in PROMISES if READY[name].resets} == set(RESETS)


def inside_where_sent(name: str) -> Any:
    """A scenario of notifications is looked at where they are sent, in the bank's own process."""
    return pytest.param(name, marks=pytest.mark.inside) if name.startswith("notifications-") else name


@pytest.mark.parametrize("name", [inside_where_sent(name) for name in PROMISES])
def test_applied_with_its_defaults_it_does_what_its_name_says(traffic: Traffic, name: str) -> None:
    account = traffic.account()
    applied = traffic.desk.do("POST", "/scenario", {"name": name})
    assert applied["scenario"] == name
    PROMISES[name](traffic, account)
    assert traffic.desk.get("/ledger")["balanced"] is True


def _parts() -> list[tuple[str, str, int]]:
    """Each rule, change and effect on the feed of the ready scenarios: scenario, member, and its place."""
    parts = []
    for name in PROMISES:
        source = READY[name].source
        parts += [(name, "rules", index) for index in range(len(source.get("rules", ())))]
        for member in ("change", "feed"):
            parts += [(name, member, index) for index in range(len(source["start"].get(member, ())))]
    return parts


@pytest.mark.inside
@pytest.mark.parametrize("name, member, index", _parts())
def test_without_one_of_its_rules_or_changes_the_promise_is_broken(
    traffic: Traffic, name: str, member: str, index: int
) -> None:
    account = traffic.account()
    source = json.loads(json.dumps(READY[name].source))
    del (source["rules"] if member == "rules" else source["start"][member])[index]
    traffic.desk.do("POST", "/scenario", source)
    with pytest.raises((AssertionError, KeyError, ValueError)):
        PROMISES[name](traffic, account)


@pytest.mark.parametrize("name", [name for name in PROMISES if name not in RESETS])
def test_applied_it_leaves_what_is_there(traffic: Traffic, name: str) -> None:
    payment = traffic.pay().json()["paymentId"]
    before = traffic.desk.get("/clock")
    preview = traffic.desk.do("POST", "/scenario/preview", {"name": name})
    assert preview.pop("lost") == []
    assert traffic.desk.do("POST", "/scenario", {"name": name}) == preview
    assert preview["reset"] is False
    assert preview["clock"] == traffic.desk.get("/clock") == before
    assert [one["paymentId"] for one in traffic.desk.get("/payments")["payments"]] == [payment]


@pytest.mark.parametrize("name", [name for name, scenario in READY.items() if scenario.play_only])
def test_one_that_can_only_be_played_is_not_applied_and_says_how(desk: ControlDesk, name: str) -> None:
    before = desk.service.bank.documents.dump()
    for path in ("/scenario", "/scenario/preview"):
        refused = desk.ask("POST", path, {"name": name})
        assert (refused.status, refused.errors()) == (400, [("FORMAT_ERROR", "play")])
        assert f"bank-emulator scenario play {name}" in refused.texts()
    assert desk.service.bank.documents.dump() == before
    assert desk.do("POST", f"/scenarios/{name}/play")["passed"] is True


def test_a_preview_changes_nothing_and_names_what_would_be_lost(traffic: Traffic) -> None:
    traffic.pay()
    traffic.desk.do("POST", "/rules", {"name": "mine", "then": {"delay": "1s"}})
    before = traffic.desk.service.bank.documents.dump()
    events: list[Any] = []
    traffic.service.bank.watch(events.append)
    preview = traffic.desk.do("POST", "/scenario/preview", {"name": "accept-fix-before"})
    assert traffic.desk.service.bank.documents.dump() == before
    assert traffic.desk.get("/clock") == {"now": "2026-03-02T08:00:00+00:00", "mode": "frozen"}
    assert [count["name"] for count in traffic.desk.get("/rules")["counts"]] == ["mine"]
    assert events == []
    assert (preview["reset"], preview["clock"]["mode"]) == (True, "frozen")
    assert {"4 customers", "1 payment", "the rules", "the request log"} <= set(preview["lost"])


def test_parameters_choose_whom_a_scenario_is_about(traffic: Traffic) -> None:
    parameters = {"creditor": "Nobody*"}
    traffic.desk.do("POST", "/scenario", {"name": "cancelled-by-bank", "parameters": parameters})
    payment = traffic.approved()
    traffic.wait(minutes=61)
    assert traffic.status(payment) == "ACSC"
    assert traffic.desk.get("/rules")["rules"][0]["when"]["body"] == {"creditorName": "Nobody*"}
    applied = traffic.desk.get("/scenario")
    assert applied["parameters"]["creditor"]["default"] == "Nobody*"
    assert traffic.desk.do("POST", "/scenario", applied)["rules"] == 1


@pytest.mark.parametrize(
    "body, path, message",
    [
        ({"name": "lost-answer", "parameters": {"creditr": "x"}}, "parameters.creditr", "did you mean creditor?"),
        ({"name": "consent-expired", "parameters": {"x": "y"}}, "parameters.x", "The scenario has no parameters."),
        ({"name": "lost-answer", "parameters": []}, "parameters", "Expected a mapping, found a list."),
        ({"name": "bank-down", "parameters": {"outage": "soon"}}, "rules[0].times.for", "Expected a duration"),
        ({"name": "lost-answer", "parameters": {"creditor": []}}, "parameters.creditor.default", "Expected one value"),
    ],
)
def test_a_parameter_with_a_mistake_is_refused(desk: ControlDesk, body: Any, path: str, message: str) -> None:
    refused = desk.ask("POST", "/scenario", body)
    assert (refused.status, ("FORMAT_ERROR", path) in refused.errors()) == (400, True)
    assert message in refused.texts()
    assert desk.get("/rules")["rules"] == []


def test_what_the_list_says_of_a_scenario_is_what_applying_it_does(desk: ControlDesk) -> None:
    for line in desk.get("/scenarios")["scenarios"]:
        scenario: Scenario = READY[line["name"]]
        assert line["reset"] is scenario.resets
        assert line["play"] == ("only" if scenario.play_only else None)
        assert line["clock"] == (None if scenario.start.clock is None else stamp(scenario.start.clock)[:19] + "+00:00")
        for parameter in line["parameters"].values():
            assert set(parameter) == {"default", "about"}


def test_time_passes_for_a_rule_with_a_duration_that_was_chosen(traffic: Traffic) -> None:
    traffic.desk.do("POST", "/scenario", {"name": "bank-down", "parameters": {"outage": "1h"}})
    traffic.wait(minutes=59)
    assert traffic.pay().status == 503
    traffic.wait(minutes=2)
    assert traffic.pay().status == 201
