"""The interface reference in a real Chromium: examples, the search, and the way to what a login guards."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.e2e.clicking import button, complaints, press, wait
from tests.e2e.pages_served import served_pages

pytestmark = pytest.mark.browser

TOKEN = "a-control-token"
TOP = "return scrollY"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served_pages(token=TOKEN) as running:
        yield running.url


def opened(browser: Chrome, url: str) -> None:
    browser.get("about:blank")  # from the page itself, another # would load nothing
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


@pytest.mark.parametrize("place", ["tag-Signing-baskets", "getCardAccounts"])
def test_a_link_to_a_group_or_an_operation_leads_there(browser: Chrome, url: str, place: str) -> None:
    opened(browser, f"{url}/docs#{place}")
    wait(browser).until(
        lambda window: abs(window.find_element(By.ID, place).rect["y"] - window.execute_script(TOP)) < 40
    )


def test_a_link_to_what_is_not_there_shows_the_document_all_the_same(browser: Chrome, url: str) -> None:
    opened(browser, f"{url}/docs#100%")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".operation")) > 50
    assert complaints(browser) == []


def test_a_reader_without_sight_hears_what_happens_and_not_the_whole_document(browser: Chrome, url: str) -> None:
    opened(browser, f"{url}/docs#createPayment")
    assert browser.find_elements(By.CSS_SELECTOR, "[aria-live] .operation, [role=status] .operation") == []
    levels = [int(str(one.tag_name)[1]) for one in browser.find_elements(By.CSS_SELECTOR, "h1, h2, h3, h4")]
    assert [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1] == []
    ids = [str(one.get_attribute("id")) for one in browser.find_elements(By.CSS_SELECTOR, "[id]")]
    assert [one for one in ids if " " in one] == []


def test_only_groups_in_which_something_was_found_are_offered(browser: Chrome, url: str) -> None:
    opened(browser, f"{url}/docs")
    browser.find_element(By.ID, "find").send_keys("basket")
    shown = [link.text for link in browser.find_elements(By.CSS_SELECTOR, ".contents a") if link.is_displayed()]
    assert [text.split()[0] for text in shown] == ["Signing"]


def test_the_control_interface_is_read_after_a_login_and_leads_there_before(browser: Chrome, url: str) -> None:
    opened(browser, f"{url}/docs/control")
    press(browser, browser.find_element(By.LINK_TEXT, "log in at the console"))
    browser.find_element(By.ID, "token").send_keys(TOKEN)
    press(browser, button(browser, "Log in"))
    opened(browser, f"{url}/docs/control")
    groups = [link.text.split()[0] for link in browser.find_elements(By.CSS_SELECTOR, ".contents a")]
    assert {"Banks", "Clock", "Scenarios"} < set(groups)
    assert "advanceClock" in browser.find_element(By.CSS_SELECTOR, ".operations").get_attribute("textContent")
