"""The documentation at `/docs`: pages, operations and the search, as a browser without JavaScript gets them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from emulator import manual
from emulator.api.headers import MATRIX
from emulator.api.operations import table
from emulator.bank.errors import STATUS
from emulator.bank.scheme.transitions import STATUSES
from emulator.bank.settings import TAKES
from emulator.control.operations import table as control_table
from emulator.settings import FLAGS
from tests.unit.pages.living import Living, living
from tests.unit.pages.visitor import Visitor


@pytest.fixture(scope="module")
def emulator() -> Iterator[Living]:
    with living() as emulator:
        yield emulator


def test_the_start_page_leads_to_every_page_and_to_the_operations(browser: Visitor) -> None:
    source = browser.get("/docs").source
    for address in manual.pages():
        assert f'href="/docs/{address}"'.replace('/docs/"', '/docs"') in source
    assert 'href="/docs/operations"' in source
    assert 'href="/docs/control"' in source


def needs_no_script(source: str) -> None:
    """Nor styles of its own; it begins with its title, and can be linked to by each id."""
    assert "<script" not in source
    assert " style=" not in source
    assert re.findall("<h([1-4])", source)[0] == "1"
    assert re.findall(' id="[^"]* [^"]*"', source) == []


def test_every_page_is_served_with_links_that_lead_somewhere(browser: Visitor) -> None:
    targets: dict[str, str] = {}
    for address in manual.pages():
        page = browser.get(f"/docs/{address}".rstrip("/"))
        assert page.status == 200, address
        assert f"<title>{manual.pages()[address].title}" in page.source
        targets.update(dict.fromkeys(re.findall(r'(?:href|src)="(/docs[^"#?]*)', page.source), address))
        needs_no_script(page.source)
    assert {target: on for target, on in targets.items() if browser.send("HEAD", target).status != 200} == {}


def test_every_operation_has_a_page(browser: Visitor) -> None:
    for book in ("operations", "control"):
        rows = table() if book == "operations" else control_table()
        listed = browser.get(f"/docs/{book}").source
        for row in rows:
            assert f'href="/docs/{book}/{row.id}"' in listed
            page = browser.get(f"/docs/{book}/{row.id}")
            assert page.status == 200, row.id
            assert row.path in page.source, book
            needs_no_script(page.source)


def test_a_language_model_reads_the_manual_as_markdown(browser: Visitor) -> None:
    contents = browser.get("/docs/llms.txt")
    assert contents.headers["content-type"] == "text/plain; charset=utf-8"
    listed = re.findall(r"^- \[(.+)\]\((http://[^/]+)(/docs/(.+)\.md)\): (.+)$", contents.source, re.MULTILINE)
    assert {address for _, _, _, address, _ in listed} == {*manual.pages()} - {manual.HOME}
    whole = browser.get("/docs/llms-full.txt").source
    for title, _, path, address, about in listed:
        assert browser.get(path).source == manual.pages()[address].text
        assert f"# {title}\n" in whole
        assert len(about) > 10, title
    assert browser.get("/docs/reference/no-such.md").status == 404


def test_an_operation_shows_its_members_and_examples(browser: Visitor) -> None:
    source = browser.get("/docs/operations/createSigningBasket").source
    assert "<code>paymentIds</code>" in source
    assert '<span class="tag">required</span>' in source
    assert "&#34;paymentIds&#34;" in source
    assert '<b class="status s4">400</b>' in source


def test_what_is_not_there_is_404_with_what_fits_the_address(browser: Visitor) -> None:
    page = browser.get("/docs/reference/header")
    assert page.status == 404
    assert 'href="/docs/reference/headers"' in page.source
    assert browser.get("/docs/operations/noSuch").status == 404
    assert browser.get("/docs/images/none.png").status == 404
    assert browser.get("/docs/../pyproject.toml").status == 404


def test_the_documentation_is_only_read_and_only_under_a_known_name(browser: Visitor) -> None:
    assert browser.send("POST", "/docs").status == 405
    assert browser.get("/docs", Host="evil.example").status == 403


def test_a_picture_is_served_with_its_type(browser: Visitor) -> None:
    for picture in manual.IMAGES.iterdir():
        answer = browser.send("HEAD", f"/docs/images/{picture.name}")
        assert (answer.status, answer.headers["content-type"]) in ((200, "image/png"), (200, "image/svg+xml"))


NAMES = (
    *MATRIX,
    *STATUS,
    *STATUSES,
    *TAKES,
    *(f"--{flag.name}" for flag in FLAGS),
    *(flag.variable for flag in FLAGS),
    *("creditorName", "remittanceInformationUnstructured", "interimAvailable", "MonthlyVariable", "REGISTER", "HA2"),
    *("bookingStatus", "withBalance", "scaRedirect", "organizationIdentifier", "ENGANGSKODEAPP_BIOMETRI"),
)


# In every run one of four of each kind; that each name stands in its table is what test_manual asks.
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in (1, 2, 3))])
def test_a_search_for_a_name_finds_a_place_that_speaks_of_it(browser: Visitor, part: int) -> None:
    for name in NAMES[part::4]:
        source = browser.get(f"/docs/search?q={name}").source
        hits = re.findall(r'<li>\s*<h2><a href="/docs([^"]*)">(.*?)</a></h2>(.*?)</li>', source, re.DOTALL)
        assert hits, name
        target, title, text = hits[0]
        assert name.lower() in (title + re.sub("</?mark>", "", text)).lower()
        page, _, anchor = target.removeprefix("/").partition("#")
        sections = manual.pages()[page].sections if page in manual.pages() else ()
        assert page not in manual.pages() or anchor in {section.anchor for section in sections}, name


def test_the_best_hit_stands_first(browser: Visitor) -> None:
    for query, first in (
        ("KID_INVALID", "/docs/reference/errors#kid_invalid"),
        ("psu-corporate-id", "/docs/reference/headers#psu-corporate-id"),
        ("date_skew", "/docs/reference/settings#date_skew"),
        ("standing orders", "/docs/reference/payments#standing-orders"),
        ("createPayment", "/docs/operations/createPayment"),
        ("sign java", "/docs/how-to/sign-java"),
        ("gitlab", "/docs/how-to/gitlab"),
    ):
        source = browser.get(f"/docs/search?q={query.replace(' ', '+')}").source
        assert re.findall(r'<h2><a href="([^"]*)"', source)[0] == first


def test_a_search_for_nothing_or_for_what_is_not_there_says_so(browser: Visitor) -> None:
    assert "enter a search term" in browser.get("/docs/search").source
    assert "No results for “xyzzy”" in browser.get("/docs/search?q=xyzzy").source
    assert browser.get("/docs/search?q=%ff").status == 400


def test_what_was_searched_for_is_shown_as_text(browser: Visitor) -> None:
    source = browser.get("/docs/search?q=%3Cscript%3Ealert(1)%3C/script%3E").source
    assert "<script" not in source
    assert "&lt;script&gt;" in source


def test_markdown_that_holds_markup_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    page = manual.Page("x", "# X\n\n<script>alert(1)</script> [a](javascript:alert(1))\n")
    monkeypatch.setattr(manual, "pages", lambda: {"x": page})
    shown = manual.rendered.__wrapped__("x", "")
    assert "<script" not in shown
    assert 'href="javascript' not in shown


def test_of_a_bank_below_a_prefix_the_links_stay_below_it() -> None:
    shown = manual.rendered("reference/payments", "/banks/other")
    assert 'href="/banks/other/docs/reference/requests#amounts"' in shown
    assert 'href="/docs' not in shown
