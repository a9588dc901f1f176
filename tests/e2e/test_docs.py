"""The interface reference in a real Chromium: examples, the search, and the way to what a login guards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.e2e.browser import chromium
from tests.e2e.clicking import button, complaints, press, wait
from tests.e2e.pages_served import served_pages

pytestmark = pytest.mark.browser

TOKEN = "a-control-token"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as window:
        yield window


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served_pages(token=TOKEN) as running:
        yield running.url


def opened(browser: Chrome, url: str) -> None:
    browser.get(url)
    wait(browser).until(lambda window: window.find_elements(By.CSS_SELECTOR, ".operation, .operations .note"))


def test_every_body_has_its_examples_by_their_names(browser: Chrome, url: str) -> None:
    opened(browser, f"{url}/docs#createPayment")
    examples = browser.find_elements(By.CSS_SELECTOR, "#createPayment .inside > div .example")
    assert len(examples) == 6
    assert examples[0].text == "Example: instant-norwegian-domestic-credit-transfers-straks"
    examples[0].find_element(By.TAG_NAME, "summary").click()
    assert '"creditorName": "Even Eksempel"' in examples[0].text
    [only] = browser.find_elements(By.CSS_SELECTOR, "#createSigningBasket .inside > div .example")
    assert '"paymentIds"' in str(only.get_attribute("textContent"))
    assert complaints(browser) == []


def test_every_answer_has_the_examples_that_a_bank_gave(browser: Chrome, url: str) -> None:
    opened(browser, f"{url}/docs#getPaymentStatus")
    shown = browser.find_elements(By.CSS_SELECTOR, "#getPaymentStatus .answers .example")
    titles = [str(example.get_attribute("textContent")).partition("{")[0] for example in shown]
    assert titles[:2] == ["Example: just approved", "Example: five seconds after approval"]
    assert "Example: the signature fails" in titles


def test_a_search_that_finds_nothing_says_so(browser: Chrome, url: str) -> None:
    opened(browser, f"{url}/docs")
    field, told = browser.find_element(By.ID, "find"), browser.find_element(By.CSS_SELECTOR, "[role=status]")
    field.send_keys("basket")
    assert told.text == ""
    field.send_keys(" nobody")
    assert told.text == "No operation fits."
    field.clear()
    field.send_keys("basket")
    assert told.text == ""


def test_the_control_interface_is_read_after_a_login_and_leads_there_before(browser: Chrome, url: str) -> None:
    opened(browser, f"{url}/docs/control")
    press(browser, browser.find_element(By.LINK_TEXT, "log in at the console"))
    browser.find_element(By.ID, "token").send_keys(TOKEN)
    press(browser, button(browser, "Log in"))
    opened(browser, f"{url}/docs/control")
    assert "advanceClock" in browser.find_element(By.CSS_SELECTOR, ".operations").get_attribute("textContent")
