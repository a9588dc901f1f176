"""The SCA pages of a small bank, visited without a socket."""

from __future__ import annotations

import types

import pytest

from emulator.bank.bank import Bank
from emulator.web.pages.guard import Guard
from emulator.web.pages.sca_pages import ScaPages
from tests.unit.pages.people import small_bank
from tests.unit.pages.visitor import Visitor


@pytest.fixture
def bank() -> Bank:
    return small_bank()


@pytest.fixture
def guard() -> Guard:
    return Guard(allowed_hosts=("bank.example.test",), secret=b"a secret of the test")


@pytest.fixture
def visitor(bank: Bank, guard: Guard) -> Visitor:
    return Visitor(ScaPages(guard), types.SimpleNamespace(bank=bank))
