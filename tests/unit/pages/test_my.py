"""The customer's own page: who gets in, what it shows, what can be done on it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from emulator.bank.authentication import authorisations
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CONSENT, PAYMENT, SCA
from emulator.bank.payment import self_service
from tests.known_state import EVEN, KARI
from tests.unit.pages.living import Living, control, logged_in, paid
from tests.unit.pages.visitor import Page, Visitor

TPP = "PSDNO-SBX-demo"


def log_in(browser: Visitor, person: str = KARI, home: str = "/my") -> Page:
    """Both steps of the login, with the cookie kept; the page that follows."""
    method = browser.submit(browser.get(home), nationalId=person)
    entered = browser.submit(method, action="continue")
    assert entered.status == 303
    browser.headers["Cookie"] = entered.headers["set-cookie"].partition(";")[0]
    return browser.get(entered.headers["location"])


def at_home(emulator: Living, person: str = KARI) -> tuple[Visitor, Page]:
    """A browser whose customer has logged in, and the page."""
    browser = emulator.visitor()
    return browser, log_in(browser, person)


def known(emulator: Living) -> None:
    """Kari has been at the bank for the TPP."""
    logged_in(emulator, emulator.visitor())


def pay(emulator: Living) -> str:
    """A payment of Kari's that waits for her approval; its id."""
    return paid(emulator, emulator.visitor())


def status(emulator: Living, payment_id: str) -> str:
    return str((emulator.service.bank.documents.get(PAYMENT, payment_id) or {})["status"])


def form_for(page: Page, part: str) -> int:
    return next(number for number, form in enumerate(page.forms) if part in form.action)


def test_a_customer_logs_in_by_identity_number_and_sees_accounts(emulator: Living) -> None:
    page = log_in(emulator.visitor())
    assert page.status == 200
    assert "Kari Kladd" in page.text
    assert "9990 10 00014" in page.text
    assert "Ingen betalinger venter på deg." in page.text


def test_a_number_that_nobody_has_can_be_corrected(emulator: Living) -> None:
    for typed, text in (("123", "har 11 siffer"), ("12345678901", "har ingen kunde")):
        browser = emulator.visitor()
        again = browser.submit(browser.get("/my"), nationalId=typed)
        assert (again.status, "set-cookie" in again.headers) == (400, False)
        assert text in again.text
        assert browser.submit(again, nationalId=KARI).status == 200


def test_the_cookie_is_for_the_page_alone_and_an_unknown_one_is_nobody(emulator: Living) -> None:
    browser = emulator.visitor()
    method = browser.submit(browser.get("/my"), nationalId=KARI)
    sent = browser.submit(method, action="continue").headers["set-cookie"]
    assert {"Path=/my", "HttpOnly", "SameSite=Lax"} <= {part.strip() for part in sent.split(";")}
    for cookie in ("", "x", "%00", "a" * 5000):
        assert "Fødselsnummer" in browser.get("/my", Cookie=f"bank-emulator-my-8080={cookie}").text


def test_a_login_ends_at_logout_and_after_an_hour_of_bank_time(emulator: Living) -> None:
    browser, page = at_home(emulator)
    assert browser.submit(page, form=form_for(page, "logout")).status == 303
    assert "Kari Kladd" not in browser.get("/my").text.partition("Fødselsnummer")[2]
    page = log_in(browser)
    emulator.service.bank.clock.advance(timedelta(hours=1))
    late = browser.submit(page, form=form_for(page, "logout"))
    assert late.status == 401
    assert "Innloggingen er utløpt" in late.text


def test_a_payment_that_waits_is_shown_whole_and_approved(emulator: Living) -> None:
    payment = pay(emulator)
    browser, page = at_home(emulator)
    for part in ("Straksbetaling", "250,00", "Even Eksempel", "9990 11 00019", "Takk for sist <3"):
        assert part in page.text.replace("\u00a0", " ")
    done = browser.submit(page, form=form_for(page, payment), action="approve")
    assert done.headers["location"] == "/my?done=approved"
    assert "Betalingen er godkjent." in browser.get(done.headers["location"]).text
    assert status(emulator, payment) != "RCVD"
    [opened] = emulator.service.bank.documents.find(SCA, target=payment)
    assert opened["status"] == "finalised"


