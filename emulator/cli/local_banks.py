"""Banks in this process, for a plan or a search that gives each run its own: with a server, or without a socket.

Commands import it on use: it loads all of the server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import datetime
from functools import cached_property
from typing import Any

from emulator.api.service import BankService
from emulator.assemble.application import BankApplication
from emulator.assemble.composition import application_of, registry_for
from emulator.assemble.registry import BankRegistry
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


class LocalBanks:
    """The banks of one command. `serves`: at a free port of this machine; else their application is called directly."""

    def __init__(self, *, serves: bool = True, notify: tuple[str, ...] = ("127.0.0.1",)) -> None:
        self._authority = CertificateAuthority(None, clock=real_now)
        settings = ServeSettings(ephemeral=True, port=0, allow_notify=tuple(map(Host, notify)))
        self._registry: BankRegistry = registry_for(settings, self._authority)
        self.application: BankApplication = application_of(self._registry, BankApplication)
        self._server: WebServer | None = None
        self.base = "http://127.0.0.1:8080"
        if serves:
            self._loop = LoopThread()
            self._server = WebServer(self.application, host="127.0.0.1", plain=listen(("127.0.0.1",), 0, copies=1))
            self._loop.run(self._server.start())
            self.base = self._server.urls[0]

    @cached_property
    def issued(self) -> Credentials:
        """The TPP of the banks that `open` gives."""
        return self._authority.issue(NAME)

    def call(self, work: Callable[[], Result]) -> Result:
        """Do work on the banks' thread, between two requests."""
        return work() if self._server is None else self._loop.call(work)

    def open(self, name: str, *, seed: int, now: datetime, settings: Mapping[str, Any]) -> RunBank:
        """A new bank in its known state, whose clock stands still."""

        made_with = {"date_skew": DATE_SKEW, **settings}

        def prepare(service: BankService, _undo: ExitStack) -> None:
            service.bank.change_settings(made_with)

        restored: Restored = {"now": stamp(now), "clock": "frozen", "settings": made_with}
        spec = BankSpec(seed=seed, restored=restored, prepare=prepare)
        service = self.call(lambda: self._registry.make(name, spec))
        return RunBank(
            f"{self.base}/banks/{name}",
            self.issued.certificate_pem,
            self.issued.key_pem.decode(),
            service,
            self.call(lambda: self.application.scenario_target(service)),
            self.call,
            lambda: self.call(lambda: self._registry.close_bank(name)),
        )

    def close(self) -> None:
        if self._server is not None:
            self._loop.run(self._server.stop())
        self.call(self.application.close)
