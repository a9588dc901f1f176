"""Banks of this process beside its other work: those of tests, of a plan of checks, and of a search.

Commands import it on use: it loads all of the server.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import TypeVar

from emulator.assemble.application import BankApplication
from emulator.assemble.composition import application_of, registry_for
from emulator.bank.clock import real_now
from emulator.bank.notification_targets import Host
from emulator.ca import CertificateAuthority
from emulator.settings import ServeSettings
from emulator.web.server import LoopThread, WebServer, listen

Result = TypeVar("Result")


@cache
def loop_thread() -> LoopThread:
    """The loop of this process that serves its banks, started at the first call."""
    return LoopThread()


class LocalBanks:
    """The banks of an application. `serves`: at a free port of this machine, `url`; else it is called directly."""

    def __init__(self, application: BankApplication, *, serves: bool = True) -> None:
        self.application = application
        self.url = "http://127.0.0.1:8080"
        self._server: WebServer | None = None
        if serves:
            settings = application.registry.settings
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
