"""What a test gives to a bank, and what it gets: the options; the clock, customers, files of TPPs, a receiver.

All banks of a test process run on one event loop in a thread of its own, and their TPPs have certificates of one CA.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

from aiohttp import web

from emulator.api.service import BankService
from emulator.assemble import authority_for
from emulator.assemble.local_banks import run
from emulator.bank.bank import Bank
from emulator.bank.formats import EARLIEST, END, YEARS
from emulator.bank.payment import self_service
from emulator.ca import CertificateAuthority, Credentials
from emulator.failure import Failed
from emulator.scenario import durations
from emulator.scenario.durations import Duration
from emulator.settings import ServeSettings, read


class BankOptions(TypedDict, total=False):
    """The flags of `serve` that apply to a bank in a test, with underscores, and two more.

    `now`: the bank time at which the clock stands (default: the time of the start), a datetime with a zone or a string
    such as `2026-03-02T09:00:00+01:00`; `settings`: settings of the bank, such as `{"progression": "manual"}`.
    `scenario`, `allow_host`, `frame_ancestors` and `allow_notify` (default: 127.0.0.1) may be one or several. Data is
    in memory unless `state` names a directory or `ephemeral` is False.
    """

    fixtures: str
    scenario: str | Path | Sequence[str | Path]
    profile: str
    links: str
    weather: str
    ids: str
    seed: int
    control_token: str
    public_url: str
    allow_host: str | Sequence[str]
    frame_ancestors: str | Sequence[str]
    allow_notify: str | Sequence[str]
    ephemeral: bool
    state: Path
    durability: str
    now: datetime | str
    settings: Mapping[str, Any]


def settings_for(**options: Unpack[BankOptions]) -> ServeSettings:
    """Settings of a bank for one test: by default in memory, on a free port; raises TypeError and ValueError."""
    if unknown := sorted(set(options) - set(BankOptions.__annotations__)):
        raise TypeError(f"a bank for a test takes {', '.join(BankOptions.__annotations__)}, not {unknown[0]}")
    options.setdefault("allow_notify", "127.0.0.1")
    flags = {name: _texts(value) for name, value in options.items() if name not in ("now", "settings")}
    try:
        return read({"port": "0", "ephemeral": str(options.get("state") is None), **flags}, environment={})
    except Failed as error:
        raise ValueError(str(error)) from None


def _texts(value: object) -> str | list[str] | None:
    """A value as on the command line."""
    if isinstance(value, (list, tuple)):
        return list(map(str, value))
    return None if value is None else str(value)


def moment_of(options: BankOptions) -> datetime | None:
    """The bank time that `options` set; raises ValueError."""
    now = options.get("now")
    try:
        at = datetime.fromisoformat(now) if isinstance(now, str) else now
    except ValueError:
        raise ValueError(f"now is a moment such as 2026-03-02T09:00:00+01:00, not {now}") from None
    if at is not None and getattr(at, "tzinfo", None) is None:  # a date has none either
        raise ValueError(f"now requires a time zone, as in 2026-03-02T09:00:00+01:00, not {now}")
    if at is not None and not EARLIEST <= at < END:
        raise ValueError(f"now is a moment {YEARS}, not {now}")
    return at


FILTERS = {"operation": str, "status": int, "tpp": str, "payment_id": str, "limit": int}


def filters_for(**filters: Any) -> dict[str, Any]:
    """The filters of `RunningBank.requests`, by parameter name; raises TypeError for one that could match nothing."""
    filters = {{"paymentId": "payment_id"}.get(name, name): value for name, value in filters.items()}
    for name, value in filters.items():
        if name not in FILTERS or not isinstance(value, FILTERS[name] | None):
            allowed = ", ".join(f"{known}: {kind.__name__}" for known, kind in FILTERS.items())
            raise TypeError(f"requests are filtered by {allowed}, not by {name}={value!r}")
    return filters


class BankClock:
    """Bank time, which stands still until a test advances it."""

    def __init__(self, call: Callable[[Callable[[BankService], datetime]], datetime]) -> None:
        self._call = call  # between two requests

    @property
    def now(self) -> datetime:
        """Bank time, in UTC."""
        return self._call(lambda service: service.bank.clock.now())

    def advance(self, by: str | timedelta | None = None, **units: float) -> datetime:
        """Advance bank time: `advance("1h30m")`, `advance("P1M")`, `advance(days=1)`; what falls due happens."""
        duration = _duration(by, units)

        def move(service: BankService) -> datetime:
            service.settle()
            service.bank.clock.set(now=duration.after(service.bank.clock.now()))
            service.settle()
            return service.bank.clock.now()

        return self._call(move)


_BEYOND = timedelta(days=10**6)  # the end of bank time, which the clock refuses; a datetime could not be much later


def _duration(by: str | timedelta | None, units: dict[str, float]) -> Duration:
    if by is not None and units:
        raise TypeError("bank time advances by one duration, or by days, hours and so on, not by both")
    if isinstance(by, str):
        parsed = durations.parse(by)
        if parsed is None:
            raise ValueError(f"{durations.expected(by)} is needed, not {by!r}")
        return parsed
    if by is not None and not isinstance(by, timedelta):
        raise TypeError(f'bank time advances by a string such as "10s", a timedelta, or seconds=10, not by {by!r}')
    try:
        rest = by if by is not None else timedelta(**units)
    except OverflowError:
        rest = timedelta.max
    if rest < timedelta(0):
        raise ValueError("bank time only advances")
    return Duration(0, min(rest, _BEYOND))


class BankCustomer:
    """A customer at its own page (`/my`), one method for each action.

    Raises BankError for a person or a thing that does not exist or belongs to somebody else.
    """

    def __init__(self, change: Callable[[Callable[[Bank], Any]], Any], national_id: str) -> None:
        self._change = change
        self.national_id = national_id

    def view(self) -> dict[str, Any]:
        """All that the page shows: `{nationalId, name, contexts, payments, consents}`."""
        shown: dict[str, Any] = self._call(self_service.overview)
        return shown

    def accounts(self) -> list[dict[str, Any]]:
        """The accounts and cards of every context."""
        return [account for context in self.view()["contexts"] for account in context["accounts"]]

    def consents(self) -> list[dict[str, Any]]:
        """The consents: name of the TPP, shared accounts, last use, unattended reads of the last 24 hours."""
        return list(self.view()["consents"])

    def payments(self) -> list[dict[str, Any]]:
        """The payments and cancellations that wait for approval by this customer."""
        return list(self.view()["payments"])

    def approve(self, payment_id: str, *, cancels: bool = False) -> str | None:
        """Approve a payment (or its cancellation) at the bank; returns its new status."""
        status: str | None = self._call(self_service.approve, payment_id, cancels=cancels)["transactionStatus"]
        return status

    def decline(self, payment_id: str, *, cancels: bool = False) -> str | None:
        """Decline a payment (or its cancellation); returns its new status."""
        status: str | None = self._call(self_service.decline, payment_id, cancels=cancels)["transactionStatus"]
        return status

    def withdraw(self, consent_id: str | None = None) -> None:
        """Withdraw a consent; None: all valid ones."""
        valid = [consent["consentId"] for consent in self.consents() if consent["status"] == "valid"]
        for identity in valid if consent_id is None else [consent_id]:
            self._call(self_service.withdraw, identity)

    def _call(self, act: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return self._change(lambda bank: act(bank, self.national_id, *arguments, **named))


@cache
def authority() -> CertificateAuthority:
    """The sandbox CA of this test process, in memory; shared by all banks, as generating keys is slow."""
    return authority_for(None)


_ISSUED: dict[str, tuple[Credentials, tuple[object, ...]]] = {}  # by name, with what it was asked for with


def issued(name: str, roles: tuple[str, ...], flaw: str | None, hour: datetime) -> Credentials:
    """A TPP of this test process; it replaces one of the same name with other roles or another flaw.

    One of an earlier `hour` of real time is replaced too, as the validity of its certificate depends on that.
    """
    asked = (roles, flaw, hour)
    known, known_as = _ISSUED.get(name, (None, None))
    if known is None or known_as != asked or authority().find(name) is not known:
        known = authority().issue(name, roles=roles, flaw=flaw, replace=True)
        _ISSUED[name] = known, asked
    return known


class TppFiles(NamedTuple):
    """The files of a TPP; `keystore` is PKCS #12 with key, certificate and CA."""

    certificate: Path
    key: Path
    keystore: Path


@dataclass(frozen=True, slots=True)
class Received:
    """A notification as received: headers by lower-case name, and the JSON body."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class Receiver:
    """Receives notifications at `uri` and answers 204; `received` has them in the order of arrival."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self._answers: deque[int] = deque()
        self._runner, port = run(self._start())
        self.uri = f"http://127.0.0.1:{port}/notifications"

    def answer(self, *statuses: int) -> None:
        """Answer the next notifications with these statuses, then 204 again."""
        self._answers.extend(statuses)

    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the notifications, in the order of arrival."""
        return [one.body for one in self.received]

    def stop(self) -> None:
        """Close the port."""
        run(self._runner.cleanup())

    async def _start(self) -> tuple[web.ServerRunner, int]:
        runner = web.ServerRunner(web.Server(self._receive))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner, runner.addresses[0][1]

    async def _receive(self, request: web.BaseRequest) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.received.append(Received(request.path, headers, json.loads(await request.read())))
        return web.Response(status=self._answers.popleft() if self._answers else 204)
