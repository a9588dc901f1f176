"""The only place where the parts meet: from settings to a site that can be served."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from emulator.api.messages import Request, Response
from emulator.assemble.answers import response_signer
from emulator.assemble.house import House, HouseRules
from emulator.assemble.site import Room, Site
from emulator.authority import Authority, AuthorityDamaged
from emulator.bank.bank import Bank
from emulator.bank.clock import LIVE, Beginning, real_now
from emulator.bank.founding import fixtures
from emulator.bank.founding.fixtures import FixtureError
from emulator.bank.settings import Settings
from emulator.control.room import Control
from emulator.scenario import loader, staging
from emulator.scenario.mistakes import ScenarioRefused
from emulator.scenario.rules import RuleSet
from emulator.scenario.staging import Theatre
from emulator.settings import ServeSettings
from emulator.store import StoreDamaged, StoreError
from emulator.web.console.room import Console
from emulator.web.docs_page import DocsPage
from emulator.web.pages.guard import Guard
from emulator.web.pages.sca_pages import ScaPages
from emulator.web.pages.static_files import StaticFiles

logger = logging.getLogger(__name__)


def authority_for(state: Path | None, *, power: bool = False) -> Authority:
    """The sandbox CA with the TPP `demo`, kept in `state` (None: in memory), with `power` beyond a power cut."""
    authority = Authority(state, clock=real_now, power=power)
    authority.demo()
    return authority


class StartRefused(Exception):
    """The bank cannot start as it was told; one line that names what is wrong (exit status 2)."""


class StateDamaged(Exception):
    """What is kept on disk cannot be trusted; the text names file and offset (exit status 3)."""


def assemble(settings: ServeSettings, *, authority: Authority | None = None, begins: Beginning = LIVE) -> Site:
    """Everything that `serve` needs; `authority` is handed in where several sites share one (tests), `begins` where the
    clocks of its banks do not begin live.

    Raises StartRefused for a fixture, scenario or state directory that cannot be used, StateDamaged for documents or
    certificates that are damaged.
    """
    try:
        if authority is None:
            authority = authority_for(settings.state, power=settings.durability == "power")
        return _assembled(settings, authority, begins)
    except (StoreDamaged, AuthorityDamaged) as error:
        raise StateDamaged(str(error)) from error
    except ScenarioRefused as error:
        raise StartRefused(f"--scenario {error}") from error
    except FixtureError as error:
        raise StartRefused(f"--fixtures {error}") from error
    except StoreError as error:
        raise StartRefused(f"--state {settings.state}: {error}") from error
    except OSError as error:
        raise StartRefused(f"--state {error.filename or settings.state}: {error.strerror or error}") from error


def _assembled(settings: ServeSettings, authority: Authority, begins: Beginning) -> Site:
    fixtures.check(settings.fixtures)  # where documents are kept, it is read only at the next reset
    house = house_for(settings, authority, begins)
    _tell_kept_settings(house.default.bank)
    with ExitStack() as undo:
        undo.callback(house.close)
        site = _site(house, settings, authority)
        apply_all(settings.scenario, site.theatre(house.default))
        undo.pop_all()
    return site


def apply_all(scenarios: Iterable[str], theatre: Theatre) -> None:
    """Apply scenarios, each by its name or file, all of them or none; raises ScenarioRefused."""
    read = [loader.named_or_file(source) for source in scenarios]
    with theatre.bank.documents.transaction():
        for scenario in read:
            staging.apply(scenario, theatre)


def _site(house: House, settings: ServeSettings, authority: Authority) -> Site:
    guard = Guard(allowed_hosts=(settings.host, *settings.allow_host), secret=authority.secret("forms"))
    control = Control(
        house,
        authority,
        token=settings.control_token,
        allowed_hosts=(settings.host, *settings.allow_host),
        directory_of=house.directory_of,
    )
    control.theatre(house.default)  # a killed process may have left half a snapshot
    rooms: dict[str, Room] = {
        "_emulator": control,
        "sca": ScaPages(guard),
        "console": Console(guard, answering=control.handle, token=settings.control_token),
        "docs": DocsPage(guard),
        "static": StaticFiles(),
    }
    return Site(
        house,
        rooms=rooms,
        openapi=openapi_answer,
        tls=lambda: authority.server_context(_names(settings)),
        theatre=control.theatre,
    )


def _tell_kept_settings(bank: Bank) -> None:
    """What an earlier run has set goes before --profile and --links, which are defaults (assumed)."""
    kept = bank.settings.beside(bank.defaults)
    if kept:
        told = ", ".join(f"{name} {value}" for name, value in kept.items())
        logger.info("settings of an earlier run that a reset takes back: %s", told)


def _names(settings: ServeSettings) -> list[str]:
    """The host names and addresses that the TLS certificate names."""
    return list(dict.fromkeys(["localhost", "127.0.0.1", "::1", settings.host, *settings.allow_host]))


def openapi_answer(request: Request) -> Response:
    """`GET /openapi.json`; the document and its shapes are imported when they are asked for."""
    from emulator.api import openapi

    return openapi.respond(request)


def house_for(settings: ServeSettings, authority: Authority, begins: Beginning = LIVE) -> House:
    """The banks as `settings` wants them."""
    return House(
        HouseRules(
            directory=None if settings.ephemeral else settings.state / "banks",
            fixtures=settings.fixtures,
            settings=Settings(profile=settings.profile, links=settings.links),
            seed=settings.seed,
            ids_form=settings.ids,
            durability="power" if settings.durability == "power" else "process",
            rules_for=RuleSet,
            trusted_ca=lambda: authority.certificate,
            signer=response_signer(authority.answering),
            begins=begins,
        )
    )
