"""The routes of the console: the page or action for each address."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from emulator.api.messages import Response, Steps
from emulator.api.router import Router
from emulator.web.console import banks, customers, payments, requests, scenarios
from emulator.web.console.screen import ControlRefused, Screen, sends

View = Callable[[Screen], Response]
Action = Callable[[Screen], Response | Steps]


PAGES: tuple[tuple[str, View], ...] = (
    ("", banks.overview),
    ("customers", customers.listing),
    ("customers/{id}", customers.one),
    ("accounts/{id}", customers.account),
    ("cards/{id}", customers.card),
    ("payments", payments.listing),
    ("payments/{id}", payments.one),
    ("baskets", payments.basket_listing),
    ("baskets/{id}", payments.basket),
    ("sca", customers.sca_listing),
    ("consents", customers.consent_listing),
    ("notifications", payments.notification_listing),
    ("tpps", banks.tpps),
    ("scenarios", scenarios.listing),
    ("scenarios/new", scenarios.own),
    ("scenarios/{name}", scenarios.one),
    ("requests", requests.listing),
    ("requests/{id}", requests.one),
    ("conformance", requests.conformance),
    ("settings", banks.settings),
    ("snapshots", banks.snapshots),
    ("reset", banks.show_reset),
    ("generate", lambda screen: screen.page("generate")),
    ("banks", banks.banks),
)

# The address of a form, what the form does, and the page that has the form.
ACTIONS: tuple[tuple[str, Action, str], ...] = (
    ("clock", banks.change_clock, ""),
    ("payments/{id}", payments.advance, "payments/{id}"),
    ("sca/{id}", customers.end_sca, "sca"),
    ("consents/{id}", sends("POST", "consents/{id}/revoke", to="consents", done="revoked"), "consents"),
    ("sessions/{id}", customers.end_session, "consents"),
    ("tpps", banks.issue_tpp, "tpps"),
    ("scenarios", scenarios.apply, "scenarios"),
    ("scenarios/check", scenarios.check, "scenarios/new"),
    ("scenarios/withdraw", sends("DELETE", "scenario", to="scenarios", done="withdrawn"), "scenarios"),
    ("scenarios/{name}/play", scenarios.play, "scenarios/{name}"),
    ("rules/clear", sends("DELETE", "rules", to="scenarios", done="rules-cleared"), "scenarios"),
    ("requests/clear", sends("DELETE", "requests", to="requests", done="log-emptied"), "requests"),
    ("conformance/clear", sends("DELETE", "conformance", to="conformance", done="conformance-cleared"), "conformance"),
    ("requests/{id}/repeat", requests.repeat, "requests/{id}"),
    ("settings", banks.save_settings, "settings"),
    ("snapshots", banks.save_snapshot, "snapshots"),
    ("snapshots/{name}/restore", banks.restore_snapshot, "snapshots"),
    ("snapshots/{name}/delete", banks.delete_snapshot, "snapshots"),
    ("reset", banks.reset, "reset"),
    ("generate", banks.generate, "generate"),
    ("banks", banks.create_bank, "banks"),
    ("banks/{name}/delete", banks.delete_bank, "banks"),
)


def _or_refusal(action: Action, page: View) -> Action:
    """`action`; if the bank refuses it, the page with the form says why."""

    def act(screen: Screen) -> Steps:
        try:
            answer = action(screen)
            return (yield from answer) if isinstance(answer, Generator) else answer
        except ControlRefused as refused:
            screen.refused = refused
            return page(screen)

    return act


def _redirect_to(page: str) -> View:
    """The view of an address that only receives forms: a browser that reloads a refusal gets the page with the form."""

    def redirect(screen: Screen) -> Response:
        return screen.go(*(segment.format(**screen.params) for segment in page.split("/") if segment))

    return redirect


@dataclass(frozen=True, slots=True)
class _ConsoleRoute:
    method: str
    path: str
    view: Action


def _rows() -> Iterator[_ConsoleRoute]:
    views: dict[str, View] = dict(PAGES)
    for path, view in PAGES:
        yield _ConsoleRoute("GET", f"/{path}", view)
    for path, action, page in ACTIONS:
        yield _ConsoleRoute("POST", f"/{path}", _or_refusal(action, views[page]))
        if path not in views:
            yield _ConsoleRoute("GET", f"/{path}", _redirect_to(page))
    for path in ("login", "logout"):  # whose forms the handler answers
        yield _ConsoleRoute("GET", f"/{path}", _redirect_to(""))


ROUTER = Router(_rows(), lambda route, params: (route.view, params))
