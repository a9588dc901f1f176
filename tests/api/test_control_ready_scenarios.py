"""Every ready scenario, applied with its defaults, does what its name says to a TPP and a customer of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from emulator.api.messages import Request
from emulator.bank import notifications, products
from emulator.bank.clock import stamp
from emulator.bank.notification_targets import Host
from emulator.ca import CertificateAuthority
from emulator.scenario import loader
from emulator.scenario.loader import Scenario
from tests.api.control_desk import ControlDesk
from tests.api.desk import BASE, DeskClient, advance, approve
from tests.known_state import BULK, CROSS_BORDER, DOMESTIC, EVEN, KARI, PERIODIC, SEPA, STRAKS
from tests.postgres.remote import RemoteService, inside
from tests.unit.payments.world import GERMAN

FIRM = "21909220006"
KID = "120014782"
FROM = {"PRIVATE": ("99901100019", "NO4299901100019"), "CORPORATE": ("99911000012", "NO2799911000012")}


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


def _permission_removed(t: Traffic, account: str) -> None:
    assert (t.pay().status, t.balances(account)[0]) == (403, 200)


def _quota_exhausted(t: Traffic, account: str) -> None:
    t.status(f"{DOMESTIC}/{t.pay().json()['paymentId']}")
    assert {count["matched"] for count in t.desk.get("/rules")["counts"]} == {0}
    _quota(t, account)


def _quota(t: Traffic, account: str) -> None:
    assert t.balances(account, **{"PSU-IP-Address": None}) == (429, "ACCESS_EXCEEDED")


def _slow_bank(t: Traffic, _: str) -> None:
    payment = f"{DOMESTIC}/{t.pay().json()['paymentId']}"
    assert [t.delivery(f"{payment}/status").delay for _ in range(3)] == [0, 0, 0]
    delays = [t.delivery("/v1/accounts").delay for _ in range(3)]
    assert delays[:2] == [0, 0]
    assert 1 <= delays[2] <= 2


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


def _notifications(
    *attempts: int, order: tuple[str, ...] = ("ACTC", "ACSP", "ACSC"), an_hour_later: str = "delivered"
) -> Callable[[Traffic, str], None]:
    """How often each status is delivered, and the state of all of them after an hour."""

    def check(traffic: Traffic, _: str) -> None:
        delivered = [(status, len(attempts)) for status, attempts, _ in _told(traffic)]
        assert delivered == list(zip(order, attempts, strict=True))
        advance(traffic.service, hours=1)
        notifications.deliver(traffic.service.bank)
        states = {one["state"] for one in notifications.listing(traffic.service.bank)}
        assert states == {an_hour_later}

    return check


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
    "consent-expired": _refused_read("CONSENT_EXPIRED"),
    "consent-revoked": _refused_read("CONSENT_UNKNOWN"),
    "expired-certificate": _expired_certificate,
    "joint-account": _joint,
    "late-item": _late_item,
    "malformed-answers": _malformed,
    "notifications-dropped": _notifications(0, 0, 0, an_hour_later="dropped"),
    "notifications-forged": _notifications_forged,
    "notifications-late": _notifications(0, 0, 0),
    "notifications-reordered": _notifications(1, 1, 0, order=("ACSP", "ACTC", "ACSC")),
    "notifications-twice": _notifications(2, 2, 2),
    "pending-vanishes": _vanishes,
    "permission-removed": _permission_removed,
    "quota-exhausted": _quota_exhausted,
    "quota-used-up": _quota,
    "renumbered-day": _renumbered,
    "session-over": _session_over,
    "shown-twice": _shown_twice,
    "slow-bank": _slow_bank,
    "tampered-request": _tampered_request,
}


FORMS: dict[str, dict[str, Any]] = {
    "none": {},
    "text": {"remittanceInformationUnstructured": "Faktura 7"},
    "object": {"remittanceInformationStructured": {"reference": KID}},
    "array": {"remittanceInformationStructuredArray": [{"reference": KID}]},
}
PRODUCTS = tuple(f"/v1/{service}/{product}" for service, product in products.table())
ABROAD = (SEPA, CROSS_BORDER)


@dataclass(frozen=True)
class Order:
    """A payment of one product, in one context, with one form of remittance information."""

    t: Traffic
    path: str
    context: str
    form: str

    @property
    def tpp(self) -> DeskClient:
        return self.t.firm if self.context == "CORPORATE" else self.t.shop

    @property
    def has_kid(self) -> bool:
        return self.form in ("object", "array")

    def body(self, remittance: dict[str, Any] | None = None) -> dict[str, Any]:
        bban, iban = FROM[self.context]
        remittance = FORMS[self.form] if remittance is None else remittance
        if self.path in ABROAD:
            return {
                "instructedAmount": {"amount": "10.00", "currency": "EUR"},
                "creditorName": "Muster Verlag GmbH",
                "creditorAccount": {"iban": GERMAN, "currency": "EUR"},
                "debtorAccount": {"iban": iban, "currency": "NOK"},
                **remittance,
            }
        one = {
            "instructedAmount": {"amount": "12.50", "currency": "NOK"},
            "creditorName": "ACME Widgets",
            "creditorAccount": {"bban": "99921000061", "currency": "NOK"},
            "creditorAddress": {"country": "NO"},
            **remittance,
        }
        debtor = {"debtorAccount": {"bban": bban, "currency": "NOK"}}
        if self.path == BULK:
            return {**debtor, "payments": [one, one]}
        start = {"startDate": self.today(), "frequency": "Monthly"} if self.path == PERIODIC else {}
        return {**one, **debtor, **start}

    def today(self) -> str:
        now: str = self.t.desk.get("/clock")["now"]
        return now[:10]

    def create(self, remittance: dict[str, Any] | None = None, **headers: str) -> Any:
        return self.tpp.post(self.path, json=self.body(remittance), headers=headers)

    def approved(self) -> str:
        payment = self.create().json()["paymentId"]
        approve(self.t.service, payment)
        return f"{self.path}/{payment}"

    def state(self, payment: str) -> dict[str, Any]:
        details: dict[str, Any] = self.tpp.get(payment).json()
        return details | dict(self.tpp.get(f"{payment}/status").json())

    def status(self, payment: str) -> str:
        return str(self.state(payment)["transactionStatus"])

    def executions(self, payment: str) -> list[str]:
        return [one["transactionStatus"] for one in self.state(payment)["executions"]]

    def is_left_alone(self) -> None:
        """The payment goes its own way, and the bank says so in the rules and in the request log."""
        payment = self.approved()
        self.t.wait(seconds=5)
        if self.path == PERIODIC:
            assert (self.status(payment), self.executions(payment)) == ("ACTC", ["ACSC"])
        else:
            assert self.status(payment) == "ACSC"
        product = self.path.removeprefix("/v1/")
        notes = [note for count in self.t.desk.get("/rules")["counts"] for note in count.get("notes", ())]
        assert any(note.startswith(f"{product} has no step from ") for note in notes)
        (created,) = self.t.desk.get("/requests?operation=createPayment&limit=1")["requests"]
        assert "rules" not in created
        assert f"{product} has no step from " in created["notes"][0]


def _waits(days: int, first: str = "ACTC") -> Callable[[Order], None]:
    def check(order: Order) -> None:
        if order.path in (STRAKS, PERIODIC):
            order.is_left_alone()
            return
        payment = order.approved()
        assert order.status(payment) == first
        order.t.wait(days=days, seconds=-2)
        assert order.status(payment) == "PDNG"
        order.t.wait(days=1)
        assert order.status(payment) == "ACSC"

    return check


def _cancelled_by_bank(order: Order) -> None:
    if order.path in (STRAKS, PERIODIC):
        order.is_left_alone()
        return
    payment = order.approved()
    order.t.wait(minutes=61)
    assert order.status(payment) == "CANC"


def _every_second_is_rejected(order: Order) -> None:
    payments = [order.approved() for _ in range(2)]
    order.t.wait(seconds=10)
    usual = "ACTC" if order.path == PERIODIC else "ACSC"
    assert [order.status(payment) for payment in payments] == [usual, "RJCT"]


def _fees(order: Order) -> None:
    fees = order.create().json().get("transactionFees")
    assert fees == ({"amount": "35.00", "currency": "NOK"} if order.path in ABROAD else None)


def _kid(order: Order) -> None:
    answer = order.create()
    if order.path in ABROAD or order.has_kid:
        assert answer.status == 201
    else:
        assert (answer.status, _code(answer)) == (400, "KID_MISSING")
    if order.has_kid:
        wrong = {"reference": "120014783"}
        (member,) = FORMS[order.form]
        assert _code(order.create({member: [wrong] if order.form == "array" else wrong})) == "KID_INVALID"


def _insufficient_funds(order: Order) -> None:
    payment = order.approved()
    order.t.wait(seconds=10)
    assert order.state(payment)["fundsAvailable"] is False
    assert order.status(payment) == ("ACTC" if order.path == PERIODIC else "ACCP")


def _never_enough_money(order: Order) -> None:
    payment = order.approved()
    order.t.wait(days=10)
    if order.path == PERIODIC:
        assert order.executions(payment) == ["RJCT"]
    else:
        assert order.status(payment) == "RJCT"


def _lost_answer(order: Order) -> None:
    request_id = {"X-Request-ID": f"{order.path} {order.context} {order.form}"}
    before = len(order.t.desk.get("/payments?limit=1000")["payments"])
    for rules in ([True], []):
        status = order.create(**request_id).status
        assert status == 201 or (rules and status == 0), "over a connection nothing arrives"
        (exchange,) = order.t.desk.get("/requests?operation=createPayment&limit=1")["requests"]
        assert ["gets lost" in name for name in exchange.get("rules", ())] == rules
    assert len(order.t.desk.get("/payments?limit=1000")["payments"]) == before + 1


def _lost_request(order: Order) -> None:
    before = len(order.t.desk.get("/payments?limit=1000")["payments"])
    assert order.create().status == 0
    assert len(order.t.desk.get("/payments?limit=1000")["payments"]) == before
    assert order.create().status == 201


def _no_payments(order: Order) -> None:
    assert (order.create().status, order.tpp.get("/v1/accounts").status) == (403, 200)


def _down(order: Order) -> None:
    assert order.create().status == 503
    order.t.wait(minutes=10)
    assert order.create().status == 201


def _sca(code: str, status: str) -> Callable[[Order], None]:
    def check(order: Order) -> None:
        payment = order.create().json()["paymentId"]
        assert approve(order.t.service, payment)["code"] == code
        assert order.status(f"{order.path}/{payment}") == status

    return check


def _sca_abandoned(order: Order) -> None:
    payment = order.create().json()["paymentId"]
    assert approve(order.t.service, payment) == {}
    order.t.wait(hours=23)
    assert order.status(f"{order.path}/{payment}") == "RCVD"
    order.t.wait(hours=2)
    assert order.status(f"{order.path}/{payment}") == "RJCT"


def _payee_check(order: Order) -> None:
    assert ("payeeVerification" in order.create().json()) == (order.path in (STRAKS, SEPA))


def _two_signatures(order: Order) -> None:
    payment = order.approved()
    assert (order.status(payment) == "PATC") == (order.context == "CORPORATE")


PAYMENTS: dict[str, Callable[[Order], None]] = {
    "bank-down": _down,
    "basket-one-fails": _every_second_is_rejected,
    "cancelled-by-bank": _cancelled_by_bank,
    "fees-and-exchange": _fees,
    "insufficient-funds": _insufficient_funds,
    "kid-missing-or-invalid": _kid,
    "late-booking": _waits(5),
    "lost-answer": _lost_answer,
    "lost-request": _lost_request,
    "moved-by-cut-off": _waits(1, "ACWC"),
    "never-enough-money": _never_enough_money,
    "payee-check": _payee_check,
    "pending-for-days": _waits(3),
    "permission-removed": _no_payments,
    "sca-abandoned": _sca_abandoned,
    "sca-declined": _sca("SCA_INVALID", "RJCT"),
    "sca-expired": _sca("SCA_EXPIRED", "RCVD"),
    "sca-server-error": _sca("SYSTEM_ERROR", "RCVD"),
    "two-signatures": _two_signatures,
}


# A condition on creditorName does not match a bulk, which has no creditor of its own.
BY_CREDITOR = (
    *("basket-one-fails", "cancelled-by-bank", "kid-missing-or-invalid", "late-booking", "lost-answer"),
    *("lost-request", "moved-by-cut-off", "pending-for-days", "sca-abandoned"),
)


OF_THE_FORM = "kid-missing-or-invalid"  # the only one to which the form of the remittance information matters


def _for_every_payment(t: Traffic, name: str, source: Any, path: str) -> None:
    """Apply a scenario before payments of a product, in one context or the other, and hold it to its promise."""
    if path == BULK and name in BY_CREDITOR:
        return
    forms = ("none", "text") if path in ABROAD else tuple(FORMS)
    ways = list(zip(FROM, (forms[0], forms[-1]), strict=True))
    for context, form in product(FROM, forms) if name == OF_THE_FORM else [ways[PRODUCTS.index(path) % 2]]:
        t.desk.do("POST", "/scenario", source)
        PAYMENTS[name](Order(t, path, context, form))


@pytest.mark.parametrize("name", PAYMENTS)
def test_it_does_what_it_promises_to_every_payment_that_it_matches(traffic: Traffic, name: str) -> None:
    for path in PRODUCTS:
        _for_every_payment(traffic, name, {"name": name}, path)
    assert traffic.desk.get("/ledger")["balanced"] is True


READY = {name: loader.named(name) for name in loader.library()}
RESETS = ("accept-fix-after", "accept-fix-before")  # a day that is past comes back only with the state of a fixture


def test_every_ready_scenario_promises_something_or_can_only_be_played() -> None:
    assert {name for name, scenario in READY.items() if scenario.play_only} == set(READY) - {*PROMISES, *PAYMENTS}
    assert {name for name in PROMISES if READY[name].start.resets} == set(RESETS)


def inside_where_sent(name: str, *more: Any) -> Any:
    """A scenario of notifications is looked at where they are sent, in the bank's own process."""
    return pytest.param(name, *more, marks=[pytest.mark.inside] if name.startswith("notifications-") else [])


