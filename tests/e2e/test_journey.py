"""The whole journey on real input: a signing client, a real port, a real browser, a restart (README, First payment)."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import url_contains

from emulator.client import Identity, TppClient
from tests.e2e.browser import site
from tests.e2e.clicking import press, wait
from tests.e2e.process import control, served
from tests.known_state import KARI, STRAKS

DEBTOR, CREDITOR = "99901000014", "99901100019"


def approve(browser: Chrome, link: str, national_id: str, back: str) -> str:
    """The customer goes through the pages; the address that it comes back to."""
    browser.get(link)
    for _ in range(6):
        if browser.current_url.startswith(back):
            break
        field = browser.find_elements(By.ID, "nationalId")
        if field:
            field[0].clear()
            field[0].send_keys(national_id)
        press(browser, browser.find_element(By.CSS_SELECTOR, "form .primary"))
    wait(browser).until(url_contains("psu-id="))
    return str(browser.current_url)


def straks(**remittance: Any) -> dict[str, Any]:
    return {
        "instructedAmount": {"amount": "250.00", "currency": "NOK"},
        "creditorName": "Even Eksempel",
        "creditorAccount": {"bban": CREDITOR, "currency": "NOK"},
        "creditorAddress": {"country": "NO"},
        "debtorAccount": {"bban": DEBTOR, "currency": "NOK"},
        **remittance,
    }


def balance(url: str, bban: str) -> Decimal:
    accounts = control(url, "GET", "ledger")["accounts"]
    [account] = [entry for entry in accounts if entry["iban"].endswith(bban)]
    return Decimal(account["balance"])


@pytest.mark.browser
def test_from_nothing_to_booked_money_and_through_a_restart(browser: Chrome, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with served(state) as bank, site() as shop:
        tpp = TppClient(bank.url, Identity.from_folder(state / "tpps" / "demo"))
        tpp.redirect_uri = back = f"{shop.url}/callback"

        first = tpp.get("/v1/accounts")
        assert first.status == 401
        assert first.sca_redirect is not None
        redirect = tpp.remember(approve(browser, first.sca_redirect, KARI, back))
        assert redirect["context"] == "PRIVATE"
        assert redirect["tpp-session-id"] == tpp.session_id

        accounts = tpp.get("/v1/accounts").json()["accounts"]
        own = {account["bban"]: account for account in accounts}
        assert DEBTOR in own
        links = own[DEBTOR]["_links"]
        balances = tpp.get(links["balances"]["href"]).json()["balances"]
        assert {entry["balanceType"] for entry in balances} == {"closingBooked", "expected", "interimAvailable"}
        assert tpp.get(links["transactions"]["href"]).json()["transactions"]["booked"]

        before = {bban: balance(bank.url, bban) for bban in (DEBTOR, CREDITOR)}
        kid = {"remittanceInformationStructured": {"reference": "1234567897", "referenceType": "SCOR"}}
        payments = []
        for in_browser, remittance in ((True, kid), (False, {"remittanceInformationUnstructured": "Takk for sist"})):
            created = tpp.post(STRAKS, json=straks(**remittance))
            assert created.status == 201, created.text
            assert created.json()["transactionStatus"] == "RCVD"
            assert created.sca_redirect is not None
            payments.append(created.json()["paymentId"])
            if in_browser:
                approve(browser, created.sca_redirect, KARI, back)
            else:
                control(bank.url, "POST", f"sca/{payments[-1]}/approve", {})
        seen = [_statuses(tpp, bank.url, payment) for payment in payments]
        assert all(statuses[0] in ("ACTC", "ACSP", "ACSC") and statuses[-1] == "ACSC" for statuses in seen)
        assert balance(bank.url, DEBTOR) == before[DEBTOR] - 500
        assert balance(bank.url, CREDITOR) == before[CREDITOR] + 500

        booked = tpp.get(links["transactions"]["href"]).json()["transactions"]["booked"]
        assert [entry["transactionAmount"]["amount"] for entry in booked[:2]] == ["-250.00", "-250.00"]
        listing = tpp.get(f"/v1/sandbox/accounts/{own[DEBTOR]['resourceId']}/transactions?limit=10").json()
        assert [entry["amount"] for entry in listing].count(-250) == 2
        assert bank.stop() == 0
        outcome = {"tpp": tpp, "payments": payments, "after": before[DEBTOR] - 500}

    with served(state) as bank:
        again = TppClient(bank.url, Identity.from_folder(state / "tpps" / "demo"))
        again.psu_id, again.session_id = outcome["tpp"].psu_id, outcome["tpp"].session_id
        for payment in outcome["payments"]:
            assert again.get(f"{STRAKS}/{payment}/status").json()["transactionStatus"] == "ACSC"
        assert again.get("/v1/accounts").status == 200
        assert balance(bank.url, DEBTOR) == outcome["after"]
        assert control(bank.url, "GET", "ledger")["balanced"] is True


def _statuses(tpp: TppClient, url: str, payment: str) -> list[str]:
    """The status now, and after bank time has moved on."""
    path = f"{STRAKS}/{payment}/status"
    first = tpp.get(path).json()["transactionStatus"]
    control(url, "POST", "clock/advance", {"by": "10s"})
    return [first, tpp.get(path).json()["transactionStatus"]]
