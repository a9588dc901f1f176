"""The SCA pages on screens from 320 pixels on: what is approved can be read whole, however long its parts are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.e2e.browser import chromium
from tests.e2e.clicking import cut_off, press
from tests.e2e.pages_served import ServedPages, served_pages
from tests.unit.pages.living import KARI

pytestmark = pytest.mark.browser

WIDTHS = (320, 360, 390, 430, 1280)
NAME = "Ærlige Småbrukeres Østnorske Innkjøpslag for Høykvalitetsfrø og Redska"
# where the header's last part ends, and where its own room does; on a telephone that is the sheet below
EDGES = """
const end = name => document.querySelector(name).getBoundingClientRect().right;
const padding = parseFloat(getComputedStyle(document.querySelector('.top')).paddingRight);
return [end('.languages'), innerWidth < 600 ? end('.sheet') : end('.top') - padding];
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as window:
        yield window


@pytest.fixture
def served() -> Iterator[ServedPages]:
    """A bank in which accounts have long names."""
    with served_pages() as running:
        documents = running.emulator.branch.bank.documents
        for kind in ("account", "card"):
            for held in list(documents.all(kind)):
                documents.put(kind, {**held, "name": "Æ" * 35 + NAME[:35]})
        yield running


def told(served: ServedPages, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """The answer to a TPP with a long name, in Kari's private context."""
    said = {"TPP-Redirect-URI": "https://tpp.example/back", "PSU-Context": "PRIVATE", "PSU-Accept-Language": "nb"}
    said |= {"TPP-Brand-Logging-Information": NAME, **headers}
    return served.call(method, path, headers=said, **({} if body is None else {"json": body}))


def as_wide_as(browser: Chrome, width: int) -> None:
    screen = {"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_header_ends_where_the_content_does(served: ServedPages, browser: Chrome, width: int) -> None:
    as_wide_as(browser, width)
    browser.get(told(served, "GET", "/v1/accounts")["_links"]["scaRedirect"]["href"])
    for _ in ("identity", "method"):
        # the strip of customers is moved sideways on a telephone
        assert cut_off(browser, but=".people") == []
        languages, content = browser.execute_script(EDGES)
        assert languages <= content + 0.5
        if browser.find_elements(By.ID, "nationalId"):
            browser.find_element(By.ID, "nationalId").send_keys(KARI)
            press(browser, browser.find_element(By.CSS_SELECTOR, "form .primary"))
