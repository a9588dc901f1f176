"""A whole emulator in this process, all packages but the command line, with a TPP that signs."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from emulator.api.messages import Request, Response
from emulator.api.service import BankService
from emulator.assemble.application import BankApplication
from emulator.assemble.composition import application_of, registry_for
from emulator.bank.clock import real_now
from emulator.ca.authority import CertificateAuthority
from emulator.client import Identity
from emulator.client.clients import Tpp
from emulator.settings import ServeSettings
from tests.known_state import KARI, STRAKS
from tests.unit.pages.visitor import HOST, Page, Visitor

DEBTOR, CREDITOR = "99901000014", "99901100019"


@functools.cache
def _authority() -> CertificateAuthority:
    """One for all tests of the process: making keys takes longer than all the rest."""
    return CertificateAuthority(None, clock=real_now)


class Living:
    """The application and the demo TPP; `base` is its address."""

    def __init__(self, *, token: str | None = None, fixtures: str = "known-state") -> None:
        self.authority = _authority()
        settings = ServeSettings(ephemeral=True, port=0, seed=1, fixtures=fixtures, control_token=token)
        self.registry = registry_for(settings, self.authority)
        self.application = application_of(self.registry, BankApplication)
        self.console = self.application._handlers["console"]
        self.served_at(f"http://{HOST}")

    def served_at(self, base: str) -> None:
        """The address of the bank from now on."""
        self.base = base
        self.tpp = Tpp(base, Identity.of(self.authority.demo()))

    @property
    def service(self) -> BankService:
        return self.registry.default

    def visitor(self, **headers: str) -> Visitor:
        """A browser without a screen, in front of the whole application."""
        everything = SimpleNamespace(handle=lambda _, request: self.application.handle(request))
        return Visitor(everything, self.service, headers=headers.items())

    def call(self, method: str, path: str, **options: Any) -> Response:
        """The TPP sends a signed request."""
        sent = self.tpp.prepare(method, path, **options)
        request = Request(sent.method, sent.target, tuple(sent.headers.items()), sent.body, base=self.base)
        answer = self.application.handle(request)
        assert isinstance(answer, Response)
        return answer


def straks(**more: Any) -> dict[str, Any]:
    """The body of an instant payment from Kari to Even."""
    return {
        "instructedAmount": {"amount": "250.00", "currency": "NOK"},
        "creditorName": "Even Eksempel",
        "creditorAccount": {"bban": CREDITOR, "currency": "NOK"},
        "creditorAddress": {"country": "NO"},
        "debtorAccount": {"bban": DEBTOR, "currency": "NOK"},
        "remittanceInformationUnstructured": "Takk for sist <3",
        **more,
    }


def control(browser: Visitor, path: str, body: Any, method: str = "POST") -> Page:
    """Ask the control interface."""
    return browser.send(method, f"/_emulator/{path}", json.dumps(body).encode(), Content_Type="application/json")


def logged_in(emulator: Living, browser: Visitor) -> None:
    """Kari at the demo TPP, without the pages."""
    emulator.tpp.use_session(json.loads(control(browser, "sessions", {"tpp": "demo", "nationalId": KARI}).source))


def paid(emulator: Living, browser: Visitor, **more: Any) -> str:
    """A new instant payment of Kari's; its id."""
    if emulator.tpp.psu_id is None:
        logged_in(emulator, browser)
    answer = emulator.call("POST", STRAKS, json=straks(**more), headers={"PSU-Context": "PRIVATE"})
    return str(json.loads(answer.body)["paymentId"])


@contextmanager
def living(**options: Any) -> Iterator[Living]:
    """An emulator that is closed at the end."""
    emulator = Living(**options)
    try:
        yield emulator
    finally:
        emulator.registry.close()
