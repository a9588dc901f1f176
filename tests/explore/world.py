"""The world of a TPP in this process: its requests go to the bank without a socket, and its waits take no time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any

from emulator.api.messages import Request, Response
from emulator.assemble.application import BankApplication
from emulator.assemble.composition import application_of, registry_for
from emulator.assemble.local_banks import LocalBanks, Result
from emulator.bank import notifications
from emulator.bank.clock import real_now
from emulator.bank.notification_targets import Host
from emulator.ca import CertificateAuthority
from emulator.client import clients as answers
from emulator.client.clients import Prepared, Tpp
from emulator.conformance.program import Ending
from emulator.explore.judge import Claims
from emulator.explore.play import Run
from emulator.settings import ServeSettings
from tests.explore.merchant import Merchant

HOST = ("Host", "127.0.0.1:8080")
MOST_STARTS = 10


class Killed(BaseException):
    """The process of the TPP ends here."""


class Stopped(BaseException):
    """The run is over."""


class Unserved(LocalBanks):
    """Banks without a server, whose application is called directly."""

    def __init__(self) -> None:
        settings = ServeSettings(ephemeral=True, allow_notify=(Host("shop.example"),))
        registry = registry_for(settings, CertificateAuthority(None, clock=real_now))
        self.application = application_of(registry, BankApplication)
        self.url = "http://127.0.0.1:8080"

    def call(self, work: Callable[[], Result]) -> Result:
        return work()


@lru_cache(maxsize=1)
def house() -> Unserved:
    return Unserved()


class World:
    """What surrounds one start of the TPP."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.national_id = run.person
        self.context = "PRIVATE"
        self.shop: Merchant | None = None
        self._waited_at = -1

    def send(self, prepared: Prepared) -> answers.TppResponse | None:
        request = Request(prepared.method, prepared.target, tuple(prepared.headers.items()), prepared.body)
        answer = house().application.handle(request)
        assert isinstance(answer, Response)
        if self.run.killed:
            raise Killed
        if self.run.endless is not None:
            raise Stopped
        self._act()
        if answer.delivery.disconnect is not None:
            return None
        return answers.TppResponse(answer.status, answers.ResponseHeaders(answer.headers), answer.body)

    def wait(self, seconds: float) -> None:
        only_waits = self._waited_at == self.run.requests
        self._waited_at = self.run.requests
        self._act(silent=only_waits)
        self.run.elapse(timedelta(seconds=seconds))
        if only_waits:
            self.run.wait()
        self._act()

    def browse(self, link: str) -> None:
        target = "/" + link.partition("://")[2].partition("/")[2]
        house().application.handle(Request("GET", target, (HOST,)))
        self._act()

    def customer_is_there(self) -> bool:
        return True

    def _act(self, *, silent: bool = False) -> None:
        assert self.shop is not None
        for redirect in self.run.act(silent=silent):
            self.shop.returned(redirect)
        bank = self.run.service.bank
        while due := notifications.claim(bank, most=1, each=1):
            (notification,) = due
            self.shop.notified(notification["body"])
            notifications.settle(bank, notification["id"], notifications.DeliveryResult(status=204))


class InProcess:
    """A TPP of this process as a client of the search."""

    restarts = True

    def __init__(self, shop: type[Merchant] = Merchant) -> None:
        self._shop = shop
        self._playing = False
        self._disks: dict[str, dict[str, Any]] = {}

    def play(self, run: Run) -> Ending:
        assert not self._playing, "one job plays one run at a time"
        self._playing = True
        try:
            return self._play(run)
        finally:
            self._playing = False

    def _play(self, run: Run) -> Ending:
        disk = self._disks[run.name] = {}
        for _ in range(MOST_STARTS):
            world = World(run)
            tpp = Tpp(run.url, run.tpp)
            shop = self._shop(world, tpp, debtor=run.debtor, tasks=tuple(run.schedule.tasks), disk=disk)
            world.shop = shop
            self._last = shop
            try:
                shop.run()
            except Killed:
                run.restarted()
                continue
            except Stopped:
                pass
            except Exception as error:
                return Ending(f"The TPP crashed: {type(error).__name__}: {error}")
            break
        return Ending()

    def stop(self) -> None:
        """It ends by itself."""

    def claims(self, run: Run) -> Claims:
        shop = self._last

        def claim(kind: str, identity: str) -> Mapping[str, Any] | None:
            return shop.claim(kind, identity)

        return claim
