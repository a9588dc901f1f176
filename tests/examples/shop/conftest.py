"""Fixtures of the shop's tests, on top of the emulator's `bank`."""

from __future__ import annotations

from decimal import Decimal

import pytest
from shop import Order, Shop

from emulator.testing import RunningBank, TestTpp

KARI, KARIS_ACCOUNT = "14888520059", "99901000014"


@pytest.fixture
def tpp(bank: RunningBank) -> TestTpp:
    """The shop's certificate, which may initiate payments and nothing else."""
    return bank.tpp(roles=["PISP"])


@pytest.fixture
def shop(tpp: TestTpp) -> Shop:
    return Shop(tpp)


@pytest.fixture
def order() -> Order:
    return Order(Decimal(250), KARIS_ACCOUNT, KARI)
