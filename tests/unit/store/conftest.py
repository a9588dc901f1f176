"""A store, its directory, and a disk that can fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.store import Documents, open_store
from tests.unit.store.making import KINDS, TroubledDisk


@pytest.fixture
def store(directory: Path) -> Iterator[Documents]:
    """One in a directory; that one in memory answers alike is what test_model asks."""
    opened = open_store(directory, KINDS)
    yield opened
    opened.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "bank"


@pytest.fixture
def disk() -> TroubledDisk:
    return TroubledDisk()
