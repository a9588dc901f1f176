"""The SCA pages on screens from 320 pixels on: what is approved can be read whole, however long its parts are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from emulator.bank.customers import sessions
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, PAYMENT
from tests.e2e.clicking import as_wide_as, cut_off, findings, is_too_wide, press
from tests.e2e.pages_served import ServedPages, served_pages
from tests.known_state import EVEN, KARI, STRAKS
from tests.unit.pages.living import straks

pytestmark = pytest.mark.browser

WIDTHS = (320, 390, 1280)
NAME = "Ærlige Småbrukeres Østnorske Innkjøpslag for Høykvalitetsfrø og Redska"
MESSAGE = ("Takk for sist, og lykke til videre med alt det du holder på med. " + "Æ" * 75)[:140]
IBAN = "LC" + "0123456789" * 3 + "12"
AMOUNT = "9876543210987654.32"
# where the header's last part ends, and where its own room does; on a telephone that is the sheet below
EDGES = """
const end = name => document.querySelector(name).getBoundingClientRect().right;
const padding = parseFloat(getComputedStyle(document.querySelector('.top')).paddingRight);
return [end('.languages'), innerWidth < 600 ? end('.sheet') : end('.top') - padding];
"""


@pytest.fixture(scope="module")
def served() -> Iterator[ServedPages]:
    """A bank in which accounts have long names."""
    with served_pages() as running:
        documents = running.emulator.service.bank.documents
        for account in list(documents.all(ACCOUNT)):
            documents.put(ACCOUNT, {**account, "name": "Æ" * 35 + NAME[:35]})
        for card in list(documents.all(CARD)):
            documents.put(CARD, {**card, "name": "Æ" * 35 + NAME[:35]})
        yield running


def body_of(served: ServedPages, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """The answer to a TPP with a long name, in Kari's private context."""
    headers_sent = {
        "TPP-Redirect-URI": "https://tpp.example/back",
        "PSU-Context": "PRIVATE",
        "PSU-Accept-Language": "nb",
    }
    headers_sent |= {"TPP-Brand-Logging-Information": NAME, **headers}
    return served.call(method, path, headers=headers_sent, **({} if body is None else {"json": body}))


def payments(served: ServedPages, count: int, **headers: str) -> list[Any]:
    """Payments of Kari's whose every part is as long as it can be."""
    bank = served.emulator.service.bank
    psu = served.run(sessions.seed, bank, tpp_id="PSDNO-SBX-demo", national_id=KARI)["psuId"]
    served.emulator.tpp.psu_id = psu
    payments = [body_of(served, "POST", STRAKS, straks(), **headers) for _ in range(count)]
    for one in payments:
        payment = bank.documents.get(PAYMENT, one["paymentId"]) or {}
        payment["initiation"] |= {
            "creditorName": NAME,
            "creditorAccount": {"iban": IBAN},
            "instructedAmount": {"amount": AMOUNT, "currency": "NOK"},
            "remittanceInformationUnstructured": MESSAGE,
        }
        served.run(bank.documents.put, PAYMENT, payment)
    return payments


def at_approval(browser: Chrome, opened: Any) -> None:
    browser.get(opened["_links"]["scaRedirect"]["href"])
    browser.find_element(By.ID, "nationalId").send_keys(KARI)
    while not browser.find_elements(By.CSS_SELECTOR, "button[value=approve]"):
        press(browser, browser.find_element(By.CSS_SELECTOR, "form .primary"))


@pytest.mark.parametrize("what", ["payment", pytest.param("in the app", marks=pytest.mark.long), "basket", "accounts"])
def test_nothing_that_is_approved_is_out_of_sight(
    served: ServedPages, browser: Chrome, styles: set[str], what: str
) -> None:
    if what == "accounts":
        opened, shown = body_of(served, "GET", "/v1/accounts"), ["9990 10 00014", "9990 10 00022"]
    elif what == "basket":
        ids = [one["paymentId"] for one in payments(served, 10)]
        opened, shown = body_of(served, "POST", "/v1/signing-baskets", {"paymentIds": ids}), [MESSAGE]
    else:
        preferred = "false" if what == "in the app" else "true"
        [opened] = payments(served, 1, **{"TPP-Redirect-Preferred": preferred})
        shown = [NAME, MESSAGE, "9 876 543 210 987 654,32 NOK", "LC01 2345 6789 0123", "NO85 9990 1000 014"]
    at_approval(browser, opened)
    text = browser.find_element(By.TAG_NAME, "main").get_attribute("textContent") or ""
    assert [part for part in shown if part not in text.replace("\u00a0", " ")] == []
    for width in WIDTHS:
        as_wide_as(browser, width)
        assert cut_off(browser) == [], width
        assert not is_too_wide(browser), width
    assert findings(browser, styles=styles) == []


def test_the_header_ends_where_the_content_does(served: ServedPages, browser: Chrome, styles: set[str]) -> None:
    served.emulator.tpp.forget()
    browser.get(served.call("GET", "/v1/accounts")["_links"]["scaRedirect"]["href"])
    for step in ("identity", "method", "context"):
        for width in WIDTHS:
            as_wide_as(browser, width)
            # the strip of customers is moved sideways on a telephone
            assert cut_off(browser, but=".people") == [], width
            languages, content = browser.execute_script(EDGES)
            assert languages <= content + 0.5, width
        assert findings(browser, styles=styles) == []
        if step == "identity":
            browser.find_element(By.ID, "nationalId").send_keys(EVEN)
        if step != "context":
            press(browser, browser.find_element(By.CSS_SELECTOR, "form .primary"))
    assert browser.find_elements(By.NAME, "acting")


def test_the_customers_of_the_sandbox_leave_the_form_in_sight(served: ServedPages, browser: Chrome) -> None:
    documents = served.emulator.service.bank.documents
    agreement = next(documents.all(AGREEMENT))
    for number in range(12):
        held = {**agreement, "id": f"a-{number}", "name": NAME[:60], "persons": [KARI]}
        served.run(documents.put, AGREEMENT, held)
    for width in (360, 768, 1400):
        as_wide_as(browser, width)
        browser.get(served.call("GET", "/v1/accounts")["_links"]["scaRedirect"]["href"])
        chips = browser.find_elements(By.CSS_SELECTOR, ".people button")
        assert len(chips) == 4
        assert len({chip.rect["y"] for chip in chips}) == 1
        assert chips[0].text.endswith("+10")
        form = browser.find_element(By.ID, "nationalId").rect
        assert form["y"] + form["height"] < 600
        assert not is_too_wide(browser)
