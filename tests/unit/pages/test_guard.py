"""Which requests the pages take, and what their answers carry; the lies that they refuse are in tests/hostile."""

from __future__ import annotations

from types import SimpleNamespace

from emulator.api.messages import Request
from emulator.bank.bank import Bank
from emulator.bank.kinds import SCA
from emulator.web.pages import sca_pages
from emulator.web.pages.browser import Guard
from emulator.web.pages.rendering import CustomerPages
from tests.unit.pages.people import OLA, open_access
from tests.unit.pages.visitor import Visitor


def test_a_post_of_our_own_page_is_taken(bank: Bank, visitor: Visitor) -> None:
    for headers in (
        {"Origin": "http://127.0.0.1:8080", "Sec_Fetch_Site": "same-origin"},
        {"Origin": "http://bank.example.test", "Host": "bank.example.test"},
        {"Origin": "https://bank.example.test:443", "Host": "Bank.Example.Test"},
        {"Origin": "http://localhost:8080", "Host": "localhost:8080"},
        {"Origin": "http://[::1]:8080", "Host": "[::1]:8080"},
        {},
    ):
        page = visitor.get(f"/sca/{open_access(bank)}")
        fields = [*page.forms[-1].sent(), ("nationalId", OLA)]
        assert visitor.post(page.forms[-1].action, fields, **headers).status == 303, headers


def test_the_name_of_the_public_address_is_known(guard: Guard) -> None:
    def knows(host: str, base: str) -> bool:
        return guard.knows_host(Request("GET", "/", (("Host", host),), base=base))

    assert knows("pay.example.test", "https://pay.example.test/bank")
    assert not knows("pay.example.test", "http://127.0.0.1:8080")
    assert Guard(allowed_hosts=("2001:db8::1",), secret=b"x").knows_host(
        Request("GET", "/", (("Host", "[2001:DB8::1]:8080"),))
    )
    assert not guard.knows_host(Request("GET", "/"))


def test_the_token_of_another_form_is_403(bank: Bank, visitor: Visitor) -> None:
    token, other = open_access(bank), visitor.get(f"/sca/{open_access(bank)}")
    assert visitor.post(f"/sca/{token}", [*other.forms[-1].sent(), ("nationalId", OLA)]).status == 403
    assert "person" not in (bank.documents.get(SCA, token) or {})


def test_other_methods_are_405(bank: Bank, visitor: Visitor) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        page = visitor.send(method, f"/sca/{open_access(bank)}")
        assert (page.status, page.headers["allow"]) == (405, "GET, HEAD, POST"), method


def test_head_is_answered_as_get_and_the_web_side_leaves_the_body_out(bank: Bank, visitor: Visitor) -> None:
    token = open_access(bank)
    assert visitor.send("HEAD", f"/sca/{token}").source == visitor.get(f"/sca/{token}").source


def test_no_page_may_be_kept_framed_sniffed_or_told_on(bank: Bank, visitor: Visitor) -> None:
    token = open_access(bank)
    answers = [visitor.get(f"/sca/{token}"), visitor.get("/sca/none"), visitor.get(f"/sca/{token}", Host="x")]
    answers.append(visitor.submit(answers[0], action="decline"))
    answers.append(visitor.get(f"/sca/{token}"))
    assert [answer.status for answer in answers] == [200, 404, 403, 303, 410]
    for answer in answers:
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "same-origin"
        if answer.status != 303:
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "form-action" not in policy  # Chromium would not follow a redirect to the TPP, or to its app
            assert "unsafe" not in policy


def test_only_the_sites_of_the_flag_may_show_the_customers_pages_in_frames(bank: Bank, guard: Guard) -> None:
    sites = ("http://localhost:3000", "https://shop.example")
    visitor = Visitor(CustomerPages(guard, sca_pages.answer, sites), SimpleNamespace(bank=bank))
    token = open_access(bank)
    page = visitor.get(f"/sca/{token}")
    for answer in (page, visitor.get("/sca/none"), visitor.submit(page, action="decline")):
        assert "x-frame-options" not in answer.headers
        if answer.status != 303:
            assert f"frame-ancestors {' '.join(sites)}" in answer.headers["content-security-policy"]
            assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_query_that_cannot_be_read_does_not_matter(bank: Bank, visitor: Visitor) -> None:
    assert visitor.get(f"/sca/{open_access(bank)}?lang=%ff&%zz").status == 200
