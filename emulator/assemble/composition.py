"""Puts the parts together: the banks, an application with its handlers, and banks in memory to play scenarios on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

from emulator.api.messages import Request, Response, Stream
from emulator.api.outcomes import log_request
from emulator.assemble.application import BankApplication, ServiceHandler
from emulator.assemble.registry import BankRegistry
from emulator.assemble.storage import FolderStorage, Storage
from emulator.bank import fixtures, notifications
from emulator.bank.clock import LIVE, Beginning, real_now
from emulator.bank.errors import BankError
from emulator.bank.notification_targets import Host
from emulator.ca import CertificateAuthority
from emulator.control import Control
from emulator.metrics.page import MetricsPage
from emulator.scenario import loader, target
from emulator.scenario.target import ScenarioTarget
from emulator.scenario.transport import InProcess, Transport
from emulator.settings import ServeSettings
from emulator.web.console.handler import Console, Logouts
from emulator.web.console.screen import Answering
from emulator.web.notification_client import NotificationClient
from emulator.web.pages import my_pages, sca_pages
from emulator.web.pages.browser import Guard
from emulator.web.pages.docs_pages import DocsPage
from emulator.web.pages.rendering import CustomerPages, StaticFiles

LOCAL = ("localhost", "127.0.0.1", "::1")  # in the TLS certificate, besides the names of --allow-host
RECEIVER = Host("tpp.example")  # notifications of stories to this host count as delivered


def registry_for(
    settings: ServeSettings,
    authority: CertificateAuthority,
    begins: Beginning = LIVE,
    progress: Callable[[int, int], None] | None = None,
    storage: Storage | None = None,
    transport_of: Callable[[ServeSettings], Transport] | None = None,
) -> BankRegistry:
    """The banks for these settings; `storage`: where they are stored, if not in memory or in the --state.

    `transport_of`: what gives a bank to play a story on, if not `separate_bank`.
    """
    if storage is None and settings.ephemeral:
        storage = Storage()
    if storage is None:
        power = settings.durability == "power"
        storage = FolderStorage(settings.state / "banks", power=power, progress=progress)
    return BankRegistry(settings, authority, storage, transport_of=transport_of or separate_bank, begins=begins)


def separate_bank(settings: ServeSettings) -> Transport:
    """A new bank in memory with these settings and another CA, to play a story on; from it no other one is played."""
    own = replace(settings, ephemeral=True, allow_notify=(RECEIVER,), control_token=None, log_format="text")
    authority = CertificateAuthority(None, clock=real_now)
    return in_process(registry_for(own, authority, transport_of=_refuse_another))


def _refuse_another(_settings: ServeSettings) -> NoReturn:
    raise BankError("CONFLICT", "A story that is being played cannot play another one.")


def in_process(registry: BankRegistry) -> Transport:
    """These banks at their addresses, without sockets."""
    application = application_of(registry, BankApplication)

    def handle(request: Request) -> Response | Stream:
        answer = application.handle(request)
        for service in registry.services():
            notifications.deliver(service.bank)
        return answer

    return InProcess(handle)


def apply_flags(settings: ServeSettings, scenario_target: ScenarioTarget, *, applied: list[str] | None = None) -> None:
    """What --fixtures and --scenario name is from now on what the default bank is made with; apply the scenarios.

    A flag that is not named leaves that as it is, and so do scenarios that are `applied` already.
    """
    with scenario_target.bank.documents.transaction():
        if settings.fixtures is not None:
            fixtures.remember_fixture(scenario_target.bank, settings.fixtures)
        if settings.scenario and list(settings.scenario) != applied:
            apply_all(settings.scenario, scenario_target)


def apply_all(
    scenarios: Iterable[str], scenario_target: ScenarioTarget, settings: Mapping[str, Any] | None = None
) -> None:
    """Apply scenarios, by name or file, and settings; a reset will restore them. Raises ScenarioRefused."""
    bank = scenario_target.bank
    read = [loader.named_or_file(source) for source in scenarios]
    restored = fixtures.initial_state(bank)
    restored.pop("scenarios", None)  # an earlier start may have applied others
    if read:
        restored["scenarios"] = [dict(scenario.source) for scenario in read]
    if settings:
        restored["settings"] = dict(settings)
    with bank.documents.transaction():
        fixtures.remember(bank, restored)
        target.furnish(scenario_target, read, settings)


Made = TypeVar("Made", bound=BankApplication)


def application_of(
    registry: BankRegistry,
    kind: type[Made],
    asking: Callable[[Answering], Answering] = lambda control: control,
    logouts: Logouts | None = None,
) -> Made:
    """The application of these banks; of the console: `asking`, how it asks the control interface, and `logouts`."""
    settings, authority = registry.settings, registry.authority
    guard = Guard(allowed_hosts=settings.host_names, secret=authority.secret("forms"))
    control = Control(
        registry,
        authority,
        token=settings.control_token,
        allowed_hosts=settings.host_names,
    )
    handlers: dict[str, ServiceHandler] = {
        "_emulator": control,
        "sca": CustomerPages(guard, sca_pages.answer, settings.frame_ancestors),
        "my": CustomerPages(guard, my_pages.answer, settings.frame_ancestors),
        "console": Console(
            guard,
            answering=asking(control.handle),
            default=lambda: registry.default,
            token=settings.control_token,
            shared=logouts,
        ),
        "docs": DocsPage(guard, operations=_operations_document, control=_control_document),
        "static": StaticFiles(),
        "metrics": MetricsPage(
            registry,
            tokens=(settings.control_token, settings.metrics_token),
            allowed_hosts=settings.host_names,
            # a scrape reaches one of the processes: its counters must not be taken for those of another
            process={"process": str(os.getpid())} if settings.workers > 1 else {},
        ),
    }
    if settings.log_format == "json":
        registry.outcomes.followers.append(log_request)
    application = kind(
        registry,
        handlers=handlers,
        tls=lambda: authority.server_context(list(dict.fromkeys([*LOCAL, *settings.host_names]))),
        scenario_target=control.scenario_target,
        post=NotificationClient(allowed=settings.allow_notify, authority=authority.certificate_pem).post,
    )
    application.warm_up = control.warm_up
    return application


def _operations_document() -> dict[str, Any]:
    """The OpenAPI document of the TPP interface, for the documentation."""
    from emulator.api.description import openapi  # only on use, to keep the start fast

    return openapi.document()


def _control_document() -> dict[str, Any]:
    """The OpenAPI document of the control interface, for the documentation."""
    from emulator.control.operations import document  # only on use, to keep the start fast

    return document("")
