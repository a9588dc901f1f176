"""Fixtures of the payments tests."""

from __future__ import annotations

import pytest

from emulator.bank.bank import Bank
from tests.unit.payments import world


@pytest.fixture
def bank() -> Bank:
    return world.build()
