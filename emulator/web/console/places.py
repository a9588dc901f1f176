"""The places of the console: which page or action an address means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from emulator.api.messages import Response, Steps
from emulator.api.router import Router
from emulator.web.console import access, banks, customers, overview, payments, requests, scenarios, settings
from emulator.web.console.screen import Screen

View = Callable[[Screen], Response]
Action = Callable[[Screen], Response | Steps]


def _leads_to(page: str) -> View:
    def lead(screen: Screen) -> Response:
        return screen.go(*(segment.format(**screen.params) for segment in page.split("/") if segment))

    return lead


# Where forms are sent that stand on a page of another address, and that page: after a refusal the browser is there, and
# a reload of the address, or of the parts that are live, must not find nothing.
_SENT_TO = (
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
    *((address, _leads_to(page)) for address, page in _SENT_TO),
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
class _Place:
    method: str
    path: str
    view: Action
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _rows() -> Iterator[_Place]:
    yield from (_Place("POST", f"/{path}", view) for path, view in ACTIONS)
    yield from (_Place("GET", f"/{path}", view) for path, view in PAGES)


ROUTER = Router(_rows(), lambda place, params: (place.view, params))
