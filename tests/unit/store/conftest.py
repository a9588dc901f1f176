"""A store in memory and one in a directory; what holds for the one holds for the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.store import Documents, memory_store, open_store
from tests.unit.store.making import KINDS, TroubledDisk


@pytest.fixture(params=["memory", "directory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Documents]:
    opened = memory_store(KINDS) if request.param == "memory" else open_store(tmp_path / "bank", KINDS)
    yield opened
    opened.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "bank"


@pytest.fixture
def disk() -> TroubledDisk:
    return TroubledDisk()
