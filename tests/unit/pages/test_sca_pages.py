"""The SCA pages (sca.md#the-pages): steps, ends and refusals, driven without a socket."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

from emulator.bank.authentication import sca
from emulator.bank.bank import Bank
from emulator.bank.customers import consents, people
from emulator.bank.kinds import ACCOUNT, AGREEMENT, SCA
from tests.unit.pages.people import BACK, FIRM, KARI, OLA, TPP, open_access
from tests.unit.pages.visitor import Page, Visitor


def query(location: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


def go_on(visitor: Visitor, page: Page) -> Page:
    """Follow the redirect to the next step."""
    assert page.status == 303
    assert page.headers["location"].startswith("/sca/")
    return visitor.get(page.headers["location"])


def at_approval(visitor: Visitor, token: str, person: str = OLA) -> Page:
    page = go_on(visitor, visitor.submit(visitor.get(f"/sca/{token}"), nationalId=person))
    while 'name="step" value="approve"' not in page.source:
        page = go_on(visitor, visitor.submit(page, action="continue"))
    return page


def test_a_customer_goes_through_identity_method_context_and_accounts_to_the_tpp(bank: Bank, visitor: Visitor) -> None:
    token = open_access(bank, sessionId="session-1")
    page = visitor.get(f"/sca/{token}")
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    page = go_on(visitor, visitor.submit(page, nationalId=KARI))
    page = go_on(visitor, visitor.submit(page, method="HA2", action="continue"))
    page = go_on(visitor, visitor.submit(page, acting="PRIVATE", action="continue"))
    assert [field.value for field in page.forms[-1].fields if field.name == "account"] == ["a-1", "a-2", "k-1"]
    done = visitor.submit(page, account=["a-2", "k-1"], action="approve")
    assert done.status == 303
    location = done.headers["location"]
    assert location.startswith(BACK + "&psu-id=")
    assert query(location)["tpp-session-id"] == "session-1"
    assert query(location)["context"] == "PRIVATE"
    consent = consents.current(bank, people.Owner(TPP, KARI, "PRIVATE", None))
    assert consent is not None
    assert (consent["accounts"], consent["cards"]) == (["a-2"], ["k-1"])


def test_a_slow_sca_delays_every_page(bank: Bank, visitor: Visitor) -> None:
    page = visitor.get(f"/sca/{open_access(bank, delay=3.0)}")
    assert page.response.delivery.delay == 3.0
    assert visitor.submit(page, nationalId=KARI).response.delivery.delay == 3.0
    assert visitor.get(f"/sca/{open_access(bank)}").response.delivery.delay == 0


def test_a_customer_with_thousands_of_accounts_shares_them(bank: Bank, visitor: Visitor) -> None:
    one = bank.documents.get(ACCOUNT, "a-3") or {}
    for number in range(1100):  # more fields than a form of any other page
        bank.documents.put(ACCOUNT, {**one, "id": f"more-{number}", "iban": f"NO{number}", "bban": str(number)})
    page = at_approval(visitor, open_access(bank, method="HA2"))
    done = visitor.submit(page, action="approve")
    assert query(done.headers["location"])["context"] == "PRIVATE"
    consent = consents.current(bank, people.Owner(TPP, OLA, "PRIVATE", None))
    assert consent is not None
    assert len(consent["accounts"]) == 1101


def test_steps_are_counted_as_they_come(bank: Bank, visitor: Visitor) -> None:
    token = open_access(bank)
    page = visitor.get(f"/sca/{token}?lang=en")
    assert "Step 1 of 3" in page.text
    page = go_on(visitor, visitor.submit(page, nationalId=KARI))
    assert "Step 2 of 4" in page.text  # Kari also has to say for whom she acts
    assert "Steg 2 av 4" in visitor.get(f"/sca/{token}?lang=nb").text
    page = go_on(visitor, visitor.submit(page, method="HA2", action="continue"))
    assert "Step 3 of 4" in page.text
    page = go_on(visitor, visitor.submit(page, acting=FIRM, action="continue"))
    assert "Step 4 of 4" in page.text
    page = visitor.get(f"/sca/{open_access(bank, method='HA2', identityHint=OLA)}?lang=en")
    assert "Step 1 of 2" in page.text, "a step that is skipped is not counted"
    assert "Step 2 of 2" in go_on(visitor, visitor.submit(page, nationalId=OLA)).text


def test_acting_for_a_firm_shares_the_firms_accounts_and_names_the_agreement(bank: Bank, visitor: Visitor) -> None:
    token = open_access(bank, method="HA2")
    page = go_on(visitor, visitor.submit(visitor.get(f"/sca/{token}"), nationalId=KARI))
    page = go_on(visitor, visitor.submit(page, acting=FIRM, action="continue"))
    assert "Driftskonto" in page.text
    location = visitor.submit(page, action="approve").headers["location"]
    assert query(location)["psu-corporate-id"] == FIRM
    assert query(location)["context"] == "CORPORATE"


def test_declining_at_the_last_or_first_step_sends_the_customer_back_with_the_failure(
    bank: Bank, visitor: Visitor
) -> None:
    for page in (at_approval(visitor, open_access(bank)), visitor.get(f"/sca/{open_access(bank)}")):
        done = visitor.submit(page, action="decline")
        assert done.status == 303
        assert query(done.headers["location"]) == {
            "state": "a b",
            "status": "401",
            "code": "SCA_INVALID",
            "message": "The customer declined.",
        }


def test_a_malformed_number_shows_the_form_again_with_what_was_typed(bank: Bank, visitor: Visitor) -> None:
    token = open_access(bank)
    page = visitor.get(f"/sca/{token}")
    for number in ("", "1234567", "123456789012", "1503838512a", "１５８３８５１２３４５", "<script>"):
        page = visitor.submit(page, nationalId=number)
        assert (page.status, "har 11 siffer" in page.text) == (400, True), number
        assert [f.value for f in page.forms[-1].fields if f.name == "nationalId"] == [number]
        assert "<script>" not in page.source
    assert sca.is_open(bank.documents.get(SCA, token) or {})


def test_blanks_in_a_number_do_not_matter(bank: Bank, visitor: Visitor) -> None:
    page = visitor.submit(visitor.get(f"/sca/{open_access(bank)}"), nationalId=f" {OLA[:6]} {OLA[6:]} ")
    assert page.status == 303
    assert page.headers["location"].startswith("/sca/")


def test_a_mistyped_number_gets_a_second_try_and_no_third(bank: Bank, visitor: Visitor) -> None:
    redirects = []
    for second in (OLA, "12345678902"):
        token = open_access(bank)
        again = visitor.submit(visitor.get(f"/sca/{token}"), nationalId="12345678901")
        assert again.status == 400
        assert "har ingen kunde" in again.text
        assert ("nationalId", "12345678901") in again.forms[-1].sent()
        redirects.append(visitor.submit(again, nationalId=second).headers["location"].replace(token, "token"))
    assert redirects[0] == "/sca/token"
    assert query(redirects[1])["code"] == "PSU_CREDENTIALS_INVALID"
    assert query(redirects[1])["status"] == "401"


def test_a_used_token_is_a_410_page_for_reading_and_for_a_second_submit(bank: Bank, visitor: Visitor) -> None:
    token = open_access(bank)
    page = at_approval(visitor, token)
    assert visitor.submit(page, action="approve").status == 303
    for again in (visitor.submit(page, action="approve"), visitor.submit(page, action="decline")):
        assert again.status == 410
        assert "location" not in again.headers
    assert visitor.get(f"/sca/{token}").status == 410


def test_a_form_of_an_earlier_step_shows_where_the_customer_is(bank: Bank, visitor: Visitor) -> None:
    token = open_access(bank)
    first = visitor.get(f"/sca/{token}")
    visitor.submit(first, nationalId=OLA)
    again = visitor.submit(first, nationalId=KARI)
    assert again.headers["location"] == f"/sca/{token}"
    assert (bank.documents.get(SCA, token) or {})["person"] == OLA


def test_after_ten_minutes_the_customer_is_sent_back_with_sca_expired(bank: Bank, visitor: Visitor) -> None:
    first, other = open_access(bank), open_access(bank)
    page = visitor.get(f"/sca/{other}")
    bank.clock.advance(timedelta(minutes=10))
    for late in (visitor.get(f"/sca/{first}"), visitor.submit(page, nationalId=OLA)):
        assert query(late.headers["location"])["code"] == "SCA_EXPIRED"
    assert [visitor.get(f"/sca/{token}").status for token in (first, other)] == [410, 410]


def test_who_only_looks_at_a_link_that_is_too_old_does_not_end_the_sca(bank: Bank, visitor: Visitor) -> None:
    token = open_access(bank)
    bank.clock.advance(timedelta(minutes=10))
    before = bank.documents.get(SCA, token)
    for method, headers in (
        ("HEAD", {}),
        ("GET", {"Sec-Purpose": "prefetch"}),
        ("GET", {"Sec-Purpose": "prefetch;prerender"}),
    ):
        looked = visitor.send(method, f"/sca/{token}", **headers)
        assert looked.status == 303
        assert bank.documents.get(SCA, token) == before, (method, headers)
    assert visitor.get(f"/sca/{token}").headers["location"] == looked.headers["location"]


def test_a_customer_who_is_scripted_to_leave_sees_so_and_the_tpp_hears_nothing(bank: Bank, visitor: Visitor) -> None:
    token = open_access(bank, outcome="abandon", language="en")
    page = visitor.submit(at_approval(visitor, token), action="approve")
    assert page.status == 200
    assert "The customer closed the page" in page.text
    assert "location" not in page.headers
    assert sca.is_open(bank.documents.get(SCA, token) or {})


def test_approving_without_an_account_asks_again_and_ticks_none_by_itself(bank: Bank, visitor: Visitor) -> None:
    page = at_approval(visitor, open_access(bank))
    assert "account" in dict(page.forms[-1].sent())
    page = visitor.submit(page, drop=["account"], action="approve")
    assert page.status == 400
    assert "Velg minst én konto" in page.text
    assert "account" not in dict(page.forms[-1].sent())


def test_an_unknown_action_is_refused_and_changes_nothing(bank: Bank, visitor: Visitor) -> None:
    page = at_approval(visitor, open_access(bank))
    before = bank.documents.dump()
    for action in ("refuse", "continue", "APPROVE", "approve decline", "<script>"):
        refused = visitor.submit(page, action=action)
        assert (refused.status, "location" in refused.headers) == (400, False), action
        assert "Skjemaet kan ikke leses" in refused.text
        assert bank.documents.dump() == before, action
    assert visitor.submit(page, action="approve").headers["location"].startswith(f"{BACK}&psu-id=")


def test_an_unknown_action_identifies_nobody(bank: Bank, visitor: Visitor) -> None:
    token = open_access(bank)
    assert visitor.submit(visitor.get(f"/sca/{token}"), nationalId=OLA, action="approve").status == 400
    assert "person" not in (bank.documents.get(SCA, token) or {})


def test_a_form_without_an_action_approves_as_its_first_button(bank: Bank, visitor: Visitor) -> None:
    done = visitor.submit(at_approval(visitor, open_access(bank)), drop=["action"])
    assert done.headers["location"].startswith(f"{BACK}&psu-id=")


def test_another_customers_account_cannot_be_shared(bank: Bank, visitor: Visitor) -> None:
    page = visitor.submit(at_approval(visitor, open_access(bank)), account="a-1", action="approve")
    assert page.status == 400
    assert "account" not in dict(page.forms[-1].sent())
    assert consents.current(bank, people.Owner(TPP, OLA, "PRIVATE", None)) is None


def test_a_method_or_context_that_is_not_offered_asks_again(bank: Bank, visitor: Visitor) -> None:
    token = open_access(bank)
    page = go_on(visitor, visitor.submit(visitor.get(f"/sca/{token}"), nationalId=KARI))
    assert visitor.submit(page, method="SMS", action="continue").status == 400
    page = go_on(visitor, visitor.submit(page, action="continue"))
    assert visitor.submit(page, acting="other", action="continue").status == 400
    assert visitor.submit(page, drop=["acting"], action="continue").status == 400


def test_the_strip_offers_the_known_customers_escaped_and_the_requested_one_first(bank: Bank, visitor: Visitor) -> None:
    page = visitor.get(f"/sca/{open_access(bank, identityHint=OLA)}")
    assert "Prøve &lt;b&gt;Regnskap&lt;/b&gt;" in page.source
    assert "Kari &lt;Prøve&gt; &amp; Co" in page.source
    assert [button.value for button in page.forms[0].buttons] == [OLA, KARI]
    assert "i forespørselen" in page.text
    assert page.headers["content-language"] == "nb"
    clicked = visitor.submit(page, form=0, nationalId=KARI)
    assert clicked.headers["location"].startswith("/sca/")


def test_the_person_that_the_request_names_only_continues(bank: Bank, visitor: Visitor) -> None:
    page = visitor.get(f"/sca/{open_access(bank, identityHint=OLA)}")
    assert ("nationalId", OLA) in page.forms[-1].sent()
    page = go_on(visitor, visitor.submit(page, action="continue"))
    assert "Innlogget som Ola Prøve" in page.text


def test_what_is_typed_over_the_named_person_stays(bank: Bank, visitor: Visitor) -> None:
    page = visitor.get(f"/sca/{open_access(bank, identityHint=OLA)}")
    for typed in ("", "123"):
        page = visitor.submit(page, nationalId=typed)
        assert ("nationalId", typed) in page.forms[-1].sent()


def test_a_number_that_the_tpp_has_not_said_is_not_told_in_the_field(bank: Bank, visitor: Visitor) -> None:
    for presumed in ("presumed", "nationalId"):
        page = visitor.get(f"/sca/{open_access(bank, **{presumed: OLA})}")
        assert ("nationalId", "") in page.forms[-1].sent(), presumed
        assert page.forms[0].buttons[0].value == OLA, presumed


def test_the_strip_leaves_out_who_cannot_go_on_and_offers_a_firm_for_which_nobody_is_named(
    bank: Bank, visitor: Visitor
) -> None:
    page = visitor.get(f"/sca/{open_access(bank, context='CORPORATE')}")
    assert [button.value for button in page.forms[0].buttons] == [KARI]
    bank.documents.put(AGREEMENT, {**(bank.documents.get(AGREEMENT, FIRM) or {}), "persons": []})
    page = visitor.get(f"/sca/{open_access(bank, context='CORPORATE')}")
    assert [button.value for button in page.forms[0].buttons] == ["999900001"]


def test_language_is_the_chosen_one_else_the_customers_else_the_browsers(bank: Bank, visitor: Visitor) -> None:
    for psu, browser, chosen, language in (
        (None, None, "", "nb"),
        ("en-GB,en;q=0.8", "nb", "", "en"),
        ("no", "en", "", "nb"),
        ("de", "en-US", "", "en"),
        ("en", "en", "?lang=nb", "nb"),
        ("en;q=0.1, nn;q=0.9", None, "?lang=xx", "nb"),
    ):
        headers = {"Accept-Language": browser} if browser else {}
        page = visitor.get(f"/sca/{open_access(bank, language=psu)}{chosen}", **headers)
        assert page.headers["content-language"] == language, (psu, browser, chosen)
        assert page.headers["vary"] == "Accept-Encoding, Accept-Language"
        assert f'<html lang="{language}">' in page.source


def test_a_language_chosen_on_the_page_stays_through_the_steps(bank: Bank, visitor: Visitor) -> None:
    token = open_access(bank)
    assert f'href="/sca/{token}?lang=en"' in visitor.get(f"/sca/{token}").source
    page = go_on(visitor, visitor.submit(visitor.get(f"/sca/{token}?lang=en"), nationalId=KARI))
    assert "How do you want to confirm?" in page.text


def test_the_app_shows_its_own_approval(bank: Bank, visitor: Visitor) -> None:
    page = at_approval(visitor, open_access(bank, app=True, language="en"))
    assert "in-app" in page.source
    assert "Approve with fingerprint" in page.text


def test_links_of_another_bank_keep_its_prefix(bank: Bank, visitor: Visitor) -> None:
    other = Visitor(visitor._handler, visitor._service, prefix="/banks/two")
    token = open_access(bank)
    page = other.get(f"/banks/two/sca/{token}")
    assert page.forms[-1].action == f"/banks/two/sca/{token}"
    assert 'href="/banks/two/static/sca.css"' in page.source
    assert other.submit(page, nationalId=OLA).headers["location"] == f"/banks/two/sca/{token}"
