"""Banks of this process beside its other work: those of tests, of a plan of checks, and of a search.

Commands import it on use: it loads all of the server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import datetime
from functools import cache, cached_property
from typing import Any

from emulator.api.service import BankService
from emulator.assemble.application import BankApplication
from emulator.assemble.composition import application_of, registry_for
from emulator.bank.clock import real_now, stamp
from emulator.bank.documents import Restored
from emulator.bank.notification_targets import Host
from emulator.ca import CertificateAuthority, Credentials
from emulator.conformance.explore.play import Result, RunBank
from emulator.control.operation import BankSpec
from emulator.settings import ServeSettings
from emulator.web.server import LoopThread, WebServer, listen

NAME = "explored"
DATE_SKEW = 10**6  # seconds: bank time is not that of the TPP


@cache
def loop_thread() -> LoopThread:
    """The loop of this process that serves its banks, started at the first call."""
    return LoopThread()


class LocalBanks:
    """The banks of an application. `serves`: at a free port of this machine, `url`; else it is called directly."""

    def __init__(self, application: BankApplication, *, serves: bool = True) -> None:
        self.application = application
        self.url = "http://127.0.0.1:8080"
        self._registry = application.registry
        self._server: WebServer | None = None
        if serves:
            settings = self._registry.settings
            self._server = WebServer(
                application,
                host="127.0.0.1",
                plain=listen(["127.0.0.1"], settings.port, copies=1),  # a process may have hundreds of applications
                public_url=settings.public_url,
                allowed=settings.host_names,
            )
            loop_thread().run(self._server.start())
            self.url = self._server.urls[0]

    @classmethod
    def in_memory(cls, *, serves: bool = True, notify: tuple[str, ...] = ("127.0.0.1",)) -> LocalBanks:
        """Banks without a TPP; notifications go to the hosts of `notify` only."""
        settings = ServeSettings(ephemeral=True, port=0, allow_notify=tuple(map(Host, notify)))
        registry = registry_for(settings, CertificateAuthority(None, clock=real_now))
        return cls(application_of(registry, BankApplication), serves=serves)

    def call(self, work: Callable[[], Result]) -> Result:
        """Do work on the banks' thread, between two requests."""
        return work() if self._server is None else loop_thread().call(work)

    def close(self) -> None:
        """Close connections, sockets and banks."""
        with ExitStack() as closing:
            closing.callback(self.call, self.application.close)
            if self._server is not None:
                loop_thread().run(self._server.stop())

    # A bank for each run of a search

    @cached_property
    def issued(self) -> Credentials:
        """The TPP of the banks that `open` gives."""
        return self._registry.authority.issue(NAME)

    def open(self, name: str, *, seed: int, now: datetime, settings: Mapping[str, Any]) -> RunBank:
        """A new bank in its known state, whose clock stands still."""
        made_with = {"date_skew": DATE_SKEW, **settings}

        def prepare(service: BankService, _undo: ExitStack) -> None:
            service.bank.change_settings(made_with)

        restored: Restored = {"now": stamp(now), "clock": "frozen", "settings": made_with}
        spec = BankSpec(seed=seed, restored=restored, prepare=prepare)
        service = self.call(lambda: self._registry.make(name, spec))
        return RunBank(
            f"{self.url}/banks/{name}",
            self.issued.certificate_pem,
            self.issued.key_pem.decode(),
            service,
            self.call(lambda: self.application.scenario_target(service)),
            self.call,
            lambda: self.call(lambda: self._registry.close_bank(name)),
        )
