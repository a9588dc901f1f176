"""Settings of all tests, and the PostgreSQL that some of them share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.postgres.server import PostgreSQL

# The same examples every time, however slow the machine.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A PostgreSQL server, one per test process; a test that stops it starts it again."""
    pytest.importorskip("psycopg", reason="the extra `postgresql` is not installed")
    from tests.postgres import server

    if server.binaries() is None:
        pytest.skip(server.MISSING)
    with server.running() as running:
        yield running


@pytest.fixture
def store_url(postgresql: PostgreSQL) -> Iterator[str]:
    """The URL of an empty database, dropped afterwards; its role may do everything in it, nothing elsewhere."""
    url = postgresql.database()
    yield url
    postgresql.drop(url)
