"""A bank that runs in this process on a free port, with its clock and its TPPs.

All banks of a test process share one event loop in a separate thread.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, Unpack
from urllib.parse import urlsplit

from emulator.api.certificates import read_certificate
from emulator.api.service import BankService
from emulator.api.signature.explain import explain_verdict
from emulator.assemble import apply_all, assemble, authority_for
from emulator.assemble.application import BankApplication
from emulator.bank import fixtures, notifications
from emulator.bank.authentication import sca_control
from emulator.bank.clock import Beginning, real_now
from emulator.bank.customers import sessions
from emulator.bank.errors import BankError
from emulator.bank.kinds import CUSTOMER
from emulator.bank.payment import payment_views, progression, self_service
from emulator.ca import CertificateAuthority, Credentials
from emulator.ca.files import write_private
from emulator.client import AsyncTppClient, TppClient
from emulator.conformance.observer import Conformance
from emulator.scenario import durations, loader, target
from emulator.scenario.durations import Duration
from emulator.scenario.vocabulary import vocabulary
from emulator.settings import ServeSettings
from emulator.terminal import one_line
from emulator.testing.options import BankFactory, BankOptions, filters_for, moment_of, settings_for
from emulator.testing.receiver import Receiver
from emulator.web.server import WebServer
from emulator.web.sockets import listen

Result = TypeVar("Result")

KEYSTORE_PASSWORD = "bank-emulator"  # as of `bank-emulator tpp new`
REPORTED = 10  # requests of each bank in the report of a failing test


class LoopThread:
    """An event loop that runs in the background until the process ends."""

    def __init__(self) -> None:
        self._loop = _new_loop()
        threading.Thread(target=self._loop.run_forever, name="bank-emulator", daemon=True).start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run `work` on the loop and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def call(self, function: Callable[[], Result]) -> Result:
        """Call `function` on the loop's thread, where the banks live: between two requests, never within one."""
        done: Future[Result] = Future()

        def work() -> None:
            try:
                done.set_result(function())
            except BaseException as error:  # handed over to the thread that waits
                done.set_exception(error)

        self._loop.call_soon_threadsafe(work)
        return done.result()


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


@cache
def loop_thread() -> LoopThread:
    """The loop of this process, started at the first call."""
    return LoopThread()


class BankClock:
    """Bank time, which stands still until a test moves it."""

    def __init__(self, bank: RunningBank) -> None:
        self._bank = bank

    @property
    def now(self) -> datetime:
        """Bank time, in UTC."""
        return self._bank.call(lambda service: service.bank.clock.now())

    def advance(self, by: str | timedelta | None = None, **units: float) -> datetime:
        """Move bank time on: `advance("1h30m")`, `advance("P1M")`, `advance(days=1)`; what falls due is applied."""
        duration = _duration(by, units)

        def move(service: BankService) -> datetime:
            service.settle()
            service.bank.clock.set(now=duration.after(service.bank.clock.now()))
            service.settle()
            return service.bank.clock.now()

        return self._bank.call(move)


def _duration(by: str | timedelta | None, units: dict[str, float]) -> Duration:
    if by is not None and units:
        raise TypeError("bank time moves by one length of time, or by days, hours and so on, not by both")
    if isinstance(by, str):
        parsed = durations.parse(by)
        if parsed is None:
            raise ValueError(f"{durations.expected(by)} is needed, not {by!r}")
        return parsed
    if by is not None and not isinstance(by, timedelta):
        raise TypeError(f'bank time moves by a text such as "10s", a timedelta, or seconds=10, not by {by!r}')
    duration = Duration(0, by if by is not None else timedelta(**units))
    if duration.rest < timedelta(0):
        raise ValueError("bank time only moves forward")
    return duration


@cache
def authority() -> CertificateAuthority:
    """The sandbox CA of this test process, in memory: keys are generated once, not in every test."""
    return authority_for(None)


@cache
def _issued(name: str, roles: tuple[str, ...], flaw: str | None, hour: datetime) -> Credentials:
    """A TPP of this test process; it replaces one of the same name with other roles or another flaw.

    `hour` of real time is part of the cache's key, because it dates the certificate and a test may change it.
    """
    del hour
    return authority().issue(name, roles=roles, flaw=flaw, replace=True)


class TppFiles(NamedTuple):
    """The files of a TPP's certificate; `keystore` is PKCS #12 with key, certificate and CA."""

    certificate: Path
    key: Path
    keystore: Path


