"""Banks in this process for stories to play on, without a socket or a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from emulator.assemble import openapi_answer, registry_for
from emulator.assemble.application import BankApplication
from emulator.assemble.registry import BankRegistry
from emulator.bank.clock import real_now
from emulator.ca import CertificateAuthority
from emulator.control import Control
from emulator.scenario.transport import InProcess, Transport
from emulator.settings import ServeSettings


def new_transports() -> Callable[[], Transport]:
    """A function that gives a new bank in its known state each time it is called."""
    authority = CertificateAuthority(None, clock=real_now)
    return registry_for(ServeSettings(ephemeral=True, state=Path()), authority).transport


def beside(registry: BankRegistry) -> Transport:
    """A bank of the same kind as those of `registry`, with a CA of its own."""
    authority = CertificateAuthority(None, clock=real_now)
    return on(registry.apart(authority), authority)


def on(registry: BankRegistry, authority: CertificateAuthority) -> Transport:
    """What a story needs of these banks: the TPP interface and the control interface, at their addresses."""
    control = Control(registry, authority)
    application = BankApplication(
        registry,
        rooms={"_emulator": control},
        openapi=openapi_answer,
        tls=lambda: authority.server_context(()),
        scenario_target=control.scenario_target,
    )
    return InProcess(application.handle)
