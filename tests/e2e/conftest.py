"""One Chromium for the browser tests of a process, and a bank for those of a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

    from tests.e2e.pages_served import ServedPages


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    from tests.e2e.browser import chromium

    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def window(chrome: Chrome) -> Chrome:
    """The window without what the module before left: its page, its cookies, its screen, its messages."""
    chrome.get("about:blank")
    chrome.execute_cdp_cmd("Network.clearBrowserCookies", {})
    chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chrome.get_log("browser")
    return chrome


@pytest.fixture
def browser(window: Chrome) -> Chrome:
    """The window as the test before left it; modules that need it as it was at first say how."""
    return window


@pytest.fixture(scope="module")
def served() -> Iterator[ServedPages]:
    """A bank with its pages, for the tests of a module."""
    from tests.e2e.pages_served import served_pages

    with served_pages() as running:
        yield running


@pytest.fixture(scope="module")
def styles() -> set[str]:
    """The styles of texts whose contrast the tests of a module have looked at."""
    return set()
