"""A bank that starts again believes the forms of pages that it gave before; no other bank does."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emulator.assemble import assemble
from emulator.assemble.site import Site
from emulator.bank.authentication import sca
from emulator.settings import ServeSettings
from tests.unit.pages.living import KARI
from tests.unit.pages.visitor import Visitor

TOKEN = "a-control-token"


@contextmanager
def started(state: Path) -> Iterator[tuple[Site, Visitor]]:
    site = assemble(ServeSettings(state=state, port=8080, control_token=TOKEN))
    try:
        yield site, Visitor(types.SimpleNamespace(handle=lambda _, request: site.handle(request)), site.default)
    finally:
        site.close()


def opened(site: Site) -> str:
    return sca.open_sca(site.default.bank, "PSDNO-SBX-demo", "access", {"redirectUri": "https://tpp.example/back"})


def test_an_sca_goes_on_after_a_restart_where_it_was(tmp_path: Path) -> None:
    with started(tmp_path) as (site, browser):
        page = browser.get(f"/sca/{opened(site)}")
        page = browser.get(browser.submit(page, nationalId=KARI).headers["location"])
    with started(tmp_path) as (site, browser):
        answer = browser.submit(page, method="HA2", action="continue")
        assert (answer.status, answer.headers.get("location")) == (303, page.forms[-1].action)
        assert 'name="step" value="approve"' in browser.get(page.forms[-1].action).source


def test_a_console_that_was_open_at_a_restart_stays_open(tmp_path: Path) -> None:
    with started(tmp_path) as (_, browser):
        cookie = browser.post("/console/login", [("token", TOKEN)]).headers["set-cookie"].partition(";")[0]
        form = next(f for f in browser.get("/console", Cookie=cookie).forms if f.action.endswith("/clock"))
    with started(tmp_path) as (site, browser):
        browser.post("/console/clock", [*form.sent(), ("mode", "frozen")], Cookie=cookie)
        assert site.default.bank.clock.mode == "frozen"


def test_the_forms_of_another_bank_are_not_believed(tmp_path: Path) -> None:
    with started(tmp_path / "one") as (site, browser):
        csrf = dict(browser.get(f"/sca/{opened(site)}").forms[-1].sent())["csrf"]
    with started(tmp_path / "two") as (site, browser):
        page = browser.get(f"/sca/{opened(site)}")
        assert browser.submit(page, csrf=csrf, nationalId=KARI).status == 403
