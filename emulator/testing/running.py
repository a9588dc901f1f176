"""A bank that runs in this process on a free port, as the pytest fixtures hand it out (CONTRACT 12)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Unpack
from urllib.parse import urlsplit

from emulator.api.certificates import read_certificate
from emulator.api.service import BankService
from emulator.assemble import apply_all, assemble, authority_for
from emulator.assemble.application import BankApplication
from emulator.bank import fixtures
from emulator.bank.authentication import sca_control
from emulator.bank.clock import Beginning, real_now
from emulator.bank.customers import sessions
from emulator.bank.errors import BankError
from emulator.bank.kinds import CUSTOMER
from emulator.bank.payment import payment_views, progression
from emulator.ca import CertificateAuthority, Credentials
from emulator.client import AsyncTppClient, TppClient
from emulator.client.signing import Identity
from emulator.scenario import loader, target
from emulator.scenario.vocabulary import vocabulary
from emulator.settings import ServeSettings
from emulator.testing.clock import BankClock
from emulator.testing.loop import loop_thread
from emulator.testing.options import BankFactory, BankOptions, filters_for, moment_of, settings_for
from emulator.web.server import WebServer
from emulator.web.sockets import listen

Result = TypeVar("Result")


@cache
def authority() -> CertificateAuthority:
    """The sandbox CA of this test process, in memory: keys are made once, not once a test."""
    return authority_for(None)


@cache
def _issued(name: str, roles: tuple[str, ...], flaw: str | None, hour: datetime) -> Credentials:
    """A TPP of this test process; where its name is taken by one with other roles or flaw, that one makes way.

    `hour` is that of real time, which dates a certificate: a test may have moved it.
    """
    del hour
    return authority().issue(name, roles=roles, flaw=flaw, replace=True)


class TestTpp(TppClient):
    """A signed client that knows the bank it talks to, so that its PSU can be made to approve."""

    __test__ = False  # pytest collects classes called Test...

    def __init__(self, bank: RunningBank, identity: Identity) -> None:
        super().__init__(bank.url, identity)
        self.bank = bank
        self.tpp_id = read_certificate(identity.header).tpp.id

    def asynchronous(self) -> AsyncTppClient:
        """The same TPP and PSU as an asynchronous client; close it when done (`async with`)."""
        client = AsyncTppClient(self.bank.url, self.identity)
        client.psu_id, client.session_id = self.psu_id, self.session_id
        client.psu_corporate_id, client.psu_context = self.psu_corporate_id, self.psu_context
        client.redirect_uri = self.redirect_uri
        return client

    def approve(self, link_or_id: str | None = "latest", **choices: Any) -> dict[str, str]:
        """The PSU approves; the client takes over psu-id and session from the redirect, whose query is returned."""
        return self.remember(self.bank.approve(link_or_id, **choices))

    def log_in(self, national_id: str | None = None, **choices: Any) -> TestTpp:
        """A session and a consent without the pages: for a person (default: the bank's first private customer)."""
        made = self.bank.session(self.tpp_id, national_id, **choices)
        self.psu_id, self.session_id = made["psuId"], made["tppSessionId"]
        self.psu_corporate_id = made.get("psuCorporateId")
        self.psu_context = "CORPORATE" if self.psu_corporate_id else "PRIVATE"
        return self


class RunningBank:
    """An emulator in this process on a free port.

    `url` is its base address. Everything that touches the bank runs on the server's thread, between two requests.
    """

    def __init__(
        self,
        settings: ServeSettings,
        *,
        now: datetime | None = None,
        changes: Mapping[str, Any] | None = None,
    ) -> None:
        self._application: BankApplication = assemble(
            replace(settings, scenario=()), authority=authority(), begins=Beginning(now, "frozen")
        )
        self._service = self._application.default
        self._loop = loop_thread()
        with ExitStack() as undo:
            undo.callback(self._application.close)
            with self._service.bank.documents.transaction():  # one that is refused leaves a kept bank as it stood
                self._prepare(settings, now, changes)
            self._server = WebServer(
                self._application,
                host="127.0.0.1",
                plain=listen("127.0.0.1", settings.port, copies=1),  # a process of tests may hold hundreds of banks
                public_url=settings.public_url,
                allowed=settings.allow_host,
            )
            self._loop.run(self._server.start())
            undo.pop_all()
        self.url = self._server.urls[0]
        self.clock = BankClock(self)
        self._clients: list[TppClient] = []

    def _prepare(self, settings: ServeSettings, now: datetime | None, changes: Mapping[str, Any] | None) -> None:
        if now is not None:
            fixtures.reset(self._service.bank, settings.fixtures)
        apply_all(settings.scenario, self._application.scenario_target(self._service))
        if changes:
            self._service.bank.change_settings(dict(changes))
        _freeze(self._service)

    def call(self, work: Callable[[BankService], Result]) -> Result:
        """Do something with the bank itself, between two requests."""
        return self._loop.call(lambda: work(self._service))

    def tpp(
        self,
        roles: str | Iterable[str] = ("PISP", "AISP"),
        *,
        name: str | None = None,
        flaw: str | None = None,
    ) -> TestTpp:
        """A signed client of a TPP with these roles, one or several; `flaw` spoils its certificate (CONTRACT 9.7)."""
        wanted = (roles,) if isinstance(roles, str) else tuple(sorted(roles))
        name = name or "-".join(["test", *(role.lower() for role in wanted), *([flaw] if flaw else [])])
        hour = real_now().replace(minute=0, second=0, microsecond=0)
        client = TestTpp(self, Identity.of(_issued(name, wanted, flaw, hour)))
        self._clients.append(client)
        return client

    def approve(self, link_or_id: str | None = "latest", **choices: Any) -> str:
        """The PSU approves an SCA: its scaRedirect, its token, or the id of what it is for; where the browser goes.

        Choices: nationalId, method, context, agreement, accounts (or in Python's spelling, national_id). Raises
        BankError for an SCA that is not there, as for None, the scaRedirect of an answer without one.
        """
        choices = {{"nationalId": "national_id"}.get(name, name): value for name, value in choices.items()}
        return self._sca(link_or_id, lambda bank, found: sca_control.approve(bank, found, **choices)) or ""

    def reject(self, link_or_id: str | None = "latest") -> str:
        """The PSU declines; where the browser goes."""
        return self._sca(link_or_id, sca_control.reject)

    def _sca(self, link_or_id: str | None, act: Callable[..., Result]) -> Result:
        link_or_id = str(link_or_id)
        name = urlsplit(link_or_id).path.rpartition("/")[2] or link_or_id

        def work(service: BankService) -> Result:
            service.settle()
            with service.bank.documents.transaction():
                return act(service.bank, sca_control.find(service.bank, name))

        return self.call(work)

    def session(self, tpp_id: str, national_id: str | None = None, **choices: Any) -> dict[str, str]:
        """A session and a consent without the pages: `{psuId, tppSessionId, psuCorporateId?}`."""

        def work(service: BankService) -> dict[str, str]:
            who = national_id or _first_private(service)
            with service.bank.documents.transaction():
                return sessions.seed(service.bank, tpp_id=tpp_id, national_id=who, **choices)

        return self.call(work)

    def settings(self, **changes: Any) -> dict[str, Any]:
        """Change settings of the bank (CONTRACT 9.1); all settings as they are then."""

        def work(service: BankService) -> dict[str, Any]:
            with service.bank.documents.transaction():
                return service.bank.change_settings(changes).as_document()

        return self.call(work)

    def requests(self, **filters: Any) -> list[dict[str, Any]]:
        """What the TPPs have asked, newest first, each exchange whole: all that are kept, the last 1000.

        Filters: operation, status, tpp, paymentId (or payment_id), limit. BankError for an operation of which there is
        none, TypeError for another filter, or for a value that no request could have.
        """
        wanted = {"limit": sys.maxsize, **filters_for(**filters)}
        vocabulary().check_operation(wanted.get("operation"))
        return self.call(lambda service: [entry.detail() for entry in service.log.entries(**wanted)])

    def payments(self) -> list[dict[str, Any]]:
        """All payments of the bank, newest first, as `GET /_emulator/payments` shows them."""
        return self.call(lambda service: payment_views.listing(service.bank, sys.maxsize))

    def advance_payment(self, payment_id: str, to: str | None = None) -> str:
        """Take the next step of a payment by hand, or go to status `to` (CONTRACT 9.3); its status then."""

        def work(service: BankService) -> str:
            service.settle()
            with service.bank.documents.transaction():
                return str(progression.advance(service.bank, payment_id, to)["status"])

        return self.call(work)

    def apply(self, scenario: str | Path | dict[str, Any]) -> None:
        """Apply a scenario: the name of a ready one, a file, or its content; raises ScenarioRefused."""
        if isinstance(scenario, Path):
            read = loader.from_file(scenario)
        else:
            read = loader.named_or_file(scenario) if isinstance(scenario, str) else loader.from_value(scenario)
        self.call(lambda service: target.apply(read, self._application.scenario_target(service)))

    def stop(self) -> None:
        """Close clients, connections and sockets."""
        for client in self._clients:
            client.close()
        self._loop.run(self._server.stop())
        self._loop.call(self._application.close)


def _freeze(service: BankService) -> None:
    clock = service.bank.clock
    if clock.mode != "frozen":
        clock.set(now=clock.now(), mode="frozen")


def _first_private(service: BankService) -> str:
    for customer in service.bank.documents.all(CUSTOMER):
        if customer["type"] == "private":
            return str(customer["customerNumber"])
    raise BankError("FORMAT_ERROR", "The bank has no private customer; say who logs in.", "nationalId")


@contextmanager
def banks() -> Iterator[BankFactory]:
    """Makes banks that stop at the end, also when one of them could not start; for fixtures of any scope."""
    running: list[RunningBank] = []

    def make(**options: Unpack[BankOptions]) -> RunningBank:
        made = RunningBank(settings_for(**options), now=moment_of(options), changes=options.get("settings"))
        running.append(made)
        return made

    try:
        yield make
    finally:
        for bank in reversed(running):
            bank.stop()
