"""Banks in this process to play stories on, without sockets or files."""

from __future__ import annotations

from emulator.api.messages import Request, Response, Stream
from emulator.assemble.application import BankApplication
from emulator.assemble.registry import BankRegistry
from emulator.bank import notifications
from emulator.bank.clock import real_now
from emulator.bank.notification_targets import Host
from emulator.ca import CertificateAuthority
from emulator.control import Control
from emulator.scenario.transport import InProcess, Transport

RECEIVER = Host("tpp.example")  # notifications of stories to this host count as delivered


def separate_bank(registry: BankRegistry) -> Transport:
    """A bank with the configuration of `registry`, but with another CA."""
    authority = CertificateAuthority(None, clock=real_now)
    return on(registry.separate(authority, notify_hosts=(RECEIVER,)), authority)


def on(registry: BankRegistry, authority: CertificateAuthority) -> Transport:
    """The TPP interface and the control interface of these banks, at their addresses."""
    control = Control(registry, authority)
    application = BankApplication(
        registry,
        handlers={"_emulator": control},
        tls=lambda: authority.server_context(()),
        scenario_target=control.scenario_target,
    )

    def handle(request: Request) -> Response | Stream:
        answer = application.handle(request)
        for service in registry.services():
            notifications.deliver(service.bank)
        return answer

    return InProcess(handle)
