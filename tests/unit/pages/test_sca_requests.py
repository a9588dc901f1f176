"""What the TPP's request says, on the pages: the person that it names, and the payment that it initiates."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from emulator.bank.customers import sessions
from emulator.bank.payment import self_service
from tests.known_state import DOMESTIC, KARI, STRAKS
from tests.unit.pages.living import Living, straks
from tests.unit.pages.visitor import Page, Visitor

PERIODIC = "/v1/periodic-payments/norwegian-domestic-credit-transfers"


def asked(emulator: Living, method: str, path: str, body: Any = None, language: str = "nb", **named: str) -> Any:
    """What the bank answers to a request that names Kari, or whom `named` does."""
    headers = {"PSU-Context": "PRIVATE", "PSU-Accept-Language": language, "X-PSU-AuthMethod-Preferred": "HA2"}
    headers |= {"TPP-Redirect-URI": "https://tpp.example/back", **(named or {"X-PSU-IDENTITY": KARI})}
    answer = emulator.call(method, path, headers=headers, **({} if body is None else {"json": body}))
    return json.loads(answer.body or b"null")


def first_page(browser: Visitor, answer: Any) -> Page:
    return browser.get(urlsplit(answer["_links"]["scaRedirect"]["href"]).path)


def at_approval(browser: Visitor, answer: Any) -> Page:
    """The page where Kari sees what she is asked to approve."""
    page = browser.submit(first_page(browser, answer), nationalId=KARI)
    return browser.get(page.headers["location"])


def words(page: Page) -> str:
    return " ".join(page.text.split())


@pytest.mark.parametrize(
    ("method", "path", "says"),
    [
        ("GET", "/v1/accounts", "X-PSU-IDENTITY"),
        ("POST", "/v1/consents", "PSU-ID"),
        ("POST", STRAKS, "X-PSU-IDENTITY"),
        ("POST", STRAKS, "PSU-ID"),
    ],
)
def test_the_field_holds_the_number_that_the_tpp_sent(
    emulator: Living, browser: Visitor, method: str, path: str, says: str
) -> None:
    named = KARI
    if says == "PSU-ID":
        named = sessions.seed(emulator.service.bank, tpp_id="PSDNO-SBX-demo", national_id=KARI)["psuId"]
    page = first_page(
        browser, asked(emulator, method, path, straks() if path == STRAKS else None, "nb", **{says: named})
    )
    assert ("nationalId", KARI if says == "X-PSU-IDENTITY" else "") in page.forms[-1].sent()
    assert page.forms[0].buttons[0].value == KARI


def test_a_standing_order_says_on_which_days_it_is_paid(emulator: Living, browser: Visitor) -> None:
    order = straks(
        frequency="MonthlyVariable",
        startDate="2026-11-23",
        endDate="2028-01-01",
        monthsOfExecution=["1", "6", "12"],
        dayOfExecution="31",
        executionRule="preceding",
    )
    emulator.service.bank.clock.set(now=datetime(2026, 11, 22, 8, tzinfo=UTC), mode="frozen")
    answer = asked(emulator, "POST", PERIODIC, order)
    text = words(at_approval(browser, answer))
    assert "Første betaling31. des. 2026 Månederjan., juni, des. Dag i måneden31 (eller den siste)" in text
    assert "Dato" not in text
    console = words(browser.get(f"/console/payments/{answer['paymentId']}"))
    assert "First payment2026-12-31MonthsJan, June, DecDay of the month31 (or the last)" in console


@pytest.mark.parametrize(
    ("language", "kind", "missing"),
    [
        ("nb", "Fast betaling, månedlig fra 5. mars 2032 til 31. des. 2032", "Melding"),
        ("en", "Standing order, monthly from 5 March 2032 to 31 Dec 2032", "Message"),
    ],
)
def test_a_standing_order_has_its_kid_called_so_and_dates_as_people_write_them(
    emulator: Living, browser: Visitor, language: str, kind: str, missing: str
) -> None:
    order = straks(
        remittanceInformationStructuredArray=[{"reference": "1234567897"}],
        frequency="Monthly",
        startDate="2032-03-05",
        endDate="2032-12-31",
        dayOfExecution="5",
    )
    del order["remittanceInformationUnstructured"]
    emulator.service.bank.clock.set(now=datetime(2032, 2, 2, 8, tzinfo=UTC), mode="frozen")
    page = at_approval(browser, asked(emulator, "POST", PERIODIC, order, language))
    assert kind in page.text
    assert "KID1234567897" in page.text
    assert missing not in page.text
    assert "2032-" not in page.text


@pytest.mark.parametrize(
    ("language", "name", "shown"),
    [
        ("nb", "Even Eksempel", "Navnet stemmer med kontoens eier"),
        ("nb", "Even Exempel", "Navnet ligner; kontoens eier er Even Eksempel"),
        ("en", "E. Eksempel", "The name is similar; the account holder is Even Eksempel"),
        ("nb", "Nobody", "Navnet stemmer ikke med kontoens eier"),
        ("en", "Nobody", "The name does not match the account holder"),
    ],
)
def test_the_name_check_is_shown_before_the_payment_is_approved(
    emulator: Living, browser: Visitor, language: str, name: str, shown: str
) -> None:
    emulator.service.bank.change_settings({"payee_check": "warn"})
    answer = asked(emulator, "POST", STRAKS, straks(creditorName=name), language)
    assert shown in words(at_approval(browser, answer))
    console = browser.get(f"/console/payments/{answer['paymentId']}").text
    assert answer["payeeVerification"]["partyNameMatch"] in console


@pytest.mark.parametrize(
    ("language", "stop", "keep", "decline"),
    [("nb", "Stopp betalingen", "Ikke stopp", "Avvis"), ("en", "Stop the payment", "Do not stop it", "Decline")],
)
def test_the_buttons_of_a_cancellation_say_what_they_do_to_the_payment(
    emulator: Living, browser: Visitor, language: str, stop: str, keep: str, decline: str
) -> None:
    bank = emulator.service.bank
    bank.clock.set(now=datetime(2032, 3, 2, 8, tzinfo=UTC), mode="frozen")
    session = sessions.seed(bank, tpp_id="PSDNO-SBX-demo", national_id=KARI)
    known = {"PSU-ID": session["psuId"], "TPP-Session-ID": session["tppSessionId"]}
    ordered = asked(emulator, "POST", DOMESTIC, straks(requestedExecutionDate="2032-03-05"), language, **known)
    self_service.approve(bank, KARI, ordered["paymentId"])
    path = f"{DOMESTIC}/{ordered['paymentId']}"
    assert asked(emulator, "DELETE", path, None, language, **known)["transactionStatus"] == "ACTC"
    answer = asked(emulator, "POST", f"{path}/cancellation-authorisations", None, language, **known)
    page = at_approval(browser, answer)
    assert [button.value for button in page.forms[-1].buttons] == ["approve", "decline"]
    assert page.text.count(stop) == 3  # the title, the heading and the button
    assert keep in page.text
    assert decline not in page.text
