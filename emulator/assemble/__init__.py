"""Builds an application from settings: the only package that knows all others except the command line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.api.messages import Request, Response
from emulator.assemble.application import BankApplication, ServiceHandler
from emulator.assemble.registry import BankRegistry, RegistryConfig
from emulator.assemble.replacement import complete
from emulator.assemble.signing import response_signer
from emulator.bank import fixtures
from emulator.bank.bank import Bank
from emulator.bank.clock import LIVE, Beginning, real_now
from emulator.bank.fixtures import FixtureError
from emulator.bank.settings import Settings
from emulator.ca import AuthorityDamaged, CertificateAuthority
from emulator.control import Control
from emulator.scenario import loader, target
from emulator.scenario.problems import ScenarioRefused
from emulator.scenario.rules import RuleSet
from emulator.scenario.target import ScenarioTarget
from emulator.settings import ServeSettings
from emulator.store import StoreDamaged, StoreError, StoreShared
from emulator.web.console.handler import Console
from emulator.web.docs.page import DocsPage
from emulator.web.notification_client import NotificationClient
from emulator.web.pages.browser import Guard
from emulator.web.pages.my_pages import MyPages
from emulator.web.pages.rendering import StaticFiles
from emulator.web.pages.sca_pages import ScaPages

if TYPE_CHECKING:
    from emulator.assemble.shared.turns import SharedTurns

logger = logging.getLogger(__name__)


def authority_for(state: Path | None, *, power: bool = False) -> CertificateAuthority:
    """The sandbox CA with the TPP `demo`, stored in `state` (None: in memory); `power`: it survives a power failure."""
    authority = CertificateAuthority(state, clock=real_now, power=power)
    authority.demo()
    return authority


class StartRefused(Exception):
    """The bank cannot start with these settings; one line that names the cause (exit status 2)."""


class StateDamaged(Exception):
    """The stored state is damaged; the text names file and offset (exit status 3)."""


def assemble(
    settings: ServeSettings,
    *,
    authority: CertificateAuthority | None = None,
    begins: Beginning = LIVE,
    progress: Callable[[int, int], None] | None = None,
) -> BankApplication:
    """The application of `serve`.

    `authority`: a CA that several applications share, as in tests; `begins`: the clock of its banks, by default live;
    `progress`: called with the bytes read and the bytes in all. Raises StartRefused for a fixture, scenario or state
    directory that cannot be used, and StateDamaged for damaged documents or certificates.
    """
    try:
        if settings.store is not None:
            try:
                from emulator.assemble.shared.starting import assembled
            except ImportError as error:
                needed = "pip install 'bank-emulator[postgresql]'"
                raise StartRefused(f"--store: a shared store requires an extra: {needed}") from error

            return assembled(settings, begins)
        complete(settings.state)
        if authority is None:
            authority = authority_for(settings.state, power=settings.durability == "power")
        return _assembled(settings, authority, begins, progress)
    except (StoreDamaged, AuthorityDamaged) as error:
        raise StateDamaged(str(error)) from error
    except StoreShared as error:
        raise (StateDamaged if error.newer else StartRefused)(f"--store: {error}") from error
    except ScenarioRefused as error:
        raise StartRefused(f"--scenario {error}") from error
    except FixtureError as error:
        raise StartRefused(f"--fixtures {error}") from error
    except StoreError as error:
        raise StartRefused(f"--state {settings.state}: {error}") from error
    except OSError as error:
        raise StartRefused(f"--state {error.filename or settings.state}: {error.strerror or error}") from error


def _assembled(
    settings: ServeSettings,
    authority: CertificateAuthority,
    begins: Beginning,
    progress: Callable[[int, int], None] | None,
) -> BankApplication:
    fixtures.check(settings.fixtures)  # with stored documents, it would only be read at the next reset
    registry = registry_for(settings, authority, begins, progress)
    _log_stored_settings(registry.default.bank)
    with ExitStack() as undo:
        undo.callback(registry.close)
        application = application_of(registry, settings, authority)
        apply_all(settings.scenario, application.scenario_target(registry.default))
        undo.pop_all()
    return application


def apply_all(scenarios: Iterable[str], scenario_target: ScenarioTarget) -> None:
    """Apply scenarios, by name or file, in one transaction; raises ScenarioRefused."""
    read = [loader.named_or_file(source) for source in scenarios]
    with scenario_target.bank.documents.transaction():
        for scenario in read:
            target.apply(scenario, scenario_target)


def application_of(
    registry: BankRegistry,
    settings: ServeSettings,
    authority: CertificateAuthority,
    shared: SharedTurns | None = None,
) -> BankApplication:
    """The application of these banks; `shared`: the turns of a shared store."""
    guard = Guard(allowed_hosts=(settings.host, *settings.allow_host), secret=authority.secret("forms"))
    control = Control(
        registry,
        authority,
        token=settings.control_token,
        allowed_hosts=(settings.host, *settings.allow_host),
        snapshots_of=registry.snapshots_of,
    )
    control.scenario_target(registry.default)  # removes a partial snapshot of a killed process
    handlers: dict[str, ServiceHandler] = {
        "_emulator": control,
        "sca": ScaPages(guard),
        "my": MyPages(guard),
        "console": Console(
            guard, answering=control.handle, default=lambda: registry.default, token=settings.control_token
        ),
        "docs": DocsPage(guard, operations=_operations_document, control=_control_document),
        "static": StaticFiles(),
    }
    return BankApplication(
        registry,
        handlers=handlers,
        openapi=openapi_answer,
        tls=lambda: authority.server_context(_names(settings)),
        scenario_target=control.scenario_target,
        post=NotificationClient(allowed=settings.allow_notify, authority=authority.certificate_pem).post,
        shared=shared,
    )


def _log_stored_settings(bank: Bank) -> None:
    """Log settings of an earlier run that override the defaults --profile, --links and --weather (assumed)."""
    changed = bank.settings.differences(bank.defaults)
    if changed:
        listed = ", ".join(f"{name} {value}" for name, value in changed.items())
        logger.info("settings of an earlier run, until the next reset: %s", listed)


def _names(settings: ServeSettings) -> list[str]:
    """The host names and addresses of the TLS certificate."""
    return list(dict.fromkeys(["localhost", "127.0.0.1", "::1", settings.host, *settings.allow_host]))


def openapi_answer(request: Request) -> Response:
    """The answer to `GET /openapi.json`; its modules are imported on use."""
    from emulator.api.description import openapi

    return openapi.respond(request)


def _operations_document() -> dict[str, Any]:
    """The OpenAPI document of the TPP interface, for the documentation."""
    from emulator.api.description import openapi

    return openapi.document()


def _control_document() -> dict[str, Any]:
    """The OpenAPI document of the control interface, for the documentation."""
    from emulator.control import openapi

    return openapi.document("")


def registry_for(
    settings: ServeSettings,
    authority: CertificateAuthority,
    begins: Beginning = LIVE,
    progress: Callable[[int, int], None] | None = None,
) -> BankRegistry:
    """The banks for these settings."""
    return BankRegistry(registry_config(settings, authority, begins, progress))


def registry_config(
    settings: ServeSettings,
    authority: CertificateAuthority,
    begins: Beginning = LIVE,
    progress: Callable[[int, int], None] | None = None,
) -> RegistryConfig:
    """The configuration of all banks from `settings`."""
    return RegistryConfig(
        directory=None if settings.ephemeral or settings.store is not None else settings.state / "banks",
        fixtures=settings.fixtures,
        settings=Settings(profile=settings.profile, links=settings.links, weather=settings.weather),
        seed=settings.seed,
        ids_form=settings.ids,
        idle_seconds=settings.idle_hours * 3600,
        durability="power" if settings.durability == "power" else "process",
        rules_for=RuleSet,
        trusted_ca=lambda: authority.certificate,
        signer=response_signer(authority.answer_credentials),
        begins=begins,
        notify_hosts=settings.allow_notify,
        progress=progress,
    )