def test_a_payment_whose_link_is_too_old_can_still_be_approved_at_the_bank(emulator: Living) -> None:
    payment = pay(emulator)
    emulator.service.bank.clock.advance(timedelta(minutes=10))
    browser, page = at_home(emulator)
    assert browser.submit(page, form=form_for(page, payment), action="approve").status == 303
    assert status(emulator, payment) != "RCVD"


def test_a_declined_payment_is_rejected_and_an_unknown_action_does_nothing(emulator: Living) -> None:
    payment = pay(emulator)
    browser, page = at_home(emulator)
    assert browser.submit(page, form=form_for(page, payment), action="refuse").status == 400
    assert status(emulator, payment) == "RCVD"
    done = browser.submit(page, form=form_for(page, payment), action="decline")
    assert "Betalingen er avvist." in browser.get(done.headers["location"]).text
    assert status(emulator, payment) == "RJCT"


@pytest.mark.parametrize(
    ("outcome", "text"), [("fail", "Et av bankens systemer svarer ikke"), ("expire", "Bekreftelsen er utløpt")]
)
def test_a_refusal_is_told_in_the_language_of_the_page(emulator: Living, outcome: str, text: str) -> None:
    browser = emulator.visitor()
    assert control(browser, "rules", {"then": {"sca": outcome}}).status == 201
    payment = pay(emulator)
    page = log_in(browser)
    refused = browser.submit(page, form=form_for(page, payment), action="approve")
    assert refused.status == 409
    assert text in refused.text
    assert status(emulator, payment) == "RCVD"


def test_a_payment_of_somebody_else_is_neither_shown_nor_approved(emulator: Living) -> None:
    payment = pay(emulator)
    browser, page = at_home(emulator, EVEN)
    assert payment not in page.source
    csrf = next(field.value for field in page.forms[0].fields if field.name == "csrf")
    refused = browser.post(f"/my/payments/{payment}", [("csrf", csrf), ("action", "approve")])
    assert refused.status == 401
    assert "Du har ikke rett til" in refused.text
    assert status(emulator, payment) == "RCVD"


def test_the_second_signature_is_given_at_the_bank(emulator: Living) -> None:
    bank = emulator.service.bank
    payment = pay(emulator)
    agreement = next(bank.documents.all(AGREEMENT))
    document = bank.documents.get(PAYMENT, payment) or {}
    firm = {**agreement, "signatures": 2, "persons": [KARI, EVEN], "accounts": [document["debtorAccountId"]]}
    firm["engagements"] = [
        {
            "id": "e-1",
            "customer": agreement["owner"],
            "accountId": document["debtorAccountId"],
            "roles": ["VIEW", "REGISTER"],
        }
    ]
    bank.documents.put(AGREEMENT, firm)
    bank.documents.put(PAYMENT, {**document, "context": "CORPORATE", "agreement": agreement["id"]})
    assert self_service.approve(bank, KARI, payment)["transactionStatus"] == "PATC"
    browser, page = at_home(emulator, EVEN)
    assert "Signert av Kari Kladd" in page.text
    assert agreement["name"] in page.text
    declined = browser.submit(page, form=form_for(page, payment), action="decline")
    assert "venter fortsatt" in browser.get(declined.headers["location"]).text
    assert browser.submit(page, form=form_for(page, payment), action="approve").status == 303
    assert status(emulator, payment) not in ("RCVD", "PATC")


def test_a_consent_shows_its_use_and_can_be_withdrawn(emulator: Living) -> None:
    bank = emulator.service.bank
    known(emulator)
    account = bank.documents.first(ACCOUNT, bban="99901000014") or {}
    browser, page = at_home(emulator)
    assert "Ikke brukt ennå" in page.text
    assert "Ingen ganger" in page.text
    for _ in range(2):
        assert (
            emulator.call("GET", f"/v1/accounts/{account['id']}/balances", headers={"PSU-IP-Address": None}).status
            == 200
        )
    page = browser.get("/my")
    assert "saldo 2 av 4" in page.text
    assert "Ikke brukt ennå" not in page.text
    done = browser.submit(page, form=form_for(page, "/consents/"))
    page = browser.get(done.headers["location"])
    assert "Samtykket er trukket tilbake." in page.text
    assert "Tidligere samtykker" in page.text
    assert (
        emulator.call("GET", f"/v1/accounts/{account['id']}/balances", headers={"PSU-IP-Address": None}).status == 401
    )


