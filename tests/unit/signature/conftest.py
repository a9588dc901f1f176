"""One CA and one TPP for all tests of signatures: keys take time."""

from __future__ import annotations

import pytest

from emulator.ca import CertificateAuthority, Credentials
from tests.unit.signature.making import NOW, Making


@pytest.fixture(scope="session")
def authority() -> CertificateAuthority:
    return CertificateAuthority(None, clock=lambda: NOW)


@pytest.fixture(scope="session")
def issued(authority: CertificateAuthority) -> tuple[Credentials, Credentials]:
    """Both at once, so that their keys differ (see `tests.keys`)."""
    return (
        authority.issue("signer", organization_identifier="PSDNO-SBX-1"),
        authority.issue("special", flaw="special-characters"),
    )


@pytest.fixture(scope="session")
def credentials(issued: tuple[Credentials, Credentials]) -> Credentials:
    return issued[0]


@pytest.fixture(scope="session")
def special(issued: tuple[Credentials, Credentials]) -> Credentials:
    return issued[1]


@pytest.fixture
def making(credentials: Credentials) -> Making:
    return Making(credentials)
