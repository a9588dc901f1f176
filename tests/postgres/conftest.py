"""Two processes over one store, for all tests of a module; each test has banks of its own in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import count
from typing import NamedTuple

import pytest
import pytest_asyncio

from emulator.assemble import homes
from tests.postgres.process import Process, process
from tests.postgres.server import PostgreSQL

_banks = count(1)


class Two(NamedTuple):
    """Two processes."""

    one: Process
    two: Process


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def processes(postgresql: PostgreSQL, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Two]:
    url, folder = postgresql.database(), tmp_path_factory.mktemp("processes")
    with pytest.MonkeyPatch.context() as hurried:
        hurried.setattr(homes, "RENEWING", 0.2)
        async with AsyncExitStack() as ending:
            running = [await ending.enter_async_context(process(url, folder / name)) for name in ("one", "two")]
            yield Two(*running)
    postgresql.empty(url)


@pytest.fixture
def one(processes: Two) -> Process:
    return processes.one


@pytest.fixture
def two(processes: Two) -> Process:
    return processes.two


@pytest_asyncio.fixture(loop_scope="module")
async def bank(one: Process) -> str:
    """An empty bank with the first process as its home; its clock stands still."""
    name = f"b{next(_banks)}"
    await one.control("PUT", f"banks/{name}", {"fixtures": "empty", "clock": "frozen"}, status=201)
    return name
