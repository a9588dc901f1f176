"""The routes of the console: the page or action for each address."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from emulator.api.messages import Response, Steps
from emulator.api.router import Router
from emulator.web.console import access, banks, customers, overview, payments, requests, scenarios, settings
from emulator.web.console.screen import Screen

View = Callable[[Screen], Response]
Action = Callable[[Screen], Response | Steps]


def _redirect_to(page: str) -> View:
    def redirect(screen: Screen) -> Response:
        return screen.go(*(segment.format(**screen.params) for segment in page.split("/") if segment))

    return redirect


# Addresses that only receive forms, each with the page that contains the form. After a refusal the browser is at such
# an address; GET redirects to the page, so that a reload, also of the live parts, does not fail.
_FORM_ADDRESSES = (
    ("login", ""),
    ("logout", ""),
    ("clock", ""),
    ("sca/{id}", "sca"),
    ("consents/{id}", "consents"),
    ("sessions/{id}", "consents"),
    ("scenarios/check", "scenarios/new"),
    ("scenarios/withdraw", "scenarios"),
    ("scenarios/{name}/play", "scenarios/{name}"),
    ("rules/clear", "scenarios"),
    ("requests/clear", "requests"),
    ("conformance/clear", "conformance"),
    ("requests/{id}/repeat", "requests/{id}"),
    ("snapshots/{name}/restore", "snapshots"),
    ("snapshots/{name}/delete", "snapshots"),
    ("banks/{name}/delete", "banks"),
)

PAGES: tuple[tuple[str, View], ...] = (
    *((address, _redirect_to(page)) for address, page in _FORM_ADDRESSES),
    ("", overview.show),
    ("customers", customers.listing),
    ("customers/{id}", customers.one),
    ("accounts/{id}", customers.account),
    ("cards/{id}", customers.card),
    ("payments", payments.listing),
    ("payments/{id}", payments.one),
    ("baskets", payments.basket_listing),
    ("baskets/{id}", payments.basket),
    ("sca", access.sca_listing),
    ("consents", access.listing),
    ("notifications", payments.notification_listing),
    ("tpps", settings.tpps),
    ("scenarios", scenarios.listing),
    ("scenarios/new", scenarios.blank),
    ("scenarios/{name}", scenarios.one),
    ("requests", requests.listing),
    ("requests/{id}", requests.one),
    ("conformance", requests.conformance),
    ("settings", settings.show),
    ("snapshots", banks.snapshots),
    ("reset", banks.show_reset),
    ("generate", banks.show_generate),
    ("banks", banks.banks),
)

ACTIONS: tuple[tuple[str, Action], ...] = (
    ("clock", overview.change_clock),
    ("payments/{id}", payments.advance),
    ("sca/{id}", access.end_sca),
    ("consents/{id}", access.revoke),
    ("sessions/{id}", access.end_session),
    ("tpps", settings.issue_tpp),
    ("scenarios", scenarios.apply),
    ("scenarios/check", scenarios.check),
    ("scenarios/withdraw", scenarios.withdraw),
    ("scenarios/{name}/play", scenarios.play),
    ("rules/clear", scenarios.clear_rules),
    ("requests/clear", requests.clear),
    ("conformance/clear", requests.clear_conformance),
    ("requests/{id}/repeat", requests.repeat),
    ("settings", settings.save),
    ("snapshots", banks.save_snapshot),
    ("snapshots/{name}/restore", banks.restore_snapshot),
    ("snapshots/{name}/delete", banks.delete_snapshot),
    ("reset", banks.reset),
    ("generate", banks.generate),
    ("banks", banks.create_bank),
    ("banks/{name}/delete", banks.delete_bank),
)


@dataclass(frozen=True, slots=True)
class _ConsoleRoute:
    method: str
    path: str
    view: Action
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _rows() -> Iterator[_ConsoleRoute]:
    yield from (_ConsoleRoute("POST", f"/{path}", view) for path, view in ACTIONS)
    yield from (_ConsoleRoute("GET", f"/{path}", view) for path, view in PAGES)


ROUTER = Router(_rows(), lambda route, params: (route.view, params))
