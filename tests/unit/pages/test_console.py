"""The console: every page for an empty and a busy bank, every action through the control interface."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from pathlib import Path
from threading import Event
from typing import Any
from unittest import mock
from urllib.parse import urlencode

import pytest

from emulator.api.log import LARGE_BODY
from emulator.api.messages import Request, Stream, Unfinished, finished
from emulator.bank import notifications, settlement
from emulator.bank.authentication import authorisations, sca
from emulator.bank.fixtures.strict_yaml import Parsed
from emulator.bank.kinds import (
    ACCOUNT,
    AGREEMENT,
    BASKET,
    CARD,
    CARD_TRANSACTION,
    CONSENT,
    CUSTOMER,
    PAYMENT,
    PERSON,
    SCA,
    SESSION,
)
from emulator.bank.notification_targets import Host
from emulator.bank.notifications import DeliveryResult
from emulator.packaged import folder
from emulator.scenario import loader
from emulator.store import Kind, StoreUnwritable
from emulator.web.console import routes
from emulator.web.console.screen import NAVIGATION
from tests.known_state import EVEN, KARI, STRAKS
from tests.unit.pages.living import DEBTOR, Living, control, living, logged_in, paid, straks
from tests.unit.pages.visitor import HOST, Page, Visitor

PLACES = [place for _, pages in NAVIGATION for place, _ in pages]


def read(emulator: Living, path: str, **options: Any) -> Any:
    return json.loads(emulator.call("GET", path, **options).body)


def sure(browser: Visitor, page: Page) -> Page:
    """Answer the question of a page with yes; the page that follows."""
    [number] = [n for n, form in enumerate(page.forms) if ("confirmed", "yes") in form.sent()]
    answer = browser.submit(page, form=number)
    return browser.get(answer.headers["location"]) if answer.status == 303 else answer


def press(browser: Visitor, page: Page, action: str, **values: Any) -> Page:
    """Submit the form of a page whose address ends with `action`; the page that follows."""
    [form] = [number for number, form in enumerate(page.forms) if form.action.endswith(action)][:1]
    answer = browser.submit(page, form=form, **values)
    return browser.get(answer.headers["location"]) if answer.status == 303 else answer


def heading(page: Page) -> str | None:
    """What the page calls itself."""
    match = re.search(r"<h1>(.*?)</h1>", page.source)
    return match and match[1]


def latest(browser: Visitor) -> str:
    """The number of the request that came last."""
    return str(json.loads(browser.get("/_emulator/requests").source)["requests"][0]["id"])


def test_every_place_is_there_and_says_where_it_is(browser: Visitor) -> None:
    for place in PLACES:
        page = browser.get(f"/console/{place}" if place else "/console")
        assert (page.status, page.source.count('aria-current="page"'), nameless(page)) == (200, 1, []), place
        assert "form-action 'self'" in page.headers["content-security-policy"]
        assert page.headers["cache-control"] == "no-store"


def nameless(page: Page) -> list[str]:
    """The fields that say nothing to who does not see the page: outside of a label, and with none of their own."""
    outside = re.sub(r"<label(?![^>]* for=)[^>]*>.*?</label>", "", page.source, flags=re.DOTALL)
    fields = re.findall(r'<(?:input|select|textarea)\b(?![^>]*type="hidden")[^>]*>', outside)
    labels = {f'id="{label}"' for label in re.findall(r'<label[^>]* for="([^"]+)"', page.source)}
    return [one for one in fields if "aria-label=" not in one and not any(label in one for label in labels)]


def test_every_place_of_an_empty_bank_is_there_and_tells_what_to_do() -> None:
    hints = {
        "": "No requests yet",
        "customers": "POST /v1/sandbox/customers",
        "payments": "POST /v1/payments/{payment-product}",
        "baskets": "POST /v1/signing-baskets",
        "sca": "ten minutes of bank time",
        "consents": "/_emulator/sessions",
        "requests": "bank-emulator request GET",
    }
    with living(fixtures="empty") as emulator:
        pages = {place: emulator.visitor().get(f"/console/{place}".rstrip("/")) for place in PLACES}
    assert [place for place, page in pages.items() if page.status != 200 or nameless(page)] == []
    assert [place for place, text in hints.items() if text not in pages[place].text] == []


def test_what_is_not_there_is_a_404_page(browser: Visitor) -> None:
    one = ("customers", "accounts", "cards", "payments", "baskets", "scenarios")
    for path in ("nothing", *(f"{kind}/x" for kind in one), "requests/99", "a/b/c/d"):
        page = browser.get(f"/console/{path}")
        assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8"), path
        assert 'aria-current="page"' not in page.source


def test_a_form_about_what_is_not_there_is_a_404_page_whatever_its_id(browser: Visitor) -> None:
    csrf = dict(browser.get("/console/conformance").forms[0].sent())["csrf"]
    for address in ("payments/{}", "sca/{}", "consents/{}", "requests/{}/repeat"):
        for identity in ("x", "x%3Fy", "x%2Fy", "%20"):
            page = browser.post(f"/console/{address.format(identity)}", [("csrf", csrf), ("how", "approve")])
            assert page.status == 404, (address, identity)


def test_a_customer_shows_accounts_with_their_balance_over_time_and_cards(emulator: Living, browser: Visitor) -> None:
    customer = emulator.service.bank.documents.first(CUSTOMER, customerNumber=KARI) or {}
    page = browser.get(f"/console/customers/{customer['id']}")
    assert page.source.count("<svg") == 2
    assert re.search(r'aria-label="Balance of Brukskonto over the last 90 days: lowest .* NOK on ', page.source)
    assert "Kredittkort" in page.text
    card = next(emulator.service.bank.documents.all(CARD))
    assert browser.get(f"/console/cards/{card['id']}").source.count("<svg") == 1


def test_customers_are_found_by_name_and_number(browser: Visitor) -> None:
    assert "Even Eksempel" not in browser.get("/console/customers?q=kari").text
    assert "Even Eksempel" in browser.get(f"/console/customers?q={EVEN}").text
    assert "No match" in browser.get("/console/customers?q=%3Cscript%3E").text
    person = browser.get("/console/customers?q=siri").text
    assert "Siri Skisse" in person
    assert "Tor Testmann" not in person
    assert "No match" not in person


def test_customers_are_read_page_by_page_with_what_is_searched(emulator: Living, browser: Visitor) -> None:
    control(browser, "generate", {"customers": 130, "accountsPerCustomer": 1, "transactionsPerAccount": 0, "seed": 1})
    documents = emulator.service.bank.documents
    for search, fits in (("", lambda name: True), ("q=a", lambda name: "a" in name.lower())):
        expected = [customer["id"] for customer in documents.all(CUSTOMER) if fits(customer["name"])]
        seen: list[str] = []
        address = f"?{search}"
        while address:
            source = browser.get(f"/console/customers{address}").source
            listed = source.partition('class="people"')[2].partition('class="pages"')[0]
            seen += re.findall(r'<h2><a href="/console/customers/([^"]+)"', listed)
            following = re.search(r'href="([^"]+)" rel="next"', source)
            address = unescape(following[1]) if following else ""
        assert seen == expected
        assert len(seen) > 100, search


@pytest.mark.inside
def test_a_page_reads_no_more_customers_than_it_shows_and_those_before_them(emulator: Living, browser: Visitor) -> None:
    control(browser, "generate", {"customers": 230, "accountsPerCustomer": 1, "transactionsPerAccount": 0})
    documents = emulator.service.bank.documents
    kinds: list[Kind[Any]] = []

    def noting(kind: Kind[Any]) -> Iterator[Any]:
        for document in whole(kind):
            kinds.append(kind)
            yield document

    whole = documents.all
    for page, read in (("customers", 100), ("customers?offset=100", 200), ("consents", 1)):
        kinds.clear()
        with mock.patch.object(type(documents), "all", side_effect=noting):
            assert browser.get(f"/console/{page}").status == 200
        assert (kinds.count(CUSTOMER), kinds.count(PERSON)) == (read, 0), page


def test_an_account_lists_its_transactions_page_by_page(emulator: Living, browser: Visitor) -> None:
    account = emulator.service.bank.documents.first(ACCOUNT, bban="99901000014") or {}
    first = browser.get(f"/console/accounts/{account['id']}")
    assert "Kålroten Dagligvare" in first.text
    assert 'href="?offset=50"' in first.source
    second = browser.get(f"/console/accounts/{account['id']}?offset=50")
    assert second.status == 200
    assert 'href="?offset=0"' in second.source
    assert browser.get(f"/console/accounts/{account['id']}?offset=-1").status == 200


def test_where_the_feed_drifts_an_account_and_a_card_show_what_tpps_see(emulator: Living, browser: Visitor) -> None:
    documents = emulator.service.bank.documents
    account, card = documents.first(ACCOUNT, bban="99901000014"), next(documents.all(CARD))
    assert account is not None
    pages = (f"/console/accounts/{account['id']}", f"/console/cards/{card['id']}")
    assert not any("What TPPs see" in browser.get(page).text for page in pages)
    emulator.service.bank.change_settings({"feed": [{"effect": "amend", "text": "Under behandling"}]})
    assert all("Under behandling" in browser.get(page).text for page in pages)
    emulator.service.bank.change_settings({"feed": [{"effect": "late", "days": 60}]})
    assert "Nothing before" in browser.get(pages[0]).text
    with documents.transaction():
        for entry in documents.find(CARD_TRANSACTION, cardId=card["id"]):
            entry.pop("transactionDetails")
            documents.put(CARD_TRANSACTION, entry)
    assert browser.get(pages[1]).status == 200
    emulator.service.bank.change_settings({"feed": [{"effect": "late", "chance": 0}]})
    assert "at this moment it shows what is stored" in browser.get(pages[0]).text


def test_where_less_is_left_than_an_address_leaves_out_the_first_page_is_shown(
    emulator: Living, browser: Visitor
) -> None:
    emulator.service.bank.clock.set(mode="frozen")
    paid(emulator, browser)
    documents = emulator.service.bank.documents
    account = documents.first(ACCOUNT, bban=DEBTOR) or {}
    card = next(documents.all(CARD))
    places = [f"accounts/{account['id']}", f"cards/{card['id']}", "customers", "customers?q=k", "payments", "requests"]
    for place in places:
        page = browser.get(f"/console/{place}")
        assert browser.get(f"/console/{place}{'&' if '?' in place else '?'}offset=500").source == page.source


def test_a_payments_life_is_drawn_and_can_be_moved_on(emulator: Living, browser: Visitor) -> None:
    payment = paid(emulator, browser)
    page = browser.get(f"/console/payments/{payment}")
    assert "Takk for sist &lt;3" in page.source
    assert "waits for the customer" in page.text
    page = press(browser, page, payment)
    assert "The payment was advanced." in page.text
    assert read(emulator, f"{STRAKS}/{payment}/status")["transactionStatus"] == "ACTC"
    page = press(browser, page, payment, to="ACSC")
    assert [status for status in ("RCVD", "ACTC", "ACSP", "ACSC") if f"<b>{status}</b>" not in page.source] == []
    assert not any(form.action.endswith(payment) for form in page.forms)


def bulk(emulator: Living, entries: int) -> str:
    """A new bulk payment of so many entries; its id."""
    single = straks()
    body = {"debtorAccount": single.pop("debtorAccount"), "payments": [single] * entries}
    address = "/v1/bulk-payments/norwegian-domestic-credit-transfers"
    answer = emulator.call("POST", address, json=body, headers={"PSU-Context": "PRIVATE"})
    return str(json.loads(answer.body)["paymentId"])


def test_of_a_long_bulk_the_page_says_that_it_shows_the_first(emulator: Living, browser: Visitor) -> None:
    logged_in(emulator, browser)
    for entries in (20, 21):
        page = browser.get(f"/console/payments/{bulk(emulator, entries)}")
        assert f"{entries} payments" in page.text
        assert ("These are the first 20" in page.text) == (entries > 20)


@pytest.mark.inside
def test_the_list_of_payments_does_not_read_the_entries_of_a_bulk(emulator: Living, browser: Visitor) -> None:
    logged_in(emulator, browser)
    for entries in (1, 3):
        bulk(emulator, entries)
    with mock.patch("emulator.bank.settlement.item", wraps=settlement.item) as read:
        page = browser.get("/console/payments")
    assert read.call_count == 1
    assert "3 payments 750.00 NOK" in " ".join(page.text.split())
    assert "Even Eksempel 250.00 NOK" in " ".join(page.text.split())


def test_a_wait_of_years_is_written_out(emulator: Living, browser: Visitor) -> None:
    control(browser, "settings", {"progression": "manual"}, "PUT")
    payment = paid(emulator, browser)
    control(browser, f"payments/{payment}/advance", {"to": "ACTC"})
    control(browser, "clock", {"mode": "frozen"}, "PUT")
    control(browser, "clock/advance", {"by": "P1200D"})
    control(browser, f"payments/{payment}/advance", {})
    assert "+1200 days" in browser.get(f"/console/payments/{payment}").text


def test_a_payment_can_be_let_fail_and_is_listed_by_its_status(emulator: Living, browser: Visitor) -> None:
    payment = paid(emulator, browser)
    assert payment in browser.get("/console/payments?status=RCVD").source
    assert "No payment is ACSC" in browser.get("/console/payments?status=ACSC").text
    assert "There is no such status" in browser.get("/console/payments?status=%22%3E").text
    page = browser.get(f"/console/payments/{payment}")
    assert "The payment was rejected." in press(browser, page, payment, to="RJCT").text
    assert read(emulator, f"{STRAKS}/{payment}/status")["transactionStatus"] == "RJCT"
    refused = browser.submit(page, form=1, to="RCVD")
    assert refused.status == 409
    assert "That did not work" in refused.text
    assert "RJCT is final" in refused.text or "no step leads" in refused.text


def test_the_ids_that_a_tpp_sends_stand_whole_where_one_thing_is_shown(emulator: Living, browser: Visitor) -> None:
    payment = paid(emulator, browser)
    basket = json.loads(emulator.call("POST", "/v1/signing-baskets", json={"paymentIds": [payment]}).body)["basketId"]
    documents = emulator.service.bank.documents
    account, card = documents.first(ACCOUNT, bban=DEBTOR), next(documents.all(CARD))
    agreement = next(documents.all(AGREEMENT))
    assert account is not None
    assert emulator.tpp.session_id is not None
    shown = {
        f"payments/{payment}": payment,
        f"baskets/{basket}": basket,
        f"accounts/{account['id']}": account["id"],
        f"cards/{card['id']}": card["id"],
        f"customers/{agreement['owner']}": agreement["id"],
        "consents": emulator.tpp.session_id,
    }
    assert [
        place
        for place, field in shown.items()
        if f"<code>{field}</code>" not in browser.get(f"/console/{place}").source
    ] == []


def test_a_basket_shows_its_payments(emulator: Living, browser: Visitor) -> None:
    ids = [paid(emulator, browser), paid(emulator, browser)]
    answer = emulator.call("POST", "/v1/signing-baskets", json={"paymentIds": ids}, headers={"PSU-Context": "PRIVATE"})
    basket = json.loads(answer.body)["basketId"]
    assert basket in browser.get("/console/baskets").source
    page = browser.get(f"/console/baskets/{basket}")
    assert all(payment in page.source for payment in ids)


def test_an_authentication_is_ended_and_the_redirect_shown(emulator: Living, browser: Visitor) -> None:
    for how, title, message in (
        ("approve", "Approved", "psu-id="),
        ("reject", "Declined", "code=SCA_INVALID"),
        ("expire", "Expired", "code=SCA_EXPIRED"),
        ("fail", "Failed", "system=core"),
    ):
        assert emulator.call("GET", "/v1/accounts").status == 401
        page = browser.get("/console/sca")
        token = [one["id"] for one in emulator.service.bank.documents.all(SCA)][-1]
        ended = press(browser, page, token, nationalId=KARI, how=how)
        assert heading(ended) == title
        assert message in ended.text
        assert press(browser, page, token, nationalId=KARI, how=how).status == 409


def test_who_has_several_things_to_approve_can_tell_them_apart(emulator: Living, browser: Visitor) -> None:
    first, other = (
        paid(emulator, browser, creditorName=name, instructedAmount={"amount": amount, "currency": "NOK"})
        for name, amount in (("Rent", "9000.00"), ("Bread", "42.50"))
    )
    emulator.call("POST", "/v1/signing-baskets", json={"paymentIds": [first, other]})
    emulator.call("POST", "/v1/consents")
    shown = ("basket of 2 payments", "payment of 42.50 NOK to Bread", "payment of 9,000.00 NOK to Rent")
    for place in ("", "/sca"):
        text = " ".join(browser.get(f"/console{place}").text.split())
        assert [label for label in shown if label not in text] == []


def test_an_approval_that_the_bank_refuses_is_not_called_one(emulator: Living, browser: Visitor) -> None:
    payment, bank = paid(emulator, browser), emulator.service.bank
    account = bank.documents.first(ACCOUNT, bban=DEBTOR) or {}
    bank.documents.put(ACCOUNT, {**account, "paymentsRemoved": True})
    token = (bank.documents.first(SCA, target=payment) or {})["id"]
    ended = press(browser, browser.get("/console/sca"), token, how="approve")
    assert heading(ended) == "Not approved"
    assert "403 FORBIDDEN. The bank does not allow payments from this account." in ended.text


def test_a_customer_who_leaves_by_a_rule_has_approved_nothing(emulator: Living, browser: Visitor) -> None:
    control(browser, "rules", {"then": {"sca": "abandon"}})
    assert emulator.call("GET", "/v1/accounts").status == 401
    [token] = [one["id"] for one in emulator.service.bank.documents.all(SCA)]
    ended = press(browser, browser.get("/console/sca"), token, nationalId=KARI, how="approve")
    assert heading(ended) == "The customer closed the page"
    assert "there is no redirect" in ended.text


def test_many_open_authentications_are_counted_and_hide_no_past_one(emulator: Living, browser: Visitor) -> None:
    bank = emulator.service.bank
    bank.clock.set(mode="frozen")
    about = {"tppName": "demo", "redirectUri": "https://tpp.example/back"}
    late = authorisations.open_sca(bank, "PSDNO-SBX-demo", "access", about)
    bank.clock.set(now=bank.clock.now() + timedelta(minutes=10))
    declined = authorisations.open_sca(bank, "PSDNO-SBX-demo", "access", about)
    sca.decline(bank, sca.get(bank, declined) or {})
    still = [authorisations.open_sca(bank, "PSDNO-SBX-demo", "access", about) for _ in range(105)]
    page = browser.get("/console/sca")
    assert "The newest 20." in page.text
    assert len([form for form in page.forms if form.action.rpartition("/")[2] in still]) == 20
    past = page.text.partition("Past")[2]
    assert (past.count("failed"), past.count("expired"), past.count("started")) == (1, 1, 0)
    assert not any(form.action.endswith(late) for form in page.forms)


def test_a_payment_is_approved_only_as_the_person_behind_it(emulator: Living, browser: Visitor) -> None:
    payment = paid(emulator, browser)
    page = browser.get("/console/sca")
    assert "Approve as Kari Kladd" in page.text
    assert EVEN not in page.source
    token = (emulator.service.bank.documents.first(SCA, target=payment) or {})["id"]
    assert "To the payment" in press(browser, page, token, how="approve").text


def test_who_has_identified_may_approve_however_many_customers_there_are(emulator: Living, browser: Visitor) -> None:
    control(browser, "generate", {"customers": 40, "accountsPerCustomer": 1, "transactionsPerAccount": 0})
    assert emulator.call("GET", "/v1/accounts").status == 401
    documents = emulator.service.bank.documents
    last = [customer for customer in documents.all(CUSTOMER) if customer["type"] == "private"][-1]
    token = next(documents.all(SCA))["id"]
    browser.submit(browser.get(f"/sca/{token}"), nationalId=last["customerNumber"])
    page = browser.get("/console/sca")
    assert f"Approve as {last['name']}" in page.text
    assert "<h1>Approved</h1>" in press(browser, page, token, how="approve").source


def test_without_customers_nobody_can_approve(emulator: Living, browser: Visitor) -> None:
    control(browser, "reset", {"fixtures": "empty"})
    assert emulator.call("GET", "/v1/accounts").status == 401
    assert "Nobody at the bank can approve it." in browser.get("/console/sca").text


def test_what_a_page_draws_anew_is_on_it_also_while_there_is_nothing_to_show(
    emulator: Living, browser: Visitor
) -> None:
    payment, documents = paid(emulator, browser), emulator.service.bank.documents
    emulator.call("POST", "/v1/signing-baskets", json={"paymentIds": [payment]})
    basket = next(documents.all(BASKET))["id"]
    customer = (documents.first(CUSTOMER, customerNumber=KARI) or {})["id"]
    pages = [*PLACES, f"payments/{payment}", f"baskets/{basket}", f"customers/{customer}"]

    def drawn() -> dict[str, list[str]]:
        return {page: re.findall(r'data-live="([^"]*)"', browser.get(f"/console/{page}").source) for page in pages}

    full = drawn()
    for kind in (SCA, ACCOUNT, CARD):
        for one in list(documents.all(kind)):
            documents.delete(kind, one["id"])
    assert drawn() == full
    control(browser, "reset", {"fixtures": "empty"})
    pages = list(PLACES)
    assert drawn() == {page: full[page] for page in pages}


def test_a_tpp_is_its_id_on_every_page_with_the_name_that_the_customer_is_shown(
    emulator: Living, browser: Visitor
) -> None:
    logged_in(emulator, browser)
    headers = {"TPP-Brand-Logging-Information": "Regnskap & Sønn"}
    opened = json.loads(emulator.call("POST", "/v1/consents", headers=headers).body)["_links"]["scaRedirect"]["href"]
    assert "for PSDNO-SBX-demo" in browser.get("/console/sca").text
    emulator.service.bank.clock.advance(timedelta(minutes=10))
    assert opened.rpartition("/")[2] not in browser.get("/console/sca").source
    past, consents = browser.get("/console/sca").source, browser.get("/console/consents").source
    shown = '<td data-label="TPP" class="name">PSDNO-SBX-demo'
    assert f'{shown}<span class="soft block">shown as Regnskap &amp; Sønn</span></td>' in past
    assert f'{shown}<span class="soft block">shown as demo</span></td>' in consents
    assert f"{shown}</td>" in consents, "the session"


def test_a_consent_is_revoked_and_a_session_ended(emulator: Living, browser: Visitor) -> None:
    logged_in(emulator, browser)
    assert emulator.call("GET", "/v1/accounts").status == 200
    page = browser.get("/console/consents")
    session = next(emulator.service.bank.documents.all(SESSION))["id"]
    consent = next(emulator.service.bank.documents.all(CONSENT))["id"]
    before, page = page, press(browser, page, f"/sessions/{session}")
    assert "The session was ended." in page.text
    assert press(browser, before, f"/sessions/{session}").status == 409, "it has ended already"
    assert json.loads(emulator.call("GET", "/v1/accounts").body)["tppMessages"][0]["code"] == "SCA_EXPIRED"
    page = press(browser, page, f"/consents/{consent}")
    assert "The consent was revoked." in page.text
    assert not any("/consents/" in form.action or "/sessions/" in form.action for form in page.forms)


def test_a_certificate_is_issued_with_its_key_shown_once_and_anew_where_the_form_says_so(browser: Visitor) -> None:
    page = browser.get("/console/tpps")
    issued = press(browser, page, "/tpps", name="acme", roles=["AISP"], flaw="expired")
    assert "BEGIN PRIVATE KEY" in issued.text
    assert "BEGIN CERTIFICATE" in issued.text
    assert "acme" in browser.get("/console/tpps").text
    assert 'aria-label="Show the certificate of acme"' in browser.get("/console/tpps").source
    assert "BEGIN PRIVATE KEY" not in browser.get("/console/tpps").text
    again = press(browser, page, "/tpps", name="acme", roles=["AISP"])
    assert again.status == 409
    assert "already" in again.text
    assert press(browser, page, "/tpps", name="../x", roles=["AISP"]).status == 400
    anew = press(browser, again, "/tpps", replace="true")
    assert (anew.status, heading(anew)) == (200, "acme")
    assert "BEGIN PRIVATE KEY" in anew.source
    assert "BEGIN PRIVATE KEY" not in again.source


def test_a_scenario_is_read_applied_and_taken_away(browser: Visitor) -> None:
    page = browser.get("/console/scenarios")
    names = [button.value for form in page.forms for button in form.buttons if button.name == "name"]
    assert names
    assert "scenario:" in browser.get(f"/console/scenarios/{names[0]}").text
    applied = press(browser, page, "/scenarios", name=names[0])
    applied = sure(browser, applied) if "This will be lost" in applied.text else applied
    assert f"{names[0]} is applied" in applied.text
    assert names[0] in browser.get("/console").text
    assert "No scenario is applied" in press(browser, browser.get("/console/scenarios"), "/withdraw").text


def test_a_scenario_that_replaces_the_bank_asks_first_and_says_what_it_did(emulator: Living, browser: Visitor) -> None:
    text = "scenario: anew\nstart: {from: empty, clock: 2026-03-02T09:00:00+01:00, settings: {date_skew: 60}}\n"
    page = browser.get("/console/scenarios/new")
    csrf = next(field.value for field in page.forms[-1].fields if field.name == "csrf")
    question = browser.post("/console/scenarios", [("csrf", csrf), ("text", text)])
    assert "This will be lost:" in question.text
    assert "4 customers" in question.text
    assert "Bank time will be 2026-03-02 09:00:00, frozen." in question.text  # Oslo, as on each page
    assert emulator.service.bank.documents.count(CUSTOMER) == 4
    applied = sure(browser, question)
    assert "anew is applied" in applied.text
    assert "replaced by those of the scenario" in applied.text
    assert "date_skew: 60" in applied.text
    assert emulator.service.bank.documents.count(CUSTOMER) == 0


def test_a_scenario_is_applied_with_parameters_of_ones_own(emulator: Living, browser: Visitor) -> None:
    ready = json.loads(browser.get("/_emulator/scenarios").source)["scenarios"]
    for name in [one["name"] for one in ready if "creditor" in one["parameters"]][:2]:
        page = browser.get(f"/console/scenarios/{name}")
        page = press(browser, page, "/scenarios", name=name, **{"set-creditor": "Somebody*"})
        page = sure(browser, page) if "This will be lost" in page.text else page
        assert "is applied" in page.text
        assert "Somebody*" in browser.get("/_emulator/rules").source


def test_a_parameter_that_is_a_number_is_taken_as_the_page_has_it_and_as_it_was_typed(browser: Visitor) -> None:
    name = "amended-when-booked"
    for changes, percent in (({}, 10), ({"set-percent": "15"}, 15)):
        page = press(browser, browser.get(f"/console/scenarios/{name}"), "/scenarios", name=name, **changes)
        assert "is applied" in page.text
        assert json.loads(browser.get("/_emulator/settings").source)["feed"][0]["percent"] == percent
    for text in ("many", "NaN"):
        page = browser.get(f"/console/scenarios/{name}")
        page = press(browser, page, "/scenarios", name=name, **{"set-percent": text})
        assert f"Expected a whole number, found the text '{text}'" in page.text


def test_what_can_only_be_played_has_no_button_to_apply_it(browser: Visitor) -> None:
    ready = json.loads(browser.get("/_emulator/scenarios").source)["scenarios"]
    for name in [one["name"] for one in ready if one["play"] == "only"]:
        assert "Apply to this bank" not in browser.get(f"/console/scenarios/{name}").text, name


def test_a_scenario_without_a_summary_is_shown_by_its_name(browser: Visitor) -> None:
    control(browser, "scenario", {"scenario": "bare"})
    for place in ("", "/scenarios"):
        page = browser.get(f"/console{place}")
        assert (page.status, "bare" in page.text) == (200, True)


def test_a_long_text_is_checked_beside_other_requests(emulator: Living, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = Event()
    parse = loader.read_yaml

    def slow(text: str) -> Parsed:
        assert go_on.wait(20)
        return parse(text)

    browser = emulator.visitor()
    page = browser.get("/console/scenarios/new")
    [form] = [form for form in page.forms if form.action.endswith("/check")]
    monkeypatch.setattr(loader, "read_yaml", slow)
    body = urlencode([*(pair for pair in form.sent() if pair[0] != "text"), ("text", "scenario: x")]).encode()
    headers = (("Host", HOST), ("Content-Type", "application/x-www-form-urlencoded"))
    answer = emulator.console.handle(
        emulator.service, Request("POST", "/console/scenarios/check", headers, body, f"http://{HOST}")
    )
    assert isinstance(answer, Unfinished)
    assert answer.awaits is not None
    go_on.set()
    assert finished(answer).status == 200


def test_a_scenarios_text_is_checked_and_applied(browser: Visitor) -> None:
    page = browser.get("/console/scenarios/new")
    example = re.search(r"<textarea[^>]*>(.*?)</textarea>", page.source, re.DOTALL)
    assert example is not None
    text = example[1].replace("\n", "\r\n")
    assert "has no problems" in press(browser, page, "/check", text=text).text
    wrong = press(browser, page, "/check", text=text.replace("delay", "dealy"))
    assert wrong.status == 400
    assert "dealy" in wrong.text
    assert "scenario.yaml:" in wrong.text
    [form] = [form for form in page.forms if form.action.endswith("/check")]
    csrf = next(field.value for field in form.fields if field.name == "csrf")
    applied = browser.post("/console/scenarios", [("csrf", csrf), ("text", text)])
    assert "my-scenario is applied" in applied.text
    scenarios = browser.get("/console/scenarios")
    assert "the first answer comes late" in scenarios.text
    assert "All rules were removed" in press(browser, scenarios, "/rules/clear").text
    refused = browser.post("/console/scenarios", [("csrf", csrf), ("text", "scenario: [")])
    assert refused.status == 400
    assert "scenario: [" in refused.text


def test_a_scenarios_text_may_begin_further_down_and_be_indented_as_a_whole(browser: Visitor) -> None:
    page = browser.get("/console/scenarios/new")
    for before in ("", "\r\n", "\r\n\r\n"):
        text = f"{before}  scenario: mine\r\n  summary: It stands apart.\r\n  start: {{from: current}}\r\n"
        checked = press(browser, page, "/check", text=text)
        assert "The scenario has no problems." in checked.text
        source = checked.source.partition("<textarea")[2].partition(">")[2].partition("</textarea>")[0]
        shown = source.removeprefix("\n")  # as a browser does
        assert shown == text.replace("\r\n", "\n")


def test_a_ready_story_is_played_step_by_step(browser: Visitor) -> None:
    page = browser.get("/console/scenarios/bank-down")
    played = press(browser, page, "/play")
    assert played.status == 200
    assert "passed" in played.text
    assert played.text.count("passed") >= 1


def test_a_request_is_sent_again_freshly_signed(emulator: Living, browser: Visitor) -> None:
    emulator.call("GET", "/v1/accounts", tamper="bit-flipped")
    page = browser.get(f"/console/requests/{latest(browser)}")
    assert "Why the signature failed" in page.text
    again = press(browser, page, "/repeat")
    assert "sent again with a new signature" in again.text
    assert "Why the signature failed" not in again.text
    second, first = json.loads(browser.get("/_emulator/requests").source)["requests"]
    first, second = (
        json.loads(browser.get(f"/_emulator/requests/{one['id']}").source)["request"] for one in (first, second)
    )
    ids = [dict(map(tuple, one["headers"]))["X-Request-ID"] for one in (first, second)]
    assert (first["target"], ids[0] == ids[1]) == (second["target"], False)


def test_a_request_of_somebody_whose_key_the_bank_lacks_is_not_sent_again(emulator: Living, browser: Visitor) -> None:
    emulator.call("GET", "/v1/accounts", headers={"TPP-Signature-Certificate": "AAAA"})
    refused = press(browser, browser.get(f"/console/requests/{latest(browser)}"), "/repeat")
    assert refused.status == 409
    assert "has no private key" in refused.text


def test_a_payment_is_found_by_name_amount_account_message_or_id(emulator: Living, browser: Visitor) -> None:
    payment = paid(emulator, browser)
    for words in ("even eks", "250", "250,00", "250.00", "99901100019", "takk for", "nobody"):
        page = browser.get(f"/console/payments?{urlencode({'q': words})}")
        shown = 0 if words == "nobody" else 1
        assert page.source.count('href="/console/payments/') == shown, words
        assert ("No payment matches" in page.text) == (shown == 0), words
    assert browser.get(f"/console/payments?q={payment}").headers["location"] == f"/console/payments/{payment}"
    assert payment in browser.get(f"/console/payments?q={payment[3:12]}").source


def test_the_request_log_is_filtered_and_emptied(emulator: Living, browser: Visitor) -> None:
    emulator.call("GET", "/v1/accounts")
    emulator.call("GET", "/v1/nothing")
    emulator.call("GET", "/v1/accounts?withBalance=true", tamper="bit-flipped")

    def shown(query: str) -> int:
        return browser.get(f"/console/requests?{query}").source.count('class="target"')

    assert shown("") == 3
    assert shown("operation=getAccounts") == 2
    assert shown("status=4xx") == 3
    assert shown("status=404") == 1
    assert shown("tpp=PSDNO-SBX-demo") == 1
    assert shown("q=withbalance") == 1
    assert shown("q=nobody") == 0
    assert "No requests yet" in press(browser, browser.get("/console/requests"), "/requests/clear").text


def test_the_request_log_is_read_page_by_page_with_its_filter(emulator: Living, browser: Visitor) -> None:
    for number in range(102):
        emulator.call("GET", f"/v1/nothing/{number}")
    emulator.call("GET", "/v1/accounts")
    first = browser.get("/console/requests?q=nothing&status=4xx")
    assert "1 to 100 of 102" in first.text
    assert "102 match of 103 requests in the log" in first.text
    link = re.search('href="([^"]*)" rel="next"', first.source)
    assert link is not None
    older = browser.get("/console/requests" + unescape(link[1]))
    assert [f"/v1/nothing/{number}</span>" in older.source for number in (0, 1, 2)] == [True, True, False]
    assert 'rel="next"' not in older.source


def test_payments_are_read_page_by_page(emulator: Living, browser: Visitor) -> None:
    documents = emulator.service.bank.documents
    stored = documents.get(PAYMENT, paid(emulator, browser)) or {}
    for number in range(101):
        documents.put(PAYMENT, {**stored, "id": f"p-{number}"})
    for status in ("", "RCVD"):
        first = browser.get(f"/console/payments?status={status}")
        assert "1 to 100 of 102" in first.text
        link = re.search('href="([^"]*)" rel="next"', first.source)
        assert link is not None
        older = browser.get("/console/payments" + unescape(link[1])).source
        assert all(f"/console/payments/{shown}" in older for shown in (stored["id"], "p-0"))
        assert "/console/payments/p-1" not in older


def test_an_exchange_is_shown_in_full_with_its_curl_command(emulator: Living, browser: Visitor) -> None:
    payment = paid(emulator, browser, creditorName="Ola's <shop>")
    number = browser.get("/console/requests").source.split("/console/requests/")[1].split('"')[0]
    page = browser.get(f"/console/requests/{number}")
    assert '"creditorName": "Ola\'s <shop>"' in page.text
    assert f'"paymentId": "{payment}"' in page.text
    assert f"curl -g --path-as-is -X POST http://127.0.0.1:8080{STRAKS} " in page.text
    assert "Ola'\"'\"'s <shop>" in page.text
    assert "-H 'Digest: SHA-256=" in page.text
    assert "The signature is valid" in page.text


def test_a_body_that_is_not_shown_whole_makes_no_curl_command(emulator: Living, browser: Visitor) -> None:
    emulator.call("POST", STRAKS, body=b'{"a": "' + b"x" * LARGE_BODY + b'"}')
    page = browser.get(f"/console/requests/{latest(browser)}")
    assert "bytes in all" in page.text
    assert "curl -g" not in page.text


def test_a_body_that_is_nested_too_deeply_to_be_laid_out_is_shown_as_it_came(
    emulator: Living, browser: Visitor
) -> None:
    for depth in (600, 5000):
        emulator.call("POST", "/v1/sandbox/customers", body="[" * depth + "]" * depth)
        assert "[" * depth in browser.get(f"/console/requests/{latest(browser)}").text


def test_a_failed_signature_shows_both_strings_with_the_first_difference(emulator: Living, browser: Visitor) -> None:
    emulator.call("GET", "/v1/accounts?withBalance=true", tamper="without-query")
    page = browser.get(f"/console/requests/{latest(browser)}")
    assert "without the query" in page.text
    assert "<mark>?withBalance=true</mark>" in page.source
    assert page.source.count('class="differs first"') == 1
    emulator.call("GET", "/v1/accounts", tamper="other-serial")
    page = browser.get(f"/console/requests/{latest(browser)}")
    assert "Expected" in page.text, "the right key id stands beside the wrong one"
    assert "SN=" in page.text


def test_every_setting_has_its_field_and_is_saved_or_its_mistake_named(emulator: Living, browser: Visitor) -> None:
    page = browser.get("/console/settings")
    fields = emulator.service.bank.settings.as_document()
    assert [name for name in fields if f'name="{name}"' not in page.source] == []
    saved = press(browser, page, "/settings", progression="polls: 3", sign_responses="true", date_skew="60")
    assert "The settings were saved." in saved.text
    settings = emulator.service.bank.settings
    assert (settings.progression, settings.sign_responses, settings.date_skew) == ({"polls": 3}, True, 60)
    assert 'value="polls: 3"' in saved.source
    press(browser, saved, "/settings", progression='{"polls": 4}')
    assert emulator.service.bank.settings.progression == {"polls": 4}
    wrong = press(browser, page, "/settings", straks_limit="much", date_skew="-1")
    assert wrong.status == 400
    assert "straks_limit" in wrong.text
    assert "date_skew" in wrong.text


def test_rough_weather_is_shown_as_the_rules_of_a_setting(emulator: Living, browser: Visitor) -> None:
    press(browser, browser.get("/console/settings"), "/settings", weather="rough")
    page = browser.get("/console/scenarios")
    assert "weather: lost answer setting weather" in " ".join(page.text.split())
    assert "the bank behaves as documented" not in page.text
    assert "Remove all rules" not in page.text
    rule = {"name": "mine", "when": {"operation": "getAccounts"}, "then": {"delay": "1s"}}
    control(browser, "rules", rule)
    page = press(browser, browser.get("/console/scenarios"), "/rules/clear")
    assert "mine" not in page.text
    assert "weather: slow SCA" in page.text


def test_refused_settings_stay_as_they_were_typed_with_the_wrong_ones_marked(
    emulator: Living, browser: Visitor
) -> None:
    page = browser.get("/console/settings")
    wrong = press(browser, page, "/settings", straks_limit="1,5", date_skew="70", progression="polls: 0")
    for name, value, marked in (
        ("straks_limit", "1,5", True),
        ("date_skew", "70", False),
        ("progression", "polls: 0", True),
    ):
        field = re.search(f'<input id="{name}"[^>]*>', wrong.source)
        assert field is not None
        assert f'value="{value}"' in field[0]
        assert ('aria-invalid="true" aria-describedby="problem"' in field[0]) == marked
    assert 'id="problem"' in wrong.source
    for text in ("[" * 5000, "9" * 5000, "NaN", "polls: 9999999999999999999", "\x00"):
        assert press(browser, page, "/settings", feed=text, date_skew=text, progression=text).status == 400
    press(browser, wrong, "/settings", straks_limit="1.50", progression="time")
    settings = emulator.service.bank.settings
    assert (settings.straks_limit, settings.date_skew) == ("1.50", 70)


def test_only_what_was_changed_in_the_form_is_saved(emulator: Living, browser: Visitor) -> None:
    page = browser.get("/console/settings")
    control(browser, "settings", {"known_issues": True}, "PUT")
    press(browser, page, "/settings", straks_limit="7.00")
    settings = emulator.service.bank.settings
    assert (settings.straks_limit, settings.known_issues) == ("7.00", True)


def test_bank_time_is_frozen_advanced_and_let_run(emulator: Living, browser: Visitor) -> None:
    page = press(browser, browser.get("/console"), "/clock", mode="frozen")
    clock = emulator.service.bank.clock
    assert clock.mode == "frozen"
    before = clock.now()
    page = press(browser, page, "/clock", by="1h30m")
    assert (clock.now() - before).total_seconds() == 5400
    assert "Let it run" in page.text
    refused = press(browser, page, "/clock", by="soon")
    assert refused.status == 400
    assert "That did not work" in refused.text


def test_snapshots_are_saved_restored_and_deleted(emulator: Living, browser: Visitor) -> None:
    page = press(browser, browser.get("/console/snapshots"), "/snapshots", snapshot="before lunch")
    assert page.status == 400
    page = press(browser, page, "/snapshots", snapshot="before-lunch")
    assert "The snapshot was saved." in page.text
    paid(emulator, browser)
    question = press(browser, page, "/restore")
    assert "1 payment" in question.text
    assert emulator.service.bank.documents.count(PAYMENT) == 1
    page = sure(browser, question)
    assert "The snapshot was restored" in page.text
    assert emulator.service.bank.documents.count(PAYMENT) == 0
    page = sure(browser, press(browser, page, "/snapshots", snapshot="before-lunch"))
    assert "The snapshot was saved." in page.text
    page = sure(browser, press(browser, page, "/snapshots/before-lunch/delete"))
    assert "No snapshots yet." in page.text


def test_an_answer_whose_messages_a_rule_made_up_is_shown_without_them(emulator: Living, browser: Visitor) -> None:
    for messages in (5, "no", {"0": {}}, ["no"], [{"x": 1}], [{"code": "CONFLICT", "text": 5}]):
        scripted(emulator, browser, 400, messages)
        for page in ("/console", "/console/requests", f"/console/requests/{latest(browser)}"):
            assert browser.get(page).status == 200, (page, messages)
        assert "messages" not in json.loads(browser.get(f"/_emulator/requests/{latest(browser)}").source)


def scripted(emulator: Living, browser: Visitor, status: int, messages: Any) -> None:
    """A request that a rule, the only one, answers with these messages."""
    browser.send("DELETE", "/_emulator/rules")
    control(browser, "rules", {"then": {"answer": {"status": status, "json": {"tppMessages": messages}}}})
    assert emulator.call("GET", "/v1/accounts").status == status


def test_a_scripted_message_without_a_text_is_shown_by_its_code(emulator: Living, browser: Visitor) -> None:
    message = {"category": "ERROR", "code": "ACCESS_EXCEEDED"}
    scripted(emulator, browser, 429, [message])
    for page in ("/console", "/console/requests", f"/console/requests/{latest(browser)}"):
        assert "ACCESS_EXCEEDED" in re.sub(r"<pre.*?</pre>", "", browser.get(page).source, flags=re.DOTALL), page
    assert json.loads(browser.get(f"/_emulator/requests/{latest(browser)}").source)["messages"] == [message]


def test_more_than_a_hundred_rules_are_shown(browser: Visitor) -> None:
    rules = [{"name": f"rule-{n}-", "then": {"delay": "1s"}} for n in range(101)]
    control(browser, "rules", rules)
    shown = browser.get("/console/scenarios").text
    assert [rule["name"] for rule in rules if str(rule["name"]) not in shown] == []
    assert "101 active rules" in browser.get("/console").text


def test_the_bank_is_reset(emulator: Living, browser: Visitor) -> None:
    paid(emulator, browser)
    question = press(browser, browser.get("/console/reset"), "/reset", fixtures="empty")
    assert "1 payment" in question.text
    assert emulator.service.bank.documents.count(CUSTOMER) == 4
    assert "The bank was reset" in sure(browser, question).text
    assert emulator.service.bank.documents.count(CUSTOMER) == 0


def test_a_bank_made_from_a_file_is_reset_to_that_unless_another_fixture_is_chosen(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text((folder("fixtures") / "known-state.yaml").read_text().replace("Kari Kladd", "Mona Mal"))
    with living(fixtures=str(file)) as emulator:
        browser = emulator.visitor()
        page = sure(browser, press(browser, browser.get("/console/reset"), "/reset", fixtures="empty"))
        page = sure(browser, press(browser, page, "/reset"))
        assert "The bank was reset" in page.text
        assert "Mona Mal" in browser.get("/console/customers").text


def test_customers_are_generated(emulator: Living, browser: Visitor) -> None:
    page = browser.get("/console/generate")
    refused = press(browser, page, "/generate", customers="999999999999")
    assert "Expected a number of at most 100000, found the number 999999999999." in refused.text
    generated = press(browser, page, "/generate", customers="2", accountsPerCustomer="1", transactionsPerAccount="3")
    assert "Customers were generated." in generated.text
    assert emulator.service.bank.documents.count(CUSTOMER) == 6


def test_further_banks_have_consoles_of_their_own(emulator: Living, browser: Visitor) -> None:
    page = press(browser, browser.get("/console/banks"), "/banks", bank="second")
    assert 'href="/banks/second/console"' in page.source
    other = Visitor(browser._handler, emulator.service)
    second = other.get("/banks/second/console/snapshots")
    assert 'href="/banks/second/console/customers"' in second.source
    assert 'href="/console"' in other.get("/banks/second/console/banks").source
    assert "<title>Snapshots – Sandbanken console, bank second</title>" in second.source
    saved = press(other, second, "/snapshots", snapshot="one")
    assert "The snapshot was saved." in saved.text
    assert "No snapshots yet." in browser.get("/console/snapshots").text
    assert "Deleted." in sure(browser, press(browser, page, "/banks/second/delete")).text


def test_a_new_bank_takes_the_place_of_none_that_is_there(emulator: Living, browser: Visitor) -> None:
    page = press(browser, browser.get("/console/banks"), "/banks", bank="second")
    banks = [emulator.registry.default, emulator.registry.find("second")]
    documents = [service.bank.documents.dump() for service in banks if service is not None]
    for name in ("default", "second"):
        refused = press(browser, page, "/banks", bank=name)
        assert refused.status == 409
        assert f"The bank {name} exists." in refused.text
    assert [service.bank.documents.dump() for service in banks if service is not None] == documents


def test_the_event_stream_is_the_control_interfaces(emulator: Living) -> None:
    stream = emulator.application.handle(Request("GET", "/console/events", (("Host", "127.0.0.1"),)))
    assert isinstance(stream, Stream)
    seen: list[bytes] = []
    end = stream.subscribe(seen.append)
    emulator.call("GET", "/v1/accounts")
    end()
    assert any(b"event: request" in chunk for chunk in seen)


def test_head_is_answered_as_get(emulator: Living) -> None:
    for place in ("", "/events"):
        asked = Request("HEAD", f"/console{place}", (("Host", "127.0.0.1"),))
        assert emulator.application.handle(asked).status == 200, place


@pytest.mark.inside
def test_what_cannot_be_written_is_503_and_stays_as_it_was(emulator: Living, browser: Visitor) -> None:
    logged_in(emulator, browser)
    documents = emulator.service.bank.documents
    page = browser.get("/console/consents")
    before = documents.dump()
    for what in ("consents", "sessions"):
        [form] = [number for number, form in enumerate(page.forms) if f"/{what}/" in form.action]
        with mock.patch.object(type(documents), "put", side_effect=StoreUnwritable("the disk is full")):
            refused = browser.submit(page, form=form)
        assert (refused.status, refused.headers["content-type"]) == (503, "text/html; charset=utf-8"), what
        assert documents.dump() == before, what


def test_the_conformance_report_shows_what_failed_with_its_requests_and_begins_again(
    emulator: Living, browser: Visitor
) -> None:
    emulator.call("GET", "/v1/accounts", headers={"Signature": None})
    page = browser.get("/console/conformance")
    failed = page.source.partition("<h2>Failed</h2>")[2].partition("<h2>")[0]
    assert "signs-every-request" in failed
    assert "<h2>Warnings</h2>" not in page.source
    assert re.search(r'href="[^"]*/console/requests/\d+">Request', failed)
    browser.submit(page)
    emulator.call("GET", "/v1/accounts/unknown")
    source = browser.get("/console/conformance").source
    assert "<h2>Failed</h2>" not in source
    assert "asks-only-what-was-given" in source.partition("<h2>Warnings</h2>")[2].partition("<h2>")[0]


def test_notifications_are_shown_with_every_attempt_also_at_their_payment(emulator: Living, browser: Visitor) -> None:
    assert "Notifications are off" in browser.get("/console/notifications").text
    bank = emulator.service.bank
    bank.notify_hosts = (Host("tpp.example"),)
    bank.change_settings({"notifications": True})
    assert "No TPP has been notified yet" in browser.get("/console/notifications").text
    emulator.tpp.notification_uri = "https://tpp.example/notifications?a=1&b=2"
    payment = paid(emulator, browser)
    emulator.call("DELETE", f"{STRAKS}/{payment}")
    for outcome in (DeliveryResult(status=503), DeliveryResult(error="no answer within 5 s")):
        (claimed,) = notifications.claim(bank, most=1, each=1)
        notifications.settle(bank, claimed["id"], outcome)
        bank.clock.advance(timedelta(minutes=2))
    for place in ("/console/notifications", f"/console/payments/{payment}"):
        page = browser.get(place)
        for shown in ("CANC", "tpp.example/notifications?a=1&b=2", "503", "no answer within 5 s", "waiting", "next at"):
            assert shown in page.text, (place, shown)


# Its forms: where their addresses lead, and what stays of them after a mistake


def busy(emulator: Living, browser: Visitor) -> str:
    """A bank in which there is something for every form; the id of a payment that waits."""
    control(browser, "scenario", {"scenario": "own", "rules": [{"then": {"delay": "1s"}}]})
    control(browser, "snapshots/lost-answer", {}, "PUT")
    control(browser, "banks/lost-answer", {}, "PUT")
    return paid(emulator, browser)


def test_an_address_that_a_form_is_sent_to_leads_its_reader_to_the_page_with_the_form(
    emulator: Living, browser: Visitor
) -> None:
    payment = busy(emulator, browser)
    newest = json.loads(browser.get("/_emulator/requests").source)["requests"][0]
    without = []
    for address, _, _ in routes.ACTIONS:
        identity = newest["id"] if address.startswith("requests/{id}") else payment
        page = browser.get(f"/console/{address.format(id=identity, name='lost-answer')}")
        if page.status == 303:
            page = browser.get(page.headers["location"])
        sent_to = "/console/" + re.sub(r"{\w+}", "[^/]+", address)
        if page.status != 200 or not any(re.fullmatch(sent_to, form.action) for form in page.forms):
            without.append(address)
    assert without == []


def test_a_filter_of_requests_says_what_it_is_also_when_the_log_has_nothing_like_it(browser: Visitor) -> None:
    wanted = {"operation": "getUser", "status": "418", "tpp": "PSDNO-SBX-gone", "q": "/v1"}
    page = browser.get(f"/console/requests?{urlencode(wanted)}")
    [form] = [form for form in page.forms if any(field.name == "operation" for field in form.fields)]
    assert {field.name: field.value for field in form.fields if field.name in wanted} == wanted


def test_what_was_typed_stays_after_a_refusal_and_what_was_wrong_is_marked(browser: Visitor) -> None:
    refusals: tuple[tuple[str, str, dict[str, str], str], ...] = (
        ("", "clock", {"by": "soon <&"}, "by"),
        ("/generate", "generate", {"customers": "many", "days": "30"}, "customers"),
        ("/snapshots", "snapshots", {"snapshot": "before lunch"}, "snapshot"),
        ("/banks", "banks", {"bank": "My Bank"}, "bank"),
        ("/banks", "banks", {"bank": "default"}, "bank"),
        ("/tpps", "tpps", {"name": "../x", "organizationIdentifier": "PSDNO-FSA-1"}, "name"),
        ("/settings", "settings", {"date_skew": "70", "straks_limit": "a lot"}, "straks_limit"),
    )
    for place, sent_to, typed, wrong in refusals:
        page = browser.get(f"/console{place}")
        [form] = [number for number, form in enumerate(page.forms) if form.action == f"/console/{sent_to}"][:1]
        page = browser.submit(page, form=form, **typed)
        assert page.status >= 400, typed
        assert 'id="problem"' in page.source
        fields = {field.name: field for one in page.forms for field in one.fields}
        assert {name: fields[name].value for name in typed} == typed
        assert [name for name, field in fields.items() if "problem" in field.described_by] == [wrong]