class UnmatchedRule(UserWarning):
    """A rule of an applied scenario has matched no request: the test has not tried what the scenario is about."""


class TestTpp(TppClient):
    """A TPP: its certificate and key, and a signed client whose PSU can approve without a browser."""

    __test__ = False  # pytest collects classes called Test...

    def __init__(self, bank: RunningBank, credentials: Credentials) -> None:
        super().__init__(bank.url, credentials)
        self.bank = bank
        self._credentials = credentials
        self.tpp_id = read_certificate(credentials.certificate_header).tpp.id

    @property
    def certificate_pem(self) -> str:
        """The certificate as PEM text, for a signer of your own."""
        return self._credentials.certificate_pem

    @property
    def key_pem(self) -> str:
        """The private key as PEM text (PKCS #8, no password)."""
        return self._credentials.key_pem.decode()

    def files(self, folder: str | Path, *, keystore_password: str = KEYSTORE_PASSWORD) -> TppFiles:
        """Write certificate.pem, key.pem and keystore.p12 into `folder`, readable for this user alone."""
        directory = Path(folder)
        directory.mkdir(parents=True, exist_ok=True)
        files = TppFiles(directory / "certificate.pem", directory / "key.pem", directory / "keystore.p12")
        write_private(files.certificate, self.certificate_pem.encode())
        write_private(files.key, self._credentials.key_pem)
        write_private(files.keystore, self._credentials.keystore(keystore_password))
        return files

    def asynchronous(self) -> AsyncTppClient:
        """The same TPP and PSU as an asynchronous client; close it when done (`async with`)."""
        client = AsyncTppClient(self.bank.url, self.identity)
        client.psu_id, client.session_id = self.psu_id, self.session_id
        client.psu_corporate_id, client.psu_context = self.psu_corporate_id, self.psu_context
        client.redirect_uri, client.notification_uri = self.redirect_uri, self.notification_uri
        return client

    def approve(self, link_or_id: str | None = "latest", **choices: Any) -> dict[str, str]:
        """The PSU approves; the client takes over psu-id and session from the redirect, whose query is returned."""
        return self.remember(self.bank.approve(link_or_id, **choices))

    def log_in(self, national_id: str | None = None, **choices: Any) -> TestTpp:
        """A session and a consent without the pages: for a person (default: the bank's first private customer)."""
        session = self.bank.session(self.tpp_id, national_id, **choices)
        self.psu_id, self.session_id = session["psuId"], session["tppSessionId"]
        self.psu_corporate_id = session.get("psuCorporateId")
        self.psu_context = "CORPORATE" if self.psu_corporate_id else "PRIVATE"
        return self


