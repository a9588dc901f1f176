"""The console in a real Chromium: every place without complaint, live without a reload, done by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from emulator.bank.kinds import ACCOUNT, CARD, CUSTOMER
from emulator.web.console.screen import NAVIGATION
from tests.e2e.clicking import PHONE, as_wide_as, button, complaints, faults, heading, is_too_wide, press, put, wait
from tests.e2e.pages_served import ServedPages, served_pages
from tests.known_state import KARI, STRAKS
from tests.unit.pages.living import straks

pytestmark = pytest.mark.browser

# What console.js waits for, to take events together or to ask for a lost stream again, passes twenty times as fast.
HURRIED = """
const own = window.setTimeout;
window.setTimeout = (what, wait, ...rest) => own(what, wait >= 400 && wait <= 3000 ? wait / 20 : wait, ...rest);
"""


@pytest.fixture
def browser(window: Chrome, served: ServedPages) -> Iterator[Chrome]:
    served.control("POST", "reset", {})
    served.emulator.tpp.forget()
    window.get("about:blank")
    complaints(window)
    added = window.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": HURRIED})
    yield window
    window.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
    window.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def busy(served: ServedPages) -> list[str]:
    """A bank in which everything has happened once; the address of every page."""
    payment = served.paid()
    served.control("POST", f"sca/{payment}/approve", {})
    other = served.paid()
    basket = served.call("POST", "/v1/signing-baskets", json={"paymentIds": [other]})["basketId"]
    served.call("GET", "/v1/accounts?withBalance=true", tamper="without-query")
    failed = served.control("GET", "requests")["requests"][0]["id"]
    served.control("POST", "rules", {"when": {"operation": "getUser"}, "then": {"delay": "1s"}})
    served.control("PUT", "snapshots/one", {})
    documents = served.emulator.service.bank.documents
    customer, card = documents.first(CUSTOMER, customerNumber=KARI), next(documents.all(CARD))
    assert customer is not None
    account = documents.find(ACCOUNT, customerId=customer["id"])[0]["id"]
    scenario = served.control("GET", "scenarios")["scenarios"][0]["name"]
    places = [*(name for _, pages in NAVIGATION for name, _ in pages if name), "scenarios/new"]
    things = [
        f"customers/{customer['id']}",
        f"accounts/{account}",
        f"cards/{card['id']}",
        f"payments/{payment}",
        f"payments/{other}",
        f"baskets/{basket}",
        f"scenarios/{scenario}",
        f"requests/{failed}",
    ]
    return ["/console", *(f"/console/{path}" for path in places + things)]


# Pages of each kind: what they consist of is on the others too.
SOME = re.compile(r"/console(|/(customers|accounts|payments|scenarios|requests)/[^/]+|/settings|/tpps)")


@pytest.mark.parametrize("opened", [False, pytest.param(True, marks=pytest.mark.long)], ids=["content", "opened"])
def test_a_page_fits_names_its_controls_and_draws_no_complaint(
    served: ServedPages, browser: Chrome, opened: bool
) -> None:
    pages = [page for page in busy(served) if opened or SOME.fullmatch(page)]
    served.control("PUT", "clock", {"mode": "frozen"})  # else a payment progresses, and the page is redrawn
    assert faults(browser, [served.url + page for page in pages], opened=opened) == {}


COVERED = """
    return [...document.querySelectorAll(".rows td")].filter(cell => cell.scrollHeight > cell.clientHeight + 1)
        .map(cell => cell.dataset.label)
