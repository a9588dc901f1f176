"""The forms of the console: where their addresses lead, and what stays of them after a mistake."""

from __future__ import annotations

import json
import re
from urllib.parse import urlencode

from emulator.web.console import routes
from tests.unit.pages.living import Living, control, paid
from tests.unit.pages.visitor import Visitor


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
