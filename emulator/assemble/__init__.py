"""Builds an application from settings: the only package that knows all others except the command line.

    composition.py, application.py    puts the parts together; passes each request to the handler of its address
    registry.py, storage.py           the banks of a process, and where they are stored: in memory or in folders
    turns.py                          who may change a bank when, and the fsyncs and commits between
    notifier.py                       sends notifications
    local_banks.py                    banks beside other work: of tests, of a plan of checks, of a search
    copying.py, stored_service.py     `state copy` and `state check`

Banks in a shared store, which is PostgreSQL: `joining.py` starts a process, `homes.py` has the banks that are its own
(`home_storage.py`: as the registry sees them; `handover.py`: what the next home gets), `forwarding.py` is the way to
the others, `stored_authority.py` the TPPs of all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from emulator import packaged
from emulator.assemble.application import BankApplication
from emulator.assemble.composition import application_of, apply_flags, registry_for
from emulator.assemble.copying import complete
from emulator.bank import fixtures
from emulator.bank.clock import LIVE, Beginning, real_now
from emulator.bank.fixtures import FixtureError
from emulator.bank.problems import InputRefused
from emulator.ca import CertificateAuthority
from emulator.failure import Damaged, Failed, needs_extra
from emulator.scenario import loader
from emulator.scenario.loader import ScenarioRefused
from emulator.settings import ServeSettings
from emulator.store import StoreDamaged, StoreError, StoreShared

logger = logging.getLogger(__name__)


def authority_for(state: Path | None, *, power: bool = False) -> CertificateAuthority:
    """The sandbox CA with the TPP `demo`, stored in `state` (None: in memory); `power`: it survives a power failure."""
    authority = CertificateAuthority(state, clock=real_now, power=power)
    authority.demo()
    return authority


def assemble(
    settings: ServeSettings,
    *,
    authority: CertificateAuthority | None = None,
    begins: Beginning = LIVE,
    progress: Callable[[int, int], None] | None = None,
) -> BankApplication:
    """The application of `serve`.

    `authority`: a CA that several applications share, as in tests; `begins`: the clock of its banks, by default live;
    `progress`: called with the bytes read and the bytes in all. Raises Failed for a fixture, scenario or state
    directory that cannot be used, and Damaged for damaged documents or certificates.
    """
    if settings.data is not None:
        use_data(settings.data)
    try:
        if settings.store is not None:
            with needs_extra("postgresql", "--store: a shared store", page="flags"):
                from emulator.assemble.joining import assembled
            return assembled(settings, begins)
        complete(settings.state)
        if authority is None:
            authority = authority_for(settings.state, power=settings.durability == "power")
        fixtures.check(settings.fixture)  # with stored documents, it would only be read at the next reset
        registry = registry_for(settings, authority, begins, progress)
        with ExitStack() as undo:
            undo.callback(registry.close)
            bank = registry.default.bank
            if changed := bank.settings.differences(bank.defaults):  # they override the flags (assumed)
                listed = ", ".join(f"{name} {value}" for name, value in changed.items())
                logger.info("settings of an earlier run, until the next reset: %s", listed)
            application = application_of(registry, BankApplication)
            apply_flags(settings, application.scenario_target(registry.default))
            undo.pop_all()
        return application
    except StoreDamaged as error:
        raise Damaged(str(error)) from error
    except StoreShared as error:
        text = f"--store: {error}"
        raise (Damaged(text) if error.unreadable else Failed(text, page="flags")) from error
    except ScenarioRefused as error:
        raise Failed(f"--scenario {error}", page="scenario-language") from error
    except FixtureError as error:
        raise Failed(f"--fixtures {error}", page="prepare-data") from error
    except StoreError as error:
        raise Failed(f"--state {settings.state}: {error}", page="recover-data") from error
    except OSError as error:
        place = error.filename or settings.state
        raise Failed(f"--state {place}: {error.strerror or error}", page="recover-data") from error


def use_data(folder: Path) -> None:
    """Offer fixtures and scenarios of this folder by name; raises Failed for one with problems."""
    packaged.use(folder)
    try:
        for path in packaged.own("fixtures").values():
            fixtures.check(str(path))
        for name in packaged.own("scenarios"):
            loader.named(name)
    except InputRefused as error:
        raise Failed(f"--data {error}", page="prepare-data") from error
    for path in packaged.replacing():
        logger.warning("%s is used in place of the ready one of this name", path)
