"""Whatever a rule, a feed or the settings take has an effect: conditions decide, settings change answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from emulator.api.service import BankService
from emulator.bank.clock import real_now
from emulator.bank.feed import FeedMatch
from emulator.bank.settings import TAKES, Settings
from emulator.ca import CertificateAuthority
from emulator.scenario.matching import When
from tests.api.control_desk import ControlDesk
from tests.api.desk import DeskClient, advance, approve
from tests.known_state import DOMESTIC, EVEN, KARI, PAYMENT, SIRI, STRAKS

DOWN = {"answer": {"status": 503}}


@dataclass
class World:
    """A bank with a TPP and its customers."""

    desk: ControlDesk
    authority: CertificateAuthority
    kari: DeskClient

    def client(self, national_id: str = KARI, *, name: str = "demo", **more: Any) -> DeskClient:
        return DeskClient(self.kari.service, self.authority, name=name).log_in(national_id, **more)

    @property
    def service(self) -> BankService:
        return self.kari.service

    def account(self, place: int = 0) -> str:
        return str(self.kari.get("/v1/accounts").json()["accounts"][place]["resourceId"])

    def pay(self, path: str = DOMESTIC, *, headers: dict[str, Any] | None = None, **more: Any) -> Any:
        return self.kari.post(path, json={**PAYMENT, **more}, headers=headers)

    def paid(self, path: str = DOMESTIC, **more: Any) -> dict[str, Any]:
        """What the status of an approved payment says a moment later."""
        payment = self.pay(path, **more).json()["paymentId"]
        approve(self.service, payment)
        advance(self.service, seconds=1)
        status: dict[str, Any] = self.kari.get(f"{path}/{payment}/status").json()
        return {name: value for name, value in status.items() if name not in ("paymentId", "_links")}


@pytest.fixture
def world(desk: ControlDesk, authority: CertificateAuthority, tpp: DeskClient) -> World:
    return World(desk, authority, tpp.log_in(KARI))


Send = Callable[[World], Any]


def accounts(world: World) -> Any:
    return world.kari.get("/v1/accounts")


def pay(world: World) -> Any:
    return world.pay()


# For each condition: a value, a request that meets it, and one that does not.
CONDITIONS: dict[str, tuple[Any, Send, Send]] = {
    "operation": ("getAccounts", accounts, pay),
    "service": ("payments", pay, accounts),
    "product": ("norwegian*", pay, lambda w: w.pay(STRAKS, creditorAddress={"country": "NO"})),
    "payment": ("*", lambda w: w.kari.get(f"{DOMESTIC}/{w.pay().json()['paymentId']}"), pay),
    "account": (
        "NO8599901000014",
        lambda w: w.kari.get(f"/v1/accounts/{w.account()}"),
        lambda w: w.kari.get(f"/v1/accounts/{w.account(1)}"),
    ),
    "method": ("POST", pay, accounts),
    "path": ("/v1/accounts", accounts, pay),
    "tpp": ("another", lambda w: w.client(name="another").get("/v1/accounts"), accounts),
    "psu": (EVEN, lambda w: w.client(EVEN).get("/v1/accounts"), accounts),
    "context": ("CORPORATE", lambda w: w.client(SIRI, context="CORPORATE").get("/v1/accounts"), accounts),
    "headers": ({"PSU-IP-Port": "8080"}, lambda w: w.pay(headers={"PSU-IP-Port": "8080"}), pay),
    "query": ({"withBalance": "true"}, lambda w: w.kari.get("/v1/accounts?withBalance=true"), accounts),
    "body": ({"creditorName": "E*"}, pay, lambda w: w.pay(creditorName="Other")),
}


@pytest.mark.parametrize("name", [name for name in When.model_fields if name != "status"])
def test_each_condition_of_a_rule_decides(world: World, name: str) -> None:
    value, meets, does_not = CONDITIONS[name]
    world.desk.do("POST", "/rules", {"when": {name: value}, "then": DOWN})
    assert meets(world).status == 503
    assert does_not(world).status in (200, 201)


# For each condition of a feed a value that some entries of the known state have, and others do not.
FEED: dict[str, Any] = {
    "account": "NO8599901000014",
    "status": "booked",
    "transactionId": "*a",
    "bookingDate": "2026-02-*",
    "valueDate": "2026-02-*",
    "transactionAmount": {"amount": {"lt": 0}},
    "creditorName": "K*",
    "creditorAccount": {"bban": "9992*"},
    "debtorName": "P*",
    "debtorAccount": {"iban": "NO27*"},
    "endToEndId": "MV-HONORAR",
    "remittanceInformationUnstructured": "Lønn",
    "bankTransactionCode": "PMNT-CCRD-POSD",
    "proprietaryBankTransactionCode": "Overføring",
    "purposeCode": "SALA",
    "cardTransactionId": "*a",
    "transactionDate": "2026-02-*",
    "originalAmount": {"currency": "EUR"},
    "merchantCategoryCode": "5411",
    "transactionDetails": "K*",
}


def test_each_condition_of_a_feed_decides(world: World) -> None:
    assert FEED.keys() == {field.alias or name for name, field in FeedMatch.model_fields.items()}
    siri = world.client(SIRI, context="CORPORATE")
    even = world.client(EVEN)

    def listed() -> list[Any]:
        ids = []
        for client in (world.kari, even, siri):
            for kind, shelf, member in (
                ("accounts", "transactions", "transactionId"),
                ("card-accounts", "cardTransactions", "cardTransactionId"),
            ):
                held = client.get(f"/v1/{kind}").json()
                for account in held.get("accounts") or held.get("cardAccounts") or []:
                    path = f"/v1/{kind}/{account['resourceId']}/transactions?limit=500"
                    entries = client.get(path).json()[shelf]
                    ids += [entry[member] for part in ("booked", "pending") for entry in entries[part]]
        return ids

    before = listed()
    for name, value in FEED.items():
        world.desk.do("PUT", "/settings", {"feed": [{"effect": "renumber-day", "when": {name: value}}]})
        same = set(before) & set(listed())
        assert 0 < len(same) < len(set(before)), name


def _profile(w: World) -> Any:
    return w.kari.get("/v1/accounts", headers={"TPP-Redirect-URI": None}).status


def _signed(w: World) -> Any:
    return "Signature" in w.kari.get("/v1/accounts").headers


def _late(w: World) -> Any:
    return w.kari.get("/v1/accounts", headers={"Date": "Mon, 01 Jan 2024 00:00:00 GMT"}).status


def _pending(w: World) -> Any:
    path = f"/v1/accounts/{w.account()}/transactions?dateFrom=2026-01-01&dateTo=2026-01-02"
    return len(w.kari.get(path).json()["transactions"]["pending"])


def _unknown_issuer(w: World) -> Any:
    other = CertificateAuthority(None, clock=real_now)
    return DeskClient(w.service, other, name="stranger").get("/v1/sandbox/customers").status


def _known_issue(w: World) -> Any:
    return w.kari.get(f"{DOMESTIC}/{w.pay().json()['paymentId']}").status


def _judged(w: World) -> Any:
    w.desk.do("DELETE", "/conformance")
    w.kari.get("/v1/accounts")
    return w.desk.get("/conformance")["summary"]


def _notified(w: World) -> Any:
    return w.pay(headers={"TPP-Notification-URI": "https://tpp.example/n"}).headers.get("ASPSP-Notification-Support")


def _weather(w: World) -> Any:
    return [count["setting"] for count in w.desk.get("/rules")["counts"] if "setting" in count]


def _feed(w: World) -> Any:
    path = f"/v1/accounts/{w.account()}/transactions"
    return [entry["transactionId"] for entry in w.kari.get(path).json()["transactions"]["booked"]]


def _instant(w: World) -> Any:
    return w.pay(STRAKS, creditorAddress={"country": "NO"}).status


def _verified(w: World) -> Any:
    return w.pay(STRAKS, creditorAddress={"country": "NO"}).json().get("payeeVerification")


# For each setting another value than its default, and what it changes.
SETTINGS: dict[str, tuple[Any, Send]] = {
    "profile": ("lenient", _profile),
    "links": ("absolute", lambda w: w.kari.get("/v1/accounts").json()["accounts"][0]["_links"]["self"]["href"]),
    "trust": ("sandbox-ca", _unknown_issuer),
    "date_skew": (10**9, _late),
    "sign_responses": (True, _signed),
    "pending": ("unfiltered", _pending),
    "progression": ("immediate", lambda w: w.paid()),
    "funds_check": ("initiation", lambda w: w.pay(instructedAmount={"amount": "9999999.00", "currency": "NOK"}).status),
    "calendar": ("norway", lambda w: w.paid()),
    "straks_limit": ("1.00", _instant),
    "payee_check": ("warn", _verified),
    "weather": ("rough", _weather),
    "known_issues": (True, _known_issue),
    "conformance": (False, _judged),
    "notifications": (True, _notified),
    "account_ids": ("renewed", lambda w: w.client().get("/v1/accounts").json()["accounts"][0]["resourceId"]),
    "feed": ([{"effect": "renumber-day"}], _feed),
}


@pytest.mark.parametrize("name", TAKES)
def test_each_setting_changes_something(world: World, name: str) -> None:
    value, probe = SETTINGS[name]
    assert Settings().as_document()[name] != value
    before = probe(world)
    world.desk.do("PUT", "/settings", {name: value})
    assert probe(world) != before
