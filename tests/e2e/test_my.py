"""The customer's own page in a real Chromium: on a telephone, and as axe-core judges it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.e2e.clicking import as_wide_as, awkward, complaints, cut_off, findings, is_too_wide, nameless, press
from tests.e2e.pages_served import ServedPages
from tests.known_state import KARI

pytestmark = pytest.mark.browser

SCREENS = {"desktop": (1280, 900), "phone": (320, 640)}


@pytest.fixture
def browser(window: Chrome, served: ServedPages) -> Iterator[Chrome]:
    served.control("POST", "reset", {})
    served.emulator.tpp.forget()
    window.get("about:blank")
    window.delete_all_cookies()
    complaints(window)
    yield window
    window.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def log_in(browser: Chrome, served: ServedPages, language: str) -> None:
    browser.delete_all_cookies()
    browser.get(f"{served.url}/my?lang={language}")
    browser.find_element(By.ID, "nationalId").send_keys(KARI)
    press(browser, browser.find_element(By.CSS_SELECTOR, "form .primary"))
    press(browser, browser.find_element(By.CSS_SELECTOR, "form .primary"))


@pytest.mark.parametrize("language", ["nb", pytest.param("en", marks=pytest.mark.long)])
def test_every_step_can_be_read_and_used_by_everybody(
    served: ServedPages, browser: Chrome, styles: set[str], language: str
) -> None:
    served.paid()
    wrong: dict[str, object] = {}

    def look(page: str) -> None:
        for screen, (width, height) in SCREENS.items():
            as_wide_as(browser, width, height)
            seen = [awkward(browser), cut_off(browser, but=".people")]
            seen.append(nameless(browser) if screen == "phone" else [])
            seen.append(findings(browser, styles=styles) if screen == "desktop" else [])
            if any(seen) or is_too_wide(browser):
                wrong[f"{page}, {screen}"] = seen

    browser.get(f"{served.url}/my?lang={language}")
    press(browser, browser.find_element(By.CSS_SELECTOR, "form .primary"))
    look("wrong number")
    assert [line for line in complaints(browser) if "400 (Bad Request)" not in line] == []
    log_in(browser, served, language)
    for details in browser.find_elements(By.TAG_NAME, "summary"):
        details.click()
    look("overview, opened")
    assert wrong == {}
    assert complaints(browser) == []
