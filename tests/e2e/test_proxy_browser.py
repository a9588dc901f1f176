"""The signing proxy and web pages, in a real Chromium: it obeys none, and still takes a customer back from the bank."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.e2e.browser import site
from tests.e2e.clicking import press, wait
from tests.e2e.process import Served, control, served
from tests.e2e.test_cli_tools import plain, proxy
from tests.known_state import KARI

pytestmark = pytest.mark.browser

PAYMENTS = "/v1/payments/norwegian-domestic-credit-transfers"
PAYMENT = json.dumps(
    {
        "instructedAmount": {"amount": "10.00", "currency": "NOK"},
        "creditorName": "Even Eksempel",
        "creditorAccount": {"bban": "99901100019", "currency": "NOK"},
        "debtorAccount": {"bban": "99901000014", "currency": "NOK"},
    }
)
PSU = "psu-id=11111111-1111-4111-8111-111111111111&tpp-session-id=22222222-2222-4222-8222-222222222222"
# What the page of a stranger may try without being asked anything: requests without a preflight, images, forms.
HOSTILE = """<!doctype html><title>trying</title>
<img src="PROXY/_proxy/callback?PSU"><img src="PROXY/_proxy/callback/guessed?PSU"><img src="PROXY/v1/accounts">
<iframe name="inside"></iframe>
<form method="post" enctype="text/plain" action="PROXY/v1/sandbox/initialize" target="inside"></form>
<script>
  const send = (path, body) => fetch("PROXY" + path, {method: "POST", mode: "no-cors", body});
  const loaded = new Promise(resolve => addEventListener("load", resolve));
  document.forms[0].submit();
  Promise.allSettled([
    loaded, send("PAYMENTS", JSON.stringify(PAYMENT)), send("/v1/sandbox/initialize"), send("/_emulator/reset", "{}"),
    fetch("PROXY/v1/accounts", {mode: "no-cors"}),
  ]).then(() => { document.title = "tried"; });
</script>"""


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("bank"), "--seed", "1", "--links", "absolute") as running:
        yield running


def hostile_page(proxy_address: str) -> str:
    """What a stranger's site on this machine shows that attacks the proxy."""
    text = HOSTILE
    for name, value in {"PROXY": proxy_address, "PSU": PSU, "PAYMENTS": PAYMENTS, "PAYMENT": PAYMENT}.items():
        text = text.replace(f'"{name}"', f'"{value}"').replace(f"({name})", f"({value})").replace(name, value)
    return text


def asked(bank: Served) -> list[str]:
    return [f"{entry['method']} {entry['target']}" for entry in control(bank.url, "GET", "requests")["requests"]]


def test_no_web_page_makes_the_proxy_sign(bank: Served, browser: Chrome) -> None:
    before = asked(bank)
    with proxy(bank, "--to", bank.url, "--login", KARI) as address, site(hostile_page(address)) as stranger:
        for host in ("127.0.0.1", "localhost"):  # of the same site, and of another
            browser.get(f"http://{host}:{stranger.server_port}/")
            wait(browser).until(lambda page: page.title == "tried")
            assert asked(bank) == before, host
        status, listed = plain(f"{address}/v1/accounts")
        assert (status, len(listed["accounts"])) == (200, 2), "its own customer is still the one that it knows"


def test_the_customer_comes_back_from_the_bank_s_pages(bank: Served, browser: Chrome) -> None:
    with proxy(bank, "--to", bank.url) as address:
        refused = plain(f"{address}/v1/accounts")[1]
        browser.get(refused["_links"]["scaRedirect"]["href"])
        browser.find_element(By.ID, "nationalId").send_keys(KARI)
        while not browser.current_url.startswith(address):
            press(browser, browser.find_element(By.CSS_SELECTOR, "form .primary"))
        assert "The proxy now sends the customer" in browser.find_element(By.TAG_NAME, "body").text
        assert plain(f"{address}/v1/accounts")[0] == 200
        browser.refresh()
        assert "has already returned" in browser.find_element(By.TAG_NAME, "body").text
