"""The documentation in a real Chromium: it fits a desk and a phone, and is found, searched and read without scripts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.e2e.clicking import faults, press
from tests.e2e.pages_served import served_pages

pytestmark = pytest.mark.browser

PAGES = (
    "/docs",
    "/docs/tutorials/first-payment",
    "/docs/how-to/sign-java",
    "/docs/reference/payment-statuses",
    "/docs/reference/settings",
    "/docs/explanation/architecture",
    "/docs/operations",
    "/docs/operations/createPayment",
    "/docs/control/putClock",
    "/docs/search?q=psu-id",
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served_pages(token="a-control-token") as running:
        yield running.url


@pytest.fixture
def browser(window: Chrome) -> Iterator[Chrome]:
    """The window of the session, as wide as it was when a test is done."""
    yield window
    window.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("opened", [False, pytest.param(True, marks=pytest.mark.long)], ids=["content", "opened"])
def test_a_page_fits_names_its_controls_and_draws_no_complaint(browser: Chrome, url: str, opened: bool) -> None:
    pages = PAGES if opened else ("/docs", "/docs/reference/payment-statuses", "/docs/operations/createPayment")
    assert faults(browser, [url + page for page in pages], opened=opened) == {}


def test_a_wide_table_fits_a_desk(browser: Chrome, url: str) -> None:
    wide = "return [...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth).length"
    for page in ("headers", "scenario-language", "operations"):
        browser.get(f"{url}/docs/reference/{page}")
        assert browser.execute_script(wide) == 0, page


def test_a_rule_is_found_by_the_search(browser: Chrome, url: str) -> None:
    browser.get(f"{url}/docs")
    browser.find_element(By.ID, "find").send_keys("kid_missing")
    press(browser, browser.find_element(By.CSS_SELECTOR, ".find button"))
    press(browser, browser.find_element(By.LINK_TEXT, "KID_MISSING"))
    assert browser.current_url.endswith("/docs/reference/errors#kid_missing")
    top = browser.execute_script("return document.getElementById('kid_missing').getBoundingClientRect().top")
    assert 0 <= top < 150  # below the bar that stays, not behind it
