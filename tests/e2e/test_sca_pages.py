"""The SCA pages in a real Chromium: the way back to the TPP, keyboard, frames, no complaints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from emulator.testing import BankFactory
from tests.e2e.browser import Site, chromium, site
from tests.e2e.clicking import button, complaints, heading, press, wait
from tests.e2e.pages_served import ServedPages
from tests.known_state import KARI

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def tpp_site() -> Iterator[Site]:
    """The TPP's own application."""
    with site() as running:
        yield running


@pytest.fixture
def browser(window: Chrome) -> Chrome:
    complaints(window)
    return window


def sca_link(served: ServedPages, back: str, **headers: str) -> str:
    """Where a TPP that wants to read accounts is told to send its customer."""
    served.emulator.tpp.forget()
    answer = served.call("GET", "/v1/accounts", headers={"TPP-Redirect-URI": back, **headers})
    return str(answer["_links"]["scaRedirect"]["href"])


def type_number(browser: Chrome, number: str) -> None:
    """Over what the field holds."""
    field = browser.find_element(By.ID, "nationalId")
    field.clear()
    field.send_keys(number)


def test_accounts_are_shared_and_the_customer_lands_at_the_tpp(
    served: ServedPages, browser: Chrome, tpp_site: Site
) -> None:
    tpp_site.seen.clear()
    browser.get(sca_link(served, f"{tpp_site.url}/back?state=1", **{"PSU-Accept-Language": "nb"}))
    assert heading(browser) == "Logg inn"
    type_number(browser, KARI)
    press(browser, button(browser, "Fortsett"))
    assert heading(browser) == "Hvordan vil du bekrefte?"
    press(browser, button(browser, "Fortsett"))
    assert heading(browser) == "Del kontoer"
    assert len(browser.find_elements(By.CSS_SELECTOR, "input[type=checkbox]:checked")) == 3
    browser.find_elements(By.CSS_SELECTOR, ".choice")[1].click()
    press(browser, button(browser, "Godkjenn"))
    assert heading(browser) == "Back at the TPP"
    redirect = served.emulator.tpp.remember(browser.current_url)
    assert redirect["context"] == "PRIVATE"
    assert redirect["state"] == "1"
    assert "referer" not in tpp_site.seen[0]
    assert [account["bban"] for account in served.call("GET", "/v1/accounts")["accounts"]] == ["99901000014"]
    assert complaints(browser) == []


@pytest.mark.long
def test_an_app_address_is_followed_without_complaint(served: ServedPages, tmp_path: Path) -> None:
    # A window of its own: Chromium waits for an app that is not there, and takes no further clicks.
    with chromium(tmp_path / "profile") as browser:
        link = sca_link(served, "tppapp://done/x", **{"PSU-Accept-Language": "en"})
        browser.get(link)
        button(browser, "Cancel").click()
        token = link.rpartition("/")[2]
        wait(browser).until(lambda _: served.control("GET", f"sca/{token}")["status"] == "failed")
        assert served.control("GET", f"sca/{token}")["redirect"].startswith("tppapp://done/x?status=401")
        assert complaints(browser) == []


def test_everything_is_done_with_the_keyboard_alone(served: ServedPages, browser: Chrome, tpp_site: Site) -> None:
    browser.get(sca_link(served, f"{tpp_site.url}/back", **{"PSU-Accept-Language": "en"}))
    # The field has the focus, which Chromium gives it a moment after the page; Enter sends the form.
    wait(browser).until(lambda window: window.execute_script("return document.activeElement.id") == "nationalId")
    ActionChains(browser).send_keys(KARI, Keys.ENTER).perform()
    wait(browser).until(lambda window: heading(window) == "How do you want to confirm?")
    _tab_to(browser, "input[type=radio]")
    ActionChains(browser).send_keys(Keys.ARROW_DOWN, Keys.ENTER).perform()
    wait(browser).until(lambda window: heading(window) == "Share accounts")
    _tab_to(browser, "input[type=checkbox]")
    ActionChains(browser).send_keys(Keys.SPACE).perform()
    assert len(browser.find_elements(By.CSS_SELECTOR, "input[type=checkbox]:checked")) == 2
    _tab_to(browser, "button.primary")
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    wait(browser).until(lambda window: "psu-id=" in window.current_url)


def _tab_to(browser: Chrome, selector: str) -> None:
    for _ in range(30):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        if browser.execute_script("return document.activeElement.matches(arguments[0])", selector):
            return
    raise AssertionError(f"the keyboard does not reach {selector}")


def test_a_site_that_the_flag_names_may_show_the_pages_in_a_frame(
    bank_factory: BankFactory, browser: Chrome, tpp_site: Site
) -> None:
    tpp = bank_factory(frame_ancestors=tpp_site.url).tpp()
    tpp.redirect_uri = f"{tpp_site.url}/back"
    link = tpp.get("/v1/accounts", headers={"PSU-Accept-Language": "en"}).sca_redirect
    browser.get(f"{tpp_site.url}/back")
    browser.execute_script(
        "const inner = document.createElement('iframe'); inner.src = arguments[0]; document.body.append(inner)", link
    )
    browser.switch_to.frame(0)
    try:
        wait(browser).until(lambda window: window.find_elements(By.ID, "nationalId"))
        type_number(browser, KARI)
        for name in ("Continue", "Continue", "Approve"):
            press(browser, button(browser, name))
        assert heading(browser) == "Back at the TPP"
        assert "psu-id" in tpp.remember(browser.execute_script("return location.href"))
    finally:
        browser.switch_to.default_content()
    assert [message for message in complaints(browser) if "autofocusing" not in message] == []
