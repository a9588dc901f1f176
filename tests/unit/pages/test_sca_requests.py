"""What the TPP's request says, on the pages: the person that it names, and the payment that it initiates."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from emulator.bank.customers import sessions
from emulator.bank.payment import self_service
from tests.known_state import DOMESTIC, KARI, STRAKS
from tests.unit.pages.living import living, straks


@pytest.mark.parametrize(
    ("method", "path", "says"),
    [
        ("GET", "/v1/accounts", "X-PSU-IDENTITY"),
        ("POST", "/v1/consents", "PSU-ID"),
        ("POST", STRAKS, "X-PSU-IDENTITY"),
        ("POST", STRAKS, "PSU-ID"),
    ],
)
def test_the_field_holds_the_number_that_the_tpp_sent(method: str, path: str, says: str) -> None:
    with living() as emulator:
        named = KARI
        if says == "PSU-ID":
            named = sessions.seed(emulator.service.bank, tpp_id="PSDNO-SBX-demo", national_id=KARI)["psuId"]
        headers = {"TPP-Redirect-URI": "https://tpp.example/back", "PSU-Context": "PRIVATE", says: named}
        answer = emulator.call(method, path, headers=headers, **({"json": straks()} if path == STRAKS else {}))
        browser = emulator.visitor()
        page = browser.get(urlsplit(json.loads(answer.body)["_links"]["scaRedirect"]["href"]).path)
        assert ("nationalId", KARI if says == "X-PSU-IDENTITY" else "") in page.forms[-1].sent()
        assert page.forms[0].buttons[0].value == KARI


def test_a_standing_order_says_on_which_days_it_is_paid() -> None:
    order = straks(
        frequency="MonthlyVariable",
        startDate="2026-11-23",
        endDate="2028-01-01",
        monthsOfExecution=["1", "6", "12"],
        dayOfExecution="31",
        executionRule="preceding",
    )
    with living() as emulator:
        emulator.service.bank.clock.set(now=datetime(2026, 11, 22, 8, tzinfo=UTC), mode="frozen")
        session = sessions.seed(emulator.service.bank, tpp_id="PSDNO-SBX-demo", national_id=KARI)
        headers = {"PSU-ID": session["psuId"], "PSU-Context": "PRIVATE", "X-PSU-AuthMethod-Preferred": "HA2"}
        path = "/v1/periodic-payments/norwegian-domestic-credit-transfers"
        answer = json.loads(emulator.call("POST", path, json=order, headers=headers).body)
        browser = emulator.visitor(**{"Accept-Language": "nb"})
        page = browser.get(urlsplit(answer["_links"]["scaRedirect"]["href"]).path)
        page = browser.get(browser.submit(page, nationalId=KARI).headers["location"])
        text = " ".join(page.text.split())
        assert "Første betaling31. des. 2026 Månederjan., juni, des. Dag i måneden31 (eller den siste)" in text
        assert "Dato" not in text
        console = " ".join(browser.get(f"/console/payments/{answer['paymentId']}").text.split())
        assert "First payment2026-12-31MonthsJan, June, DecDay of the month31 (or the last)" in console


@pytest.mark.parametrize(
    ("language", "kind", "shown", "missing"),
    [
        ("nb", "Fast betaling, månedlig fra 5. mars 2032 til 31. des. 2032", "KID1234567897", "Melding"),
        ("en", "Standing order, monthly from 5 March 2032 to 31 Dec 2032", "KID1234567897", "Message"),
    ],
)
def test_a_standing_order_has_its_kid_called_so_and_dates_as_people_write_them(
    language: str, kind: str, shown: str, missing: str
) -> None:
    order = straks(
        remittanceInformationStructuredArray=[{"reference": "1234567897"}],
        frequency="Monthly",
        startDate="2032-03-05",
        endDate="2032-12-31",
        dayOfExecution="5",
    )
    del order["remittanceInformationUnstructured"]
    psu_headers = {"X-PSU-IDENTITY": KARI, "PSU-Context": "PRIVATE", "PSU-Accept-Language": language}
    headers = {"TPP-Redirect-URI": "https://tpp.example/back", "X-PSU-AuthMethod-Preferred": "HA2", **psu_headers}
    with living() as emulator:
        emulator.service.bank.clock.set(now=datetime(2032, 2, 2, 8, tzinfo=UTC), mode="frozen")
        path = "/v1/periodic-payments/norwegian-domestic-credit-transfers"
        answer = json.loads(emulator.call("POST", path, json=order, headers=headers).body)
        browser = emulator.visitor()
        page = browser.get(urlsplit(answer["_links"]["scaRedirect"]["href"]).path)
        page = browser.get(browser.submit(page).headers["location"])
        assert kind in page.text
        assert shown in page.text
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
def test_the_name_check_is_shown_before_the_payment_is_approved(language: str, name: str, shown: str) -> None:
    order = straks(creditorName=name, creditorAccount={"bban": "99901100019", "currency": "NOK"})
    headers = {
        "X-PSU-IDENTITY": KARI,
        "PSU-Context": "PRIVATE",
        "PSU-Accept-Language": language,
        "TPP-Redirect-URI": "https://tpp.example/back",
        "X-PSU-AuthMethod-Preferred": "HA2",
    }
    with living() as emulator:
        emulator.service.bank.change_settings({"payee_check": "warn"})
        answer = json.loads(emulator.call("POST", STRAKS, json=order, headers=headers).body)
        browser = emulator.visitor()
        page = browser.get(urlsplit(answer["_links"]["scaRedirect"]["href"]).path)
        page = browser.get(browser.submit(page, nationalId=KARI).headers["location"])
        assert shown in " ".join(page.text.split())
        console = browser.get(f"/console/payments/{answer['paymentId']}").text
        assert answer["payeeVerification"]["partyNameMatch"] in console


@pytest.mark.parametrize(
    ("language", "stop", "keep", "decline"),
    [("nb", "Stopp betalingen", "Ikke stopp", "Avvis"), ("en", "Stop the payment", "Do not stop it", "Decline")],
)
def test_the_buttons_of_a_cancellation_say_what_they_do_to_the_payment(
    language: str, stop: str, keep: str, decline: str
) -> None:
    order = straks(requestedExecutionDate="2032-03-05")
    with living() as emulator:
        emulator.service.bank.clock.set(now=datetime(2032, 3, 2, 8, tzinfo=UTC), mode="frozen")
        session = sessions.seed(emulator.service.bank, tpp_id="PSDNO-SBX-demo", national_id=KARI)
        headers = {"PSU-ID": session["psuId"], "PSU-Context": "PRIVATE", "X-PSU-AuthMethod-Preferred": "HA2"}
        answer = json.loads(emulator.call("POST", DOMESTIC, json=order, headers=headers).body)
        self_service.approve(emulator.service.bank, KARI, answer["paymentId"])
        headers |= {"TPP-Session-ID": session["tppSessionId"], "PSU-Accept-Language": language}
        path = f"{DOMESTIC}/{answer['paymentId']}"
        assert emulator.call("DELETE", path, headers=headers).status == 202
        asked = json.loads(emulator.call("POST", f"{path}/cancellation-authorisations", headers=headers).body)
        browser = emulator.visitor()
        page = browser.get(urlsplit(asked["_links"]["scaRedirect"]["href"]).path)
        page = browser.get(browser.submit(page, nationalId=KARI).headers["location"])
        assert [button.value for button in page.forms[-1].buttons] == ["approve", "decline"]
        assert page.text.count(stop) == 3  # the title, the heading and the button
        assert keep in page.text
        assert decline not in page.text
