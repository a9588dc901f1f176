"""The setting `weather`: bad days of every kind come as the seed draws them, and a careful client gets through."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from emulator.api.messages import Request
from emulator.api.service import BankService
from emulator.bank.bank import Bank
from emulator.bank.kinds import ACCOUNT, KINDS, PAYMENT, SCA
from emulator.bank.settings import ROUGH_FEED, Settings
from emulator.ca import CertificateAuthority
from emulator.scenario.rules import WEATHER, RuleSet
from emulator.store import memory_store
from tests.api.control_desk import ControlDesk
from tests.api.desk import BASE, DeskClient, advance, approve, monday, seeded_registry
from tests.known_state import EVEN, KARI
from tests.unit.payments.world import domestic

PAY = "/v1/payments/norwegian-domestic-credit-transfers"
ORDERS = 40
PATIENCE = 6


class Lost(Exception):
    """The connection closed without an answer."""


class Shop(DeskClient):
    """A TPP that sees what the web side would deliver: an answer, late or not, or a closed connection."""

    numbers = 0
    waited = 0.0

    def attempt(self, method: str, path: str, *, request_id: str | None = None, json: Any = None) -> Any:
        Shop.numbers += 1
        headers = {"X-Request-ID": request_id or str(UUID(int=Shop.numbers))}
        prepared = self.prepare(method, path, headers=headers, json=json)
        request = Request(prepared.method, prepared.target, tuple(prepared.headers.items()), prepared.body, BASE)
        answer = self.service.handle(request)
        self.waited += answer.delivery.delay
        if answer.delivery.disconnect is not None:
            raise Lost
        return answer

    def carefully(self, method: str, path: str, **options: Any) -> Any:
        """The same request, with the same X-Request-ID, until it is answered and the bank is there."""
        Shop.numbers += 1
        options["request_id"] = str(UUID(int=10**9 + Shop.numbers))
        for _ in range(PATIENCE):
            try:
                answer = self.attempt(method, path, **options)
            except Lost:
                continue
            if answer.status != 503:
                return answer
        raise AssertionError("the weather is worse than rough")


def body(order: int) -> dict[str, Any]:
    return domestic(f"{order + 1}.00", remittanceInformationUnstructured=f"Order {order}")


@pytest.fixture
def shop(service: BankService, authority: CertificateAuthority) -> Shop:
    service.bank.change_settings({"weather": "rough"})
    shop = Shop(service, authority)
    shop.log_in(KARI)
    return shop


@pytest.mark.inside  # how late an answer is, is known there
def test_a_careful_one_pays_each_order_once(shop: Shop) -> None:
    for order in range(ORDERS):
        answer = shop.carefully("POST", PAY, json=body(order))
        assert answer.status == 201
    ids = [payment["id"] for payment in shop.service.bank.documents.all(PAYMENT)]
    assert len(ids) == ORDERS
    for payment_id in ids:
        approve(shop.service, payment_id)
    advance(shop.service, seconds=20)
    for payment_id in ids:
        assert b'"ACSC"' in shop.carefully("GET", f"{PAY}/{payment_id}/status").body
    assert shop.waited > 0


def test_some_pending_transactions_are_booked_under_another_id(shop: Shop) -> None:
    bank = shop.service.bank
    for order in range(30):
        approve(shop.service, shop.carefully("POST", PAY, json=body(order)).body.decode().split('"')[3])
    account = bank.documents.first(ACCOUNT, bban="99901000014")
    assert account is not None
    address = f"/v1/accounts/{account['id']}/transactions?limit=500"

    def ids(shelf: str) -> set[str]:
        listed = json.loads(shop.carefully("GET", address).body)["transactions"][shelf]
        return {entry["transactionId"] for entry in listed}

    rough = ids("pending")
    bank.change_settings({"weather": "calm"})
    calm = ids("pending")
    assert 0 < len(calm - rough) < len(calm) / 2
    assert len(rough) == len(calm)
    bank.change_settings({"weather": "rough", "feed": [{"effect": "late"}]})
    assert bank.settings.drift == [{"effect": "late"}, *ROUGH_FEED]


def test_every_kind_of_bad_day_comes_and_is_shown_as_what_it_is(shop: Shop, desk: ControlDesk) -> None:
    mine = {"name": "mine", "when": {"operation": "getAccounts"}, "then": {"delay": "1s"}}
    desk.do("POST", "/rules", mine)
    for order in range(300):
        shop.carefully("POST", PAY, json=body(order))
    listed = desk.get("/rules")
    assert listed["rules"] == [mine, *WEATHER["rough"]]
    counts = {count["name"]: count for count in listed["counts"]}
    assert "setting" not in counts.pop("mine")
    assert all(count["setting"] == "weather" and 0 < count["acted"] < count["matched"] / 2 for count in counts.values())
    assert any(sca.get("delay") == 3.0 for sca in shop.service.bank.documents.all(SCA))
    assert desk.get("/settings")["weather"] == "rough"


def test_it_goes_with_the_setting_and_only_with_that(shop: Shop, desk: ControlDesk) -> None:
    assert desk.ask("DELETE", "/rules/weather:%20lost%20answer").status == 404
    desk.do("DELETE", "/rules")
    assert len(desk.get("/rules")["rules"]) == len(WEATHER["rough"])
    desk.do("PUT", "/settings", {"weather": "calm"})
    assert desk.get("/rules") == {"rules": [], "counts": []}
    assert all(shop.attempt("POST", PAY, json=body(order)).status == 201 for order in range(ORDERS))


def test_a_setting_that_is_taken_back_takes_its_weather_along(shop: Shop) -> None:
    rules = shop.service.rules

    def change() -> None:
        with shop.service.bank.documents.transaction():
            shop.service.bank.change_settings({"weather": "calm"})
            assert rules.rules == []
            raise Lost

    with pytest.raises(Lost):
        change()
    assert len(rules.rules) == len(WEATHER["rough"])


def test_rules_that_are_posted_as_they_were_read_leave_the_weather_to_its_setting(desk: ControlDesk) -> None:
    own = {"when": {"operation": "createPayment"}, "then": {"disconnect": "after"}}
    desk.do("PUT", "/settings", {"weather": "rough"})
    desk.do("POST", "/rules", own)
    read = desk.get("/rules")
    assert len(read["rules"]) == 1 + len(WEATHER["rough"])
    desk.do("PUT", "/settings", {"weather": "calm"})
    for body in ({"rules": read["rules"]}, read["rules"]):
        desk.do("DELETE", "/rules")
        assert desk.do("POST", "/rules", body)["rules"] == [own]


def test_sandbox_data_has_good_days_always(shop: Shop) -> None:
    for number in range(ORDERS):
        answer = shop.attempt(
            "POST",
            "/v1/sandbox/customers",
            json={"customerNumber": f"9{number:07}", "name": "Nina Ny", "type": "private"},
        )
        assert answer.status == 201


def test_the_same_seed_brings_the_same_weather(authority: CertificateAuthority) -> None:
    def days() -> list[Any]:
        service = monday(seeded_registry(authority))
        service.bank.change_settings({"weather": "rough"})
        shop = Shop(service, authority)
        shop.log_in(EVEN)
        for number in range(ORDERS):
            try:
                shop.attempt("GET", "/v1/accounts", request_id=f"read-{number}")
            except Lost:
                continue
        return [(entry.rules, entry.response.delivery) for entry in service.log.entries(limit=ORDERS) if entry.response]

    assert days() == days()


def test_a_bank_may_have_rough_weather_from_its_start() -> None:
    bank = Bank(memory_store(KINDS), defaults=Settings(weather="rough"))
    assert [count.get("setting") for count in RuleSet(bank).counts()] == ["weather"] * len(WEATHER["rough"])
