"""The SCA pages of a small bank, visited without a socket, and a whole emulator with its console."""

from __future__ import annotations

import types
from collections.abc import Iterator

import pytest

from emulator.bank.bank import Bank
from emulator.client.clients import Tpp
from emulator.web.pages import sca_pages
from emulator.web.pages.browser import Guard
from emulator.web.pages.rendering import CustomerPages
from tests.postgres.remote import RemoteBanks, RemoteLiving
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
    return Visitor(CustomerPages(guard, sca_pages.answer), types.SimpleNamespace(bank=bank))


@pytest.fixture
def emulator(remote_banks: RemoteBanks | None) -> Iterator[Living | RemoteLiving]:
    if remote_banks is not None:
        yield RemoteLiving(remote_banks, Tpp)
        return
    with living() as emulator:
        yield emulator


@pytest.fixture
def browser(emulator: Living) -> Visitor:
    return emulator.visitor()
