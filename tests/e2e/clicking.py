"""Driving pages in Chromium: find by what a person reads, act, and wait for what follows instead of for time."""

from __future__ import annotations

from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 20


def wait(browser: Chrome) -> WebDriverWait[Chrome]:
    """Until a condition holds; a test fails when it never does."""
    # Between two pages Chromium answers questions with errors of many kinds.
    return WebDriverWait(browser, PATIENCE, poll_frequency=0.05, ignored_exceptions=(WebDriverException,))


def button(browser: Chrome, name: str) -> WebElement:
    """The button that carries this text or accessible name."""
    [found] = [one for one in browser.find_elements(By.TAG_NAME, "button") if one.accessible_name == name]
    return found


def press(browser: Chrome, element: WebElement) -> None:
    """Click what leads to another page, and wait until this one is gone."""
    page = browser.find_element(By.TAG_NAME, "html")
    element.click()
    wait(browser).until(staleness_of(page))


def heading(browser: Chrome) -> str:
    """What the page is about."""
    return browser.find_element(By.TAG_NAME, "h1").text


def complaints(browser: Chrome) -> list[str]:
    """What Chromium has written to its console since it was asked last."""
    return [entry["message"] for entry in browser.get_log("browser")]


# What a person without sight or mouse would miss; every page is asked for it.
NAMELESS = """
return [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')]
  .filter(one => one.checkVisibility({contentVisibilityAuto: true}))
"""


def nameless(browser: Chrome) -> list[str]:
    """The controls of the page that have no accessible name."""
    controls: list[WebElement] = browser.execute_script(NAMELESS)
    return [str(one.get_attribute("outerHTML")) for one in controls if not one.accessible_name]


def is_too_wide(browser: Chrome) -> bool:
    """Whether a reader has to scroll sideways."""
    wide = "const page = document.documentElement; return page.scrollWidth > page.clientWidth"
    return bool(browser.execute_script(wide))
