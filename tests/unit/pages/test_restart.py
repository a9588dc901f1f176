"""A bank that starts again believes the forms of pages that it gave before; no other bank does."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emulator.assemble import assemble
from emulator.assemble.application import BankApplication
from emulator.bank.authentication import authorisations
from emulator.settings import ServeSettings
from tests.known_state import KARI
from tests.unit.pages.visitor import Visitor

TOKEN = "a-control-token"


@contextmanager
def started(state: Path) -> Iterator[tuple[BankApplication, Visitor]]:
    application = assemble(ServeSettings(state=state, port=8080, control_token=TOKEN))
    try:
        yield (
            application,
            Visitor(types.SimpleNamespace(handle=lambda _, request: application.handle(request)), application.default),
        )
    finally:
        application.close()


def opened(application: BankApplication) -> str:
    return authorisations.open_sca(
        application.default.bank, "PSDNO-SBX-demo", "access", {"redirectUri": "https://tpp.example/back"}
    )


def test_an_sca_goes_on_after_a_restart_where_it_was(tmp_path: Path) -> None:
    with started(tmp_path) as (application, browser):
        page = browser.get(f"/sca/{opened(application)}")
        page = browser.get(browser.submit(page, nationalId=KARI).headers["location"])
    with started(tmp_path) as (application, browser):
        answer = browser.submit(page, method="HA2", action="continue")
        assert (answer.status, answer.headers.get("location")) == (303, page.forms[-1].action)
        assert 'name="step" value="approve"' in browser.get(page.forms[-1].action).source


def test_a_console_that_was_open_at_a_restart_stays_open(tmp_path: Path) -> None:
    with started(tmp_path) as (_, browser):
        cookie = browser.post("/console/login", [("token", TOKEN)]).headers["set-cookie"].partition(";")[0]
        form = next(f for f in browser.get("/console", Cookie=cookie).forms if f.action.endswith("/clock"))
    with started(tmp_path) as (application, browser):
        browser.post("/console/clock", [*form.sent(), ("mode", "frozen")], Cookie=cookie)
        assert application.default.bank.clock.mode == "frozen"


def test_the_forms_of_another_bank_are_not_believed(tmp_path: Path) -> None:
    with started(tmp_path / "one") as (application, browser):
        csrf = dict(browser.get(f"/sca/{opened(application)}").forms[-1].sent())["csrf"]
    with started(tmp_path / "two") as (application, browser):
        page = browser.get(f"/sca/{opened(application)}")
        assert browser.submit(page, csrf=csrf, nationalId=KARI).status == 403