class BankCustomer:
    """A customer on its own page (`/my`): what it sees and does at the bank, one call each.

    Raises BankError for somebody or something that the bank does not know, or that is not this customer's.
    """

    def __init__(self, bank: RunningBank, national_id: str) -> None:
        self._bank = bank
        self.national_id = national_id

    def view(self) -> dict[str, Any]:
        """Everything that the page shows: `{nationalId, name, contexts, payments, consents}`."""
        shown: dict[str, Any] = self._call(self_service.overview)
        return shown

    def accounts(self) -> list[dict[str, Any]]:
        """Accounts and cards, of every context."""
        return [account for context in self.view()["contexts"] for account in context["accounts"]]

    def consents(self) -> list[dict[str, Any]]:
        """Consents with the TPP's name, what is shared, last use and the unattended reads of the last 24 hours."""
        return list(self.view()["consents"])

    def payments(self) -> list[dict[str, Any]]:
        """The payments and cancellations that wait for this customer."""
        return list(self.view()["payments"])

    def approve(self, payment_id: str, *, cancels: bool = False) -> str | None:
        """Approve a payment (or its cancellation) at the bank; its status afterwards."""
        status: str | None = self._call(self_service.approve, payment_id, cancels=cancels)["transactionStatus"]
        return status

    def decline(self, payment_id: str, *, cancels: bool = False) -> str | None:
        """Decline a payment (or its cancellation); its status afterwards."""
        status: str | None = self._call(self_service.decline, payment_id, cancels=cancels)["transactionStatus"]
        return status

    def withdraw(self, consent_id: str | None = None) -> None:
        """Withdraw a consent; None: all that are valid."""
        named = [consent["consentId"] for consent in self.consents() if consent["status"] == "valid"]
        for identity in named if consent_id is None else [consent_id]:
            self._call(self_service.withdraw, identity)

    def _call(self, act: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        def work(service: BankService) -> Any:
            service.settle()
            with service.bank.documents.transaction():
                return act(service.bank, self.national_id, *arguments, **named)

        return self._bank.call(work)


RUNNING: list[RunningBank] = []  # the banks of this process, for the report of a failing test
AUDITS: list[dict[str, Any]] | None = None  # the reports of banks that stopped, where pytest was asked for --bank-audit


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
            with self._service.bank.documents.transaction():  # a refused one leaves a stored bank unchanged
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
        self._receivers: list[Receiver] = []
        self._must_match: set[str] = set()
        RUNNING.append(self)

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
        """A signed client of a TPP with these roles, one or several; `flaw` spoils its certificate."""
        chosen = (roles,) if isinstance(roles, str) else tuple(sorted(roles))
        name = name or "-".join(["test", *(role.lower() for role in chosen), *([flaw] if flaw else [])])
        hour = real_now().replace(minute=0, second=0, microsecond=0)
        client = TestTpp(self, _issued(name, chosen, flaw, hour))
        self._clients.append(client)
        return client

    def approve(self, link_or_id: str | None = "latest", **choices: Any) -> str:
        """The PSU approves an SCA: its scaRedirect, its token, or the id of what it is for; where the browser goes.

        Choices: nationalId, method, context, agreement, accounts (or in Python's spelling, national_id). Raises
        BankError for an SCA that is not there, as for None, the scaRedirect of an answer without one.
        """
        choices = {{"nationalId": "national_id"}.get(name, name): value for name, value in choices.items()}
        return self._sca(link_or_id, lambda bank, sca: sca_control.approve(bank, sca, **choices)) or ""

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

    def customer(self, national_id: str | None = None) -> BankCustomer:
        """A customer on its own page; default: the bank's first private customer."""
        return BankCustomer(self, national_id or self.call(_first_private))

    def session(self, tpp_id: str, national_id: str | None = None, **choices: Any) -> dict[str, str]:
        """A session and a consent without the pages: `{psuId, tppSessionId, psuCorporateId?}`."""

        def work(service: BankService) -> dict[str, str]:
            who = national_id or _first_private(service)
            with service.bank.documents.transaction():
                return sessions.seed(service.bank, tpp_id=tpp_id, national_id=who, **choices)

        return self.call(work)

    def settings(self, **changes: Any) -> dict[str, Any]:
        """Change settings of the bank; all settings as they are then."""

        def work(service: BankService) -> dict[str, Any]:
            with service.bank.documents.transaction():
                return service.bank.change_settings(changes).as_document()

        return self.call(work)

    def requests(self, **filters: Any) -> list[dict[str, Any]]:
        """The requests of TPPs with their answers, newest first; the log holds the last 1000.

        Filters: operation, status, tpp, paymentId (or payment_id), limit. Raises BankError for an unknown operation,
        TypeError for another filter or for a value that no request could have.
        """
        chosen = {"limit": sys.maxsize, **filters_for(**filters)}
        vocabulary().check_operation(chosen.get("operation"))
        return self.call(lambda service: [entry.detail() for entry in service.log.entries(**chosen)])

    def report(self, limit: int = REPORTED) -> str:
        """The last requests as text, oldest first: status, reason, and why a signature is refused."""
        return "\n".join(line for entry in reversed(self.requests(limit=limit)) for line in _reported(entry))

    def receiver(self) -> Receiver:
        """A receiver of notifications, and the bank's setting `notifications` on; it stops with the bank.

        Its `uri` goes into TPP-Notification-URI; `tpp.notification_uri = receiver.uri` does that for every request.
        """
        self.settings(notifications=True)
        receiver = Receiver(self._loop)
        self._receivers.append(receiver)
        return receiver

    def notifications(self, target: str | None = None) -> list[dict[str, Any]]:
        """The notifications of the bank, or of one payment, basket or consent, oldest first, with their deliveries.

        All that is due by bank time is sent and answered before; an attempt takes 5 seconds at most.
        """
        self._loop.run(self._application.notifier.quiet())
        return self.call(lambda service: notifications.listing(service.bank, target=target)[::-1])

    def payments(self) -> list[dict[str, Any]]:
        """All payments of the bank, newest first, as `GET /_emulator/payments` shows them."""
        return self.call(lambda service: payment_views.listing(service.bank, sys.maxsize))

    def advance_payment(self, payment_id: str, to: str | None = None) -> str:
        """Take the next step of a payment by hand, or go to status `to`; its status then."""

        def work(service: BankService) -> str:
            service.settle()
            with service.bank.documents.transaction():
                return str(progression.advance(service.bank, payment_id, to)["status"])

        return self.call(work)

    def apply(
        self, scenario: str | Path | dict[str, Any], *, must_match: bool = False, **parameters: Any
    ) -> dict[str, Any]:
        """Apply a scenario: the name of a ready one, a file, or its content, with values for its parameters.

        What was done is returned: `{scenario, reset, clock, rules, settings}`. With `must_match` the test fails at its
        end when one of the scenario's rules has matched no request. Raises ScenarioRefused.
        """
        if isinstance(scenario, Path):
            read = loader.from_file(scenario, None, parameters)
        elif isinstance(scenario, str):
            read = loader.named_or_file(scenario, parameters)
        else:
            read = loader.from_value(scenario, parameters)
        done = self.call(lambda service: target.apply(read, self._application.scenario_target(service)))
        if must_match:
            self._must_match.add(read.name)
        return done

    def unmatched(self) -> list[tuple[str, str]]:
        """The rules of applied scenarios that have matched no request: scenario and rule."""

        def work(service: BankService) -> list[tuple[str, str]]:
            counts = self._application.scenario_target(service).rules.counts()
            return [(one["scenario"], one["name"]) for one in counts if one["scenario"] and not one["matched"]]

        return self.call(work)

    def unmatched_demands(self) -> list[tuple[str, str]]:
        """Those of the scenarios that were applied with `must_match`, which is demanded once."""
        demanded, self._must_match = self._must_match, set()
        return [one for one in self.unmatched() if one[0] in demanded] if demanded else []

    def audit(self) -> dict[str, Any]:
        """The verdict of every check on the TPPs of this bank: `{checks, summary}`."""
        return self.call(lambda service: _conformance(service).report())

    def stop(self) -> None:
        """Close clients, connections and sockets."""
        if AUDITS is not None:
            AUDITS.append(self.audit())
        if self in RUNNING:
            RUNNING.remove(self)
            for scenario, rule in self.unmatched():
                warnings.warn(f"{scenario}: the rule {rule!r} has matched no request", UnmatchedRule, stacklevel=2)
        for client in self._clients:
            client.close()
        for receiver in self._receivers:
            receiver.stop()
        self._loop.run(self._server.stop())
        self._loop.call(self._application.close)


def _conformance(service: BankService) -> Conformance:
    if not isinstance(service.observer, Conformance):
        raise TypeError("a bank is observed by its conformance report")
    return service.observer


def _freeze(service: BankService) -> None:
    clock = service.bank.clock
    if clock.mode != "frozen":
        clock.set(now=clock.now(), mode="frozen")


def _first_private(service: BankService) -> str:
    for customer in service.bank.documents.all(CUSTOMER):
        if customer["type"] == "private":
            return str(customer["customerNumber"])
    raise BankError("FORMAT_ERROR", "The bank has no private customer; say who logs in.", "nationalId")


def _reported(entry: dict[str, Any]) -> Iterator[str]:
    """An entry of the request log as lines of text."""
    rules = f"  [{', '.join(entry['rules'])}]" if entry.get("rules") else ""
    status = entry["status"] or "no answer"
    yield one_line(f"{entry['id']} {entry['at']} {status} {entry['method']} {entry['target']}{rules}")
    for message in entry.get("messages", []):
        path = f" {message['path']}" if message.get("path") else ""
        yield one_line(f"    {message['code']}{path}: {message.get('text', '')}")
    signature = entry.get("signature")
    if signature is not None and not signature.get("valid"):
        yield from (one_line(f"    {line}".rstrip()) for line in explain_verdict(signature).text.splitlines())


@contextmanager
def banks() -> Iterator[BankFactory]:
    """Start banks that stop at the end, also when one of them could not start; for fixtures of any scope."""
    running: list[RunningBank] = []

    def make(**options: Unpack[BankOptions]) -> RunningBank:
        bank = RunningBank(settings_for(**options), now=moment_of(options), changes=options.get("settings"))
        running.append(bank)
        return bank

    try:
        yield make
    finally:
        for bank in reversed(running):
            bank.stop()
