"""What the pages refuse: foreign origins, other hosts, forged forms; and what their answers carry."""

from __future__ import annotations

from types import SimpleNamespace

from emulator.api.messages import Request
from emulator.bank.authentication import sca
from emulator.bank.bank import Bank
from emulator.bank.kinds import SCA
from emulator.web.pages import sca_pages
from emulator.web.pages.browser import MOST_FIELDS, Guard
from emulator.web.pages.rendering import CustomerPages
from tests.unit.pages.people import OLA, open_access
from tests.unit.pages.visitor import Visitor


def test_a_post_from_elsewhere_is_403_and_changes_nothing(bank: Bank, visitor: Visitor) -> None:
    page = visitor.get(f"/sca/{open_access(bank)}")
    before = bank.documents.dump()
    fields = [*page.forms[-1].sent(), ("nationalId", OLA)]
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:8081"},
        {"Origin": "http://localhost:8080"},
        {"Origin": "null"},
        {"Origin": "http://"},
        {"Origin": "http://[oops"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "cross-site", "Origin": "http://127.0.0.1:8080"},
    ):
        refused = visitor.post(page.forms[-1].action, fields, **headers)
        assert refused.status == 403, headers
        assert refused.headers["content-type"].startswith("text/html")
        assert bank.documents.dump() == before, headers


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


def test_another_host_name_is_403(bank: Bank, visitor: Visitor) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost.:8080", "[::2]:8080"):
        page = visitor.get(f"/sca/{open_access(bank)}", Host=host)
        assert (page.status, "--allow-host" in page.text) == (403, True), host


def test_the_name_of_the_public_address_is_known(guard: Guard) -> None:
    def knows(host: str, base: str) -> bool:
        return guard.knows_host(Request("GET", "/", (("Host", host),), base=base))

    assert knows("pay.example.test", "https://pay.example.test/bank")
    assert not knows("pay.example.test", "http://127.0.0.1:8080")
    assert Guard(allowed_hosts=("2001:db8::1",), secret=b"x").knows_host(
        Request("GET", "/", (("Host", "[2001:DB8::1]:8080"),))
    )
    assert not guard.knows_host(Request("GET", "/"))


def test_a_form_without_its_token_is_403(bank: Bank, visitor: Visitor) -> None:
    token = open_access(bank)
    page = visitor.get(f"/sca/{token}")
    refused = [visitor.submit(page, csrf=csrf, nationalId=OLA) for csrf in ("", "0" * 64, "ø")]
    refused.append(visitor.submit(page, drop=["csrf"], nationalId=OLA))
    other = visitor.get(f"/sca/{open_access(bank)}")
    refused.append(visitor.post(f"/sca/{token}", [*other.forms[-1].sent(), ("nationalId", OLA)]))
    assert [answer.status for answer in refused] == [403] * 5
    assert "person" not in (bank.documents.get(SCA, token) or {})


def test_what_is_no_form_is_refused_as_a_page(bank: Bank, visitor: Visitor) -> None:
    for body, kind, status in (
        (b"{}", "application/json", 415),
        (b"a=b", "", 415),
        (b"csrf=%ff%fe", "application/x-www-form-urlencoded", 400),
        (b"csrf=\xff", "application/x-www-form-urlencoded", 400),
        (b"a=1&" * (MOST_FIELDS + 1), "application/x-www-form-urlencoded; charset=utf-8", 400),
    ):
        token = open_access(bank)
        page = visitor.send("POST", f"/sca/{token}", body, Content_Type=kind)
        assert page.status == status
        assert page.headers["content-type"].startswith("text/html"), body
        assert sca.is_open(bank.documents.get(SCA, token) or {}), body


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
