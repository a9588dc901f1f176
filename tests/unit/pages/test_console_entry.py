"""Who may use the console: Host, Origin, form tokens, and the login when there is a control token (console.md)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import urlencode

import pytest

from emulator.api import guards
from emulator.api.messages import Request, Response, finished
from emulator.bank.kinds import CONSOLE, CUSTOMER
from emulator.bank.threads import run_to_end
from emulator.web.console.handler import BankLogouts, Sessions
from emulator.web.pages.browser import Guard
from tests.unit.pages.living import Living, living
from tests.unit.pages.visitor import HOST, Visitor

TOKEN = "a control token ø"


@pytest.fixture
def guarded() -> Iterator[Living]:
    with living(token=TOKEN) as emulator:
        yield emulator


def entered(emulator: Living) -> Visitor:
    """A browser that has logged in."""
    browser = emulator.visitor()
    answer = browser.post("/console/login", [("token", TOKEN)])
    browser.headers["Cookie"] = answer.headers["set-cookie"].partition(";")[0]
    return browser


def test_with_a_token_every_page_asks_for_it_first(guarded: Living) -> None:
    browser = guarded.visitor()
    for path in ("/console", "/console/customers", "/console/events", "/console/requests/1"):
        page = browser.get(path)
        assert page.status == 401
        assert "Log in" in page.text
        assert "Kari" not in page.text
    assert browser.post("/console/reset", [("fixtures", "empty")]).status == 303
    assert guarded.service.bank.documents.count(CUSTOMER) == 4


def test_the_login_makes_who_guesses_the_token_wait(guarded: Living, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 1000.0
    monkeypatch.setattr(guards, "monotonic", lambda: seconds)

    def logged_in(token: str, peer: str = "192.0.2.1") -> int:
        form = urlencode({"token": token}).encode()
        headers = (("Host", HOST), ("Content-Type", "application/x-www-form-urlencoded"))
        request = Request("POST", "/console/login", headers, form, f"http://{HOST}", peer=peer)
        answer = finished(guarded.console.handle(guarded.service, request))
        assert (answer.status == 429) == ("Retry-After" in dict(answer.headers))
        return answer.status

    assert [logged_in("wrong") for _ in range(7)] == [403] * 6 + [429]
    assert (logged_in(TOKEN), logged_in(TOKEN, "192.0.2.2")) == (429, 303)
    seconds += 1
    assert logged_in(TOKEN) == 303


def test_the_interface_of_tools_can_be_read_by_who_has_logged_in(guarded: Living) -> None:
    browser = guarded.visitor()
    assert 'href="/console/openapi.json"' in browser.get("/docs/control").source
    assert browser.get("/console/openapi.json").status == 401
    document = entered(guarded).get("/console/openapi.json")
    assert (document.status, document.headers["content-type"]) == (200, "application/json; charset=utf-8")
    assert '"advanceClock"' in document.source


def test_the_token_opens_the_console_with_a_strict_cookie(guarded: Living) -> None:
    browser = guarded.visitor()
    answer = browser.post("/console/login", [("token", TOKEN)])
    assert (answer.status, answer.headers["location"]) == (303, "/console")
    cookie = answer.headers["set-cookie"]
    name, _, rest = cookie.partition("=")
    assert name == "bank-emulator-console-8080"
    assert TOKEN not in cookie
    assert {"Path=/", "HttpOnly", "SameSite=Strict"} <= {part.strip() for part in rest.split(";")}
    assert browser.get("/console", Cookie=f"other=1; {cookie.partition(';')[0]}").status == 200


def test_a_login_ends_after_twelve_hours(guarded: Living) -> None:
    now = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
    logouts = BankLogouts(lambda: guarded.service.bank.documents)
    sessions = Sessions(Guard(allowed_hosts=(), secret=b"a secret"), TOKEN, lambda: now, logouts)
    cookie = sessions.start()
    now += timedelta(hours=12, seconds=-1)
    assert sessions.is_live(cookie)
    now += timedelta(seconds=1)
    assert not sessions.is_live(cookie)


def test_a_logout_holds_after_a_restart_and_after_a_reset(guarded: Living) -> None:
    documents = guarded.service.bank.documents
    now = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
    guard = Guard(allowed_hosts=(), secret=b"a secret")
    before, after = (Sessions(guard, TOKEN, lambda: now, BankLogouts(lambda: documents)) for _ in range(2))
    first, second = before.start(), before.start()
    run_to_end(before.end(first))
    assert [after.is_live(cookie) for cookie in (first, second)] == [False, True]
    CONSOLE.delete(documents)
    assert [before.is_live(cookie) for cookie in (first, second)] == [False, True]
    assert not Sessions(guard, "another token", lambda: now, BankLogouts(lambda: documents)).is_live(second)


def test_who_logs_out_at_a_named_bank_has_logged_out_everywhere(guarded: Living) -> None:
    guarded.registry.make("second")
    browser, other = entered(guarded), entered(guarded)
    logout = next(form for form in browser.get("/banks/second/console").forms if form.action.endswith("/logout"))
    assert "Max-Age=0" in browser.post(logout.action, logout.sent()).headers["set-cookie"]
    assert browser.get("/console").status == 401
    assert browser.get("/banks/second/console").status == 401
    assert other.get("/console").status == 200


def test_the_login_leads_to_the_page_that_was_asked_for_and_nowhere_else(guarded: Living) -> None:
    for place in ("/console", "/console/payments?status=RCVD&offset=100", "/console/login"):
        browser = guarded.visitor()
        again = browser.submit(browser.get(place), token="wrong")
        assert again.status == 403
        answer = browser.submit(again, token=TOKEN)
        assert answer.headers["location"] == place
        page = browser.get(place, Cookie=answer.headers["set-cookie"].partition(";")[0])
        assert page.status == (303 if place == "/console/login" else 200)
        assert page.headers.get("location") in (None, "/console")
    for place in ("//elsewhere.example", "https://elsewhere.example", "/console\r\nX: y", "/consoles"):
        answer = guarded.visitor().post("/console/login", [("token", TOKEN), ("place", place)])
        assert (answer.status, answer.headers["location"]) == (303, "/console"), place


def test_the_cookie_of_a_login_stays_below_the_public_address(guarded: Living) -> None:
    headers = (("Host", HOST), ("Content-Type", "application/x-www-form-urlencoded"))
    body = urlencode({"token": TOKEN, "place": "/console/sca"}).encode()
    base, prefix = "https://bank.example/one", "/banks/second"
    guarded.registry.make("second")
    answer = guarded.application.handle(Request("POST", f"{prefix}/console/login", headers, body, base=base))
    assert isinstance(answer, Response)
    assert dict(answer.headers)["Location"] == f"/one{prefix}/console/sca"
    assert "; Path=/one;" in dict(answer.headers)["Set-Cookie"]


def test_a_wrong_token_is_403(guarded: Living) -> None:
    for token in ("", "wrong", TOKEN[:-1], TOKEN + "x"):
        page = guarded.visitor().post("/console/login", [("token", token)])
        assert (page.status, "set-cookie" in page.headers) == (403, False), token
        assert "That is not the token." in page.text


def test_a_made_up_cookie_or_one_of_another_token_does_not_open_it(guarded: Living) -> None:
    browser = guarded.visitor()
    for value in ("", ".", "..", "a.1.b", "a.x.b", "ø.1.ø", "0" * 64, TOKEN):
        assert browser.get("/console", Cookie=f"bank-emulator-console-8080={value}").status == 401
    with living(token="another") as other:
        cookie = other.visitor().post("/console/login", [("token", "another")]).headers["set-cookie"].partition(";")[0]
    assert guarded.visitor().get("/console", Cookie=cookie).status == 401


def test_changes_reach_the_control_interface_with_the_token(guarded: Living) -> None:
    browser = entered(guarded)
    page = browser.get("/console/settings")
    form = next(number for number, form in enumerate(page.forms) if form.action.endswith("/settings"))
    assert browser.submit(page, form=form, calendar="norway").status == 303
    assert guarded.service.bank.settings.calendar == "norway"


def test_over_tls_the_cookie_is_secure() -> None:
    with living(token="t") as emulator:
        headers = (("Host", "127.0.0.1:8443"), ("Content-Type", "application/x-www-form-urlencoded"))
        request = Request("POST", "/console/login", headers, b"token=t", base="https://127.0.0.1:8443")
        answer = emulator.application.handle(request)
        assert isinstance(answer, Response)
        assert "; Secure" in dict(answer.headers)["Set-Cookie"]


def test_a_bank_that_is_not_there_has_a_404_page_that_can_be_drawn_and_json_for_programs(emulator: Living) -> None:
    browser = emulator.visitor()
    for path in ("sca/xyz", "console", "console/payments", "console/events", "docs"):
        page = browser.get(f"/banks/gone/{path}", Accept_Language="en")
        assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8"), path
        assert ("Page not found" if path.startswith("sca") else "The bank gone does not exist.") in page.text
        assert browser.get(page.source.split('stylesheet" href="')[1].split('"')[0]).status == 200
    for path in ("v1/accounts", "_emulator/clock"):
        answer = browser.get(f"/banks/gone/{path}")
        assert (answer.status, answer.headers["content-type"]) == (404, "application/json; charset=utf-8"), path


def test_the_bare_address_leads_to_the_console_below_the_public_address_which_pages_say(emulator: Living) -> None:
    emulator.registry.make("second")
    base = "https://bank.example/some/prefix"
    for public, path, console in (
        ("http://127.0.0.1:8080", "/", "/console"),
        (base, "/", "/some/prefix/console"),
        (base, "/banks/second/", "/some/prefix/banks/second/console"),
        ("http://127.0.0.1:8080", "/banks/second", "/banks/second/console"),
    ):
        answer = emulator.application.handle(Request("GET", path, (("Host", "bank.example"),), base=public))
        assert isinstance(answer, Response)
        assert (answer.status, dict(answer.headers)["Location"]) == (303, console)
    for prefix in ("", "/banks/second"):
        for place in ("console", "docs/operations"):
            asked = Request("GET", f"{prefix}/{place}", (("Host", "bank.example"),), base=base)
            answer = emulator.application.handle(asked)
            assert isinstance(answer, Response)
            assert f"The bank answers at <code>{base}{prefix}</code>" in answer.body.decode(), asked.target


def test_the_command_that_the_console_gives_is_taken_by_a_bank_with_a_token(guarded: Living) -> None:
    browser = guarded.visitor()
    page = entered(guarded).get("/console/consents")
    shown = page.source.partition("<pre")[2].partition(">")[2].partition("</pre>")[0]
    words = [word.replace("$BANK_EMULATOR_CONTROL_TOKEN", TOKEN) for word in shlex.split(unescape(shown))]
    header_lines = [words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H"]
    headers = {name.replace("-", "_"): value for name, value in header_lines}
    answer = browser.send("POST", words[3].removeprefix(guarded.base), words[-1].encode(), **headers)
    assert "psuId" in json.loads(answer.source)


def test_an_address_that_does_not_exist_is_a_page_in_a_browser_and_json_for_others(emulator: Living) -> None:
    browser = emulator.visitor(Accept="text/html,application/xhtml+xml,*/*;q=0.8")
    page = browser.get("/nosuch/<b>")
    assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "/nosuch/" in page.text
    assert "<b>" not in page.source
    for address in ("/v1/nosuch", "/_emulator/nosuch"):
        assert browser.get(address).headers["content-type"].startswith("application/json")
    assert emulator.visitor().get("/nosuch").headers["content-type"].startswith("application/json")
