"""Banks of this process beside its other work: those of tests, of a plan of checks, and of a search.

Commands import it on use: it loads all of the server.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from functools import cache
from typing import Any, TypeVar

from emulator.assemble.application import BankApplication
from emulator.assemble.composition import application_of, registry_for
from emulator.bank.clock import real_now
from emulator.bank.notification_targets import Host
from emulator.ca import CertificateAuthority
from emulator.settings import ServeSettings
from emulator.web.server import WebServer, listen

Result = TypeVar("Result")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The loop on which all these banks run, in a thread of its own, until the process ends."""
    # Not uvloop: a garbage collection of another thread may free its handles, and crash the process.
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="bank-emulator", daemon=True).start()
    return loop


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work` on the thread of the banks, and wait for its result."""
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


class LocalBanks:
    """The banks of an application, served at a free port of this machine; `url` is its address."""

    def __init__(self, application: BankApplication) -> None:
        settings = application.registry.settings
        self.application = application
        plain = listen(settings.host, settings.port, copies=1)  # a process may have hundreds of applications
        self._server = WebServer(application, settings, plain=plain)
        run(self._server.start())
        self.url = self._server.urls[0]

    @classmethod
    def in_memory(cls) -> LocalBanks:
        """Banks in memory, with a CA of their own and no TPP."""
        settings = ServeSettings(ephemeral=True, port=0, allow_notify=(Host("127.0.0.1"),))
        registry = registry_for(settings, CertificateAuthority(None, clock=real_now))
        return cls(application_of(registry, BankApplication))

    def call(self, work: Callable[[], Result]) -> Result:
        """Do work on the banks' thread, between two requests."""

        async def on_loop() -> Result:
            return work()

        return run(on_loop())

    def close(self) -> None:
        """Close connections, sockets and banks."""
        with ExitStack() as closing:
            closing.callback(self.call, self.application.close)
            run(self._server.stop())