"""


def test_names_and_numbers_without_blanks_go_on_in_the_next_line(served: ServedPages, browser: Chrome) -> None:
    number, iban, digits = "98765432", "NO8599909990000", "1" * 35
    served.call("POST", "/v1/sandbox/customers", json={"customerNumber": number, "name": "W" * 70, "type": "private"})
    held = {"customerNumber": number, "currency": "NOK", "product": "P" * 70}
    account = {**held, "accountName": "W" * 70, "bban": "99909990000", "iban": iban}
    served.call("POST", "/v1/sandbox/accounts", json=account)
    card = served.call("POST", "/v1/sandbox/card-accounts", json={**held, "maskedPan": digits, "name": "K" * 70})
    spent = {
        "transactionAmount": {"amount": "1.00", "currency": "NOK"},
        "originalAmount": {"amount": "123456789012345.67", "currency": "EUR"},
        "bookingDate": "2020-01-01",
    }
    path = f"/v1/sandbox/card-accounts/{card['resourceId']}/transactions"
    assert served.call("POST", path, json=spent)["id"]
    served.log_in(number)
    abroad = {
        **straks(),
        "instructedAmount": {"amount": "250.00", "currency": "EUR"},
        "creditorName": "W" * 70,
        "creditorAccount": {"bban": "X" * 30, "currency": "EUR"},
        "creditorAgent": "DEUTDEFF",
        "debtorAccount": {"iban": iban, "currency": "NOK"},
    }
    path = "/v1/payments/cross-border-credit-transfers"
    payment = served.call("POST", path, json=abroad, headers={"PSU-Context": "PRIVATE"})["paymentId"]
    served.control("POST", "rules", {"name": "W" * 70, "when": {"body": {"a": "W" * 70}}, "then": {"delay": "1ms"}})
    documents = served.emulator.service.bank.documents
    customer = documents.first(CUSTOMER, customerNumber=number) or {}
    owned = documents.find(ACCOUNT, customerId=customer["id"])[0]["id"]
    places = ["", "/customers", f"/customers/{customer['id']}", f"/accounts/{owned}", f"/cards/{card['resourceId']}"]
    browser.get(f"{served.url}/console")
    served.emulator.call("GET", f"/v1/{'W' * 300}")
    asked = served.control("GET", "requests?limit=1")["requests"][0]["id"]
    served.control("PUT", f"snapshots/{'w' * 60}", {})
    places += [
        "/payments",
        f"/payments/{payment}",
        "/sca",
        "/consents",
        "/scenarios",
        "/snapshots",
        f"/requests/{asked}",
    ]
    for number, place in enumerate(places):
        put(browser, f"{served.url}/console{place}")
        assert "w" * 60 in browser.page_source.lower(), place
        for width in (1000, 390) if number % 2 else (390, 1000):
            as_wide_as(browser, width)
            wait(browser).until(lambda window: not is_too_wide(window), f"{place} {width}")
            assert browser.execute_script(COVERED) == [], f"{place} {width}: labels that reach into the next row"
    name = "b" * 63
    served.control("PUT", f"banks/{name}", {})
    browser.get(f"{served.url}/banks/{name}/console")
    for width in (1280, 390):
        as_wide_as(browser, width)
        label, side = (browser.find_element(By.CSS_SELECTOR, one).rect for one in (".brand small", ".side"))
        assert label["x"] + label["width"] <= side["x"] + side["width"]


def drawn(browser: Chrome, selector: str, pseudo: str = "") -> str:
    """The background that a reader sees of the first element that fits."""
    script = "return getComputedStyle(document.querySelector(arguments[0]), arguments[1]).backgroundColor"
    return str(browser.execute_script(script, selector, pseudo))


def test_with_a_palette_of_the_readers_own_a_payments_life_and_the_steps_of_an_sca_are_seen(
    served: ServedPages, browser: Chrome
) -> None:
    payment = served.paid()
    token = served.control("GET", f"sca/{payment}")["id"]
    palette = [{"name": "forced-colors", "value": "active"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": palette})
    try:
        browser.get(f"{served.url}/console/payments/{payment}")
        paper = drawn(browser, "body")
        assert paper not in (drawn(browser, ".timeline li", "::before"), drawn(browser, ".timeline li", "::after"))
        browser.get(f"{served.url}/sca/{token}")
        steps = {drawn(browser, ".progress .done"), drawn(browser, ".progress li:not(.done)")}
        assert len({*steps, paper}) == 3
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_on_paper_a_request_stands_whole_and_without_what_can_only_be_pressed(
    served: ServedPages, browser: Chrome
) -> None:
    served.call("GET", "/v1/accounts")
    request = served.control("GET", "requests")["requests"][0]["id"]
    browser.get(f"{served.url}/console/requests/{request}")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        hidden = "return [...document.querySelectorAll('pre, .headers')].filter(one => one.checkVisibility())"
        assert browser.execute_script(f"{hidden}.filter(one => one.scrollHeight > one.clientHeight + 1).length") == 0
        pressed = browser.find_elements(By.CSS_SELECTOR, "nav, button")
        assert [one for one in pressed if one.is_displayed()] == []
        # A sheet on its side is wide enough for the column of places, which is not printed.
        for page in (browser.current_url, f"{served.url}/docs"):
            browser.get(page)
            main = browser.find_element(By.TAG_NAME, "main")
            assert main.size["width"] > 0.7 * browser.execute_script("return document.documentElement.clientWidth")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def watching(browser: Chrome, address: str) -> None:
    """Open a page and wait until it hears the bank."""
    browser.get(address)
    wait(browser).until(lambda window: window.find_element(By.CSS_SELECTOR, "[data-watching]").is_displayed())


def test_what_is_changed_from_elsewhere_shows_without_a_reload(served: ServedPages, browser: Chrome) -> None:
    """That each event is listened to, and each region stands on its page, tests/unit/pages shows."""

    def shows(text: str) -> None:
        shown = "return document.querySelector('main').innerText"
        wait(browser).until(lambda window: text in window.execute_script(shown), text)

    watching(browser, f"{served.url}/console")
    browser.execute_script("window.untouched = true")
    served.control("PUT", "clock", {"mode": "frozen"})
    shows("The clock stands still")
    served.control("POST", "scenario", {"name": "slow-bank"})
    shows("Every third read of accounts is slow.")
    served.call("GET", "/v1/accounts")
    shows("getAccounts")
    assert browser.execute_script("return window.untouched")
    payment = served.paid()
    watching(browser, f"{served.url}/console/payments/{payment}")
    served.control("POST", f"sca/{payment}/approve", {})
    shows("Advance one step")
    served.control("POST", "clock/advance", {"by": "2900ms"})  # it is booked after three seconds
    # Once the clock runs, the bank wakes by itself at what falls due while somebody watches.
    served.control("PUT", "clock", {"mode": "live"})
    shows("Funds\navailable")
    wait(browser).until(lambda window: not window.find_elements(By.CSS_SELECTOR, "[data-live=steps] button"))
    timeline = browser.find_elements(By.CSS_SELECTOR, ".timeline li")
    assert [entry.text.split()[0] for entry in timeline] == ["RCVD", "ACTC", "ACSP", "ACSC"]
    watching(browser, f"{served.url}/console/customers")
    served.control("POST", "reset", {"fixtures": "empty"})
    shows("The bank has no customers")
    served.control("POST", "reset", {})
    shows("184,312.50 NOK")
    assert complaints(browser) == []


# window.heard() is the moment at which the bank is heard, window.lost() at which its stream is refused: when the bank
# is deleted, Chromium asks again after three seconds, and is.
EVENTS_BY_HAND = """
window.EventSource = class extends EventTarget {
  static CLOSED = 2;
  constructor() {
    super();
    window.heard = () => this.dispatchEvent(new Event("open"));
    window.lost = () => { this.readyState = 2; this.dispatchEvent(new Event("error")); window.heard = null; };
  }
  close() {}
};
"""


@pytest.fixture
def by_hand(browser: Chrome) -> Iterator[Chrome]:
    """The window with events that come when the test says so."""
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": EVENTS_BY_HAND})
    yield browser
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_what_happened_before_the_bank_was_heard_shows_too(served: ServedPages, by_hand: Chrome) -> None:
    by_hand.get(f"{served.url}/console/requests")
    served.call("GET", "/v1/accounts")
    by_hand.execute_script("window.heard()")
    wait(by_hand).until(lambda window: "getAccounts" in window.find_element(By.TAG_NAME, "main").text)


def test_what_the_bank_does_not_hold_any_more_is_shown_as_it_was_and_called_so(
    served: ServedPages, browser: Chrome
) -> None:
    payment = served.paid()
    watching(browser, f"{served.url}/console/payments/{payment}")
    assert not browser.find_element(By.CSS_SELECTOR, "[data-gone]").is_displayed()
    served.control("POST", "reset", {})
    wait(browser).until(lambda window: window.find_element(By.CSS_SELECTOR, "[data-gone]").is_displayed())
    assert "RCVD" in browser.find_element(By.TAG_NAME, "main").text


def test_a_page_of_a_bank_that_is_deleted_says_so_until_the_bank_is_made_again(
    served: ServedPages, by_hand: Chrome
) -> None:
    served.control("PUT", "banks/passing", {})
    by_hand.get(f"{served.url}/banks/passing/console")
    gone = by_hand.find_element(By.CSS_SELECTOR, "[data-gone]")
    served.control("DELETE", "banks/passing")
    by_hand.execute_script("window.lost()")
    wait(by_hand).until(lambda _: gone.is_displayed())
    served.control("PUT", "banks/passing", {})
    wait(by_hand).until(lambda window: window.execute_script("return window.heard !== null"))  # it has asked again
    by_hand.execute_script("window.heard()")
    wait(by_hand).until(lambda _: not gone.is_displayed())
    served.control("DELETE", "banks/passing")


def test_a_page_that_tells_of_a_refusal_shows_changes_too(served: ServedPages, browser: Chrome) -> None:
    browser.get(f"{served.url}/console")
    browser.find_element(By.ID, "by").send_keys("soon")
    press(browser, button(browser, "Advance"))
    assert browser.find_element(By.ID, "problem").is_displayed()
    wait(browser).until(lambda window: window.find_element(By.CSS_SELECTOR, "[data-watching]").is_displayed())
    served.call("GET", "/v1/accounts")
    wait(browser).until(lambda window: "getAccounts" in window.find_element(By.TAG_NAME, "main").text)
    assert browser.find_element(By.ID, "problem").is_displayed()


# As the browser tells a page that it is another tab's turn.
SEEN = """
Object.defineProperty(document, "hidden", {value: !arguments[0], configurable: true});
document.dispatchEvent(new Event("visibilitychange"));
"""


def test_a_tab_that_nobody_sees_holds_no_connection_and_shows_what_happened_when_it_is_seen_again(
    served: ServedPages, browser: Chrome
) -> None:
    browser.get(f"{served.url}/console")
    shown = browser.find_element(By.CSS_SELECTOR, "[data-watching]")
    wait(browser).until(lambda _: shown.is_displayed())
    for _ in range(7):  # more than a browser has connections: each that is still open would hold up the next
        browser.execute_script(SEEN, False)
        assert not shown.is_displayed()
        browser.execute_script(SEEN, True)
        wait(browser).until(lambda _: shown.is_displayed())
    browser.execute_script(SEEN, False)
    served.paid()
    browser.execute_script(SEEN, True)
    wait(browser).until(lambda window: STRAKS in window.find_element(By.TAG_NAME, "main").text)


# window.read is how often the page was reloaded and drawn
COUNTING_READS = (
    "window.read = 0; const old = window.fetch;"
    "window.fetch = (...asked) => old(...asked).finally(() => setTimeout(() => { window.read += 1 }, 100))"
)


def test_who_goes_through_the_page_by_keyboard_keeps_the_place(served: ServedPages, browser: Chrome) -> None:
    served.call("GET", "/v1/accounts")
    watching(browser, f"{served.url}/console/requests")
    browser.execute_script(COUNTING_READS)
    link = browser.find_element(By.CSS_SELECTOR, ".exchanges a").get_attribute("href")
    before = "[...document.querySelectorAll('a[href], button, input, select')].filter(one => one.checkVisibility())"
    browser.execute_script(
        f"const all = {before}; all[all.findIndex(one => one.href === arguments[0]) - 1].focus()", link
    )
    ActionChains(browser).send_keys(Keys.TAB).perform()
    assert browser.switch_to.active_element.get_attribute("href") == link
    served.call("GET", "/v1/accounts")
    wait(browser).until(lambda window: window.execute_script("return window.read") >= 1)
    assert browser.switch_to.active_element.get_attribute("href") == link


def test_a_region_that_somebody_uses_is_left_alone_until_nobody_does(served: ServedPages, browser: Chrome) -> None:
    served.call("GET", "/v1/accounts")
    watching(browser, f"{served.url}/console/sca")
    browser.execute_script(COUNTING_READS)
    Select(browser.find_element(By.NAME, "nationalId")).select_by_index(1)
    chosen = browser.find_element(By.NAME, "nationalId").get_attribute("value")
    browser.execute_script("document.querySelector('[name=nationalId]').focus()")
    served.call("GET", "/v1/accounts")
    wait(browser).until(lambda window: window.execute_script("return window.read") >= 1)
    assert browser.find_element(By.NAME, "nationalId").get_attribute("value") == chosen
    assert len(browser.find_elements(By.NAME, "nationalId")) == 1
    browser.execute_script("document.activeElement.blur()")
    wait(browser).until(lambda window: len(window.find_elements(By.NAME, "nationalId")) == 2)
    # The newest stands first: the one that was chosen in is the last.
    first, last = browser.find_elements(By.NAME, "nationalId")
    assert last.get_attribute("value") == chosen != first.get_attribute("value")


def test_the_settings_follow_the_bank_but_for_what_somebody_types(served: ServedPages, browser: Chrome) -> None:
    watching(browser, f"{served.url}/console/settings")
    limit = browser.find_element(By.ID, "straks_limit")
    limit.clear()
    limit.send_keys("7.00")
    browser.execute_script("document.activeElement.blur()")
    served.control("PUT", "settings", {"known_issues": True, "date_skew": 60})
    wait(browser).until(lambda window: window.find_element(By.ID, "known_issues").get_attribute("value") == "true")
    assert browser.find_element(By.ID, "straks_limit").get_attribute("value") == "7.00"
    press(browser, button(browser, "Save"))
    settings = served.control("GET", "settings")
    assert (settings["straks_limit"], settings["known_issues"], settings["date_skew"]) == ("7.00", True, 60)


def test_the_signing_strings_stand_side_by_side(served: ServedPages, browser: Chrome) -> None:
    served.call("GET", "/v1/accounts?withBalance=true", tamper="without-query")
    browser.get(f"{served.url}/console/requests")
    press(browser, browser.find_element(By.PARTIAL_LINK_TEXT, "/v1/accounts?withBalance=true"))
    assert browser.find_element(By.CSS_SELECTOR, ".sides mark").text == "?withBalance=true"
    assert browser.find_elements(By.CSS_SELECTOR, "[data-copy]:not([hidden])") != []
    left, right = browser.find_elements(By.CSS_SELECTOR, ".sides .first td")
    assert left.rect["y"] == right.rect["y"]
    assert left.rect["x"] < right.rect["x"]


def test_the_console_works_without_script(served: ServedPages, browser: Chrome) -> None:
    payment = served.paid()
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(f"{served.url}/console/payments/{payment}")
        press(browser, button(browser, "Reject it"))
        assert browser.find_element(By.CSS_SELECTOR, "[role=status]").text == "The payment was rejected."
        assert browser.find_elements(By.CSS_SELECTOR, "[data-copy]:not([hidden])") == []
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_with_a_control_token_people_log_in(browser: Chrome) -> None:
    with served_pages(token="open sesame") as served:
        browser.get(f"{served.url}/console/payments")
        assert heading(browser) == "Log in"
        browser.find_element(By.ID, "token").send_keys("open sesame")
        press(browser, button(browser, "Log in"))
        assert heading(browser) == "Payments"
        browser.get(f"{served.url}/console")
        wait(browser).until(lambda window: window.find_element(By.CSS_SELECTOR, "[data-watching]").is_displayed())
        press(browser, button(browser, "Freeze"))
        assert browser.find_element(By.CSS_SELECTOR, "[role=status]").text == "Bank time was changed."
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
        assert browser.find_element(By.LINK_TEXT, "Documentation").is_displayed()
        press(browser, button(browser, "Log out"))
        assert heading(browser) == "Log in"
