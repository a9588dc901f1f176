"""The SCA pages of a small bank, visited without a socket, and a whole emulator with its console."""

from __future__ import annotations

import types
from collections.abc import Iterator

import pytest

from emulator.bank.bank import Bank
from emulator.web.pages.browser import Guard
from emulator.web.pages.sca_pages import ScaPages
from tests.unit.pages.living import Living, living
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


@pytest.fixture
def emulator() -> Iterator[Living]:
    with living() as made:
        yield made


@pytest.fixture
def browser(emulator: Living) -> Visitor:
    return emulator.visitor()
