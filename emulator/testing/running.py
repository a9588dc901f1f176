"""A bank that runs in this process on a free port."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeVar, Unpack

from emulator.api.certificates import read_certificate
from emulator.api.operations import check_operation
from emulator.api.service import BankService
from emulator.api.signature.explain import as_text
from emulator.assemble import assemble
from emulator.assemble.composition import apply_all
from emulator.assemble.local_banks import LocalBanks, run
from emulator.bank import fixtures, notifications
from emulator.bank.authentication import sca_control
from emulator.bank.bank import Bank
from emulator.bank.clock import Beginning, real_now
from emulator.bank.customers import sessions
from emulator.bank.errors import BankError
from emulator.bank.kinds import CUSTOMER
from emulator.bank.payment import payment_views, progression
from emulator.ca import Credentials
from emulator.ca.files import write_private
from emulator.client import AsyncTppClient, TppClient
from emulator.conformance.observer import conformance_of
from emulator.scenario import loader, target
from emulator.settings import KEYSTORE_PASSWORD, ServeSettings
from emulator.terminal import message_lines, one_line, request_line
from emulator.testing.handles import (
    BankClock,
    BankCustomer,
    BankOptions,
    Receiver,
    TppFiles,
    authority,
    filters_for,
    issued,
    moment_of,
    settings_for,
)

Result = TypeVar("Result")

REPORTED = 10  # requests of each bank in the report of a failing test
RUNNING: list[RunningBank] = []  # the banks of this process, for the report of a failing test
AUDITS: list[dict[str, Any]] | None = None  # the reports of stopped banks, with --bank-audit only


class UnmatchedRule(UserWarning):
    """A rule of an applied scenario has matched no request, so the test has not covered the scenario."""


class RunningBank:
    """An emulator in this process on a free port.

    `url` is its base address. Every access to the bank runs on the thread of its server, between two requests.
    """

    def __init__(self, **options: Unpack[BankOptions]) -> None:
        settings, now = settings_for(**options), moment_of(options)
        self._application = assemble(
            replace(settings, scenario=()), authority=authority(), begins=Beginning(now, "frozen")
        )
        self._service = self._application.default
        with ExitStack() as undo:
            undo.callback(self._application.close)
            with self._service.bank.documents.transaction():  # if one is refused, a stored bank stays unchanged
                self._prepare(settings, now, options.get("settings"))
            self._banks = LocalBanks(self._application)
            undo.pop_all()
        self.url = self._banks.url
        self.clock = BankClock(self.call)
        self._closing = ExitStack()
        self._closing.callback(self._banks.close)
        self._addresses = (f"192.0.2.{number % 254 + 1}" for number in count())
        self._must_match: set[str] = set()
        RUNNING.append(self)

    def _prepare(self, settings: ServeSettings, now: datetime | None, changes: Mapping[str, Any] | None) -> None:
        if now is not None:
            fixtures.reset(self._service.bank, settings.fixture)
        apply_all(settings.scenario, self._application.scenario_target(self._service), changes)
        clock = self._service.bank.clock
        if clock.mode != "frozen":
            clock.set(now=clock.now(), mode="frozen")

    def call(self, work: Callable[[BankService], Result]) -> Result:
        """Call `work` with the service of the bank, between two requests."""
        return self._banks.call(lambda: work(self._service))

    def _change(self, change: Callable[[Bank], Result]) -> Result:
        """Call `change` with the bank, in one transaction, after what is due has happened."""

        def work(service: BankService) -> Result:
            service.settle()
            with service.bank.documents.transaction():
                return change(service.bank)

        return self.call(work)

    def tpp(
        self,
        roles: str | Iterable[str] = ("PISP", "AISP"),
        *,
        name: str | None = None,
        flaw: str | None = None,
    ) -> TestTpp:
        """A signing client of a TPP with one or more roles; `flaw`: its certificate has that flaw."""
        chosen = (roles,) if isinstance(roles, str) else tuple(sorted(roles))
        name = name or "-".join(["test", *(role.lower() for role in chosen), *([flaw] if flaw else [])])
        hour = real_now().replace(minute=0, second=0, microsecond=0)
        client = TestTpp(self, issued(name, chosen, flaw, hour), self._addresses)
        self._closing.callback(client.close)
        return client

    def approve(self, link_or_id: str | None = "latest", **choices: Any) -> str:
        """Approve an SCA as the PSU; returns where the browser would go.

        It is named by its scaRedirect, its token, or the id of its payment, basket or consent. Choices: nationalId (or
        national_id), method, context, agreement, accounts. Raises BankError for an SCA that does not exist, also for
        None, the scaRedirect of an answer without one.
        """
        choices = {{"nationalId": "national_id"}.get(name, name): value for name, value in choices.items()}
        return self._sca(link_or_id, lambda bank, sca: sca_control.approve(bank, sca, **choices)) or ""

    def reject(self, link_or_id: str | None = "latest") -> str:
        """Decline an SCA as the PSU; returns where the browser would go."""
        return self._sca(link_or_id, sca_control.reject)

    def _sca(self, link_or_id: str | None, act: Callable[..., Result]) -> Result:
        link_or_id = str(link_or_id)
        name = re.split("[?#]", link_or_id)[0].rpartition("/")[2] or link_or_id
        return self._change(lambda bank: act(bank, sca_control.find(bank, name)))

    def customer(self, national_id: str | None = None) -> BankCustomer:
        """A customer at its own page; default: the first private customer."""
        return BankCustomer(self._change, national_id or self.call(_first_private))

    def session(self, tpp_id: str, national_id: str | None = None, **choices: Any) -> dict[str, str]:
        """Create a session and a consent without an SCA; returns `{psuId, tppSessionId, psuCorporateId?, context}`."""
        who = national_id or self.call(_first_private)
        return self._change(lambda bank: sessions.seed(bank, tpp_id=tpp_id, national_id=who, **choices))

    def settings(self, **changes: Any) -> dict[str, Any]:
        """Change settings of the bank; returns all settings."""
        return self._change(lambda bank: bank.change_settings(changes).as_document())

    def requests(self, **filters: Any) -> list[dict[str, Any]]:
        """The requests of TPPs with their answers, newest first; the log holds the last 1000.

        Filters: operation, status, tpp, paymentId (or payment_id), limit. Raises BankError for an unknown operation,
        TypeError for another filter or for a value that no request could have.
        """
        chosen = {"limit": sys.maxsize, **filters_for(**filters)}
        check_operation(chosen.get("operation"))
        return self.call(lambda service: [entry.detail() for entry in service.log.entries(**chosen)])

    def report(self, limit: int = REPORTED) -> str:
        """The last requests as text, oldest first: status, errors, and the diagnosis of a refused signature."""
        return "\n".join(line for entry in reversed(self.requests(limit=limit)) for line in _reported(entry))

    def receiver(self) -> Receiver:
        """Start a receiver of notifications, which stops with the bank; turns on the setting `notifications`.

        Send its `uri` as TPP-Notification-URI; `tpp.notification_uri = receiver.uri` does so with every request.
        """
        self.settings(notifications=True)
        receiver = Receiver()
        self._closing.callback(receiver.stop)
        return receiver

    def notifications(self, target: str | None = None) -> list[dict[str, Any]]:
        """The notifications of the bank, or of a payment, basket or consent, with their deliveries; oldest first.

        Waits until all due ones are sent and answered; an attempt takes at most 5 seconds.
        """
        run(self._application.notifier.quiet())
        return self.call(lambda service: notifications.listing(service.bank, target=target)[::-1])

    def payments(self) -> list[dict[str, Any]]:
        """All payments of the bank, newest first, as `GET /_emulator/payments` shows them."""
        return self.call(lambda service: payment_views.listing(service.bank, sys.maxsize))

    def advance_payment(self, payment_id: str, to: str | None = None) -> str:
        """Advance a payment by one status, or to the status `to`; returns its new status."""
        return self._change(lambda bank: str(progression.advance(bank, payment_id, to)["status"]))

    def apply(
        self, scenario: str | Path | dict[str, Any], *, must_match: bool = False, **parameters: Any
    ) -> dict[str, Any]:
        """Apply a scenario: the name of a ready one, a file, or its content, with values for its parameters.

        Returns what was changed: `{scenario, reset, clock, rules, settings, notes?}`. With `must_match` the test fails
        if a rule of the scenario has matched no request. Raises ScenarioRefused.
        """
        if isinstance(scenario, Path):
            read = loader.from_file(scenario, parameters)
        elif isinstance(scenario, str):
            read = loader.named_or_file(scenario, parameters)
        else:
            read = loader.from_value(scenario, parameters)
        done = self.call(lambda service: target.apply(read, self._application.scenario_target(service)))
        if must_match:
            self._must_match.add(read.name)
        return done

    def unmatched(self) -> list[tuple[str, str]]:
        """Scenario and name of each rule of an applied scenario that has matched no request."""

        def work(service: BankService) -> list[tuple[str, str]]:
            counts = self._application.scenario_target(service).rules.counts()
            return [(one["scenario"], one["name"]) for one in counts if one["scenario"] and not one["matched"]]

        return self.call(work)

    def take_unmatched(self) -> list[tuple[str, str]]:
        """As `unmatched`, for scenarios applied with `must_match` since the last call."""
        scenarios, self._must_match = self._must_match, set()
        return [one for one in self.unmatched() if one[0] in scenarios] if scenarios else []

    def audit(self) -> dict[str, Any]:
        """The verdict of every check on the TPPs of this bank: `{checks, summary}`."""
        return self.call(lambda service: conformance_of(service).report())

    def stop(self) -> None:
        """Close clients, connections and sockets; then warn of each rule of a scenario that has matched no request."""
        unmatched: list[tuple[str, str]] = []
        with self._closing:
            if self in RUNNING:
                RUNNING.remove(self)
                unmatched = self.unmatched()
            if AUDITS is not None:
                AUDITS.append(self.audit())
        for scenario, rule in unmatched:  # last, as a project may turn warnings into errors
            warnings.warn(f"{scenario}: the rule {rule!r} has matched no request", UnmatchedRule, stacklevel=2)


def _first_private(service: BankService) -> str:
    for customer in service.bank.documents.all(CUSTOMER):
        if customer["type"] == "private":
            return str(customer["customerNumber"])
    raise BankError("FORMAT_ERROR", "The bank has no private customer; name one.", "nationalId")


def _reported(entry: dict[str, Any]) -> Iterator[str]:
    """An entry of the request log as lines of text."""
    yield request_line(entry)
    yield from message_lines(entry)
    signature = entry.get("signature")
    if signature is not None and not signature.get("valid"):
        yield from (one_line(f"    {line}".rstrip()) for line in as_text(signature).splitlines())


class TestTpp(TppClient):
    """A TPP: its certificate and key, and a signed client whose PSU can approve without a browser."""

    __test__ = False  # pytest collects classes called Test...

    def __init__(self, bank: RunningBank, credentials: Credentials, addresses: Iterator[str]) -> None:
        super().__init__(bank.url, credentials)
        self._addresses = addresses  # of customers, as each one has a PSU-IP-Address of its own
        self._meet_customer()
        self.bank = bank
        self._credentials = credentials
        self.tpp_id = read_certificate(credentials.certificate_header).tpp.id

    def _meet_customer(self) -> None:
        self._defaults["PSU-IP-Address"] = next(self._addresses)

    def forget(self) -> None:
        """Forget the PSU and take a new session id; the next PSU has another PSU-IP-Address."""
        super().forget()
        self._meet_customer()

    @property
    def certificate_pem(self) -> str:
        """The certificate in PEM, for a signer of your own."""
        return self._credentials.certificate_pem

    @property
    def key_pem(self) -> str:
        """The private key in PEM (PKCS #8, no password)."""
        return self._credentials.key_pem.decode()

    def files(self, folder: str | Path, *, keystore_password: str = KEYSTORE_PASSWORD) -> TppFiles:
        """Write certificate.pem, key.pem and keystore.p12 into `folder`, readable only by this user."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        files = TppFiles(folder / "certificate.pem", folder / "key.pem", folder / "keystore.p12")
        write_private(files.certificate, self._credentials.certificate_pem.encode())
        write_private(files.key, self._credentials.key_pem)
        write_private(files.keystore, self._credentials.keystore(keystore_password))
        return files

    def asynchronous(self) -> AsyncTppClient:
        """The same TPP and PSU as an asynchronous client; close it when done (`async with`)."""
        client = AsyncTppClient(self.bank.url, self.identity, defaults=self._defaults)
        client.psu_id, client.session_id = self.psu_id, self.session_id
        client.psu_corporate_id, client.psu_context = self.psu_corporate_id, self.psu_context
        client.redirect_uri, client.notification_uri = self.redirect_uri, self.notification_uri
        return client

    def approve(self, link_or_id: str | None = "latest", **choices: Any) -> dict[str, str]:
        """Approve as the PSU; stores psu-id and session of the redirect in the client and returns its query."""
        return self.remember(self.bank.approve(link_or_id, **choices))

    def log_in(self, national_id: str | None = None, **choices: Any) -> TestTpp:
        """Create a session and a consent without an SCA, for a person (default: the first private customer)."""
        session = self.bank.session(self.tpp_id, national_id, **choices)
        if self.psu_id not in (None, session["psuId"]):
            self._meet_customer()
        self.use_session(session)
        return self


class BankFactory(Protocol):
    """Starts banks that stop with the test."""

    def __call__(self, **options: Unpack[BankOptions]) -> RunningBank:
        """A new bank on a free port.

        Raises TypeError for an option that is not in BankOptions, ValueError for a value of a wrong form, and
        Failed or BankError for a fixture, scenario or setting that cannot be used.
        """


@contextmanager
def banks() -> Iterator[BankFactory]:
    """Start banks that all stop with this context, whatever fails; for fixtures of any scope."""
    with ExitStack() as running:

        def make(**options: Unpack[BankOptions]) -> RunningBank:
            bank = RunningBank(**options)
            running.callback(bank.stop)
            return bank

        yield make
