"""Texts in decomposed form (NFD), as Apple's systems send them, are the same as composed ones wherever they come in."""

from __future__ import annotations

import json
from typing import Any
from unicodedata import normalize

import pytest

from emulator.api.messages import Request
from emulator.api.service import BankService
from emulator.bank import fixtures
from emulator.bank.fixtures import strict_yaml
from emulator.bank.kinds import ACCOUNT, TRANSACTION
from emulator.scenario import loader
from emulator.web.pages.browser import read_form, read_query
from tests.api.control_desk import ControlDesk
from tests.api.desk import DeskClient, advance, approve, messages, ok
from tests.known_state import DOMESTIC, KARI, PAYMENT

KARE = "Kåre Øygård"
NFD = normalize("NFD", KARE)
YAML = ("Content-Type", "application/yaml")


def paid(text: str) -> dict[str, Any]:
    return {**PAYMENT, "creditorName": text, "remittanceInformationUnstructured": text}


@pytest.mark.parametrize("escaped", [True, False], ids=["escapes", "letters"])
def test_a_decomposed_text_is_booked_as_it_was_meant_and_each_letter_counts_once(
    kari: DeskClient, service: BankService, escaped: bool
) -> None:
    def post(text: str) -> Any:
        return kari.request("POST", DOMESTIC, body=json.dumps(paid(text), ensure_ascii=escaped).encode())

    payment = ok(post(NFD), 201)
    approve(service, payment["paymentId"], national_id=KARI)
    shown = ok(kari.get(f"{DOMESTIC}/{payment['paymentId']}"))
    assert (shown["creditorName"], shown["transactionStatus"]) == (KARE, "ACTC")
    advance(service, seconds=10)
    booked = [
        entry["remittanceInformationUnstructured"]
        for entry in service.bank.documents.all(TRANSACTION)
        if entry.get("paymentId") == payment["paymentId"]
    ]
    assert set(booked) == {KARE}
    ok(post(normalize("NFD", "å" * 70)), 201)
    assert messages(post(normalize("NFD", "å" * 71))) == [("FORMAT_ERROR", "creditorName")]


def test_only_texts_that_may_be_within_a_limit_are_composed(kari: DeskClient) -> None:
    # To compose a megabyte of marks would keep the bank busy for minutes.
    for sent, stored in (("A\u030a" * 500, "Å" * 500), ("A\u030a" * 501, "A\u030a" * 501)):
        body = {**PAYMENT, "creditorAddress": {"country": "NO", "city": sent}}
        payment = ok(kari.post(DOMESTIC, json=body), 201)
        shown = ok(kari.get(f"{DOMESTIC}/{payment['paymentId']}"))
        assert shown["creditorAddress"]["city"] == stored


@pytest.mark.parametrize("sent", [KARE, NFD], ids=["NFC", "NFD"])
@pytest.mark.parametrize("stated", [KARE, NFD], ids=["NFC", "NFD"])
def test_the_conditions_of_rules_and_counts_compare_letters(
    kari: DeskClient, desk: ControlDesk, sent: str, stated: str
) -> None:
    rules = {
        "json": {"name": "json", "when": {"body": {"creditorName": stated}}, "then": {"delay": "0s"}},
        "regex": {
            "name": "regex",
            "when": {"body": {"creditorName": {"regex": f"^{stated}$"}}},
            "then": {"fee": "1.00"},
        },
    }
    for rule in rules.values():
        desk.do("POST", "/rules", rule)
    when = f'{{body: {{creditorName: "{stated}"}}}}'
    scenario = f"scenario: own\nrules: [{{name: yaml, when: {when}, then: {{quota: exhausted}}}}]"
    assert desk.raw("POST", "/scenario", YAML, body=scenario.encode()).status == 200
    ready = {"name": "pending-for-days", "parameters": {"creditor": stated}}
    desk.do("POST", "/scenario", ready)
    brand = "TPP-Brand-Logging-Information"
    desk.do("POST", "/rules", {"name": "header", "when": {"headers": {brand: stated}}, "then": {"malformed": "empty"}})
    kari.post(DOMESTIC, json=paid(sent), headers={brand: sent})
    counts = {rule["name"]: rule["matched"] for rule in desk.get("/rules")["counts"]}
    assert all(matched for name, matched in counts.items() if not name.endswith((", abroad", ", in a bulk"))), counts
    counted = desk.do("POST", "/requests/count", {"match": {"body": {"creditorName": stated}}})
    assert counted["count"] == 1


def test_fixtures_sandbox_data_searches_and_forms_are_composed(tpp: DeskClient, service: BankService) -> None:
    body = {"customerNumber": "14888520999", "name": NFD, "type": "private"}
    assert ok(tpp.post("/v1/sandbox/customers", json=body), 201)["customerName"] == KARE
    read = strict_yaml.read(f'{NFD}: [{NFD}, "{NFD}", "K\\u0061\\u030are Øygård"]').value
    assert read == {KARE: [KARE] * 3}
    fixture = (
        f"fixture: own\nsummary: {NFD}\ncustomers:\n- {{customerNumber: '14888520059', name: {NFD}, type: private}}\n"
    )
    assert fixtures.parse(fixture, "own.yaml").definitions.customers[0].name == KARE
    assert loader.from_value({"scenario": "own", "summary": NFD}).summary == KARE
    service.bank.change_settings({"feed": [{"effect": "late", "when": {"creditorName": NFD}}]})
    assert KARE in str(service.bank.settings.as_document()["feed"])
    typed = "q=Ka%CC%8Are+%C3%98yga%CC%8Ard"
    assert read_query(Request("GET", f"/console/customers?{typed}")).get("q") == KARE
    form = ("Content-Type", "application/x-www-form-urlencoded")
    assert read_form(Request("POST", "/my", (form,), typed.encode())).get("q") == KARE
    assert service.bank.documents.count(ACCOUNT)
