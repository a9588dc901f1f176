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
    """The banks of an application, served at a free port of this machine; `url` is its address."""

    def __init__(self, application: BankApplication) -> None:
        settings = application.registry.settings
        self.application = application
        plain = listen(settings.host, settings.port, copies=1)  # a process may have hundreds of applications
        self._server = WebServer(application, settings, plain=plain)
        loop_thread().run(self._server.start())
        self.url = self._server.urls[0]

    @classmethod
    def in_memory(cls) -> LocalBanks:
        """Banks in memory, with a CA of their own and no TPP."""
        settings = ServeSettings(ephemeral=True, port=0, allow_notify=(Host("127.0.0.1"),))
        registry = registry_for(settings, CertificateAuthority(None, clock=real_now))
        return cls(application_of(registry, BankApplication))

    def call(self, work: Callable[[], Result]) -> Result:
        """Do work on the banks' thread, between two requests."""
        return loop_thread().call(work)

    def close(self) -> None:
        """Close connections, sockets and banks."""
        with ExitStack() as closing:
            closing.callback(self.call, self.application.close)
            loop_thread().run(self._server.stop())
