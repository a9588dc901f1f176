"""One bank for the whole corpus: a lie changes nothing, so no case disturbs the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulator.ca import CertificateAuthority
from tests.api.desk import DeskClient
from tests.hostile.attack import Target
from tests.known_state import KARI
from tests.unit.pages.living import Living, living


@pytest.fixture(scope="session")
def emulator() -> Iterator[Living]:
    with living() as running:
        yield running


@pytest.fixture(scope="session")
def authority(emulator: Living) -> CertificateAuthority:
    return emulator.authority


@pytest.fixture(scope="session")
def target(emulator: Living, authority: CertificateAuthority) -> Target:
    target = Target(emulator, DeskClient(emulator.service, authority).log_in(KARI))
    assert target.account  # the first read of a day is stored as the last use of the consent
    return target
