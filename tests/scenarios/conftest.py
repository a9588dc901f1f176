"""A registry with its control room, in which stories play."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from emulator.assemble.composition import registry_for
from emulator.bank.clock import real_now
from emulator.ca import CertificateAuthority
from emulator.scenario import loader
from emulator.scenario.player import Played, play
from emulator.scenario.transport import Running
from emulator.settings import ServeSettings
from tests.postgres.remote import RemoteBanks

Play = Callable[[Mapping[str, Any]], Played]


@pytest.fixture(scope="session")
def stage_play(remote_banks: RemoteBanks | None) -> Play:
    """Plays a scenario, given as JSON, on a bank that is new each time."""
    if remote_banks is not None:
        url = remote_banks.wire.url
        return lambda source: play(loader.from_value(dict(source)), Running(url))
    authority = CertificateAuthority(None, clock=real_now)
    registry = registry_for(ServeSettings(ephemeral=True), authority)

    def run(source: Mapping[str, Any]) -> Played:
        return play(loader.from_value(dict(source)), registry.transport())

    return run
