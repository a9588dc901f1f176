"""Fixtures of the tests that drive the pipeline without a socket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from emulator.api.service import BankService
from emulator.assemble.composition import in_process
from emulator.assemble.registry import BankRegistry
from emulator.bank.clock import real_now
from emulator.ca import CertificateAuthority
from emulator.cli import main
from emulator.control import Control
from emulator.scenario import transport as transports
from emulator.scenario.transport import Transport, TransportFailed
from tests.api.control_desk import ControlDesk
from tests.api.desk import DeskClient, monday, seeded_registry
from tests.known_state import KARI
from tests.postgres.remote import RemoteAuthority, RemoteBanks, RemoteRegistry, RemoteService

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def authority(remote_banks: RemoteBanks | None) -> CertificateAuthority | RemoteAuthority:
    if remote_banks is not None:
        return remote_banks.authority
    authority = CertificateAuthority(None, clock=real_now)
    authority.demo()
    return authority


@pytest.fixture
def registry(authority: CertificateAuthority, remote_banks: RemoteBanks | None) -> BankRegistry | RemoteRegistry:
    if remote_banks is not None:
        return remote_banks.registry()
    return seeded_registry(authority)


@pytest.fixture
def service(registry: BankRegistry, remote_banks: RemoteBanks | None) -> BankService | RemoteService:
    if remote_banks is not None:
        return remote_banks.begin()
    return monday(registry)


@pytest.fixture
def tpp(service: BankService, authority: CertificateAuthority) -> DeskClient:
    return DeskClient(service, authority)


@pytest.fixture
def kari(tpp: DeskClient) -> DeskClient:
    """The TPP with a session and a consent of Kari's."""
    return tpp.log_in(KARI)


@pytest.fixture
def desk(registry: BankRegistry, service: BankService, authority: CertificateAuthority) -> ControlDesk:
    return ControlDesk(Control(registry, authority), service)


@pytest.fixture
def run(
    registry: BankRegistry,
    service: BankService,
    authority: CertificateAuthority,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Runs a command against the bank of the test: exit status, stdout, stderr."""
    transport = transports.Running(registry.wire.url) if isinstance(registry, RemoteRegistry) else in_process(registry)

    def running(base: str, **_: Any) -> Transport:
        if base != "http://127.0.0.1:8080":
            raise TransportFailed(f"{base} does not answer.")
        return transport

    monkeypatch.setattr(transports, "Running", running)
    monkeypatch.delenv("BANK_EMULATOR_URL", raising=False)

    def command(*arguments: str) -> tuple[int, str, str]:
        status = main.run(list(arguments))
        output = capsys.readouterr()
        return status, output.out, output.err

    return command