def test_a_consent_that_the_tpp_deleted_is_not_said_to_be_withdrawn(emulator: Living) -> None:
    known(emulator)
    consent = next(emulator.service.bank.documents.all(CONSENT))
    assert emulator.call("DELETE", f"/v1/consents/{consent['id']}").status == 204
    page = log_in(emulator.visitor())
    assert "Avsluttet av tjenesten" in page.text
    assert "Trukket tilbake" not in page.text


def test_the_reads_of_a_day_note_the_use_once(emulator: Living) -> None:
    bank = emulator.service.bank
    bank.clock.set(mode="frozen")
    known(emulator)
    account = bank.documents.first(ACCOUNT, bban="99901000014") or {}
    path = f"/v1/accounts/{account['id']}"
    emulator.call("GET", path, headers={"PSU-IP-Address": None})
    before = bank.documents.sequence
    assert emulator.call("GET", path, headers={"PSU-IP-Address": None}).status == 200
    assert bank.documents.sequence == before


def test_another_customers_consent_cannot_be_withdrawn(emulator: Living) -> None:
    bank = emulator.service.bank
    known(emulator)
    consent = next(bank.documents.all(CONSENT))
    browser, page = at_home(emulator, EVEN)
    csrf = next(field.value for field in page.forms[0].fields if field.name == "csrf")
    assert browser.post(f"/my/consents/{consent['id']}", [("csrf", csrf)]).status == 404
    assert not (bank.documents.get(CONSENT, consent["id"]) or {}).get("revoked")


def test_forms_of_others_are_refused(emulator: Living) -> None:
    payment = pay(emulator)
    browser, page = at_home(emulator)
    fields = [*page.forms[form_for(page, payment)].sent(), ("action", "approve")]
    assert browser.post(f"/my/payments/{payment}", fields, Origin="http://evil.example").status == 403
    assert browser.post(f"/my/payments/{payment}", [("action", "approve")]).status == 403
    assert emulator.visitor().get("/my", Host="evil.example").status == 403
    assert browser.send("PUT", "/my").status == 405
    assert status(emulator, payment) == "RCVD"


def test_english_stays_through_login_and_changes(emulator: Living) -> None:
    payment = pay(emulator)
    browser = emulator.visitor()
    page = log_in(browser, home="/my?lang=en")
    assert "Waiting for approval" in page.text
    done = browser.submit(page, form=form_for(page, payment), action="approve")
    assert done.headers["location"] == "/my?lang=en&done=approved"
    assert "The payment is approved." in browser.get(done.headers["location"]).text


def test_a_cancellation_that_a_tpp_asks_for_waits_too(emulator: Living) -> None:
    bank = emulator.service.bank
    bank.clock.set(mode="frozen")  # it would be executed meanwhile
    payment = pay(emulator)
    self_service.approve(bank, KARI, payment)
    document = bank.documents.get(PAYMENT, payment) or {}
    bank.documents.put(PAYMENT, {**document, "status": "ACTC", "product": "norwegian-domestic-credit-transfers"})
    known = {"target": payment, "tppName": "Prøve", "redirectUri": "http://127.0.0.1:9/", "context": "PRIVATE"}
    authorisations.open_sca(bank, TPP, "cancellation", {**known, "nationalId": KARI})
    browser, page = at_home(emulator)
    assert "Prøve ber om å stoppe denne betalingen" in page.text
    done = browser.submit(page, form=form_for(page, payment), action="approve")
    assert done.headers["location"].endswith("done=stopped")
    assert status(emulator, payment) == "CANC"


def test_nothing_else_is_below_it(emulator: Living) -> None:
    assert emulator.visitor().get("/my/nothing").status == 404
    assert emulator.visitor().get("/my/payments/x").headers["location"] == "/my"
    assert emulator.visitor().get("/banks/none/my").status == 404
