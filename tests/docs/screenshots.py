"""The pictures of the manual: `python -m tests.docs.screenshots` takes them again with a real Chromium."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from emulator.bank.kinds import ACCOUNT
from emulator.manual import IMAGES
from emulator.testing import RunningBank, TestTpp, banks
from tests.e2e.browser import chromium
from tests.e2e.clicking import press
from tests.known_state import DOMESTIC, KARI, STRAKS

LARGEST = 150_000  # bytes of one picture
NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
WIDE, PHONE = (1180, 760), (430, 800)


def payment(amount: str, text: str) -> dict[str, Any]:
    return {
        "instructedAmount": {"amount": amount, "currency": "NOK"},
        "creditorName": "Even Eksempel",
        "creditorAccount": {"bban": "99901100019", "currency": "NOK"},
        "creditorAddress": {"country": "NO"},
        "debtorAccount": {"bban": "99901000014", "currency": "NOK"},
        "remittanceInformationUnstructured": text,
    }


def lived(bank: RunningBank, tpp: TestTpp) -> dict[str, str]:
    """Some things that have happened; the ids of those that are shown."""
    tpp.log_in(KARI)
    tpp.get("/v1/accounts?withBalance=true")
    paid = tpp.post(DOMESTIC, json=payment("250.00", "Takk for sist")).json()["paymentId"]
    bank.clock.advance("40s")
    bank.approve(paid)
    bank.clock.advance("5s")
    tpp.get(f"{DOMESTIC}/{paid}/status")
    declined = tpp.post(STRAKS, json=payment("1999.00", "Sykkel")).json()["paymentId"]
    bank.clock.advance("20s")
    bank.reject(declined)
    tpp.post(STRAKS, json=payment("75.50", "Lunsj"))
    tpp.get("/v1/accounts?withBalance=true", tamper="without-query")
    spoilt = bank.requests()[0]["id"]
    account = bank.call(lambda service: service.bank.documents.first(ACCOUNT, bban="99901000014"))
    return {"payment": paid, "request": str(spoilt), "account": str(account["id"]) if account else ""}


def take(browser: Chrome, name: str, size: tuple[int, int] = WIDE) -> None:
    """A picture of the page as it stands."""
    width, height = size
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE},
    )
    file = IMAGES / f"{name}.png"
    if not browser.save_screenshot(str(file)):
        raise OSError(f"{file} could not be written")
    if file.stat().st_size > LARGEST:
        raise ValueError(f"{file.name} has {file.stat().st_size} bytes")
    print(f"{file.name} {file.stat().st_size}")


def to_the_approval(browser: Chrome, link: str) -> None:
    """The customer goes as far as what is to be approved."""
    browser.get(link)
    while not browser.find_elements(By.CSS_SELECTOR, "button[value=approve], button[name=approve]"):
        field = browser.find_elements(By.ID, "nationalId")
        if field:
            field[0].clear()
            field[0].send_keys(KARI)
        button = browser.find_element(By.CSS_SELECTOR, "form .primary")
        if browser.find_elements(By.CSS_SELECTOR, ".amount, dl"):
            return
        press(browser, button)


def main() -> None:
    with tempfile.TemporaryDirectory() as profile, banks() as make, chromium(Path(profile)) as browser:
        browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})  # for pages that follow
        bank = make(now=NOW, seed=1)
        tpp = bank.tpp(name="demo")
        shown = lived(bank, tpp)
        browser.get(f"{bank.url}/console")
        take(browser, "console")
        browser.get(f"{bank.url}/console/payments/{shown['payment']}")
        take(browser, "payment")
        browser.get(f"{bank.url}/console/requests/{shown['request']}")
        take(browser, "signature")
        browser.get(f"{bank.url}/console/accounts/{shown['account']}")
        take(browser, "account")
        stranger = bank.tpp(name="shop")
        browser.get(str(stranger.get("/v1/accounts", headers={"PSU-Accept-Language": "en"}).sca_redirect))
        take(browser, "identity", PHONE)
        link = tpp.post(
            STRAKS, json=payment("250.00", "Takk for sist"), headers={"PSU-Accept-Language": "en"}
        ).sca_redirect
        to_the_approval(browser, str(link))
        take(browser, "approval", PHONE)


if __name__ == "__main__":
    main()