@pytest.mark.parametrize("name", [inside_where_sent(name) for name in PROMISES])
def test_applied_with_its_defaults_it_does_what_its_name_says(traffic: Traffic, name: str) -> None:
    account = traffic.account()
    applied = traffic.desk.do("POST", "/scenario", {"name": name})
    assert applied["scenario"] == name
    PROMISES[name](traffic, account)
    assert traffic.desk.get("/ledger")["balanced"] is True


# With a rule, a change of money and of access, an effect on the feed, and a setting.
@pytest.mark.parametrize(
    "name",
    ["bank-down", "insufficient-funds", "consent-expired", "shown-twice", "never-enough-money", "two-signatures"],
)
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
    stop = traffic.desk.events().subscribe(events.append)
    preview = traffic.desk.do("POST", "/scenario/preview", {"name": "accept-fix-before"})
    stop()
    assert traffic.desk.service.bank.documents.dump() == before
    assert traffic.desk.get("/clock") == {"now": "2026-03-02T08:00:00+00:00", "mode": "frozen"}
    assert [count["name"] for count in traffic.desk.get("/rules")["counts"]] == ["mine"]
    assert [event for event in events if b"data: " in event] == []
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


def test_a_parameter_with_a_mistake_is_refused(desk: ControlDesk) -> None:
    for body, path, message in (
        ({"name": "lost-answer", "parameters": {"creditr": "x"}}, "parameters.creditr", "did you mean creditor?"),
        ({"name": "consent-expired", "parameters": {"x": "y"}}, "parameters.x", "The scenario has no parameters."),
        ({"name": "lost-answer", "parameters": []}, "parameters", "Expected a mapping, found an empty list."),
        ({"name": "lost-answer", "parameters": {"creditor": None}}, "parameters.creditor", "Expected a value"),
        ({"name": "bank-down", "parameters": {"outage": "soon"}}, "rules[0].times.for", "Expected a duration"),
        ({"name": "lost-answer", "parameters": {"creditor": []}}, "parameters.creditor.default", "Expected one value"),
    ):
        refused = desk.ask("POST", "/scenario", body)
        assert (refused.status, ("FORMAT_ERROR", path) in refused.errors()) == (400, True), body
        assert message in refused.texts(), body
        assert desk.get("/rules")["rules"] == [], body


def test_what_the_list_says_of_a_scenario_is_what_applying_it_does(desk: ControlDesk) -> None:
    for line in desk.get("/scenarios")["scenarios"]:
        scenario: Scenario = READY[line["name"]]
        assert line["reset"] is scenario.start.resets
        assert line["play"] == ("only" if scenario.play_only else None)
        assert line["clock"] == (None if scenario.start.clock is None else stamp(scenario.start.clock)[:19] + "+00:00")
        for parameter in line["parameters"].values():
            assert set(parameter) == {"default", "about"}
